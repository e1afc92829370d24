/**
 * Results of subqueries that take long to fill, while the first fill of the view around them waits with pauses.
 *
 * Why an exception: the row that asks for such a result is in the middle of its evaluation, which has no pauses. It is
 * given up and evaluated anew when the result is there; nothing of a row is kept before its evaluation ends.
 */
import type { Slices } from "../surql/evaluate/scope.ts"

/** Pieces of a fill, each of a few hundred rows, that the row which asks for the result waits for without a pause. */
const atOnce = 4

/** A view as its fill is driven. */
interface Fillable {
  readonly isFilling: boolean
  /** Number of fills that wait for this view, or have waited and have not yet shown the row that asked for it. */
  awaited: number
  fillOn(): void
}

/** Thrown out of the evaluation of a row. */
export class UnfilledResult {
  private readonly result: Fillable
  private readonly letGo: () => void
  private readonly rest: () => Slices<void>

  /** `rest`: what is to be done when the result is filled. */
  constructor(result: Fillable, letGo: () => void, rest: () => Slices<void> = nothing) {
    this.result = result
    this.letGo = letGo
    this.rest = rest
  }

  /** For a result that is filled, but whose value takes long to make. */
  static unvalued(result: Fillable, view: { prepareValue(): Slices<void> }, letGo: () => void): UnfilledResult {
    return new UnfilledResult(result, letGo, () => view.prepareValue())
  }

  /** Keeps the result from being dropped until {@link release}. */
  hold(): void {
    this.result.awaited++
  }

  release(): void {
    if (--this.result.awaited === 0) this.letGo()
  }

  *filled(): Slices<void> {
    while (this.result.isFilling) {
      yield
      if (this.result.isFilling) this.result.fillOn()
    }
    yield* this.rest()
  }
}

function* nothing(): Slices<void> {}

/**
 * Fills a result that a row asks for in the middle of its evaluation. Where that takes long and the row may wait, the
 * evaluation is given up; `letGo` is called when no fill needs the result any more.
 */
export const fillDuringRow = (result: Fillable, mayWait: boolean, letGo: () => void): void => {
  for (let i = 0; i < atOnce && result.isFilling; i++) result.fillOn()
  if (mayWait && result.isFilling) throw new UnfilledResult(result, letGo)
  while (result.isFilling) result.fillOn()
}

/**
 * Fills a result that is missing, and tries again until none is. Filled results are held until the end, though no row
 * reads them yet. `again` is told whether the row may wait once more: not after `most` results, since rows that change
 * all the time need other results each time.
 */
export function* fillMissing(
  first: UnfilledResult | undefined,
  again: (waits: boolean) => UnfilledResult | undefined,
  most: number
): Slices<void> {
  const held: Array<UnfilledResult> = []
  try {
    for (let unfilled = first; unfilled !== undefined; unfilled = again(held.length < most)) {
      unfilled.hold()
      held.push(unfilled)
      yield* unfilled.filled()
    }
  } finally {
    for (const each of held) each.release()
  }
}

/** Continues a fill in pieces, with pauses: `piece` answers true at the end, or the result that it needs. */
export function* fillInPieces(piece: (waits: boolean) => boolean | UnfilledResult, most: number): Slices<void> {
  let isDone = false
  const attempt = (waits: boolean): UnfilledResult | undefined => {
    const ended = piece(waits)
    isDone = ended === true
    return ended instanceof UnfilledResult ? ended : undefined
  }
  while (!isDone) {
    yield* fillMissing(attempt(true), attempt, most)
    if (!isDone) yield
  }
}

/**
 * How often a fill waits before it takes no more pauses: twice for each result that its rows need, until it is filled
 * and until its value is made, and some more.
 */
export const maxFillWaits = (subqueries: number, rows: number): number => 2 * subqueries * (rows + 4)
