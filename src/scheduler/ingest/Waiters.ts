/**
 * Answers of `/ingest` that wait for SSPs: sent when every ready SSP that keeps up has applied the change, or at a
 * deadline (D26).
 *
 * An SSP that misses the deadline is marked `late`; answers do not wait for it until it has caught up. Positions only
 * grow, so the oldest waits first, and a look at the oldest tells whether any answer can go.
 */
import { Duration, Effect } from "effect"
import * as State from "../../core/cluster/state.ts"
import type { PoolShape } from "../pool/Pool.ts"

interface Waiter {
  readonly seq: number
  readonly since: number
  readonly done: (delivered: number, seq: number) => void
}

export class Waiters {
  private readonly run: <A>(effect: Effect.Effect<A>, done: (value: A) => void) => void
  private waiting: Array<Waiter> = []
  private from = 0
  private armed = false

  constructor(
    private readonly pool: PoolShape,
    private readonly waitMs: number,
    private readonly now: () => number,
    run: Waiters["run"]
  ) {
    this.run = run
  }

  add(seq: number, done: Waiter["done"]): void {
    const state = this.pool.state()
    if (this.from === this.waiting.length && !State.awaited(state, seq)) return done(State.appliedBy(state, seq), seq)
    this.waiting.push({ seq, since: this.now(), done })
    this.arm()
  }

  /** Sends the answers that need not wait any more. */
  look(): void {
    if (this.from === this.waiting.length) return
    const state = this.pool.state()
    for (
      let first = this.waiting[this.from];
      first !== undefined && !State.awaited(state, first.seq);
      first = this.waiting[this.from]
    ) {
      this.from++
      first.done(State.appliedBy(state, first.seq), first.seq)
    }
    if (this.from < this.waiting.length && this.from < 4096) return
    this.waiting = this.waiting.slice(this.from)
    this.from = 0
  }

  /** One timer, for the oldest answer. */
  private arm(): void {
    const first = this.waiting[this.from]
    if (this.armed || first === undefined) return
    this.armed = true
    this.run(Effect.sleep(Duration.millis(Math.max(1, first.since + this.waitMs - this.now()))), () => {
      this.armed = false
      this.expire()
    })
  }

  /** Marks the SSPs that expired answers wait for as late; that decision releases the answers. */
  private expire(): void {
    const due = this.now() - this.waitMs
    let last: Waiter | undefined
    for (let i = this.from; i < this.waiting.length && this.waiting[i]!.since <= due; i++) last = this.waiting[i]
    if (last === undefined) return this.arm()
    this.run(this.pool.tell({ tag: "WaitedEnough", seq: last.seq }), () => this.arm())
  }
}
