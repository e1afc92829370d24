/**
 * Where snapshots of a shared log's replica come from: the other schedulers, a folder that all of them reach, or the
 * servers that keep the log.
 */

export type SnapshotUrl =
  | { readonly kind: "peer" }
  | { readonly kind: "log" }
  | { readonly kind: "folder"; readonly path: string }

export const allowed =
  "peer:, log: with a log on NATS, or file:///folder, the absolute path of a folder that every scheduler of the log reaches"

/** Undefined: not such an address. */
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
