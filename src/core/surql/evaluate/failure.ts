/**
 * Failing evaluation: the value a caller sees ({@link Failure}) and the error thrown inside ({@link EvalError}).
 *
 * Why so: one exception caught at the public boundary (`run`, `evaluate`) costs nothing on rows that do not fail, an
 * Either per node would cost on every one. No code outside this folder sees the exception.
 */

/** Why an expression failed. */
export interface Failure {
  /** Reason in the database's words, with the values involved. */
  readonly reason: string
  /** The reason without any value of a record, for readers who may not see the record. */
  readonly kind: string
}

/** Thrown by evaluation, caught at the public boundary of this folder only. */
export class EvalError implements Failure {
  constructor(
    readonly reason: string,
    readonly kind: string
  ) {}
}

/** A part of a failure's text that every reader of the view may see. */
class Known {
  constructor(readonly text: string) {}
}

/** Marks a text of the query, the settings or the evaluator itself; never a value of a record. */
export const ownText = (text: string | number): Known => new Known(String(text))

/** Placeholder for a value. */
const hidden = "…"

const failed = (words: ReadonlyArray<string>, parts: ReadonlyArray<Known | string | number | bigint>): EvalError => {
  let reason = words[0]!
  let kind = reason
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i]!
    const after = words[i + 1]!
    reason += (part instanceof Known ? part.text : part) + after
    kind += (part instanceof Known ? part.text : hidden) + after
  }
  return new EvalError(reason, kind)
}

/** Fails with a text whose inserted parts count as values, unless they are {@link ownText}. */
export const raise = (
  words: TemplateStringsArray,
  ...parts: ReadonlyArray<Known | string | number | bigint>
): never => {
  throw failed(words, parts)
}

/** Repeats the failure of another evaluation. */
export const raiseAgain = ({ kind, reason }: Failure): never => {
  throw new EvalError(reason, kind)
}

/** A failure whose text holds no value. */
export const plainFailure = (text: string): Failure => ({ reason: text, kind: text })

const tooDeep = plainFailure("The query recurses too deep")
const tooLong = plainFailure("The query makes a text that is too long")

/** The failure of an error thrown inside an evaluation; any other error is a defect, and is thrown again. */
export const failureOf = (error: unknown): Failure => {
  if (error instanceof EvalError) return error
  if (error instanceof RangeError && /call stack/.test(error.message)) return tooDeep
  if (error instanceof RangeError && /string length/.test(error.message)) return tooLong
  throw error
}

/** Whether two failures have the same reason. */
export const isSame = (a: Failure | undefined, b: Failure | undefined): boolean => a?.reason === b?.reason
