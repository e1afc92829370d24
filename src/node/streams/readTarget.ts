/** What a `GET` under `/view/` asks for, as far as callbacks answer it. */
import type { formats } from "../../protocol/wire.ts"
import type { StreamFormat } from "./sse.ts"

export type Target =
  | { readonly id: string; readonly isStream: true; readonly format: StreamFormat | undefined }
  | { readonly id: string; readonly isStream: false; readonly format: (typeof formats)[number] | undefined }

const shape = /^\/view\/([^/?#]+)(\/stream)?(?:\?format=(flat|tree|streaming|rows))?$/

/** Dots alone would be a step of a path where the id is asked for at an SSP. */
export const isStep = (id: string): boolean => /^\.{1,2}$/.test(id)

/** Undefined for every path and query that needs a second look. */
export const of = (url: string): Target | undefined => {
  const [, written, stream, named] = shape.exec(url) ?? []
  if (written === undefined) return undefined
  const format = named as StreamFormat | undefined
  try {
    const id = decodeURIComponent(written)
    if (isStep(id)) return undefined
    if (stream !== undefined) return { id, isStream: true, format }
    return format === "rows" ? undefined : { id, isStream: false, format }
  } catch {
    return undefined
  }
}
