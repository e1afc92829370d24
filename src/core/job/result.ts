/**
 * The kept part of a backend's answer to a job that is done: its JSON, in bounds (D36).
 *
 * A result is a JSON object on the wire. Any other value stands under `value`. A result that is too long is left out
 * whole and says so, because the beginning of a JSON text is not JSON. State of {@link RecentResults}: the last
 * results, bounded by their number and by the length of their texts.
 */
import * as JsonText from "../jsonText.ts"
import { isMapping } from "../typeGuards.ts"

export interface Result {
  readonly [field: string]: unknown
}

/** Bytes read: one more than the limit, so that a longer answer is known to be. */
export const readFor = (limitBytes: number): number => (limitBytes === 0 ? 0 : limitBytes + 1)

/** What may begin a JSON text. */
const begins = /^\s*[[{"\-0-9tfn]/

/** Undefined: the answer is no JSON, or nothing is kept (`limitBytes` 0). */
export const resultOf = (body: string, limitBytes: number): Result | undefined => {
  if (limitBytes === 0 || !begins.test(body)) return undefined
  // More bytes than characters, never less: most texts need not be encoded to be known to fit.
  if (body.length > limitBytes || (body.length * 3 > limitBytes && new TextEncoder().encode(body).length > limitBytes))
    return { left_out: `the answer is longer than ${limitBytes} bytes` }
  try {
    const value = JsonText.parse(body) as unknown
    return isMapping(value) ? value : { value }
  } catch {
    return undefined
  }
}

/** From a text that was kept; undefined: it is none of ours. */
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

  /** Undefined: it has none any more. The oldest make room; answers whose are gone, in the end perhaps this one. */
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
