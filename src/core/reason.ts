/**
 * The reason in an error that wraps others: the innermost message says most, such as
 * `connect ECONNREFUSED 127.0.0.1:4000`.
 */
export const reasonOf = (error: unknown): string => {
  let inner = error
  for (let depth = 0; depth < 5 && inner instanceof Error && inner.cause !== undefined; depth++) inner = inner.cause
  return inner instanceof Error && inner.message !== "" ? inner.message : String(error)
}

/** The first line of an error's message; the rest comes from the runtime. */
export const firstLineOf = (error: unknown): string =>
  error instanceof Error ? error.message.split("\n", 1)[0]! : String(error)

const brokenOff = new Set<unknown>(["ECONNRESET", "EPIPE", "UND_ERR_SOCKET"])

/** Whether an open connection broke off before the answer; looks into wrapped errors. */
export const isLost = (error: unknown): boolean => {
  let inner: unknown = error
  for (let depth = 0; depth < 5 && typeof inner === "object" && inner !== null; depth++) {
    if ("code" in inner && brokenOff.has(inner.code)) return true
    inner = "cause" in inner ? inner.cause : undefined
  }
  return false
}

/** Whether there was no answer in time. */
export const isLate = (error: unknown): boolean =>
  typeof error === "object" &&
  error !== null &&
  (("late" in error && error.late === true) || ("_tag" in error && error._tag === "TimeoutException"))

/**
 * Whether a connection was refused; looks into wrapped errors. Then no process listens there, which a time-out or a
 * reset does not prove.
 */
export const isRefused = (error: unknown): boolean => {
  let inner: unknown = error
  for (let depth = 0; depth < 5 && typeof inner === "object" && inner !== null; depth++) {
    if ("code" in inner && inner.code === "ECONNREFUSED") return true
    inner = "cause" in inner ? inner.cause : undefined
  }
  return false
}
