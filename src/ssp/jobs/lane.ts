/**
 * The jobs of one table that this process knows of: those that wait for a slot, run, or wait for their next attempt.
 *
 * One lane per job table, each with its own slots, so that a slow backend stalls only itself. All of it is bounded:
 * what does not fit is forgotten here and stays in its record, where the sweep finds it again. A retry goes to the
 * front of the queue, and holds no slot while it waits.
 */
import type { RecordId } from "../../core/surql/values/value.ts"

/** Jobs that may wait for their next attempt; beyond it no new ones are begun. */
const maxWaiting = 1_000

export interface Known {
  readonly ref: RecordId
  /** `refused`: the store will not take its outcome, so it is not run again by this process. */
  state: "queued" | "running" | "waiting" | "refused"
  /** Until when we hold it, by our own clock; undefined: not. */
  heldUntilMs: number | undefined
  /** Trace context of the call that asked for it. */
  readonly traceparent: string | undefined
  /** Its back-off has been waited for here. */
  waited: boolean
  /**
   * Set if the job was offered while it ran: its record may have changed since, so the store is asked again afterwards.
   */
  again: { readonly traceparent: string | undefined } | undefined
  /** Whether the job's record was deleted while it ran. */
  isDeleted: boolean
}

export class Lane {
  readonly known = new Map<string, Known>()
  private queue: Array<Known> = []
  private head = 0
  private retries: Array<Known> = []
  running = 0
  waiting = 0
  /** Something did not fit, or may be left in the store. */
  more = false

  constructor(
    readonly concurrency: number,
    /** Jobs that may wait for a slot. */
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
   * False: there is no room. A job that is known already is not taken twice; a job that runs is looked at once more.
   */
  offer(ref: RecordId, traceparent?: string): boolean {
    const known = this.known.get(ref.text)
    if (known?.state === "running") known.again = { traceparent }
    if (known !== undefined) return true
    if (this.queued >= this.maxQueued) {
      this.more = true
      return false
    }
    const entry: Known = {
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

  /** Takes what there are slots for; each must be given back by {@link leave}, {@link wait} or {@link putBack}. */
  take(): ReadonlyArray<Known> {
    const taken: Array<Known> = []
    for (let n = this.free; n > 0; n--) {
      const entry = this.retries.shift() ?? (this.head < this.queue.length ? this.queue[this.head++] : undefined)
      if (entry === undefined) break
      // Taken away meanwhile.
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

  /** Gives up the slot; the job is no longer known, unless it was offered meanwhile. */
  leave(entry: Known): void {
    this.running--
    if (this.known.get(entry.ref.text) === entry) this.known.delete(entry.ref.text)
    if (entry.again !== undefined) this.offer(entry.ref, entry.again.traceparent)
  }

  /** Gives up the slot; the next attempt comes later. */
  wait(entry: Known): void {
    this.running--
    this.waiting++
    entry.state = "waiting"
    entry.again = undefined
  }

  /** Its time has come; nothing happens when it was taken away. */
  due(entry: Known): void {
    if (entry.state !== "waiting" || this.known.get(entry.ref.text) !== entry) return
    this.waiting--
    entry.state = "queued"
    entry.waited = true
    this.retries.push(entry)
  }

  /** Gives up the slot and comes first next time. */
  putBack(entries: ReadonlyArray<Known>): void {
    this.running -= entries.length
    for (const entry of entries) entry.state = "queued"
    this.retries.unshift(...entries)
  }

  /** Gives up the slot; this process does not run it again, unless its record is deleted. */
  refuse(entry: Known): void {
    if (entry.isDeleted) return this.leave(entry)
    this.running--
    entry.state = "refused"
    entry.heldUntilMs = undefined
  }

  /** Its record is deleted: whatever is offered from now on is another job of the same id, which waits for the call. */
  deleted(text: string): void {
    const entry = this.known.get(text)
    if (entry?.state !== "running") return this.forget(text)
    entry.isDeleted = true
    entry.again = undefined
  }

  /** Another runner has it, or it shall not run. */
  forget(text: string): void {
    const entry = this.known.get(text)
    if (entry === undefined || entry.state === "running") return
    if (entry.state === "waiting") this.waiting--
    this.known.delete(text)
  }
}
