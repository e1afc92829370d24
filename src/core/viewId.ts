/**
 * View ids and their keys (D10): `incantation:<key>`, `_svc_query:<key>` and `<key>` alone name the same view.
 *
 * One function, because a view found under two keys after a restart is two views to its clients.
 */
import * as Ids from "./surql/recordId.ts"

const prefixes: ReadonlyArray<string> = ["incantation:", "_svc_query:"]

/** The key a view is filed under, undefined when the id holds none (empty, or a bare prefix). */
export const viewKey = (id: string): string | undefined => {
  const prefix = prefixes.find((candidate) => id.startsWith(candidate))
  const key = prefix === undefined ? id : id.slice(prefix.length)
  if (key === "") return undefined
  if (prefix === undefined || !(key.startsWith("`") || key.startsWith("⟨"))) return key
  const parsed = Ids.parse(id)
  return typeof parsed?.key === "string" ? parsed.key : key
}
