/** The address of a log that a server keeps: where it is, which log there is meant, and how it is named to people. */

export interface LogUrl {
  /** As the driver takes it: without the name of the log. */
  readonly url: string
  readonly log: string
  /** Host, database and log; never user or password. */
  readonly shown: string
}

export const allowed =
  "postgres://user:password@host:port/database?log=name, the name of lower case letters, digits, - and _, at most 63"

const logName = /^[a-z0-9_-]{1,63}$/

/** Undefined: not such an address. */
export const parse = (text: string): LogUrl | undefined => {
  if (!URL.canParse(text)) return undefined
  const url = new URL(text)
  const log = url.searchParams.get("log") ?? "svc"
  if (!/^postgres(ql)?:$/.test(url.protocol) || url.hostname === "" || url.pathname.length < 2) return undefined
  if (!logName.test(log) || url.searchParams.getAll("log").length > 1) return undefined
  url.searchParams.delete("log")
  return { url: url.href, log, shown: `postgres://${url.host}${url.pathname}?log=${log}` }
}
