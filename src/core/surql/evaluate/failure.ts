/**
 * Failing evaluation: the value a caller sees ({@link Failure}) and the error thrown inside ({@link EvalError}).
 *
 * Why so: one exception caught at the public boundary (`run`, `evaluate`) costs nothing on rows that do not fail, an
 * Either per node would cost on every one. No code outside this folder sees the exception.
 */

/** Why an expression failed, worded as the database words it. */
export interface Failure {
  readonly reason: string
}

/** Thrown by evaluation, caught at the public boundary of this folder only. */
export class EvalError {
  readonly reason: string
  constructor(reason: string) {
    this.reason = reason
  }
}

export const raise = (reason: string): never => {
  throw new EvalError(reason)
}
