/**
 * Frames: the content of one message in the log's stream, and how content larger than a message is split.
 *
 * A frame begins with a head line that holds the log's state, so the last message alone tells the whole state. Content
 * may be split within a record, so the server's message size does not limit records. Only the last piece changes the
 * log's state; pieces without a last one are ignored.
 */
import { isCount } from "../../core/typeGuards.ts"

/**
 * `records`: appended records; `pool`: rows of the pool; `term`: a new leader; `cut`: the log was dropped up to a
 * position; `beat`: a heartbeat of the leader.
 */
export type Kind = "records" | "pool" | "term" | "cut" | "beat"

/** State of the log, as of this frame. */
export interface State {
  /** Id of the log. */
  readonly log: string
  readonly epoch: number
  /** Position of the last record. */
  readonly last: number
  /** Records behind this position are kept. */
  readonly kept: number
  readonly leader: string | null
  readonly url: string | null
  /** `writes`: number of pool writes. `pool`: message that holds the oldest row still valid; 0: there is no row. */
  readonly writes: number
  readonly pool: number
}

export interface Head extends State {
  readonly layout: number
  readonly kind: Kind
  /** Number of records in the frame whose last piece this is. */
  readonly count: number
  /** Index of this piece, and number of pieces. */
  readonly part: number
  readonly parts: number
}

export interface Frame {
  /** Sequence number of the message in the stream. */
  readonly at: number
  readonly head: Head
  readonly body: Uint8Array
}

export const layout = 1
const newline = 10

/** Head of a new log's first message. */
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

/** Splits into pieces of at most `most` bytes; at least one piece. */
export const split = (body: Uint8Array, most: number): ReadonlyArray<Uint8Array> => {
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

/** The frame in a message; a number: the layout of a later version; undefined: no frame. */
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

/** Whether the frame is the last piece of its content. */
export const isLastPiece = ({ head }: Frame): boolean => head.part === head.parts - 1

/** Message that holds the first piece. */
export const firstMessageOf = ({ at, head }: Frame): number => at - head.part

/** Position before the frame's records. */
export const positionBefore = ({ head }: Frame): number => head.last - head.count
