/**
 * Views that wait for the database, which is asked about many of them at once; one question runs at a time.
 *
 * `V` is kept with a view until its question is answered. The work takes views from {@link ViewQueue.waiting}.
 */
import { Effect } from "effect"

export class ViewQueue<V> {
  /** Views, each with its `V`, in the order they came. */
  readonly waiting = new Map<string, V>()
  private busy = false
  private readonly work: Effect.Effect<void>

  /** `start` forks an effect; `work` asks about the views that wait. */
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
