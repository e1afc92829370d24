/**
 * State of this SSP's membership, its waiters, and `tell`, the only way to change it.
 *
 * Changes are synchronous, so that readers (of the phase, the lease) never see half of one.
 */
import { Deferred, Effect, Exit, FiberId } from "effect"
import * as Enrolment from "../../core/cluster/enrolment.ts"
import { StartFault } from "../../ports/StartFault.ts"
import type { SspRegistered } from "../../protocol/wire.ts"
import type { Lease } from "./Lease.ts"

export type BeginOrder = Enrolment.Order & { readonly tag: "Begin" }

const logs = { info: Effect.logInfo, warn: Effect.logWarning, error: Effect.logError }

const first: BeginOrder = { tag: "Begin", attempt: Enrolment.initial.attempt, waitMs: 0, jitterMs: 0 }

export class MembershipState {
  state = Enrolment.initial
  /** The attempt under way, and a callback for its end. */
  attempt: { readonly begin: BeginOrder; readonly over: Deferred.Deferred<void> } = {
    begin: first,
    over: Deferred.unsafeMake(FiberId.none)
  }
  /** Fails when this process must end. */
  readonly stopped = Deferred.unsafeMake<never, StartFault>(FiberId.none)
  wasRegistered = false
  /** Whether the scheduler knows the specification alone, so that it is sent no extension (D77). */
  isPlain = false
  /** Whether a registration was sent that may be accepted although it is not answered. */
  isAsking = false
  /** Resolved by the first registration. */
  readonly registered = Deferred.unsafeMake<void>(FiberId.none)
  private heardAt = -Infinity
  private silenceMs: number

  constructor(
    readonly nowMs: () => number,
    private readonly lease: Pick<Lease["Type"], "holdUntil">,
    private readonly heartbeatIntervalMs: number
  ) {
    this.silenceMs = Enrolment.silenceMs(heartbeatIntervalMs, undefined)
  }

  tell(fact: Enrolment.Fact): Effect.Effect<void> {
    return Effect.suspend(() => {
      const [state, orders] = Enrolment.decide(this.state, this.nowMs(), fact)
      this.state = state
      this.renewLease()
      for (const order of orders) this.obey(order)
      return Effect.forEach(orders, (order) => (order.tag === "Log" ? logs[order.level](order.message) : Effect.void), {
        discard: true
      })
    })
  }

  isRegistered({ snapshot_seq: _, heartbeat_timeout_ms: toldMs, ...extensions }: typeof SspRegistered.Type): void {
    this.wasRegistered = true
    this.isPlain = toldMs === undefined && Object.keys(extensions).length === 0
    this.silenceMs = Enrolment.silenceMs(this.heartbeatIntervalMs, toldMs)
    Deferred.unsafeDone(this.registered, Exit.void)
  }

  /**
   * Called when a heartbeat was answered. Its sending time counts: the scheduler may not have heard of this SSP since.
   */
  heard(sentAtMs: number): void {
    this.heardAt = Math.max(this.heardAt, sentAtMs)
    this.renewLease()
  }

  /** Whether a heartbeat sent at that time or later is answered. */
  wasHeard(sentAtMs: number): boolean {
    return this.heardAt >= sentAtMs
  }

  private renewLease(): void {
    this.lease.holdUntil(this.state.step === "member" ? this.heardAt + this.silenceMs : 0)
  }

  private obey(order: Enrolment.Order): void {
    if (order.tag === "Stop")
      Deferred.unsafeDone(this.stopped, Exit.fail(new StartFault({ exitCode: 1, message: order.message })))
    if (order.tag !== "Begin") return
    const { over } = this.attempt
    this.attempt = { begin: order, over: Deferred.unsafeMake(FiberId.none) }
    Deferred.unsafeDone(over, Exit.void)
  }
}
