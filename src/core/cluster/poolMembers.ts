/**
 * Membership of SSPs: registration with its fence and its share of the snapshot, heartbeats, polls, deadlines.
 *
 * This file finds facts; the lifecycle table says what follows from them, and this file carries out the table's
 * effects.
 */
import { HashMap, HashSet } from "effect"
import * as DeliveryQueue from "./deliveryQueue.ts"
import * as Freeze from "./freeze.ts"
import * as Member from "./member.ts"
import type { Command, RegisteredSsp, SspIdentity, SspRegistration } from "./messages.ts"
import * as Jobs from "./poolJobs.ts"
import * as Views from "./poolViews.ts"
import * as SchedulerPhase from "./schedulerPhase.ts"
import * as State from "./state.ts"
import { emit, log, nextSerial, reply, set, setMember, type Turn, updateAt } from "./turn.ts"
import * as Waiting from "./waiting.ts"

/** Applies an event to the phase of the scheduler. */
export const phase = (turn: Turn, event: SchedulerPhase.SchedulerEvent): void => {
  const step = SchedulerPhase.next(turn.state.phase, event)
  if (step.refused) throw new Error(`broken invariant: ${event} while ${turn.state.phase}: ${step.note}`)
  set(turn, { phase: step.state })
}

const noHistory: State.History = { fenced: [], rebootstraps: 0, rebootstrappedAt: 0, leftAt: -Infinity }

/** An SSP may draw a new id at every start, so the memory of former members is bounded. */
const maxHistories = 1000
const maxFenced = 8
const dayMs = 86_400_000
const hourMs = 3_600_000

const history = (turn: Turn, ssp: string): State.History => {
  const found = HashMap.get(turn.state.histories, ssp)
  return found._tag === "Some" ? found.value : noHistory
}

const setHistory = (turn: Turn, ssp: string, change: State.History): void => {
  const full = HashMap.size(turn.state.histories) >= maxHistories
  const kept = full
    ? HashMap.filter(turn.state.histories, (_, id) => State.member(turn.state, id) !== undefined)
    : turn.state.histories
  set(turn, { histories: HashMap.set(kept, ssp, change) })
}

const isFenced = (turn: Turn, from: SspIdentity): boolean =>
  from.incarnation !== undefined && history(turn, from.ssp).fenced.includes(from.incarnation)

const fence = (turn: Turn, older: SspIdentity, newer: SspIdentity): void => {
  if (older.incarnation === undefined || newer.incarnation === undefined || older.incarnation === newer.incarnation)
    return
  const known = history(turn, older.ssp)
  setHistory(turn, older.ssp, { ...known, fenced: [...known.fenced, older.incarnation].slice(-maxFenced) })
  log(turn, "warn", `another process registered as ${newer.ssp}; the older one is told to stop`)
}

/** Counts the rebootstraps of an SSP; logs an error if they repeat. */
const countRebootstrap = (turn: Turn, ssp: string, reason: string): void => {
  const known = history(turn, ssp)
  const rebootstraps = turn.now - known.rebootstrappedAt > dayMs ? 1 : known.rebootstraps + 1
  setHistory(turn, ssp, { ...known, rebootstraps, rebootstrappedAt: turn.now })
  log(turn, rebootstraps > 3 ? "error" : "warn", `${ssp} must bootstrap again (${rebootstraps}): ${reason}`)
}

const join = (turn: Turn, registration: SspRegistration): void => {
  const {
    config,
    freeze,
    log: { head }
  } = turn.state
  const shared = Freeze.share(freeze, registration.ssp, turn.now, config.bootstrapTimeoutMs, head, nextSerial(turn))
  if (shared.kind === "wait") throw new Error("broken invariant: joined without a share of the snapshot")
  set(turn, { freeze: shared.freeze })
  if (shared.kind === "new") {
    phase(turn, "Froze")
    emit(turn, { tag: "Freeze", id: shared.freeze.id, seq: shared.freeze.seq })
  }
  const sentBack =
    State.member(turn.state, registration.ssp)?.state === "Overflowed" || head - shared.freeze.seq > config.maxBuffer
  setMember(turn, {
    ...registration,
    registration: nextSerial(turn),
    sentBack,
    state: "Bootstrapping",
    since: turn.now,
    heardAt: turn.now,
    queue: DeliveryQueue.after(shared.freeze.seq),
    target: shared.freeze.seq,
    polledAt: turn.now,
    answeredAt: turn.now,
    polling: false,
    ...State.nothingHeld
  })
}

