/**
 * All decisions of the scheduler: `decide(state, now, command)` returns the next state and the actions in the order in
 * which they are to be carried out.
 *
 * Synchronous and deterministic, so that a cluster can be simulated from a seed and a bug replayed from a trace; the
 * shell around it keeps the state in one place and carries out actions (see messages.ts for what it must observe).
 */
import { HashMap } from "effect"
import * as DeliveryQueue from "./deliveryQueue.ts"
import * as Member from "./member.ts"
import type {
  Action,
  CallOutcome,
  Command,
  JobRow,
  MemberRow,
  QuarantineRow,
  RegisteredSsp,
  StrayRow,
  ViewRow
} from "./messages.ts"
import * as Delivery from "./poolDelivery.ts"
import * as Jobs from "./poolJobs.ts"
import * as Members from "./poolMembers.ts"
import * as Views from "./poolViews.ts"
import * as State from "./state.ts"
import { emit, set, setJob, setMember, setView, type Turn, updateAt } from "./turn.ts"
import * as Waiting from "./waiting.ts"

export type Decision = readonly [state: State.State, actions: ReadonlyArray<Action>]

/** Time in which this process was suspended counts neither as silence nor as slowness of an SSP. */
const forgiveStall = (turn: Turn): void => {
  const {
    config: { maxSilenceMs },
    members,
    tickedAt
  } = turn.state
  set(turn, { tickedAt: turn.now })
  const stalledMs = tickedAt === undefined ? 0 : turn.now - tickedAt - maxSilenceMs
  if (stalledMs <= 0) return
  for (const member of HashMap.values(members)) {
    setMember(turn, {
      ...member,
      heardAt: Math.min(turn.now, member.heardAt + stalledMs),
      since: Math.min(turn.now, member.since + stalledMs)
    })
  }
}

const tick = (turn: Turn): void => {
  forgiveStall(turn)
  for (const ssp of [...HashMap.keys(turn.state.members)].sort()) {
    Members.sweep(turn, ssp)
    Delivery.deliver(turn, ssp)
  }
  Jobs.expire(turn)
  Views.expire(turn)
  Views.pump(turn)
  Views.rebalance(turn)
}

const checkpoint = (turn: Turn): void => {
  if (turn.state.checkpointing) return
  const before = turn.state.phase
  Members.phase(turn, "CheckpointBegan")
  if (turn.state.phase !== "Updating" || before === "Updating") return
  set(turn, { checkpointing: true })
  emit(turn, { tag: "Checkpoint", keepFrom: State.oldestKept(turn.state) })
}

const checkpointed = (turn: Turn): void => {
  set(turn, { checkpointing: false })
  Members.phase(turn, "CheckpointEnded")
}

const polled = (turn: Turn, command: Command & { readonly tag: "Polled" }): void => {
  Members.polled(turn, command)
  Delivery.deliver(turn, command.ssp)
}

/** A connection to an SSP was refused; ignored if the SSP has registered again since. */
const refused = (turn: Turn, home: { readonly ssp: string; readonly registration: number }): void => {
  if (State.memberAt(turn.state, home) !== undefined) Members.refused(turn, home.ssp, false)
}

const called = (turn: Turn, command: Command & { readonly tag: "ViewCalled" }): void => {
  if (command.outcome.kind === "unreachable" && command.outcome.refused === true) refused(turn, command)
  Views.called(turn, command)
  heard(turn, command, command.outcome)
}

const jobCalled = (turn: Turn, command: Command & { readonly tag: "JobCalled" }): void => {
  const home = State.job(turn.state, command.job)?.home
  Jobs.called(turn, command)
  if (home !== undefined) heard(turn, home, command.outcome)
}

/** Called after the outcome is applied, because the outcome may give the SSP a shorter pause. */
const heard = (turn: Turn, home: RegisteredSsp, outcome: CallOutcome): void => {
  if (outcome.kind !== "unreachable") Members.tookSecret(turn, home, true)
  else if (outcome.secret === true) Members.tookSecret(turn, home, false)
}

