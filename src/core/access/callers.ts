/**
 * Which callers may ask a server at all, before any secret is checked (D47): pages of other sites, foreign names that
 * resolve to this host (DNS rebinding), addresses from outside.
 *
 * Why before the secret: a scheduler may ask for none, and then a web page opened by a person on the network could
 * write records (a plain POST needs no preflight), register itself as an SSP, or read everything under a name of its
 * own that now resolves to this address. A browser always says where a page is from and which name it asked for.
 */

import { shown } from "../shown.ts"
import * as Cors from "./cors.ts"
import * as Hosts from "./hosts.ts"
import { clientOf } from "./rateLimit.ts"

export interface CallerRules {
  /** Whether the server asks for no secret. */
  readonly isOpen: boolean
  /** A server that asks for no secret answers any address, under any name (SVC_SCHEDULER_OPEN_TO). */
  readonly answersAnybody: boolean
  /** Origins whose pages may call; `*` alone for any. */
  readonly origins: Cors.Origins
  /** Further host names under which an open server answers. */
  readonly hosts: ReadonlyArray<string> | undefined
  /** Paths that hold no data and change nothing, which pages may load from anywhere. */
  readonly staticPaths: ReadonlySet<string>
  /** Nodes authenticate each other by certificates (SVC_TLS_CA_FILE). */
  readonly asksCertificates: boolean
  /** Paths that only nodes of the cluster call. */
  readonly nodePaths: ReadonlyArray<string>
}

/** The parts of a request that tell of its caller; texts as they came. */
export interface Caller {
  readonly method: string
  /** Path of the request, without its query. */
  readonly path: string
  readonly host: string | undefined
  readonly origin: string | undefined
  readonly contentType: string | undefined
  readonly address: string
  /** Whether the connection has presented a certificate of the cluster's authority. */
  readonly isNode: boolean
}

interface CallerRefused {
  readonly code: "FORBIDDEN" | "MISDIRECTED_REQUEST" | "UNSUPPORTED_MEDIA_TYPE"
  readonly message: string
}

/** Health probes: not rate-limited, and answered without data. */
export const probes: ReadonlySet<string> = new Set(["/health", "/livez", "/readyz", "/version"])

/** No public registry has names below these, so an outsider cannot make one of them resolve to this host. */
const reservedSuffixes = [".internal", ".local", ".localhost", ".svc"]

const hostName = (header: string): string | undefined =>
  URL.canParse(`http://${header}`) ? Hosts.hostOf(`http://${header}`) : undefined

/**
 * Whether an open server may answer under this name: through a foreign name that resolves to this host a page gets
 * around the same-origin rule.
 */
const isOwnName = (header: string, listed: ReadonlyArray<string> | undefined): boolean => {
  const name = hostName(header)
  if (name === undefined) return false
  return (
    Hosts.placeOf(name) !== undefined ||
    !name.includes(".") ||
    reservedSuffixes.some((suffix) => name.endsWith(suffix)) ||
    Hosts.isListed(name, listed)
  )
}

/** Whether the page belongs to this server: its origin is the requested host. The scheme may be a proxy's. */
const isSameOrigin = (origin: string, host: string | undefined): boolean => {
  if (host === undefined || !URL.canParse(origin)) return false
  const { host: theirs, protocol } = new URL(origin)
  return URL.canParse(`${protocol}//${host}`) && theirs !== "" && new URL(`${protocol}//${host}`).host === theirs
}

const isListedOrigin = (origin: string, listed: ReadonlyArray<string>): boolean =>
  listed[0] === "*" || listed.includes(origin.toLowerCase())

/** Whether the type is JSON, or absent, as in a request without a body. */
const isJson = (contentType: string | undefined): boolean =>
  contentType === undefined || /^application\/json\s*(?:;|$)/i.test(contentType)

/**
 * Whether a request may reach one of `paths`. Routes ignore case, doubled slashes and escapes, and a target may be a
 * whole URL. So a path counts wherever it occurs in the target; in doubt the request counts as reaching it.
 */
const mayReach = (paths: ReadonlyArray<string>, asked: string): boolean => {
  try {
    const plain = decodeURIComponent(asked).toLowerCase().replace(/\/+/g, "/")
    return paths.some((path) => plain.includes(path))
  } catch {
    return true
  }
}

const forbidden = (message: string): CallerRefused => ({ code: "FORBIDDEN", message })

/** Why a request is refused; undefined if it may proceed. */
export const refusal = (
  rules: CallerRules,
  { address, contentType, host, isNode, method, origin, path }: Caller
): CallerRefused | undefined => {
  if (probes.has(path)) return undefined
  if (
    rules.asksCertificates &&
    !isNode &&
    !rules.staticPaths.has(path) &&
    (rules.isOpen || mayReach(rules.nodePaths, path))
  ) {
    return forbidden(
      `this needs a client certificate of SVC_TLS_CA_FILE${rules.isOpen ? "; with SVC_SCHEDULER_AUTH_SECRET set only what nodes ask does" : ""}`
    )
  }
  if (rules.isOpen && !rules.answersAnybody) {
    // A socket that takes both families gives an IPv4 caller's address as `::ffff:a.b.c.d`. `clientOf` makes it IPv4
    // again; `placeOf` alone would take it for an address behind a translator and never call it private.
    if (Hosts.placeOf(clientOf(address)) !== "inside" && Hosts.placeOf(address) !== "inside") {
      return forbidden(
        "without SVC_SCHEDULER_AUTH_SECRET this server answers loopback and private addresses only; set it here and on the SSPs, or open the server to everybody who reaches it with SVC_SCHEDULER_OPEN_TO=anybody"
      )
    }
    if (host !== undefined && !isOwnName(host, rules.hosts)) {
      return {
        code: "MISDIRECTED_REQUEST",
        message: `the request's Host is ${shown(host)}: without SVC_SCHEDULER_AUTH_SECRET this server is asked by address, by a name without dots or by a reserved name only; list others in SVC_HOSTS, or open the server to everybody who reaches it with SVC_SCHEDULER_OPEN_TO=anybody`
      }
    }
  }
  if (origin === undefined || rules.staticPaths.has(path)) return undefined
  if (!isSameOrigin(origin, host) && !isListedOrigin(origin, Cors.originsFor(rules.origins, path))) {
    return forbidden(
      `pages of the origin ${shown(origin)} may not call this server; list it in SVC_CORS_ORIGINS, or in SVC_BROWSER_ORIGINS where it only follows views`
    )
  }
  if (method === "POST" && !isJson(contentType))
    return { code: "UNSUPPORTED_MEDIA_TYPE", message: "a body that a page sends must be application/json" }
  return undefined
}
