/**
 * Logs rows that views leave out (D79): for each kind of failure in a view one row, with its id and the whole reason,
 * and how many rows fail alike.
 *
 * A type that changes makes all rows of a table fail at once, so a kind is logged when it first comes to a view, and
 * again if it was gone in between. The lines of all views share a limit per minute; the rest is counted, and
 * `/debug/view` shows it. A loop looks at the failing views when something has changed: changes pay nothing for it.
 */
import { Duration, Effect, Layer } from "effect"
import type { RowError, View } from "../../core/ivm/view/view.ts"
import { LineBudget, windowMs } from "../../core/telemetry/lineBudget.ts"
import { Serving } from "../../ports/Front.ts"
import { SspConfig } from "../Config.ts"
import { Lifecycle } from "../membership/Lifecycle.ts"
import { Views } from "../views/Views.ts"

const lookMs = 1_000
const looksAMinute = windowMs / lookMs
/** Failing rows and views visited between two turns of the event loop. */
const perTurn = 2_000

class RowErrorLog {
  /** Kinds of failures of each failing view at the last look. */
  private told: ReadonlyMap<View, ReadonlySet<string>> = new Map()
  private readonly budget: LineBudget
  private looks = 0
  private walked = 0

  constructor(private readonly most: number) {
    this.budget = new LineBudget(most)
  }

  readonly look = Effect.gen(this, function* () {
    if (++this.looks % looksAMinute === 0) yield* this.endMinute
    const failing = (yield* Views).failing()
    if (failing === undefined) return
    const told = new Map<View, ReadonlySet<string>>()
    for (const [id, view] of failing) {
      const kinds = new Map<string, { readonly first: RowError; count: number }>()
      yield* this.pause
      for (const error of view.failures()) {
        const { kind } = error.failure
        const alike = kinds.get(kind)
        if (alike === undefined) kinds.set(kind, { first: error, count: 1 })
        else alike.count++
        yield* this.pause
      }
      const before = this.told.get(view)
      if (kinds.size > 0) told.set(view, new Set(kinds.keys()))
      for (const [kind, { count, first }] of kinds) if (before?.has(kind) !== true) yield* this.line(id, first, count)
    }
    this.told = told
  })

  private readonly pause = Effect.suspend(() => (++this.walked % perTurn === 0 ? Effect.sleep(0) : Effect.void))

  private line(view: string, { failure, id }: RowError, count: number): Effect.Effect<void> {
    // One budget for all views.
    if (!this.budget.take("")) return Effect.void
    const rows = count === 1 ? "a row" : `${count} rows`
    return Effect.logWarning(`view ${view} leaves ${rows} out: ${failure.reason}`).pipe(
      Effect.annotateLogs({ view, ...(id === "" ? {} : { record: id }) })
    )
  }

  private readonly endMinute = Effect.suspend(() => {
    const [[, leftOut] = []] = this.budget.end()
    return leftOut === undefined
      ? Effect.void
      : Effect.logWarning(
          `${leftOut} more failures of rows are not written, as ${this.most} lines a minute are (SVC_ROW_ERRORS_PER_MINUTE); GET /debug/view/:view_id has them`
        )
  })
}

/** Logs the failing rows of all views once; `most`: lines a minute. */
export const look = (most: number): Effect.Effect<void, never, Views> => new RowErrorLog(most).look

export const layer: Layer.Layer<never, never, Views | Lifecycle | SspConfig | Serving> = Layer.scopedDiscard(
  Effect.gen(function* () {
    const { rowErrorsPerMinute } = yield* SspConfig
    const { loaded } = yield* Lifecycle
    const again = look(rowErrorsPerMinute)
    yield* Serving.fork(
      Effect.zipRight(loaded, Effect.forever(Effect.zipRight(again, Effect.sleep(Duration.millis(lookMs)))))
    )
  })
)
