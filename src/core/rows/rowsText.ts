/**
 * Messages to followers in format `rows`, as JSON text (D50): rows are texts already, so none is encoded twice.
 */
import type { Touched } from "../ivm/view/view.ts"
import type { RowsDelta } from "./rowList.ts"

/** Characters of rows in one part of a snapshot; at least one row. */
const partChars = 131_072

/** Adds the rows touched by a step to those of earlier steps. */
export const noteTouched = (
  touched: Map<string, boolean>,
  { additions, removals, updates }: Touched["delta"]
): void => {
  for (const key of removals) touched.set(key, false)
  for (const [key] of additions) touched.set(key, true)
  for (const [key] of updates) touched.set(key, true)
}

const pairs = (name: string, list: ReadonlyArray<readonly [number, string]>): string =>
  list.length === 0 ? "" : `,"${name}":[${list.map(([position, text]) => `[${position},${text}]`).join(",")}]`

/** `errors`: as JSON, if they have changed. */
export const deltaText = (
  { insert, patch, remove, update }: RowsDelta,
  hash: string,
  errors: string | undefined
): string => {
  const removed = remove.length === 0 ? "" : `,"remove":[${remove.join(",")}]`
  const failed = errors === undefined ? "" : `,"errors":${errors}`
  return `{"result_hash":"${hash}"${removed}${pairs("insert", insert)}${pairs("update", update)}${pairs("patch", patch)}${failed}}`
}

/** Fields of the last part of a snapshot, which hold for the whole. */
interface SnapshotEnd {
  readonly only: boolean
  readonly result_hash: string
  readonly errors?: ReadonlyArray<{ readonly id: string; readonly reason: string }>
  readonly warnings?: ReadonlyArray<string>
}

/** The parts of a snapshot, each made into text on demand; at least one. */
export const snapshotParts = (id: string, texts: Iterable<string>, end: SnapshotEnd): ReadonlyArray<() => string> => {
  const parts: Array<Array<string>> = [[]]
  let chars = 0
  for (const text of texts) {
    if (chars > partChars) {
      parts.push([])
      chars = 0
    }
    parts.at(-1)!.push(text)
    chars += text.length
  }
  return parts.map((rows, part) => () => {
    const last = part === parts.length - 1 ? `,${JSON.stringify(end).slice(1, -1)}` : ""
    return `{"query_id":${JSON.stringify(id)},"part":${part},"parts":${parts.length},"rows":[${rows.join(",")}]${last}}`
  })
}