const releaseShare = (turn: Turn, ssp: string): void => {
  const before = turn.state.freeze
  const after = Freeze.release(before, ssp)
  if (before === undefined || after === before) return
  set(turn, { freeze: after })
  if (after !== undefined) return
  phase(turn, "Thawed")
  emit(turn, { tag: "Thaw", id: before.id })
}

/**
 * Releases the views and jobs of an SSP, which then wait for other SSPs. Its calls in flight belong to the old
 * registration.
 */
const releaseWork = (turn: Turn, member: State.SspMember): void => {
  emit(turn, { tag: "ForgetMember", ssp: member.ssp })
  set(turn, {
    waitingViews: Waiting.push(turn.state.waitingViews, member.views),
    waitingJobs: Waiting.push(turn.state.waitingJobs, member.jobs)
  })
  setMember(turn, {
    ...member,
    registration: nextSerial(turn),
    views: HashSet.empty(),
    jobs: HashSet.empty(),
    strays: HashMap.empty(),
    calls: 0
  })
  for (const key of HashMap.keys(member.strays)) Views.writerEnded(turn, key)
}

const replay = (turn: Turn, member: State.SspMember): void => {
  setMember(turn, { ...member, target: turn.state.log.head, queue: { ...member.queue, saved: member.queue.acked } })
  emit(turn, { tag: "PersistMember", row: State.memberRow(member) })
}

const effects = (
  turn: Turn,
  ssp: string,
  effect: Member.MemberEffect,
  reason: string,
  registration: SspRegistration | undefined
): void => {
  const member = State.member(turn.state, ssp)
  if (effect === "join" && registration !== undefined) return join(turn, registration)
  if (member === undefined) return
  if (effect === "release") return releaseShare(turn, ssp)
  if (effect === "replay") return replay(turn, member)
  if (effect === "hand") return releaseWork(turn, member)
  if (effect === "clear")
    return setMember(turn, {
      ...member,
      registration: nextSerial(turn),
      queue: DeliveryQueue.after(turn.state.log.head)
    })
  if (effect === "remove") {
    log(turn, "warn", `${ssp} is removed: ${reason}`)
    set(turn, { members: HashMap.remove(turn.state.members, ssp) })
  }
}

/**
 * Applies an event to an SSP; an event that the table refuses is a broken invariant. Answers the effects that only a
 * caller can carry out.
 */
export const apply = (
  turn: Turn,
  ssp: string,
  event: Member.MemberEvent,
  reason: string,
  registration?: SspRegistration
): ReadonlyArray<Member.MemberEffect> => {
  const before = State.member(turn.state, ssp)
  const step = Member.next(before?.state ?? "Absent", event)
  if (step.refused)
    throw new Error(`broken invariant: ${event} of ${ssp} while ${before?.state ?? "Absent"}: ${step.note}`)
  if (step.state === "Overflowed" && step.changed) countRebootstrap(turn, ssp, reason)
  for (const effect of step.emit) effects(turn, ssp, effect, reason, registration)
  const after = State.member(turn.state, ssp)
  if (after !== undefined && step.changed && step.state !== "Absent") {
    setMember(turn, { ...after, state: step.state, since: turn.now })
    log(turn, step.state === "Suspect" ? "warn" : "info", `${ssp} is ${step.state}: ${step.note}`)
  }
  return step.emit
}

