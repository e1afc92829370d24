/**
 * The jobs of one table that this process knows: queued for a slot, running, or waiting for their next attempt.
 *
 * One lane per job table, each with its own slots, so that a slow backend stalls only itself. Every queue is bounded: a
 * job without room is forgotten here and stays in its record, where the sweep finds it again. A retry goes to the front
 * of the queue, and holds no slot while it waits.
 */
import type { RecordId } from "../../core/surql/values/value.ts"

/** Jobs that may wait for their next attempt; beyond that no new job is begun. */
const maxWaiting = 1_000

export interface LaneJob {
  readonly ref: RecordId
  /** `refused`: the store does not accept the job's outcome, so this process does not run it again. */
  state: "queued" | "running" | "waiting" | "refused"
  /** End of this process's lease, in steady time; undefined: it holds none. */
  heldUntilMs: number | undefined
  /** Trace context of the call that offered the job. */
  readonly traceparent: string | undefined
  /** Whether the back-off before the next attempt has passed. */
  waited: boolean
  /** Set if the job was offered while it ran: its record may have changed, so the job is offered again afterwards. */
  again: { readonly traceparent: string | undefined } | undefined
  /** Whether the job's record was deleted while the job ran. */
  isDeleted: boolean
}

export class Lane {
  readonly known = new Map<string, LaneJob>()
  private queue: Array<LaneJob> = []
  private head = 0
  private retries: Array<LaneJob> = []
  running = 0
  waiting = 0
  /** Set if the store may hold open jobs that this lane does not know. */
  more = false

  constructor(
    readonly concurrency: number,
    /** Limit of queued jobs. */
    readonly maxQueued: number
  ) {}

  get queued(): number {
    return this.queue.length - this.head
  }

  get free(): number {
    return this.waiting >= maxWaiting
      ? Math.min(this.retries.length, this.concurrency - this.running)
      : this.concurrency - this.running
  }

  get ready(): boolean {
    return this.free > 0 && this.retries.length + this.queued > 0
  }

  /**
   * Queues a job unless it is known; a running one is queued again when it ends. Returns false if the queue is full.
   */
  offer(ref: RecordId, traceparent?: string): boolean {
    const known = this.known.get(ref.text)
    if (known?.state === "running") known.again = { traceparent }
    if (known !== undefined) return true
    if (this.queued >= this.maxQueued) {
      this.more = true
      return false
    }
    const entry: LaneJob = {
      ref,
      state: "queued",
      heldUntilMs: undefined,
      traceparent,
      waited: false,
      again: undefined,
      isDeleted: false
    }
    this.known.set(ref.text, entry)
    this.queue.push(entry)
    return true
  }

  /**
   * Takes jobs for all free slots; each slot is given back by {@link leave}, {@link wait}, {@link putBack} or {@link
   * refuse}.
   */
  take(): ReadonlyArray<LaneJob> {
    const taken: Array<LaneJob> = []
    for (let n = this.free; n > 0; n--) {
      const entry = this.retries.shift() ?? (this.head < this.queue.length ? this.queue[this.head++] : undefined)
      if (entry === undefined) break
      // The job was forgotten while it was queued.
      if (this.known.get(entry.ref.text) !== entry) {
        n++
        continue
      }
      entry.state = "running"
      taken.push(entry)
    }
    if (this.head > 1000 && this.head * 2 > this.queue.length) {
      this.queue = this.queue.slice(this.head)
      this.head = 0
    }
    this.running += taken.length
    return taken
  }

  /** Frees the slot and forgets the job, unless it was offered meanwhile. */
  leave(entry: LaneJob): void {
    this.running--
    if (this.known.get(entry.ref.text) === entry) this.known.delete(entry.ref.text)
    if (entry.again !== undefined) this.offer(entry.ref, entry.again.traceparent)
  }

  /** Frees the slot; the job waits for its next attempt. */
  wait(entry: LaneJob): void {
    this.running--
    this.waiting++
    entry.state = "waiting"
    entry.again = undefined
  }

  /** Queues a job whose back-off has passed, unless it was forgotten. */
  due(entry: LaneJob): void {
    if (entry.state !== "waiting" || this.known.get(entry.ref.text) !== entry) return
    this.waiting--
    entry.state = "queued"
    entry.waited = true
    this.retries.push(entry)
  }

  /** Frees the slots; the jobs come first at the next {@link take}. */
  putBack(entries: ReadonlyArray<LaneJob>): void {
    this.running -= entries.length
    for (const entry of entries) entry.state = "queued"
    this.retries.unshift(...entries)
  }

  /** Frees the slot; this process does not run the job again, unless its record is deleted. */
  refuse(entry: LaneJob): void {
    if (entry.isDeleted) return this.leave(entry)
    this.running--
    entry.state = "refused"
    entry.heldUntilMs = undefined
  }

  /**
   * Called when a job's record is deleted. A later offer of this id is another job, which waits for the running call.
   */
  deleted(text: string): void {
    const entry = this.known.get(text)
    if (entry?.state !== "running") return this.forget(text)
    entry.isDeleted = true
    entry.again = undefined
  }

  /** Forgets a job that is not running: another runner has it, or it must not run. */
  forget(text: string): void {
    const entry = this.known.get(text)
    if (entry === undefined || entry.state === "running") return
    if (entry.state === "waiting") this.waiting--
    this.known.delete(text)
  }
}
