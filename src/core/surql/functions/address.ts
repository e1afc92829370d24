/**
 * Addresses of mail, domains and URLs: `parse::email::*`, `parse::url::*`, `string::is_domain`, `string::is_email`,
 * `string::is_url`.
 *
 * Why so: one rule takes an address apart and tests it. URLs are read by the
 * platform's own `URL`, which follows the standard that the database follows.
 */
import type { Value } from "../values/value.ts"
import type { Fn, Table } from "./define.ts"
import { define } from "./define.ts"
import { isIpv4, isIpv6 } from "./ip.ts"

/** A text that reads as a number cannot be a top-level domain. */
const number = /^(?:\d+(?:e-?\d+)?|inf|infinity|nan)$/i

const isLabel = (label: string, last: boolean): boolean =>
  label !== "" &&
  Array.from(label).length <= 63 &&
  !(last && number.test(label)) &&
  /^(?!-)(?:[a-z0-9-]|[^\0-\x7f])+$/i.test(label) &&
  !label.endsWith("-")

/** A name of labels separated by dots; the last label may be followed by a dot. */
const isDomain = (text: string): boolean => {
  const labels = text.replace(/\.$/, "").split(".")
  return (
    labels.length <= 127 &&
    Array.from(text.replace(/\.$/, "")).length <= 253 &&
    labels.every((label, i) => isLabel(label, i === labels.length - 1))
  )
}

/** The part before the `@`. As in the database, an unquoted one may begin with almost anything. */
const isUser = (text: string): boolean => {
  const length = Array.from(text).length
  if (length === 0 || length > 65) return false
  if (text.startsWith('"')) return /^"(?:[a-z0-9!#$%&'*+/=?^_`{|}~"(),\\:;<>@[\]. -]|[^\0-\x7f])+"$/i.test(text)
  return (
    !text.includes("..") &&
    /^[^ .](?:(?:[a-z0-9!#$%&'*+/=?^_`{|}~.-]|[^\0-\x7f])*(?:[a-z0-9!#$%&'*+/=?^_`{|}~-]|[^\0-\x7f]))?$/isu.test(text)
  )
}

/** An IPv6 address in its shortest form, with an embedded IPv4 address as one. */
const shortest = (ip: string): string => {
  const text = new URL(`http://[${ip}]`).hostname.slice(1, -1)
  const mapped = /^::ffff:([0-9a-f]+):([0-9a-f]+)$/.exec(text)
  return mapped === null
    ? text
    : `::ffff:${mapped
        .slice(1)
        .flatMap((part) => {
          const n = parseInt(part, 16)
          return [n >> 8, n & 255]
        })
        .join(".")}`
}

interface Email {
  readonly user: string
  readonly host: string
}

const email = (text: string): Email | undefined => {
  const at = text.lastIndexOf("@")
  if (at < 0 || Array.from(text).length > 254 || !isUser(text.slice(0, at))) return undefined
  const user = text.slice(0, at),
    rest = text.slice(at + 1)
  if (!rest.startsWith("[")) return isDomain(rest) ? { user, host: rest } : undefined
  const ip = rest.slice(1, -1)
  if (!rest.endsWith("]")) return undefined
  return isIpv4(ip) ? { user, host: ip } : isIpv6(ip) ? { user, host: shortest(ip) } : undefined
}

const special: ReadonlySet<string> = new Set(["http:", "ws:", "https:", "wss:", "ftp:", "file:"])

/**
 * A URL by the standard. Where parsers differ, the database is stricter with punycode, and accepts `foo://@`, which has
 * no host.
 */
const url = (text: string): URL | undefined => {
  try {
    const u = new URL(text.replace(/^([\0-\x20]*(?!file:)[a-z][a-z0-9+.-]*:\/\/)@(?=[\0-\x20]*$)/i, "$1"))
    return special.has(u.protocol) && /(?:^|\.)xn--[^.]*-(?:\.|$)/.test(u.hostname) ? undefined : u
  } catch {
    return undefined
  }
}

/** Hosts of non-special schemes are names, even if they look like addresses. */
const domainOf = (u: URL): string | undefined =>
  u.hostname.startsWith("[") || (special.has(u.protocol) && /^\d+(?:\.\d+){3}$/.test(u.hostname))
    ? undefined
    : hostOf(u)

const ports: { readonly [scheme: string]: number } = { "http:": 80, "ws:": 80, "https:": 443, "wss:": 443, "ftp:": 21 }

/**
 * The path. In two corners parsers differ, and this follows the database: of several slashes at the start of a file's
 * path one stays, and a path walked back to its beginning is `/`.
 */
const pathOf = (u: URL, text: string): string => {
  if (u.protocol === "file:") return u.pathname.replace(/^\/+/, "/")
  return u.pathname === "" && /^[^:]*:(?:\/\/[^/?#]*|(?!\/\/))\//.test(text.replace(/[\t\r\n]/g, "")) ? "/" : u.pathname
}

/** The text after a mark, which may be empty; undefined without the mark. */
const behind = (text: string, mark: string): string | undefined =>
  text.includes(mark) ? text.slice(text.indexOf(mark) + 1) : undefined

const urlPart = (part: (u: URL, text: string) => Value): Fn =>
  define<[string]>(["string"], ([s]) => {
    const u = url(s)
    return u === undefined ? undefined : part(u, s)
  })

const hostOf = (u: URL): string | undefined => (u.hostname === "" ? undefined : u.hostname)

const test = (is: (text: string) => boolean): Fn => define<[string]>(["string"], ([s]) => is(s))

export const address: Table = {
  "parse::email::host": define<[string]>(["string"], ([s]) => email(s)?.host),
  "parse::email::user": define<[string]>(["string"], ([s]) => email(s)?.user),
  "parse::url::domain": urlPart(domainOf),
  "parse::url::fragment": urlPart((u) => behind(u.href, "#")),
  "parse::url::host": urlPart(hostOf),
  "parse::url::path": urlPart(pathOf),
  "parse::url::port": urlPart((u) => (u.port === "" ? ports[u.protocol] : Number(u.port))),
  "parse::url::query": urlPart((u) => behind(u.href.replace(/#.*$/s, ""), "?")),
  "parse::url::scheme": urlPart((u) => u.protocol.slice(0, -1)),
  "string::is_domain": test(isDomain),
  "string::is_email": test((s) => email(s) !== undefined),
  "string::is_ip": test((s) => isIpv4(s) || isIpv6(s)),
  "string::is_ipv4": test(isIpv4),
  "string::is_ipv6": test(isIpv6),
  "string::is_url": test((s) => url(s) !== undefined)
}
