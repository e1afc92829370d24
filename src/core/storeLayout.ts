/** Whether a store's content can be used by this version of the service: its layout number, and its integrity check. */

/** Why a store cannot be used, in the form of every port's error. */
interface Unusable {
  readonly reason: "damaged" | "newer"
  readonly message: string
}

/** Fault if the store's `layout` is above `known`, the highest that this version reads. */
export const layoutFault = (layout: number, known: number): Unusable | undefined =>
  layout > known
    ? {
        reason: "newer",
        message: `written by a later version of this service (layout ${layout}, this one knows ${known})`
      }
    : undefined

/** Fault by the `answer` of `PRAGMA quick_check(1)`. */
export const integrityFault = (answer: unknown): Unusable | undefined =>
  answer === "ok" ? undefined : { reason: "damaged", message: String(answer ?? "the integrity check gave no answer") }
