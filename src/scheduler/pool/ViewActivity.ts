/**
 * Last activity of views that seem expired, read from the database, many in one query (D14).
 *
 * Clients refresh the time in the database and the scheduler gets no event of it, so a view expires only by an answer
 * of the database. A query that fails expires nothing; the pool asks again later.
 */
import { Duration, Effect } from "effect"
import type { Command } from "../../core/cluster/messages.ts"
import { toMillis } from "../../core/surql/values/datetime.ts"
import * as Ids from "../../core/surql/values/recordId.ts"
import { Datetime } from "../../core/surql/values/value.ts"
import { queryTable } from "../../core/surreal/surrealSchema.ts"
import { steadyAheadMs, steadyOf } from "../../ports/Turn.ts"
import type { UpstreamError, UpstreamShape } from "../../ports/Upstream.ts"
import { ViewQueue } from "./ViewQueue.ts"

const pauseMs = 5000

const millis = (value: unknown): number => (value instanceof Datetime ? toMillis(value) : Number.NEGATIVE_INFINITY)

export class ViewActivity {
  /** Views to ask about, each with the last activity that the pool knows. */
  private readonly asked: ViewQueue<number>

  constructor(
    private readonly upstream: UpstreamShape,
    private readonly tell: (command: Command) => Effect.Effect<unknown>,
    start: (effect: Effect.Effect<void>) => void
  ) {
    this.asked = new ViewQueue(
      start,
      Effect.suspend(() => this.answer)
    )
  }

  /** Ends with `ActivityFound`: the later of `known` and the database's time. */
  ask(view: string, known: number): Effect.Effect<void> {
    if (!this.upstream.present) return Effect.asVoid(this.tell({ tag: "ActivityFound", view, lastActiveAt: known }))
    return this.asked.add(view, known)
  }

  /**
   * How far the pool's steady time is ahead of times in the database. SSPs wrote those by their machines' clocks,
   * clients by the database's, so the difference that lets a view live longer counts.
   */
  private readonly ahead: Effect.Effect<number, UpstreamError> = Effect.suspend(() =>
    Effect.zipWith(Effect.clock, this.upstream.nowMs ?? Effect.succeed(Number.POSITIVE_INFINITY), (clock, databaseMs) =>
      Math.max(steadyAheadMs(clock), steadyOf(clock)() - databaseMs)
    )
  )

  private readonly answer: Effect.Effect<void> = Effect.suspend(() => {
    const views = [...this.asked.waiting]
    return this.upstream.find(views.map(([view]) => Ids.make(queryTable, view))).pipe(
      Effect.zip(this.ahead),
      Effect.flatMap(([found, ahead]) => {
        const times = new Map(found.map(({ doc, id }) => [id.text, millis(doc["lastActiveAt"]) + ahead]))
        return Effect.forEach(
          views,
          ([view, known]) =>
            this.tell({
              tag: "ActivityFound",
              view,
              lastActiveAt: Math.max(known, times.get(Ids.make(queryTable, view).text) ?? known)
            }),
          { discard: true }
        )
      }),
      Effect.catchAll((error) =>
        Effect.zipRight(
          Effect.logWarning(
            `views cannot expire, the database does not say when they were last active: ${error.message}`
          ),
          Effect.sleep(Duration.millis(pauseMs))
        )
      ),
      Effect.ensuring(Effect.sync(() => this.asked.waiting.clear()))
    )
  })
}
