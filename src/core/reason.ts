/** Why something failed, from an error that wraps others: the innermost message says most, `connect ECONNREFUSED 127.0.0.1:4000`. */
export const reasonOf = (error: unknown): string => {
  let inner = error
  for (let depth = 0; depth < 5 && inner instanceof Error && inner.cause !== undefined; depth++) inner = inner.cause
  return inner instanceof Error && inner.message !== "" ? inner.message : String(error)
}
