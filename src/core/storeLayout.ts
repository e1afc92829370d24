/** Whether a store's content can be used by this version of the service: its layout number, and its integrity check. */

/** Why a store cannot be used, as every port's error has it. */
interface Unusable {
  readonly reason: "damaged" | "newer"
  readonly message: string
}

/** `layout`: number that the store has; `known`: highest number that this version reads. */
export const tooNew = (layout: number, known: number): Unusable | undefined =>
  layout > known
    ? {
        reason: "newer",
        message: `written by a later version of this service (layout ${layout}, this one knows ${known})`
      }
    : undefined

/** `answer`: of `PRAGMA quick_check(1)`. */
export const damage = (answer: unknown): Unusable | undefined =>
  answer === "ok" ? undefined : { reason: "damaged", message: String(answer ?? "the integrity check gave no answer") }
