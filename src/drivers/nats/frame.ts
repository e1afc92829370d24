/**
 * Frames: what one message of the log's stream holds, and how content longer than a message is cut.
 *
 * A frame begins with a line that says where the log stands with it, so that the last message alone says everything
 * about the log. Content may be cut within a record: how large a record may be is then no matter of the server's. Only
 * the last piece moves the log; pieces that have no last one count for nothing.
 */
import { isCount } from "../../core/typeGuards.ts"

/** `records`: what was appended; `pool`: rows of the pool; `term`: who leads; `cut`: what may be dropped; `beat`. */
export type Kind = "records" | "pool" | "term" | "cut" | "beat"

/** Where the log stands with this frame. */
export interface State {
  /** The log's id. */
  readonly log: string
  readonly epoch: number
  /** Position of the last record. */
  readonly last: number
  /** Records behind this position are kept. */
  readonly kept: number
  readonly leader: string | null
  readonly url: string | null
  /** Writes of the pool, and the message that holds the oldest row that still counts; 0: there is no row. */
  readonly writes: number
  readonly pool: number
}

export interface Head extends State {
  readonly layout: number
  readonly kind: Kind
  /** Number of records that end with this message. */
  readonly count: number
  /** Index of the piece, and number of pieces. */
  readonly part: number
  readonly parts: number
}

export interface Frame {
  /** Number of the frame's message in the stream. */
  readonly at: number
  readonly head: Head
  readonly body: Uint8Array
}

export const layout = 1
const newline = 10

/** Head of the first message of a log. */
export const firstHead = (log: string): Head => ({
  layout,
  log,
  kind: "term",
  epoch: 0,
  last: 0,
  kept: 0,
  leader: null,
  url: null,
  writes: 0,
  pool: 0,
  count: 0,
  part: 0,
  parts: 1
})

const encoder = new TextEncoder()
const decoder = new TextDecoder()

export const bytesOf = (text: string): Uint8Array => encoder.encode(text)

export const textOf = (bytes: Uint8Array): string => decoder.decode(bytes)

export const join = (pieces: ReadonlyArray<Uint8Array>): Uint8Array => {
  const [only] = pieces
  if (pieces.length === 1 && only !== undefined) return only
  const joined = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0))
  let at = 0
  for (const piece of pieces) {
    joined.set(piece, at)
    at += piece.length
  }
  return joined
}

/** Pieces of at most `most` bytes; at least one. */
export const cut = (body: Uint8Array, most: number): ReadonlyArray<Uint8Array> => {
  if (body.length <= most) return [body]
  const pieces: Array<Uint8Array> = []
  for (let at = 0; at < body.length; at += most) pieces.push(body.subarray(at, at + most))
  return pieces
}

export const encode = (head: Head, body: Uint8Array): Uint8Array => join([bytesOf(`${JSON.stringify(head)}\n`), body])

const isTextOrNull = (value: unknown): boolean => value === null || typeof value === "string"

const kinds: ReadonlySet<unknown> = new Set<Kind>(["records", "pool", "term", "cut", "beat"])

const isHead = (head: Head): boolean =>
  kinds.has(head.kind) &&
  typeof head.log === "string" &&
  isTextOrNull(head.leader) &&
  isTextOrNull(head.url) &&
  [head.epoch, head.last, head.kept, head.writes, head.pool, head.count, head.part, head.parts].every(isCount) &&
  head.part < head.parts

/** Undefined: no frame; the number of its layout, where a later version wrote it. */
export const decode = (at: number, data: Uint8Array): Frame | number | undefined => {
  const end = data.indexOf(newline)
  if (end < 0) return undefined
  try {
    const head = JSON.parse(textOf(data.subarray(0, end))) as Head
    if (isCount(head.layout) && head.layout > layout) return head.layout
    return head.layout === layout && isHead(head) ? { at, head, body: data.subarray(end + 1) } : undefined
  } catch {
    return undefined
  }
}

/** Whether the frame is the last piece of its message. */
export const isWhole = ({ head }: Frame): boolean => head.part === head.parts - 1

/** The message with its first piece. */
export const startOf = ({ at, head }: Frame): number => at - head.part

/** Position before its records. */
export const before = ({ head }: Frame): number => head.last - head.count
