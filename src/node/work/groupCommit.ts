/**
 * Group commit: a queue of work that is committed in batches, one batch at a time, so that many share one flush.
 *
 * While a batch is committed the next one gathers. An exclusive entry runs alone, in its place in the queue. Everything
 * is a callback and an array: this code runs for every change, and a fiber per entry would cost more than the work.
 */

/** How one queue weighs, bounds and commits its work. */
export interface GroupCommitOptions<W> {
  /** Size of a work, as counted against `maxPending` and `maxBatch`. */
  readonly sizeOf: (work: W) => number
  /** Total size that may wait; an empty queue takes any work. */
  readonly maxPending: number
  /** Total size of one batch; a larger work is a batch of its own. */
  readonly maxBatch: number
  /** Most turns of the event loop that a batch waits while each turn brings more; 0 for a cheap commit. */
  readonly maxGathering: number
  /** Runs a callback: in a later turn of the event loop where work should gather first, else at once. */
  readonly next: (run: () => void) => void
  /** Begins a batch: the function returned is called for each work in order, and its first false ends the batch. */
  readonly begin?: () => (work: W) => boolean
  /** Commits a batch and answers its works; `done` is called exactly once, after that. */
  readonly commit: (batch: ReadonlyArray<W>, done: () => void) => void
}

/** Turns that a batch waits at most: answered clients send their next requests together, within a few turns. */
export const defaultGatherTurns = 8

/** An entry that shares its place with no batch. */
class Exclusive {
  constructor(readonly run: (done: () => void) => void) {}
}

export class GroupCommit<W extends object> {
  private queue: Array<W | Exclusive> = []
  private pending = 0
  /** Whether a cycle runs or is scheduled. */
  private busy = false
  /** Turns waited for the next batch, and the length of the queue in the last of them. */
  private turns = 0
  private arrived = 0

  constructor(private readonly options: GroupCommitOptions<W>) {}

  /** Total size of the works that wait for their batch. */
  get waiting(): number {
    return this.pending
  }

  /** Whether no work waits or is being committed. */
  get idle(): boolean {
    return !this.busy && this.queue.length === 0
  }

  /** Takes work into the queue; false: the queue is full, and the work is not taken. */
  submit(work: W): boolean {
    const size = this.options.sizeOf(work)
    if (this.pending > 0 && this.pending + size > this.options.maxPending) return false
    this.pending += size
    this.queue.push(work)
    this.wake()
    return true
  }

  /** Calls `run` behind every earlier batch and before every later one. */
  alone(run: (done: () => void) => void): void {
    this.queue.push(new Exclusive(run))
    this.wake()
  }

  /** Starts a cycle if none runs; with an empty queue it commits an empty batch. */
  wake(): void {
    if (this.busy) return
    this.busy = true
    this.options.next(this.cycle)
  }

  private readonly cycle = (): void => {
    if (this.gathers()) return this.options.next(this.cycle)
    this.turns = this.arrived = 0
    const first = this.queue[0]
    if (first instanceof Exclusive) {
      this.queue.shift()
      first.run(this.again)
    } else this.options.commit(this.take(), this.again)
  }

  private readonly again = (): void => {
    if (this.queue.length === 0) this.busy = false
    else this.options.next(this.cycle)
  }

  /** Whether the last turn brought entries, so that the next one may bring more. */
  private gathers(): boolean {
    const { maxBatch, maxGathering } = this.options
    if (this.turns >= maxGathering || this.pending >= maxBatch || this.queue.length === this.arrived) return false
    this.turns++
    this.arrived = this.queue.length
    return true
  }

  /** The leading works that share a commit. */
  private take(): ReadonlyArray<W> {
    const { begin, maxBatch, sizeOf } = this.options
    const joins = begin?.()
    const batch: Array<W> = []
    let size = 0
    for (const entry of this.queue) {
      if (entry instanceof Exclusive) break
      const more = sizeOf(entry)
      if ((batch.length > 0 && size + more > maxBatch) || joins?.(entry) === false) break
      batch.push(entry)
      size += more
    }
    this.queue = this.queue.slice(batch.length)
    this.pending -= size
    return batch
  }
}