const run = (turn: Turn, command: Command): void => {
  switch (command.tag) {
    case "Cloned":
      return Members.phase(turn, "Cloned")
    case "Appended":
      return Delivery.logMoved(turn, { head: command.through })
    case "Trimmed":
      return Delivery.logMoved(turn, { first: command.first })
    case "CheckpointDue":
      return checkpoint(turn)
    case "Checkpointed":
      return checkpointed(turn)
    case "Register":
      return Members.register(turn, command)
    case "Heartbeat":
      return Members.heartbeat(turn, command)
    case "Deregister":
      return Members.deregister(turn, command)
    case "Polled":
      return polled(turn, command)
    case "Delivered":
      return Delivery.answered(turn, command)
    case "Applied":
      return Delivery.applied(turn, command)
    case "Followed":
      return Delivery.followed(turn, command)
    case "SecretRefused":
      return Members.refusedSecret(turn, command.ssp)
    case "Refused":
      return refused(turn, command)
    case "WaitedEnough":
      return Delivery.waitedEnough(turn, command.seq)
    case "Compared":
      return Members.compared(turn, command)
    case "RegisterView":
      return Views.requested(turn, command.view, { kind: "register", ref: command.ref, spec: command.spec })
    case "TouchView":
      return Views.requested(turn, command.view, { kind: "touch", ref: command.ref })
    case "UnregisterView":
      return Views.requested(turn, command.view, { kind: "unregister", ref: command.ref })
    case "FreeView":
      return Views.freed(turn, command.view, command.ref)
    case "ViewCalled":
      return called(turn, command)
    case "ViewCleared":
      return Views.cleared(turn, command)
    case "ActivityFound":
      return Views.activityFound(turn, command)
    case "JobArrived":
      return Jobs.arrived(turn, command)
    case "JobCalled":
      return jobCalled(turn, command)
    case "JobReleased":
      return Jobs.released(turn, command.job)
    case "JobDone":
      return Jobs.done(turn, command.job, command.created)
    case "JobAnswered":
      return Jobs.answered(turn, command)
    case "Tick":
      return tick(turn)
  }
}

/**
 * The state after `command` at `now` (milliseconds), with the actions. Throws only on a broken invariant, which is a
 * defect.
 */
export const decide = (state: State.State, now: number, command: Command): Decision => {
  const turn: Turn = { state, now, actions: [] }
  run(turn, command)
  Views.pump(turn)
  Jobs.pump(turn)
  return [turn.state, turn.actions]
}

/** Persisted state, as it is read back. */
export interface Saved {
  readonly members: ReadonlyArray<MemberRow>
  readonly views: ReadonlyArray<ViewRow>
  readonly strays: ReadonlyArray<StrayRow>
  readonly jobs: ReadonlyArray<JobRow>
  readonly quarantined?: ReadonlyArray<QuarantineRow>
}

const restoreMember = (turn: Turn, row: MemberRow): void => {
  setMember(turn, {
    ...row,
    state: "Replaying",
    since: turn.now,
    heardAt: turn.now,
    queue: DeliveryQueue.after(row.acked),
    sentBack: false,
    target: turn.state.log.head,
    polledAt: turn.now,
    answeredAt: turn.now,
    polling: false,
    ...State.nothingHeld
  })
  const reason = DeliveryQueue.exceeded(DeliveryQueue.after(row.acked), turn.state.log, turn.state.config, 0)
  if (reason !== undefined) Members.apply(turn, row.ssp, "BufferExceeded", reason)
}

/**
 * The pool after a restart (D31): SSPs get one heartbeat time-out of grace and are replayed from their saved positions;
 * views and jobs keep their SSPs, or wait. `state`: an `initial` one with the recovered log.
 */
export const restore = (state: State.State, now: number, saved: Saved): Decision => {
  const turn: Turn = { state: { ...state, tickedAt: now }, now, actions: [] }
  const restored = Member.next("Absent", "Restored")
  if (restored.state !== "Replaying") throw new Error("broken invariant: a restored SSP is replayed")
  for (const row of saved.quarantined ?? [])
    set(turn, { quarantined: HashMap.set(turn.state.quarantined, row.query, row) })
  for (const row of saved.views) setView(turn, { ...row, settled: true, op: undefined, queue: [] })
  for (const row of saved.jobs) setJob(turn, { ...row, op: undefined })
  for (const row of saved.members) restoreMember(turn, row)
  for (const row of saved.views) {
    if (row.gone) {
      Views.clear(turn, row.view)
      continue
    }
    if (State.memberAt(turn.state, row.home) !== undefined)
      updateAt(turn, row.home, (member) => State.withView(member, row.view))
    if (State.memberAt(turn.state, row.home) === undefined || !row.placed)
      set(turn, { waitingViews: Waiting.add(turn.state.waitingViews, row.view) })
  }
  for (const row of saved.strays)
    updateAt(turn, row, (member) => ({
      ...member,
      strays: HashMap.set(member.strays, row.view, { ...row, op: undefined })
    }))
  for (const row of saved.jobs) {
    if (State.memberAt(turn.state, row.home) !== undefined)
      updateAt(turn, row.home, (member) => State.withJob(member, row.job))
    if (State.memberAt(turn.state, row.home) === undefined || !row.told)
      set(turn, { waitingJobs: Waiting.add(turn.state.waitingJobs, row.job) })
  }
  for (const row of saved.members) Delivery.deliver(turn, row.ssp)
  Views.pump(turn)
  Jobs.pump(turn)
  return [turn.state, turn.actions]
}
