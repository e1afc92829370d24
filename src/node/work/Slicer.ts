/**
 * Long computations side by side on one thread: each runs in slices of 10 ms, with a turn of the event loop in between.
 *
 * A view that fills from a large table, or a query over one, must not keep the process from taking changes and
 * answering health checks. All computations of a slicer share one slice per turn, so a hundred of them block no longer
 * than one; a computation that is not done when the slice is over goes behind the others.
 */
import { Data, Effect, Exit } from "effect"
import type { Slices } from "../../core/surql/evaluate/scope.ts"
import type { Turn } from "../../ports/Turn.ts"

/** How long computations may run between two turns of the event loop. */
const sliceMs = 10

/** The slicer was closed before the computation was done. */
export class Closed extends Data.TaggedError("Closed") {}

interface Entry {
  /** Continues until the computation is done (true) or the slice is over. */
  readonly goOn: (until: number) => boolean
  /** Discards the work done so far; the next {@link goOn} begins again. */
  readonly abandon: () => void
  readonly closed: () => void
}

export class Slicer {
  private entries: Array<Entry> = []
  /** While this entry runs all others wait. */
  private sole: Entry | undefined
  private busy = false
  private closed = false

  constructor(
    private readonly turn: Turn["Type"],
    private readonly nowMs: () => number
  ) {}

  /** Number of computations that are not done. */
  get size(): number {
    return this.entries.length
  }

  /**
   * Runs a computation to its end, then calls `done` in the same turn, so that its result is never without an owner.
   * The returned function abandons it, unless it is done.
   */
  start<A>(make: () => Slices<A>, done: (result: Exit.Exit<A, Closed>) => void): () => void {
    if (this.closed) {
      done(Exit.fail(new Closed()))
      return () => {}
    }
    const entry = this.entryOf(make, done)
    this.entries.push(entry)
    this.wake()
    return () => {
      this.entries = this.entries.filter((other) => other !== entry)
      entry.abandon()
    }
  }

  /**
   * {@link start} in this turn: a computation that ends before its first pause waits for no turn, and `done` is called
   * before this returns. The returned function abandons it; undefined if it is done.
   */
  begin<A>(make: () => Slices<A>, done: (result: Exit.Exit<A, Closed>) => void): (() => void) | undefined {
    const begun = make()
    const { done: isDone, value } = begun.next()
    if (isDone === true) {
      done(Exit.succeed(value))
      return undefined
    }
    let first: Slices<A> | undefined = begun
    return this.start(() => {
      const slices = first ?? make()
      first = undefined
      return slices
    }, done)
  }

  /** {@link start} as an effect, for computations whose result needs no owner. An interrupt abandons it. */
  run<A>(make: () => Slices<A>): Effect.Effect<A, Closed> {
    return Effect.async<A, Closed>((resume) => Effect.sync(this.start(make, resume)))
  }

  /** {@link run} in this turn: a computation that ends before its first pause waits for no turn. */
  soon<A>(make: () => Slices<A>): Effect.Effect<A, Closed> {
    return Effect.async<A, Closed>((resume) => {
      const abandon = this.begin(make, resume)
      if (abandon !== undefined) return Effect.sync(abandon)
    })
  }

  /** Discards the work of all computations, calls `between`, and lets them begin again. */
  restart(between: () => void): void {
    for (const entry of this.entries) entry.abandon()
    between()
  }

  /** {@link restart} with a computation behind `between`; the others begin again when it is done. One at a time. */
  alone<A>(between: () => void, make: () => Slices<A>): Effect.Effect<A, Closed> {
    return Effect.async<A, Closed>((resume) => {
      if (this.closed) return resume(Effect.fail(new Closed()))
      this.restart(between)
      this.sole = this.entryOf(make, resume)
      this.wake()
    })
  }

  /** Abandons all computations, also later ones. */
  close(): void {
    this.closed = true
    const entries = this.sole === undefined ? this.entries : [this.sole, ...this.entries]
    this.sole = undefined
    this.entries = []
    for (const entry of entries) {
      entry.abandon()
      entry.closed()
    }
  }

  private wake(): void {
    if (this.busy) return
    this.busy = true
    this.turn.next(this.cycle)
  }

  private readonly cycle = (): void => {
    const until = this.nowMs() + sliceMs
    while (this.sole !== undefined || this.entries.length > 0) {
      if (this.sole !== undefined) this.stepSole(this.sole, until)
      else this.stepFirst(this.entries[0]!, until)
      if (this.nowMs() >= until) return this.turn.next(this.cycle)
    }
    this.busy = false
  }

  private stepSole(sole: Entry, until: number): void {
    if (sole.goOn(until) && this.sole === sole) this.sole = undefined
  }

  private stepFirst(entry: Entry, until: number): void {
    const done = entry.goOn(until)
    // The entry may have been abandoned by a callback of its own slice, and is then no longer the first.
    if (this.entries[0] === entry) this.entries.shift()
    if (!done) this.entries.push(entry)
  }

  private entryOf<A>(make: () => Slices<A>, done: (result: Exit.Exit<A, Closed>) => void): Entry {
    let slices: Slices<A> | undefined
    return {
      goOn: (until) => {
        const result = this.slice((slices ??= make()), until)
        if (result === undefined) return false
        done(result)
        return true
      },
      abandon: () => {
        slices?.return(undefined as A)
        slices = undefined
      },
      closed: () => done(Exit.fail(new Closed()))
    }
  }

  /** One slice: the result, or undefined when time is up. */
  private slice<A>(slices: Slices<A>, until: number): Exit.Exit<A> | undefined {
    try {
      for (;;) {
        const step = slices.next()
        if (step.done === true) return Exit.succeed(step.value)
        if (this.nowMs() >= until) return undefined
      }
    } catch (defect) {
      return Exit.die(defect)
    }
  }
}
