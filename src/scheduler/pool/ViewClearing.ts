/**
 * Deletes the registrations and edges that SSPs have left in the database for views that are gone (D14, D16, D21).
 *
 * An SSP that dies, or has just reported that it dropped a view, may leave the registration and its edges behind, and
 * no other SSP knows of them. The scheduler claims the rows first, so that an SSP that still writes them loses the
 * view, and then deletes them: many views in one query, repeated until the database answers. The pool accepts no
 * registration of the view meanwhile.
 */
import { Effect, Either } from "effect"
import type { Command } from "../../core/cluster/messages.ts"
import * as Backoff from "../../node/work/backoff.ts"
import type { UpstreamError, UpstreamShape } from "../../ports/Upstream.ts"
import { ViewQueue } from "./ViewQueue.ts"

/** Views cleared by one query. */
const size = 50
const failing = { baseMs: 200, capMs: 10_000 }

export class ViewClearing {
  /** Views to clear, each with the `op` of the pool that asks for it. */
  private readonly asked: ViewQueue<number>

  constructor(
    private readonly upstream: UpstreamShape,
    /** Owner under which the rows are claimed. */
    private readonly owner: string,
    private readonly tell: (command: Command) => Effect.Effect<unknown>,
    start: (effect: Effect.Effect<void>) => void
  ) {
    this.asked = new ViewQueue(
      start,
      Effect.suspend(() => this.work)
    )
  }

  /** Ends with `ViewCleared`. */
  ask(view: string, op: number): Effect.Effect<void> {
    if (!this.upstream.present) return Effect.asVoid(this.tell({ tag: "ViewCleared", view, op }))
    return this.asked.add(view, op)
  }

  private readonly work: Effect.Effect<void> = Effect.gen(this, function* () {
    const { waiting } = this.asked
    for (let failures = 0; waiting.size > 0; ) {
      const batch = [...waiting].slice(0, failures === 0 ? size : 1)
      const removed = yield* Effect.either(this.remove(batch.map(([view]) => view)))
      if (Either.isLeft(removed)) {
        yield* Effect.logWarning(
          `${batch.length} views that are gone cannot be removed from the database: ${removed.left.message}; trying again`
        )
        // After a failure views go one by one, and the first moves to the end: a view that the database refuses must
        // not block the others.
        for (const [view, op] of batch.slice(0, 1)) if (waiting.delete(view)) waiting.set(view, op)
        yield* Backoff.pause(failing, failures++)
        continue
      }
      failures = 0
      for (const [view, op] of batch) {
        if (waiting.get(view) === op) waiting.delete(view)
        yield* this.tell({ tag: "ViewCleared", view, op })
      }
    }
  })

  private remove(views: ReadonlyArray<string>): Effect.Effect<void, UpstreamError> {
    return Effect.zipRight(this.upstream.claim(views, this.owner), this.upstream.unregister(views, this.owner))
  }
}
