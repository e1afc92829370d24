/**
 * Sources of snapshots of a shared log's replica: the other schedulers, a shared folder, or the servers of the log.
 */

export type SnapshotUrl =
  | { readonly kind: "peer" }
  | { readonly kind: "log" }
  | { readonly kind: "folder"; readonly path: string }

export const allowed =
  "peer:, log: with a log on NATS, or file:///folder, the absolute path of a folder that every scheduler of the log reaches"

/** Parses an address; undefined if it has none of the forms. */
export const parse = (text: string): SnapshotUrl | undefined => {
  if (text === "peer:") return { kind: "peer" }
  if (text === "log:") return { kind: "log" }
  if (!text.startsWith("file:///") || !URL.canParse(text)) return undefined
  const { hash, pathname, search } = new URL(text)
  if (hash !== "" || search !== "") return undefined
  try {
    const path = decodeURIComponent(pathname)
    return path === "/" || path.includes("\u0000") ? undefined : { kind: "folder", path }
  } catch {
    return undefined
  }
}