export const register = (turn: Turn, command: Command & { readonly tag: "Register" }): void => {
  const { ref, registration } = command
  const {
    config,
    log: { head }
  } = turn.state
  if (turn.state.phase === "Cloning") return reply(turn, ref, { kind: "cloning" })
  const older = State.member(turn.state, registration.ssp)
  if (isFenced(turn, registration)) return reply(turn, ref, { kind: "fenced", url: older?.url ?? "" })
  const others = Freeze.release(turn.state.freeze, registration.ssp)
  const shared = Freeze.share(others, registration.ssp, turn.now, config.bootstrapTimeoutMs, head, 0)
  if (shared.kind === "wait")
    return reply(turn, ref, {
      kind: "overloaded",
      retryAfterMs: shared.retryAfterMs,
      reason: "the frozen snapshot is renewed when those who pull it are done"
    })
  if (older !== undefined) fence(turn, older, registration)
  apply(turn, registration.ssp, "Registered", "registered", registration)
  const member = State.member(turn.state, registration.ssp)
  if (member !== undefined)
    reply(turn, ref, { kind: "registered", snapshotSeq: member.queue.acked, registration: member.registration })
}

export const heartbeat = (turn: Turn, command: Command & { readonly tag: "Heartbeat" }): void => {
  const { cpu, from, memory, ref, views } = command
  const member = State.member(turn.state, from.ssp)
  if (isFenced(turn, from)) return reply(turn, ref, { kind: "fenced", url: member?.url ?? "" })
  // A process that has not registered yet registers after a 404, and is the newest process then.
  if (member !== undefined && !sameProcess(member, from)) return reply(turn, ref, { kind: "unknownSsp" })
  // A registration request that was repeated on its way has made a newer registration, of which the SSP knows nothing.
  // The SSP's data may be older than the snapshot that counts for the newer registration.
  const outdated =
    command.registration !== undefined &&
    member !== undefined &&
    member.state !== "Overflowed" &&
    command.registration < member.registration
  if (outdated) return reply(turn, ref, { kind: "unknownSsp" })
  const emitted = apply(turn, from.ssp, "Heartbeat", "heartbeat")
  if (member !== undefined) setMember(turn, { ...member, heardAt: turn.now, heartbeat: { views, cpu, memory } })
  reply(turn, ref, { kind: emitted.includes("ok") ? "ok" : emitted.includes("conflict") ? "conflict" : "unknownSsp" })
}

const sameProcess = (member: SspIdentity, from: SspIdentity): boolean =>
  member.incarnation === undefined || from.incarnation === undefined || member.incarnation === from.incarnation

/** The goodbye of an older process must not remove the newer one. */
export const deregister = (turn: Turn, command: Command & { readonly tag: "Deregister" }): void => {
  const member = State.member(turn.state, command.from.ssp)
  if (member !== undefined && sameProcess(member, command.from)) {
    setHistory(turn, member.ssp, { ...history(turn, member.ssp), leftAt: turn.now })
    Jobs.leftWhileCalling(turn, member, command.calling ?? [])
    apply(turn, command.from.ssp, "Deregistered", "it deregistered")
  }
  reply(turn, command.ref, { kind: "ok" })
}

/** The answer to a health call. */
export const polled = (turn: Turn, command: Command & { readonly tag: "Polled" }): void => {
  const member = State.memberAt(turn.state, command)
  if (member === undefined) return
  const answers = command.health !== "unreachable" && command.health !== "refused"
  setMember(turn, {
    ...member,
    polling: false,
    answeredAt: answers ? turn.now : member.answeredAt,
    heardAt: answers && member.state === "Bootstrapping" ? turn.now : member.heardAt
  })
  // A health call sent before the first refusal confirms nothing.
  if (command.health === "refused")
    return refused(turn, member.ssp, member.state === "Suspect" && member.polledAt > member.since)
  if (answers) reached(turn, member.ssp)
  if (command.health === "ready") apply(turn, member.ssp, "PolledReady", "it is ready")
  if (command.health === "failed") apply(turn, member.ssp, "PolledFailed", "it reports failed")
}

/**
 * A connection to the SSP was refused: no process listens there, because a slow, stopped or cut-off process does not
 * refuse. One more refusal must confirm it.
 */
export const refused = (turn: Turn, ssp: string, again: boolean): void =>
  void apply(
    turn,
    ssp,
    again ? "StillRefused" : "Refused",
    again ? "connections to it are refused, its process is gone" : "a connection to it is refused"
  )

