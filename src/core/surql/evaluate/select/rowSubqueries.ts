/**
 * Pauses within one row of a query that is run whole: the row may evaluate subqueries over many rows.
 *
 * Why an exception: an expression cannot pause. The row is given up at such a subquery, which then runs in pieces, and
 * is evaluated anew with the results that its subqueries have had so far, in the order in which it asked for them. No
 * record changes during a run and no function is random, so the row asks for the same ones. Each result is paid for as
 * if it had been evaluated there.
 */
import type { Budget, Slices } from "../scope.ts"
import { drain } from "../scope.ts"

/** Pieces of a subquery, each of a few hundred rows, that its row waits for without a pause. */
const piecesAtOnce = 4

interface Ended {
  readonly rows: () => ReadonlyArray<never>
  readonly steps: number
  readonly bytes: number
}

/** Thrown out of the evaluation of a row. */
class UnfinishedSubquery {
  readonly finished: () => Slices<void>

  constructor(finished: () => Slices<void>) {
    this.finished = finished
  }
}

/** The subqueries of the row that is evaluated. */
export class RowSubqueries {
  private readonly budget: Budget
  private ended: Array<Ended> = []
  private next = 0

  constructor(budget: Budget) {
    this.budget = budget
  }

  /** Evaluates a row; answers the rest of the work, which repeats it, if one of its subqueries takes long. */
  evaluate(row: () => void): Slices<void> | undefined {
    const { bytes, left } = this.budget
    if (this.ended.length > 0) this.ended = []
    const unfinished = this.attempt(row)
    return unfinished && this.goOn(unfinished, row, left, bytes)
  }

  private *goOn(first: UnfinishedSubquery, row: () => void, left: number, bytes: number): Slices<void> {
    for (let unfinished: UnfinishedSubquery | undefined = first; unfinished !== undefined; ) {
      yield* unfinished.finished()
      this.budget.left = left
      this.budget.bytes = bytes
      unfinished = this.attempt(row)
    }
  }

  private attempt(row: () => void): UnfinishedSubquery | undefined {
    const { budget } = this,
      { subqueries } = budget
    this.next = 0
    budget.subqueries = this
    try {
      row()
      return undefined
    } catch (error) {
      if (error instanceof UnfinishedSubquery) return error
      throw error
    } finally {
      budget.subqueries = subqueries
    }
  }

  run<Row>(slices: Slices<ReadonlyArray<Row>>): ReadonlyArray<Row> {
    const { budget } = this
    const known = this.ended[this.next++]
    if (known !== undefined) {
      budget.left -= known.steps
      budget.bytes -= known.bytes
      return known.rows()
    }
    const { bytes, left } = budget
    for (let i = 0; i < piecesAtOnce; i++)
      if (this.isOver(slices, left, bytes)) return this.ended[this.ended.length - 1]!.rows()
    const { isOver } = this
    throw new UnfinishedSubquery(function* () {
      do yield
      while (!isOver(slices, left, bytes))
    })
  }

  /** Runs one more piece; its rows have subqueries of their own. */
  private readonly isOver = (slices: Slices<ReadonlyArray<unknown>>, left: number, bytes: number): boolean => {
    const { budget } = this,
      { subqueries } = budget
    let rows: Ended["rows"]
    budget.subqueries = undefined
    try {
      const piece = slices.next()
      if (piece.done !== true) return false
      rows = () => piece.value as ReadonlyArray<never>
    } catch (error) {
      rows = () => {
        throw error
      }
    } finally {
      budget.subqueries = subqueries
    }
    this.ended.push({ rows, steps: left - budget.left, bytes: bytes - budget.bytes })
    return true
  }
}

/** Runs a subquery in the middle of a row, which may be given up for it. */
export const runInRow = <Row>(budget: Budget, slices: Slices<ReadonlyArray<Row>>): ReadonlyArray<Row> =>
  budget.subqueries === undefined ? drain(slices) : budget.subqueries.run(slices)
