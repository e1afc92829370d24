/**
 * Time that goes on only when a test says so, and then from one sleeper to the next: hours in milliseconds, the same
 * order every time.
 *
 * Why not Effect's test clock: at every step that waits real milliseconds to see whether fibers have suspended, so an
 * hour of heartbeats takes minutes. Here everything that can run has run when the event loop has come round, because
 * nothing waits for a real input or output; the next sleeper is woken then, in the order of time, and of falling asleep
 * where that is the same.
 */
import { Clock, Duration, Effect, Layer } from "effect"

interface Sleeper {
  readonly at: number
  readonly n: number
  readonly wake: () => void
}

const turn = (): Promise<void> => new Promise((done) => setImmediate(done))

export class VirtualTime {
  private nowMs = 0
  private slept = 0
  private sleepers: Array<Sleeper> = []

  readonly clock: Clock.Clock = {
    [Clock.ClockTypeId]: Clock.ClockTypeId,
    unsafeCurrentTimeMillis: () => this.nowMs,
    unsafeCurrentTimeNanos: () => BigInt(Math.round(this.nowMs * 1e6)),
    currentTimeMillis: Effect.sync(() => this.nowMs),
    currentTimeNanos: Effect.sync(() => BigInt(Math.round(this.nowMs * 1e6))),
    sleep: (duration) =>
      Effect.async<void>((resume) => Effect.sync(this.after(Duration.toMillis(duration), () => resume(Effect.void))))
  }

  readonly layer = Layer.setClock(this.clock)

  get now(): number {
    return this.nowMs
  }

  /** Calls back in so many milliseconds of this time; the answer takes it back. */
  after(ms: number, wake: () => void): () => void {
    if (ms === Infinity) return () => {}
    const sleeper: Sleeper = { at: this.nowMs + Math.max(0, ms), n: this.slept++, wake }
    let i = this.sleepers.length
    while (i > 0 && this.sleepers[i - 1]!.at > sleeper.at) i--
    this.sleepers.splice(i, 0, sleeper)
    return () => {
      const at = this.sleepers.indexOf(sleeper)
      if (at >= 0) this.sleepers.splice(at, 1)
    }
  }

  /** Everything that can happen without time going on has happened. */
  async settle(): Promise<void> {
    for (let i = 0; i < 3; i++) await turn()
    while (this.sleepers.length > 0 && this.sleepers[0]!.at <= this.nowMs) {
      this.sleepers.shift()!.wake()
      for (let i = 0; i < 3; i++) await turn()
    }
  }

  async advance(ms: number): Promise<void> {
    const end = this.nowMs + ms
    await this.settle()
    while (this.sleepers.length > 0 && this.sleepers[0]!.at <= end) {
      this.nowMs = this.sleepers[0]!.at
      await this.settle()
    }
    this.nowMs = end
  }

  /** {@link advance} as an effect. */
  pass(ms: number): Effect.Effect<void> {
    return Effect.promise(() => this.advance(ms))
  }
}
