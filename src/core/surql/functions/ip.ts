/**
 * IP addresses by their grammar.
 *
 * Why so: one grammar serves the tests of strings and the hosts of mail addresses.
 */
const octet = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"
const ipv4 = new RegExp(`^${octet}(?:\\.${octet}){3}$`)

export const isIpv4 = (s: string): boolean => ipv4.test(s)

export const isIpv6 = (s: string): boolean => {
  const halves = s.split("::")
  if (halves.length > 2 || !/^[0-9a-fA-F:.]+$/.test(s)) return false
  const groups = halves.flatMap((h) => (h === "" ? [] : h.split(":")))
  const tail = groups[groups.length - 1] ?? ""
  const extra = tail.includes(".") ? (ipv4.test(tail) ? 1 : NaN) : 0
  const valid = groups.every((g, i) => /^[0-9a-fA-F]{1,4}$/.test(g) || (extra === 1 && i === groups.length - 1))
  return valid && (halves.length === 2 ? groups.length + extra < 8 : groups.length + extra === 8)
}
