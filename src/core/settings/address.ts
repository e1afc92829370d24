/**
 * Addresses as operators write them: of listeners and servers (D24), `host:port`, `:port`, `[ipv6]:port`, with or
 * without a scheme; and of stores (D22).
 *
 * Pure text work; names are not resolved here.
 */

export interface HostPort {
  /** Undefined means all interfaces. */
  readonly host: string | undefined
  readonly port: number
}

export const defaultListen = "127.0.0.1:8667"

const wildcards = new Set(["0.0.0.0", "::"])

const portOf = (text: string): number | undefined => {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : NaN
  return port <= 65_535 ? port : undefined
}

/** The eight groups of an IPv6 address as text; `::` becomes the missing zeros. */
export const ipv6Groups = (text: string): ReadonlyArray<string> => {
  const [head = "", tail] = text.split("::")
  const front = head === "" ? [] : head.split(":")
  if (tail === undefined) return front
  const back = tail === "" ? [] : tail.split(":")
  return [...front, ...Array.from({ length: 8 - front.length - back.length }, () => "0"), ...back]
}

const hostName = /^[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?$/

/** Parses a listen address; undefined if `text` has none of the forms. */
export const parse = (text: string): HostPort | undefined => {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]\s/]*)):(\d+)$/.exec(text)
  const port = portOf(match?.[3] ?? "")
  if (match === null || port === undefined) return undefined
  const host = match[1] ?? match[2] ?? ""
  if (host === "") return { host: undefined, port }
  return match[1] !== undefined || hostName.test(host) ? { host, port } : undefined
}

/** A host in the notation of URLs. */
const inUrl = (host: string): string => (host.includes(":") ? `[${host}]` : host)

/** An http(s) address without query, fragment and trailing slash; undefined for any other text. */
export const httpBase = (text: string): string | undefined => {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return undefined
  const url = new URL(text)
  if (url.search !== "" || url.hash !== "" || url.username !== "" || url.password !== "") return undefined
  return `${url.origin}${url.pathname}`.replace(/\/+$/, "")
}

/** One or more such addresses separated by commas, returned without blanks. */
export const httpBases = (text: string): string | undefined => {
  const bases = text.split(",").map((each) => httpBase(each.trim()))
  return bases.includes(undefined) ? undefined : bases.join(",")
}

export type Scheme = "http" | "https"

/** `ADVERTISE_ADDR` with a scheme; `scheme` is added if it has none. */
export const advertised = (text: string, scheme: Scheme = "http"): string | undefined =>
  httpBase(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `${scheme}://${text}`)

/**
 * Address at which other machines reach a listener: its host, or the machine's name if it listens on all interfaces.
 */
export const reachable = (listen: HostPort, port: number, machine: string, scheme: Scheme = "http"): string => {
  const host = listen.host === undefined || wildcards.has(listen.host) ? machine : listen.host
  return `${scheme}://${inUrl(host)}:${port}`
}

/** A database server: `url` as its SDK takes it, ending in `/rpc`. */
export interface ServerStore {
  readonly kind: "server"
  readonly url: string
}

/** A database inside the process: `url` as the operator wrote it. */
export interface EmbeddedStore {
  readonly kind: "embedded"
  readonly url: string
}

export type Store = { readonly kind: "memory" } | ServerStore | EmbeddedStore

const serverScheme = /^(?:ws|wss|http|https):\/\//i
const anyScheme = /^[a-z][a-z0-9+.-]*:\/\//i

/** Keeps the scheme: `wss` must not fall back to `ws`. */
const serverUrl = (text: string): string | undefined => {
  if (!URL.canParse(text)) return undefined
  const { hash, hostname, origin, password, pathname, search, username } = new URL(text)
  if (hostname === "" || search !== "" || hash !== "" || username !== "" || password !== "") return undefined
  const path = pathname.replace(/\/+$/, "")
  const base = origin === "null" ? `${new URL(text).protocol}//${new URL(text).host}` : origin
  return `${base}${path.endsWith("/rpc") ? path : `${path}/rpc`}`
}

/**
 * `STORE_ADDR`: `memory://`; `ws://`, `wss://`, `http://`, `https://` or bare `host:port` (taken as `ws://`) for a
 * server; `mem://`, `surrealkv://folder`, `rocksdb://folder` for the database inside the process. Undefined when it is
 * none of them.
 */
export const store = (text: string): Store | undefined => {
  if (text === "memory://") return { kind: "memory" }
  if (text === "mem://" || /^(?:surrealkv|rocksdb):\/\/./.test(text)) return { kind: "embedded", url: text }
  if (serverScheme.test(text)) {
    const url = serverUrl(text)
    return url === undefined ? undefined : { kind: "server", url }
  }
  const [address, ...path] = text.split("/")
  const parsed = anyScheme.test(text) ? undefined : parse(address ?? "")
  if (parsed === undefined || parsed.host === undefined) return undefined
  const url = serverUrl(`ws://${inUrl(parsed.host)}:${parsed.port}/${path.join("/")}`)
  return url === undefined ? undefined : { kind: "server", url }
}
