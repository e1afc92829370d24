/**
 * The frames of the pool, read while another scheduler leads: a take-over then asks for the last few alone. To ask for
 * hundreds was a third of the time for which a cluster takes no writes.
 */
import { Effect } from "effect"
import type { WalFailed } from "../../ports/Wal.ts"
import * as Frame from "./frame.ts"
import type { Journal } from "./journal.ts"

type Reading = Pick<Journal, "among" | "next">
type Last = Pick<Frame.Frame, "at" | "head">

/** Asked for at one look at the log, one after the other. */
const mostAtOnce = 64

/**
 * Whether these are all writes that count, by a head; a server that lagged may have kept one back. A head may name a
 * message before the first one, where an answer was lost: then this is not known.
 */
const isWhole = (frames: ReadonlyArray<Frame.Frame>, { pool, writes }: Frame.State): boolean => {
  const whole = frames.filter(Frame.isWhole)
  const [first] = whole
  return (
    first !== undefined &&
    Frame.startOf(first) === pool &&
    whole.every(({ head }, i) => head.writes === writes - whole.length + 1 + i)
  )
}

export class PoolFrames {
  /** In order; of those from `from` through `through` none is missing. */
  private frames: Array<Frame.Frame> = []
  private from = 0
  private through = 0
  /** Writes of the pool when all was read. */
  private writes = -1

  constructor(private readonly journal: Reading) {}

  /** Reads on, as far as a message that was the last one. */
  readAhead({ at, head }: Last): Effect.Effect<void, WalFailed> {
    return Effect.gen(this, function* () {
      this.begin(head)
      if (head.pool === 0) return
      // Pieces of a write that is not whole yet are no news: who reads the write asks for them.
      if (head.writes === this.writes) this.through = Math.max(this.through, at)
      for (let asked = 0; asked < mostAtOnce && this.through < at; asked++) {
        const frame = yield* this.journal.next("pool", this.through + 1)
        if (frame === undefined || frame.at > at) this.through = at
        else {
          this.frames.push(frame)
          this.through = frame.at
        }
      }
      if (this.through >= at) this.writes = head.writes
    })
  }

  /** All that count when this message is the last one. What was read is let go: from here on the pool has it. */
  take({ at, head }: Last): Effect.Effect<ReadonlyArray<Frame.Frame>, WalFailed> {
    return Effect.gen(this, function* () {
      if (head.pool === 0) return []
      this.begin(head)
      const known = this.frames
      const rest = yield* this.journal.among("pool", this.through + 1, at)
      this.forget()
      const all = [...known, ...rest]
      return isWhole(all, head) ? all : yield* this.journal.among("pool", head.pool, at)
    })
  }

  /** Forgets what counts no more. */
  private begin({ pool }: Frame.State): void {
    if (pool === this.from) return
    if (pool < this.from) this.forget()
    else this.frames = this.frames.filter(({ at }) => at >= pool)
    this.from = pool
    this.through = Math.max(this.through, pool - 1)
  }

  private forget(): void {
    this.frames = []
    this.from = this.through = 0
    this.writes = -1
  }
}
