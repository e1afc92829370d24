/**
 * Delivery of events: when the head of the log advances, every SSP gets the events that it lacks, in order, one
 * delivery at a time (D26).
 *
 * O(SSPs) per append, O(1) per answer; no SSP waits for another.
 */
import { HashMap } from "effect"
import * as DeliveryQueue from "./deliveryQueue.ts"
import * as Member from "./member.ts"
import type { Command } from "./messages.ts"
import { apply, reached, refused, savePosition, tookSecret } from "./poolMembers.ts"
import * as State from "./state.ts"
import { emit, set, setMember, type Turn } from "./turn.ts"

/** Sends the due deliveries to an SSP, or finds that it has caught up. */
export const deliver = (turn: Turn, ssp: string): void => {
  const caughtUp = State.member(turn.state, ssp)
  if (caughtUp?.state === "Replaying" && caughtUp.queue.acked >= caughtUp.target)
    apply(turn, ssp, "Replayed", "caught up")
  const member = State.member(turn.state, ssp)
  if (member === undefined || !Member.receives(member.state) || member.tables !== undefined) return
  const most = member.batch === true ? turn.state.config.maxBatch : 1
  const range = DeliveryQueue.due(member.queue, turn.state.log, turn.now, most)
  if (range === undefined) return
  setMember(turn, { ...member, queue: DeliveryQueue.withFlight(member.queue, range) })
  emit(turn, { tag: "Deliver", ...State.calleeOf(member), from: range.from, to: range.to })
}

/**
 * Position up to which waiting events do not count against an SSP (D55). An SSP that must bootstrap again because too
 * many events waited is not sent back a second time for events that arrive while it pulls, which its deadline bounds,
 * nor for events that it must then replay: under steady load it would never become Ready.
 */
const excused = (turn: Turn, { sentBack, state, target }: State.SspMember): number => {
  if (!sentBack || state === "Ready") return 0
  return state === "Bootstrapping" ? turn.state.log.head : target
}

const check = (turn: Turn, member: State.SspMember): void => {
  if (member.state === "Overflowed") return
  const reason = DeliveryQueue.exceeded(member.queue, turn.state.log, turn.state.config, excused(turn, member))
  if (reason !== undefined) apply(turn, member.ssp, "BufferExceeded", reason)
}

/** Applies a change of either end of the log. */
export const logMoved = (turn: Turn, change: Partial<DeliveryQueue.Log>): void => {
  set(turn, { log: { ...turn.state.log, ...change } })
  for (const member of HashMap.values(turn.state.members)) {
    check(turn, member)
    deliver(turn, member.ssp)
  }
}

export const answered = (turn: Turn, command: Command & { readonly tag: "Delivered" }): void => {
  const member = State.memberAt(turn.state, command)
  if (member === undefined || member.queue.flight === undefined) return
  if (command.answer.kind !== "unavailable") reached(turn, member.ssp)
  else if (command.answer.refused === true) refused(turn, member.ssp, false)
  deliverNext(turn, command)
}

const deliverNext = (turn: Turn, command: Command & { readonly tag: "Delivered" }): void => {
  const member = State.memberAt(turn.state, command)
  if (member === undefined) return
  const outcome = DeliveryQueue.answered(
    member.queue,
    command.answer,
    turn.state.log,
    turn.now,
    command.jitter,
    turn.state.config,
    excused(turn, member)
  )
  if (outcome.kind === "unable") return void apply(turn, member.ssp, outcome.event, outcome.reason)
  setQueue(turn, member, outcome.queue)
  if (outcome.kind === "progress") tookSecret(turn, command, true)
  else if (outcome.unauthorized) tookSecret(turn, command, false)
}

/** Stores a member's new delivery queue. */
const setQueue = (turn: Turn, member: State.SspMember, queue: DeliveryQueue.DeliveryQueue): void => {
  // An SSP that applies events is alive, so its health need not be polled.
  const alive = queue.acked > member.queue.acked ? { polledAt: turn.now, answeredAt: turn.now } : {}
  setMember(turn, { ...member, queue, ...alive })
  // Ticks save positions. Under a flood of events the saved ones would lag so far behind that a restart alone would
  // look like an overflow.
  if (queue.acked - queue.saved >= turn.state.config.maxBuffer / 4) savePosition(turn, member.ssp)
  deliver(turn, member.ssp)
}

/**
 * SSPs that follow the feed report the positions that they have applied (D61). The first report shows that the SSP has
 * its data, earlier than the next poll would.
 */
export const applied = (turn: Turn, { positions }: Command & { readonly tag: "Applied" }): void => {
  for (const position of positions) {
    if (State.memberAt(turn.state, position)?.tables === undefined) continue
    apply(turn, position.ssp, "PolledReady", "it follows the feed")
    reached(turn, position.ssp)
    const member = State.memberAt(turn.state, position)
    if (member === undefined) continue
    const seq = Math.min(position.seq, turn.state.log.head)
    if (seq > member.queue.acked) setQueue(turn, member, DeliveryQueue.advanced(member.queue, seq, turn.state.log))
    else deliver(turn, position.ssp)
  }
}

/** An SSP has opened its feed of these tables. */
export const followed = (turn: Turn, command: Command & { readonly tag: "Followed" }): void => {
  const member = State.memberAt(turn.state, command)
  if (member?.tables === undefined) return
  setMember(turn, { ...member, tables: command.tables })
  if (Member.receives(member.state)) savePosition(turn, member.ssp)
}

/**
 * An answer to `/ingest` has waited long enough: from now on no answer waits for an SSP that is behind, until it has
 * caught up.
 */
export const waitedEnough = (turn: Turn, seq: number): void => {
  for (const member of State.ready(turn.state)) {
    if (member.queue.acked < seq && !member.queue.late)
      setMember(turn, { ...member, queue: { ...member.queue, late: true } })
  }
}
