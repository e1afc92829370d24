/**
 * Jobs and the one SSP that runs each (D35): assigned on arrival, passed to another SSP when theirs leaves, waiting
 * while there is none.
 *
 * The logged change of a job carries its assignment; an SSP that gets the job later is told by a call.
 */
import { HashMap, HashSet } from "effect"
import type { Command } from "./messages.ts"
import * as State from "./state.ts"
import { dropJob, emit, log, nextSerial, reply, set, setJob, type Turn, updateAt } from "./turn.ts"
import * as Waiting from "./waiting.ts"

const takes = (member: State.SspMember, table: string): boolean =>
  member.jobTables === undefined || member.jobTables.includes(table)

/** The SSP with the fewest unfinished jobs, then by id. */
const pick = (members: ReadonlyArray<State.SspMember>, table: string): State.SspMember | undefined => {
  let best: State.SspMember | undefined
  for (const member of members) {
    if (takes(member, table) && (best === undefined || HashSet.size(member.jobs) < HashSet.size(best.jobs)))
      best = member
  }
  return best
}

const persist = (turn: Turn, job: State.Job): void => {
  setJob(turn, job)
  emit(turn, { tag: "PersistJob", row: State.jobRow(job) })
}

export const arrived = (turn: Turn, command: Command & { readonly tag: "JobArrived" }): void => {
  const { created, isNew = false, job: id, ref, stands = false, table } = command
  const before = State.job(turn.state, id)
  // The id belonged to another job until now.
  const isOther = isNew && before?.created !== undefined && before.created !== created
  if (isOther) done(turn, id)
  const known = isOther ? undefined : before
  if (known !== undefined && isNew && known.created === undefined) persist(turn, { ...known, created })
  const owner =
    State.memberAt(turn.state, known?.home) ?? (known === undefined ? pick(State.ready(turn.state), table) : undefined)
  if (known === undefined && (owner !== undefined || ref === undefined)) {
    const told = owner !== undefined && !stands
    persist(turn, {
      job: id,
      table,
      home: owner === undefined ? undefined : { ssp: owner.ssp, registration: owner.registration },
      told,
      created,
      op: undefined
    })
    if (!told) set(turn, { waitingJobs: Waiting.add(turn.state.waitingJobs, id) })
  }
  if (ref !== undefined)
    reply(
      turn,
      ref,
      owner === undefined
        ? { kind: "noSsp" }
        : { kind: "assigned", ssp: owner.ssp, url: owner.url, assignedAt: turn.now }
    )
}

/** `created`: only the job created at this position; undefined: any job with the id. */
export const done = (turn: Turn, id: string, created?: number): void => {
  const job = State.job(turn.state, id)
  if (job === undefined || (created !== undefined && job.created !== created)) return
  dropJob(turn, job)
  if (job.op !== undefined) updateAt(turn, job.home, (member) => ({ ...member, calls: Math.max(0, member.calls - 1) }))
  emit(turn, { tag: "ForgetJob", job: id })
}

export const answered = (turn: Turn, { job, ref, result }: Command & { readonly tag: "JobAnswered" }): void => {
  emit(turn, { tag: "PersistResult", job, result })
  if (ref !== undefined) reply(turn, ref, { kind: "ok" })
}

/** A call that gave a job to an SSP has ended. */
export const called = (turn: Turn, command: Command & { readonly tag: "JobCalled" }): void => {
  const job = State.job(turn.state, command.job)
  if (job === undefined || job.op !== command.op) return
  const failed = command.outcome.kind !== "done"
  updateAt(turn, job.home, (member) => ({
    ...member,
    calls: Math.max(0, member.calls - 1),
    coolUntil: failed ? turn.now + turn.state.config.coolMs : member.coolUntil
  }))
  if (HashMap.has(turn.state.endingJobs, job.job)) return setJob(turn, { ...job, op: undefined })
  if (!failed && State.memberAt(turn.state, job.home) !== undefined)
    return persist(turn, { ...job, op: undefined, told: true })
  if (command.outcome.kind === "refused")
    log(turn, "warn", `${job.home?.ssp ?? ""} refuses job ${job.job}; another SSP is asked`)
  // An SSP that did not answer may have taken the job: the same SSP is asked again while it is a member.
  const { outcome } = command
  const isFree = outcome.kind === "refused" || (outcome.kind === "unreachable" && outcome.secret === true)
  setJob(turn, { ...job, op: undefined, told: false, home: isFree ? undefined : job.home })
  set(turn, { waitingJobs: Waiting.add(turn.state.waitingJobs, job.job) })
}

/**
 * A leaving SSP is still calling these jobs. Given to another SSP at once they would be called twice at the same time,
 * so their reports are awaited first.
 */
export const leftWhileCalling = (turn: Turn, member: State.SspMember, calling: ReadonlyArray<string>): void => {
  const its = calling.filter((id) => HashSet.has(member.jobs, id))
  if (its.length === 0) return
  const until = turn.now + turn.state.config.callsEndMs
  set(turn, { endingJobs: its.reduce((all, id) => HashMap.set(all, id, until), turn.state.endingJobs) })
  updateAt(turn, member, (leaving) => ({ ...leaving, jobs: HashSet.difference(leaving.jobs, its) }))
}

/** The SSP's call ended without a final outcome: the job waits for another SSP. */
export const released = (turn: Turn, id: string): void => {
  if (!HashMap.has(turn.state.endingJobs, id)) return
  set(turn, {
    endingJobs: HashMap.remove(turn.state.endingJobs, id),
    waitingJobs: Waiting.add(turn.state.waitingJobs, id)
  })
}

/** Stops waiting for reports that have not come in time. */
export const expire = (turn: Turn): void => {
  for (const [id, until] of turn.state.endingJobs) if (until <= turn.now) released(turn, id)
}

/** Assigns waiting jobs to SSPs with room. O(calls allowed). */
export const pump = (turn: Turn): void => {
  if (turn.state.waitingJobs.length === 0) return
  for (const id of Waiting.peek(turn.state.waitingJobs, 2 * turn.state.config.maxCalls)) {
    const job = State.job(turn.state, id)
    if (job === undefined || job.op !== undefined) {
      set(turn, { waitingJobs: Waiting.remove(turn.state.waitingJobs, id) })
      continue
    }
    const rooms = State.membersWithRoom(turn.state, turn.now)
    const home = State.memberAt(turn.state, job.home)
    const target = home === undefined ? pick(rooms, job.table) : rooms.find((room) => room.ssp === home.ssp)
    if (target === undefined) continue
    const op = nextSerial(turn)
    updateAt(turn, target, (member) => ({ ...member, calls: member.calls + 1 }))
    persist(turn, { ...job, home: { ssp: target.ssp, registration: target.registration }, told: false, op })
    emit(turn, {
      tag: "ExecuteJob",
      op,
      job: id,
      table: job.table,
      created: job.created,
      ...State.calleeOf(target)
    })
  }
}
