/**
 * Why something failed, from an error that wraps others: the innermost message says most, `connect ECONNREFUSED
 * 127.0.0.1:4000`.
 */
export const reasonOf = (error: unknown): string => {
  let inner = error
  for (let depth = 0; depth < 5 && inner instanceof Error && inner.cause !== undefined; depth++) inner = inner.cause
  return inner instanceof Error && inner.message !== "" ? inner.message : String(error)
}

/** The first line of an error: the rest is of the runtime. */
export const firstLineOf = (error: unknown): string =>
  error instanceof Error ? error.message.split("\n", 1)[0]! : String(error)

const brokenOff = new Set<unknown>(["ECONNRESET", "EPIPE", "UND_ERR_SOCKET"])

/** Whether a connection that was there broke off before the answer, from an error that wraps others. */
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
 * Whether a connection was refused, from an error that wraps others: the process that listened there is gone, which a
 * time-out or a reset does not say.
 */
export const isRefused = (error: unknown): boolean => {
  let inner: unknown = error
  for (let depth = 0; depth < 5 && typeof inner === "object" && inner !== null; depth++) {
    if ("code" in inner && inner.code === "ECONNREFUSED") return true
    inner = "cause" in inner ? inner.cause : undefined
  }
  return false
}
