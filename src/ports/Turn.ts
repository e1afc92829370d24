/**
 * One turn of the event loop (waits until the input that is ready now has been read), and the steady clock.
 *
 * Why a port: group commit gathers every request that has already arrived before it pays for a flush, and only the
 * runtime knows when that is.
 */
import { type Clock, Context, Effect, Layer } from "effect"

/** Waits until arrived bytes have been read; `layerYield` for nodes without a server. */
export class Turn extends Context.Tag("ports/Turn")<
  Turn,
  {
    /** Calls back once, in a later turn. */
    readonly next: (run: () => void) => void
  }
>() {
  /** For tests and simulations: other fibers run, no input is awaited. */
  static readonly layerYield: Layer.Layer<Turn> = Layer.succeed(Turn, {
    next: (run) => void Effect.runFork(Effect.zipRight(Effect.yieldNow(), Effect.sync(run)))
  })
}

/**
 * The steady clock, for ages, lags and deadlines: unlike the time of day it is never set. Whole milliseconds.
 *
 * Reads the nanoseconds of the Clock service, from the machine's monotonic clock; they begin at the time of day of the
 * process's start, so both agree until the clock is set. The time of day (`Clock.currentTimeMillis`) is for times that
 * others read or compare: in records, answers and logs, and ends of tokens and certificates.
 */
export const steadyOf = (clock: Clock.Clock) => (): number => Number(clock.unsafeCurrentTimeNanos() / 1_000_000n)

/** The steady clock's time now, in milliseconds. */
export const steadyMs: Effect.Effect<number> = Effect.clockWith((clock) => Effect.sync(steadyOf(clock)))

/** Milliseconds by which the steady clock is ahead of the time of day: 0 until the clock is set, but for rounding. */
export const steadyAheadMs = (clock: Clock.Clock): number => steadyOf(clock)() - clock.unsafeCurrentTimeMillis()
