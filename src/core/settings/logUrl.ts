/** The address of a log on servers: where it is, which log is meant, and its name for people. */

interface Named {
  readonly log: string
  /** Servers and log, without user, password and token. */
  readonly shown: string
}

export interface PostgresUrl extends Named {
  readonly engine: "postgres"
  /** Address for the driver, without the name of the log. */
  readonly url: string
}

export interface NatsUrl extends Named {
  readonly engine: "nats"
  /** `host:port` of each; any of them names the others. */
  readonly servers: ReadonlyArray<string>
  readonly isTls: boolean
  /** One name is a token, two are user and password. */
  readonly credentials: readonly [] | readonly [token: string] | readonly [user: string, password: string]
}

type LogUrl = PostgresUrl | NatsUrl

export const allowed =
  "postgres://user:password@host:port/database?log=name, or nats://host,host/name (tls:// for TLS), the name of lower case letters, digits, - and _, at most 63"

const logName = /^[a-z0-9_-]{1,63}$/
const unnamed = "svc"

const postgres = (text: string): PostgresUrl | undefined => {
  if (!URL.canParse(text)) return undefined
  const url = new URL(text)
  const log = url.searchParams.get("log") ?? unnamed
  if (url.hostname === "" || url.pathname.length < 2) return undefined
  if (!logName.test(log) || url.searchParams.getAll("log").length > 1) return undefined
  url.searchParams.delete("log")
  return { engine: "postgres", url: url.href, log, shown: `postgres://${url.host}${url.pathname}?log=${log}` }
}

const server = /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::(\d{1,5}))?$/i
const natsPort = 4222

const decoded = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

const serversOf = (text: string): ReadonlyArray<string> | undefined => {
  const servers: Array<string> = []
  for (const each of text.split(",")) {
    const found = server.exec(each)
    if (found === null || Number(found[1] ?? natsPort) > 65_535) return undefined
    servers.push(found[1] === undefined ? `${each}:${natsPort}` : each)
  }
  return servers
}

/** Parsed by hand: the platform's parser does not know addresses with several hosts. */
const nats = (text: string): NatsUrl | undefined => {
  const parts = /^(nats|tls):\/\/(?:([^@/?#]*)@)?([^@/?#]+)(?:\/([^/?#]*))?(?:\?log=([^&#]*))?$/.exec(text)
  if (parts === null) return undefined
  const [, scheme, user, hosts, path = "", asked] = parts
  if (path !== "" && asked !== undefined) return undefined
  const log = asked ?? (path === "" ? unnamed : path)
  const servers = serversOf(hosts!)
  if (servers === undefined || !logName.test(log)) return undefined
  const at = user?.indexOf(":") ?? -1
  const credentials =
    user === undefined ? [] : at < 0 ? [decoded(user)] : [decoded(user.slice(0, at)), decoded(user.slice(at + 1))]
  if (credentials.some((each) => each === undefined || each === "")) return undefined
  return {
    engine: "nats",
    servers,
    isTls: scheme === "tls",
    credentials: credentials as unknown as NatsUrl["credentials"],
    log,
    shown: `${scheme}://${servers.join(",")}/${log}`
  }
}

/** Parses an address; undefined if it has none of the forms. */
export const parse = (text: string): LogUrl | undefined =>
  /^postgres(ql)?:/.test(text) ? postgres(text) : /^(nats|tls):/.test(text) ? nats(text) : undefined