/** A call was answered: notes whether the SSP takes the scheduler's secret; if not, its calls pause. */
export const tookSecret = (turn: Turn, home: RegisteredSsp, takes: boolean): void => {
  const member = State.memberAt(turn.state, home)
  if (member === undefined || (takes && !member.refusesSecret)) return
  if (takes) return setMember(turn, { ...member, refusesSecret: false })
  refusedSecret(turn, home.ssp)
  updateAt(turn, home, (refusing) => ({
    ...refusing,
    coolUntil: turn.now + turn.state.config.unauthorizedMs
  }))
}

/** As {@link tookSecret} for a call that gives the SSP no work: only the next call with work starts a pause. */
export const refusedSecret = (turn: Turn, ssp: string): void => {
  const member = State.member(turn.state, ssp)
  if (member === undefined || member.refusesSecret) return
  log(turn, "error", State.secretFault(ssp))
  setMember(turn, { ...member, refusesSecret: true })
}

/** A suspected SSP has answered. */
export const reached = (turn: Turn, ssp: string): void => {
  if (State.member(turn.state, ssp)?.state === "Suspect") apply(turn, ssp, "Reached", "it answers")
}

/** A diverged SSP bootstraps again, but not in a loop: each time it waits twice as long. */
export const compared = (turn: Turn, command: Command & { readonly tag: "Compared" }): void => {
  const member = State.memberAt(turn.state, command)
  if (member === undefined || command.equal) return
  const { rebootstraps, rebootstrappedAt } = history(turn, member.ssp)
  const wait = Math.min(hourMs, turn.state.config.divergedBaseMs * 2 ** Math.max(0, Math.min(rebootstraps, 20) - 1))
  if (rebootstraps > 0 && turn.now < rebootstrappedAt + wait)
    return log(
      turn,
      "error",
      `${member.ssp} differs from the replica; it bootstrapped ${rebootstraps} times lately and waits before the next`
    )
  apply(turn, member.ssp, "Diverged", "its data differs from the replica's at the same position")
}

/** Stores the position that an SSP has applied, if it has moved. */
export const savePosition = (turn: Turn, ssp: string): void => {
  const member = State.member(turn.state, ssp)
  if (member === undefined) return
  setMember(turn, { ...member, queue: { ...member.queue, saved: member.queue.acked } })
  emit(turn, { tag: "PersistMember", row: State.memberRow(member) })
}

/**
 * When to poll the SSP next: a bootstrapping SSP to find the end of its pull, a suspect to find out whether it lives,
 * and a Ready SSP because without events only a call shows that its process is gone.
 */
const pollDueAt = (
  { confirmMs, pollIntervalMs, probeIntervalMs }: State.Config,
  { polledAt, since, state }: State.SspMember
): number => {
  if (state === "Bootstrapping") return polledAt + pollIntervalMs
  if (state === "Suspect") return Math.max(since, polledAt) + confirmMs
  return Member.receives(state) && probeIntervalMs > 0 ? polledAt + probeIntervalMs : Infinity
}

/** Deadlines, polls and positions of one SSP, at a tick. */
export const sweep = (turn: Turn, ssp: string): void => {
  const { config } = turn.state
  const member = State.member(turn.state, ssp)
  if (member === undefined) return
  const pulls = member.state === "Bootstrapping" || member.state === "Overflowed"
  if (turn.now - member.heardAt > config.heartbeatTimeoutMs)
    return void apply(turn, ssp, "Stale", `no heartbeat for ${turn.now - member.heardAt} ms`)
  if (pulls && turn.now - member.since > config.bootstrapTimeoutMs)
    return void apply(turn, ssp, "BootstrapTimedOut", `not bootstrapped after ${turn.now - member.since} ms`)
  if (!member.polling && turn.now >= pollDueAt(config, member)) {
    setMember(turn, { ...member, polling: true, polledAt: turn.now })
    emit(turn, { tag: "Poll", ...State.calleeOf(member) })
  }
  if (Member.receives(member.state) && member.queue.saved !== member.queue.acked) savePosition(turn, ssp)
}
