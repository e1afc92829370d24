/**
 * The lines of a scheduler's feed as text: events with the position of the one before them in their table, and
 * watermarks.
 *
 * A connection may end at any byte, so text after the last line break is ignored: a line is complete or was never sent.
 * Both ends use this file.
 */
import * as JsonText from "../jsonText.ts"
import { isCount } from "../typeGuards.ts"

/** A line with the position through which all events of the reader's tables have been sent. */
export interface Watermark {
  readonly through: number
  readonly logId: string | undefined
  readonly epoch: number | undefined
}

/** An event as received, and the position before it in its table. */
export interface FeedEvent {
  readonly table: string
  readonly seq: number
  /** Position of the previous event of its table; 0: there is none; undefined: the scheduler does not know. */
  readonly prev: number | undefined
  readonly json: { readonly [field: string]: unknown }
}

/** The line of an event: as SSPs are sent it (`Event.forwarded`), with `prev` if that is known. */
export const eventLine = (forwarded: string, prev: number | undefined): string =>
  prev === undefined ? `${forwarded}\n` : `${forwarded.slice(0, -1)},"prev":${prev}}\n`

/** The event of a line made by {@link eventLine}, without `prev`. */
export const forwardedOf = (line: string, prev: number | undefined): string =>
  prev === undefined ? line.slice(0, -1) : `${line.slice(0, -`,"prev":${prev}}\n`.length)}}`

export const watermarkLine = (through: number, logId: string, epoch: number): string =>
  `{"through":${through},"log_id":${JSON.stringify(logId)},"epoch":${epoch}}\n`

/** Parses a line of a feed. A text answer is the reason why the line is invalid. */
export const read = (line: string): FeedEvent | Watermark | string => {
  let json: unknown
  try {
    json = JsonText.parse(line)
  } catch {
    return `is no JSON: ${line.slice(0, 80)}`
  }
  if (typeof json !== "object" || json === null || Array.isArray(json)) return "is no object"
  const fields = json as { readonly [field: string]: unknown }
  const { epoch, log_id: logId, prev, seq, table, through } = fields
  if (through !== undefined) {
    if (!isCount(through)) return "has a `through` that is no position"
    return {
      through,
      logId: typeof logId === "string" ? logId : undefined,
      epoch: isCount(epoch) ? epoch : undefined
    }
  }
  if (typeof table !== "string" || !isCount(seq)) return "is neither an event with a position nor a watermark"
  if (prev !== undefined && !(isCount(prev) && prev < seq)) return "has a `prev` that is no position before its own"
  return { table, seq, prev, json: fields }
}

/** Cuts text into lines, whatever pieces it comes in. */
export class LineCutter {
  private rest = ""

  /** `most`: characters of a line. */
  constructor(private readonly most: number) {}

  /** The lines that are complete; undefined if one is too long. */
  push(text: string): ReadonlyArray<string> | undefined {
    const lines = (this.rest + text).split("\n")
    this.rest = lines.pop() ?? ""
    return this.rest.length > this.most || lines.some((line) => line.length > this.most) ? undefined : lines
  }
}
