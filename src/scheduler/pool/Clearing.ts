/**
 * What SSPs have left in the database of views that are gone, taken away by the scheduler (D14, D16, D21).
 *
 * An SSP that dies, or has just said that it dropped a view, may leave the registration and its edges behind, and no
 * other SSP knows of them. The rows are taken over first, so that whoever still writes them loses, and then removed;
 * many views in one question, tried again until the database has answered. The pool lets nobody register the view
 * meanwhile.
 */
import { Effect, Either } from "effect"
import type { Command } from "../../core/cluster/messages.ts"
import * as Backoff from "../../node/backoff.ts"
import type { UpstreamError, UpstreamShape } from "../../ports/Upstream.ts"

/** Views taken away in one go. */
const size = 50
const failing = { baseMs: 200, capMs: 10_000 }

export class Clearing {
  private readonly upstream: UpstreamShape
  /** The name under which rows are taken over. */
  private readonly owner: string
  private readonly tell: (command: Command) => Effect.Effect<unknown>
  private readonly start: (effect: Effect.Effect<void>) => void
  /** Views to clear, with the call that asks for it. */
  private readonly asked = new Map<string, number>()
  private busy = false

  constructor(
    upstream: UpstreamShape,
    owner: string,
    tell: (command: Command) => Effect.Effect<unknown>,
    start: (effect: Effect.Effect<void>) => void
  ) {
    this.upstream = upstream
    this.owner = owner
    this.tell = tell
    this.start = start
  }

  /** Ends with `ViewCleared`. */
  ask(view: string, op: number): Effect.Effect<void> {
    if (!this.upstream.present) return Effect.asVoid(this.tell({ tag: "ViewCleared", view, op }))
    return Effect.sync(() => {
      this.asked.set(view, op)
      if (this.busy) return
      this.busy = true
      this.start(this.work)
    })
  }

  private readonly work: Effect.Effect<void> = Effect.gen(this, function* () {
    for (let failures = 0; this.asked.size > 0; ) {
      const batch = [...this.asked].slice(0, failures === 0 ? size : 1)
      const removed = yield* Effect.either(this.remove(batch.map(([view]) => view)))
      if (Either.isLeft(removed)) {
        yield* Effect.logWarning(
          `${batch.length} views that are gone cannot be removed from the database: ${removed.left.message}; trying again`
        )
        // One that the database refuses must not hold up the others.
        for (const [view, op] of batch.slice(0, 1)) if (this.asked.delete(view)) this.asked.set(view, op)
        yield* Backoff.pause(failing, failures++)
        continue
      }
      failures = 0
      for (const [view, op] of batch) {
        if (this.asked.get(view) === op) this.asked.delete(view)
        yield* this.tell({ tag: "ViewCleared", view, op })
      }
    }
  }).pipe(
    Effect.ensuring(
      Effect.sync(() => {
        this.busy = false
      })
    )
  )

  private remove(views: ReadonlyArray<string>): Effect.Effect<void, UpstreamError> {
    return Effect.zipRight(this.upstream.claim(views, this.owner), this.upstream.unregister(views, this.owner))
  }
}
