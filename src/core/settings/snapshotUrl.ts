/** Where snapshots of a shared log's replica come from: the other schedulers, or a folder that all of them reach. */

export type SnapshotUrl = { readonly kind: "peer" } | { readonly kind: "folder"; readonly path: string }

export const allowed = "peer: or file:///folder, the absolute path of a folder that every scheduler of the log reaches"

/** Undefined: not such an address. */
export const parse = (text: string): SnapshotUrl | undefined => {
  if (text === "peer:") return { kind: "peer" }
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
