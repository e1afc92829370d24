/**
 * Views that wait for a query of the database, which takes many of them at once; one query runs at a time.
 *
 * `V` is kept with a view until its query is answered. The work takes views from {@link ViewQueue.waiting}.
 */
import { Effect } from "effect"

export class ViewQueue<V> {
  /** Views with their `V`, in the order they came. */
  readonly waiting = new Map<string, V>()
  private busy = false
  private readonly work: Effect.Effect<void>

  /** `start` forks an effect; `work` queries the database about the views that wait. */
  constructor(
    private readonly start: (effect: Effect.Effect<void>) => void,
    work: Effect.Effect<void>
  ) {
    this.work = Effect.ensuring(
      work,
      Effect.sync(() => {
        this.busy = false
      })
    )
  }

  /** Adds a view, and starts the work unless it runs. */
  add(view: string, value: V): Effect.Effect<void> {
    return Effect.sync(() => {
      this.waiting.set(view, value)
      if (this.busy) return
      this.busy = true
      this.start(this.work)
    })
  }
}
