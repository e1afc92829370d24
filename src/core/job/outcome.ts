/**
 * The meaning of a backend's answer for the job (D37): done, worth another try, or final.
 *
 * Only the status decides; a body is at most quoted. 408, 425, 429, 5xx and a missing answer mean "later"; any other
 * 4xx means that the same call will always fail, and a redirect is not followed, so it is final too.
 */
import { type Result, resultOf } from "./result.ts"

/** Result of an attempt for its job: success, worth another attempt (`again`), or failed for good (`final`). */
export type Outcome =
  /** `result`: the stored part of the answer. */
  | { readonly kind: "success"; readonly result?: Result | undefined }
  /** `retryAfterMs`: delay that the backend asked for. */
  | {
      readonly kind: "again"
      readonly code: number
      readonly reason: string
      readonly retryAfterMs: number | undefined
    }
  | { readonly kind: "final"; readonly code: number; readonly reason: string }

export interface Answer {
  readonly status: number
  readonly retryAfter: string | undefined
  /** The part of the body that was read. */
  readonly body: string
}

const months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]

const imfDate = /^[a-z]{3}, (\d{2}) ([a-z]{3}) (\d{4}) (\d{2}):(\d{2}):(\d{2}) gmt$/i
const rfc850Date = /^[a-z]+, (\d{2})-([a-z]{3})-(\d{2}) (\d{2}):(\d{2}):(\d{2}) gmt$/i
const asctimeDate = /^[a-z]{3} ([a-z]{3}) ([ \d]\d) (\d{2}):(\d{2}):(\d{2}) (\d{4})$/i

const utc = (year: number, month: string, day: number, h: string, m: string, s: string): number | undefined => {
  const index = months.indexOf(month.toLowerCase())
  const ms = Date.UTC(year, index, day, Number(h), Number(m), Number(s))
  const back = new Date(ms)
  // `Date` rolls over 31 Feb and 25:00; such a text is no date.
  return index >= 0 &&
    back.getUTCDate() === day &&
    back.getUTCHours() === Number(h) &&
    back.getUTCMinutes() === Number(m)
    ? ms
    : undefined
}

/** The three forms of an HTTP date, as milliseconds; two-digit years are those nearest to `nowMs`. */
const httpDateMs = (text: string, nowMs: number): number | undefined => {
  const imf = imfDate.exec(text)
  if (imf !== null) return utc(Number(imf[3]), imf[2]!, Number(imf[1]), imf[4]!, imf[5]!, imf[6]!)
  const asctime = asctimeDate.exec(text)
  if (asctime !== null)
    return utc(Number(asctime[6]), asctime[1]!, Number(asctime[2]), asctime[3]!, asctime[4]!, asctime[5]!)
  const old = rfc850Date.exec(text)
  if (old === null) return undefined
  const now = new Date(nowMs).getUTCFullYear()
  const century = now - (now % 100) + Number(old[3])
  const year = century > now + 50 ? century - 100 : century <= now - 50 ? century + 100 : century
  return utc(year, old[2]!, Number(old[1]), old[4]!, old[5]!, old[6]!)
}

/** `Retry-After` as milliseconds from now: whole seconds or a date; undefined for any other text. */
export const retryAfterMs = (header: string | undefined, nowMs: number): number | undefined => {
  const text = header?.trim() ?? ""
  if (/^\d+$/.test(text)) return Number(text) * 1000
  const at = httpDateMs(text, nowMs)
  return at === undefined ? undefined : Math.max(0, at - nowMs)
}

const again = new Set([408, 425, 429])

const said = ({ body, status }: Answer): string =>
  body.trim() === "" ? `the backend answered ${status}` : `the backend answered ${status}: ${body.trim()}`

export const ofAnswer = (answer: Answer, nowMs: number, resultBytes = 0): Outcome => {
  const { status } = answer
  if (status >= 200 && status < 300) return { kind: "success", result: resultOf(answer.body, resultBytes) }
  if (again.has(status) || status >= 500)
    return { kind: "again", code: status, reason: said(answer), retryAfterMs: retryAfterMs(answer.retryAfter, nowMs) }
  if (status >= 300 && status < 400)
    return {
      kind: "final",
      code: status,
      reason: `the backend answered ${status}, a redirect; redirects are not followed`
    }
  return { kind: "final", code: status, reason: said(answer) }
}

/** Outcome of a call without an HTTP answer: a broken connection, a time-out. */
export const noAnswer = (reason: string): Outcome => ({ kind: "again", code: 0, reason, retryAfterMs: undefined })

/** Outcome of a job that can never be called. */
export const noCall = (reason: string): Outcome => ({ kind: "final", code: 0, reason })
