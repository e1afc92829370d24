/**
 * View ids and their keys (D10): `incantation:<key>`, `_svc_query:<key>` and `<key>` alone name the same view.
 *
 * One rule, because a view found under two keys after a restart is two views to its clients, and because the database
 * decides by the key which client may replace a view. The database follows the same rule in a function of its own
 * (`surrealFeed.ts`, `fn::svc_key`), so this file must accept exactly the same texts.
 */

const prefixes: ReadonlyArray<string> = ["incantation:", "_svc_query:"]

/**
 * A quoted key as the database writes it: in back-ticks or angle brackets, with back-slashes before the closing sign.
 */
const quoted = /^(?:`((?:[^`\\]|\\[`\\])*)`|⟨((?:[^⟩\\]|\\[⟩\\])*)⟩)$/u

const read = (text: string): string => {
  const match = quoted.exec(text)
  return (match?.[1] ?? match?.[2] ?? "").replace(/\\(.)/gu, "$1")
}

/**
 * The key of a view id; undefined if the id has none (empty, a bare prefix, quotes that do not end where the id ends).
 */
export const viewKey = (id: string): string | undefined => {
  const prefix = prefixes.find((candidate) => id.startsWith(candidate))
  const text = prefix === undefined ? id : id.slice(prefix.length)
  const key = prefix !== undefined && /^[`⟨]/u.test(text) ? read(text) : text
  return key === "" ? undefined : key
}
