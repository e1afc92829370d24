/**
 * The stored part of a backend's answer to a successful job: its JSON, in bounds (D36).
 *
 * A result is a JSON object on the wire; any other value is put under `value`. A result that is too long is left out
 * whole and says so, because the beginning of a JSON text is not JSON. State of {@link RecentResults}: the last
 * results, bounded by their number and by the length of their texts.
 */
import * as JsonText from "../jsonText.ts"
import { isMapping } from "../typeGuards.ts"

export interface Result {
  readonly [field: string]: unknown
}

/** Bytes to read: one more than the limit, to notice a longer answer. */
export const bytesToRead = (limitBytes: number): number => (limitBytes === 0 ? 0 : limitBytes + 1)

/** First characters of a JSON text. */
const begins = /^\s*[[{"\-0-9tfn]/

/** The result of a body; undefined if the body is no JSON, or nothing is stored (`limitBytes` 0). */
export const resultOf = (body: string, limitBytes: number): Result | undefined => {
  if (limitBytes === 0 || !begins.test(body)) return undefined
  // A character has 1 to 3 bytes, so most texts need not be encoded to know that they fit.
  if (body.length > limitBytes || (body.length * 3 > limitBytes && new TextEncoder().encode(body).length > limitBytes))
    return { left_out: `the answer is longer than ${limitBytes} bytes` }
  try {
    const value = JsonText.parse(body) as unknown
    return isMapping(value) ? value : { value }
  } catch {
    return undefined
  }
}

/** A result from its stored text; undefined for any other text. */
export const fromText = (text: string | undefined): Result | undefined => {
  if (text === undefined) return undefined
  try {
    const value = JsonText.parse(text) as unknown
    return typeof value === "object" && value !== null ? (value as Result) : undefined
  } catch {
    return undefined
  }
}

export class RecentResults {
  private readonly kept = new Map<string, { readonly result: Result; readonly chars: number }>()
  private readonly maxEntries: number
  private readonly maxChars: number
  private chars = 0

  constructor(maxEntries = 10_000, maxChars = 16_777_216) {
    this.maxEntries = maxEntries
    this.maxChars = maxChars
  }

  get size(): number {
    return this.kept.size
  }

  get(job: string): Result | undefined {
    return this.kept.get(job)?.result
  }

  /**
   * Stores a result; undefined deletes it. Answers the jobs whose results were dropped to make room, perhaps this one.
   */
  put(job: string, result: Result | undefined): ReadonlyArray<string> {
    this.chars -= this.kept.get(job)?.chars ?? 0
    this.kept.delete(job)
    const gone: Array<string> = []
    if (result === undefined) return gone
    const chars = job.length + JsonText.write(result).length
    this.kept.set(job, { result, chars })
    this.chars += chars
    for (const [oldest, entry] of this.kept) {
      if (this.kept.size <= this.maxEntries && this.chars <= this.maxChars) break
      this.kept.delete(oldest)
      this.chars -= entry.chars
      gone.push(oldest)
    }
    return gone
  }
}
