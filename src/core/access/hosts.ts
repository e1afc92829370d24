/**
 * Hosts of addresses that an SSP registers (D15): which may be told a secret, which may never be called.
 *
 * The scheduler calls addresses that any client can register. So the metadata addresses of clouds, which hand out
 * credentials, are refused whatever the configuration says, and a secret is sent only to loopback, private networks and
 * listed hosts.
 */
import { Either } from "effect"
import * as Address from "../settings/address.ts"

/**
 * `never`: link-local and metadata addresses; `inside`: loopback and private; `outside`: anything else that is an IP
 * address.
 */
type Place = "never" | "inside" | "outside"

const v4 = (text: string): ReadonlyArray<number> | undefined => {
  const parts = /^\d{1,3}(?:\.\d{1,3}){3}$/.test(text) ? text.split(".").map(Number) : []
  return parts.length === 4 && parts.every((part) => part <= 255) ? parts : undefined
}

/** Metadata addresses beside 169.254.169.254: of Alibaba, Oracle and Azure, outside of the link-local range. */
const metadataV4 = new Set(["100.100.100.200", "192.0.0.192", "168.63.129.16"])

const placeOfV4 = ([a = 0, b = 0, c = 0, d = 0]: ReadonlyArray<number>): Place => {
  if (a === 0 || (a === 169 && b === 254) || metadataV4.has(`${a}.${b}.${c}.${d}`)) return "never"
  return a === 127 || a === 10 || (a === 172 && b >= 16 && b < 32) || (a === 192 && b === 168) ? "inside" : "outside"
}

const metadataV6 = new Set(["fd00:ec2::254", "fd20:ce::254"])

/**
 * The IPv4 address embedded in an IPv6 one: mapped and compatible (`::ffff:a.b.c.d`, `::a.b.c.d`), translated
 * (`::ffff:0:a.b.c.d`), NAT64 (64:ff9b::/96, 64:ff9b:1::/48), 6to4 (2002::/16).
 */
const embeddedV4 = ([a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, high = 0, low = 0]: ReadonlyArray<number>):
  | ReadonlyArray<number>
  | undefined => {
  const bytes = (x: number, y: number): ReadonlyArray<number> => [x >> 8, x & 255, y >> 8, y & 255]
  if (a === 0x2002) return bytes(b, c)
  const prefixed =
    a === 0 && b === 0 && c === 0 && d === 0 && ((e === 0 && (f === 0xffff || f === 0)) || (e === 0xffff && f === 0))
  return prefixed || (a === 0x64 && b === 0xff9b && c <= 1) ? bytes(high, low) : undefined
}

/** An address with an embedded IPv4 address leads out through a translator, so it is never "inside". */
const placeOfV6 = (text: string): Place => {
  const embedded =
    text === "::" || text === "::1"
      ? undefined
      : embeddedV4(Address.ipv6Groups(text).map((group) => parseInt(group, 16)))
  if (embedded !== undefined) return placeOfV4(embedded) === "never" ? "never" : "outside"
  if (text === "::" || /^fe[89ab]/.test(text) || metadataV6.has(text)) return "never"
  return text === "::1" || /^f[cd]/.test(text) ? "inside" : "outside"
}

/** Place of an IP address in any notation; undefined for a name. */
export const placeOf = (address: string): Place | undefined => {
  const plain = v4(address)
  if (plain !== undefined) return placeOfV4(plain)
  if (!address.includes(":")) return undefined
  const bare = address.replace(/^\[|\]$/g, "").split("%")[0] ?? ""
  if (!URL.canParse(`http://[${bare}]`)) return undefined
  return placeOfV6(new URL(`http://[${bare}]`).hostname.slice(1, -1))
}

const metadataNames = new Set(["metadata.google.internal", "metadata", "instance-data", "instance-data.ec2.internal"])

/** Host of a URL without brackets and a trailing dot, in lower case. */
export const hostOf = (url: string): string =>
  new URL(url).hostname
    .replace(/^\[|\]$/g, "")
    .replace(/\.$/, "")
    .toLowerCase()

/** One entry of `SVC_SCHEDULER_SSP_URL_ALLOW`: a host, or `*.domain` for every host below it. */
const entry = /^(?:\*\.)?[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?$|^[0-9a-f:.]*:[0-9a-f:.]*$/

/** Parses a list separated by commas or blanks; undefined if some entry is invalid. */
export const parseList = (text: string): ReadonlyArray<string> | undefined => {
  const entries = text
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((each) => each !== "")
    .map((each) => each.replace(/^\[|\]$/g, ""))
  return entries.length > 0 && entries.every((each) => entry.test(each)) ? entries : undefined
}

export const isListed = (host: string, list: ReadonlyArray<string> | undefined): boolean =>
  list?.some((each) => (each.startsWith("*.") ? host.endsWith(each.slice(1)) : host === each)) ?? false

/** Whether a host, or an address of its name, is a link-local or metadata address. */
export const isNeverCalled = (host: string, resolved: ReadonlyArray<string>): boolean =>
  metadataNames.has(host) || [host, ...resolved].some((each) => placeOf(each) === "never")

/**
 * The address that an SSP registers, without a trailing slash, or why it is refused. `resolved`: addresses of its name;
 * empty for an IP address or an unknown name.
 */
export const checkUrl = (
  url: string,
  list: ReadonlyArray<string> | undefined,
  resolved: ReadonlyArray<string>
): Either.Either<string, string> => {
  const base = Address.httpBase(url)
  if (base === undefined)
    return Either.left("must be an http:// or https:// address without user, password, query and fragment")
  const host = hostOf(base)
  if (isNeverCalled(host, resolved)) return Either.left("is a link-local or metadata address, which is never called")
  if (list !== undefined && !isListed(host, list))
    return Either.left(`has a host that is not in SVC_SCHEDULER_SSP_URL_ALLOW: ${host}`)
  return Either.right(base)
}

/**
 * Whether a request to `url` may carry a secret: its host is in `list`, or every address of it (`resolved` if the host
 * is a name) is loopback or private.
 */
export const mayReceiveSecret = (
  url: string,
  list: ReadonlyArray<string> | undefined,
  resolved: ReadonlyArray<string>
): boolean => {
  const host = hostOf(url)
  const addresses = placeOf(host) === undefined ? resolved : [host]
  return isListed(host, list) || (addresses.length > 0 && addresses.every((each) => placeOf(each) === "inside"))
}
