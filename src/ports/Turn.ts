/**
 * One turn of the event loop (waits until the input that is ready now has been read), and time that goes by.
 *
 * Why a port: group commit wants to gather every request that has already arrived before it pays for a flush, and
 * only the runtime knows when that is.
 */
import { type Clock, Context, Effect, Layer } from "effect"

/** When arrived bytes have been read; `layerYield` does where no server is to be waited for. */
export class Turn extends Context.Tag("ports/Turn")<
  Turn,
  {
    /** Calls back once, later. */
    readonly next: (run: () => void) => void
  }
>() {
  /** For tests and simulations: other fibers run, no input is waited for. */
  static readonly layerYield: Layer.Layer<Turn> = Layer.succeed(Turn, {
    next: (run) => void Effect.runFork(Effect.zipRight(Effect.yieldNow(), Effect.sync(run)))
  })
}

/**
 * Time that goes by, for ages, lags and deadlines: never set back and never set forward, unlike the time of day.
 *
 * Of the Clock service, whose nanoseconds are those of the machine's monotonic clock; they begin at the time of day of
 * the process's start, so both agree until the clock is set. The time of day (`Clock.currentTimeMillis`) is for what
 * others read or compare: times in records, answers and logs, tokens' and certificates' ends. Whole milliseconds.
 */
export const steadyOf = (clock: Clock.Clock) => (): number => Number(clock.unsafeCurrentTimeNanos() / 1_000_000n)

export const steadyMs: Effect.Effect<number> = Effect.clockWith((clock) => Effect.sync(steadyOf(clock)))

/**
 * By how much time that goes by is ahead of the time of day, in milliseconds: none until the clock is set, but for a
 * millisecond of rounding.
 */
export const aheadMs = (clock: Clock.Clock): number => steadyOf(clock)() - clock.unsafeCurrentTimeMillis()
