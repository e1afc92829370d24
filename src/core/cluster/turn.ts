/**
 * One decision under way: the new state so far, and the actions so far.
 *
 * A turn lives inside one call of `decide` and is never seen outside, so functions may change it while the whole stays
 * a function from state to state.
 */
import { HashMap, HashSet, SortedMap } from "effect"
import type { Action, RegisteredSsp, Reply } from "./messages.ts"
import * as State from "./state.ts"
import * as Waiting from "./waiting.ts"

export interface Turn {
  state: State.State
  readonly now: number
  readonly actions: Array<Action>
}

/** Appends an action for the shell to carry out. */
export const emit = (turn: Turn, action: Action): void => {
  turn.actions.push(action)
}

/** Answers the request numbered `ref`. */
export const reply = (turn: Turn, ref: number, answer: Reply): void => emit(turn, { tag: "Reply", ref, reply: answer })

export const log = (turn: Turn, level: "info" | "warn" | "error", message: string): void =>
  emit(turn, { tag: "Log", level, message })

/** Changes fields of the state. */
export const set = (turn: Turn, change: Partial<State.State>): void => {
  turn.state = { ...turn.state, ...change }
}

/** Draws the next number of the shared counter. */
export const nextSerial = (turn: Turn): number => {
  set(turn, { serial: turn.state.serial + 1 })
  return turn.state.serial
}

export const setMember = (turn: Turn, member: State.SspMember): void =>
  set(turn, { members: HashMap.set(turn.state.members, member.ssp, member) })

/** Changes the member of a home; does nothing if it has left or registered again. */
export const updateAt = (
  turn: Turn,
  home: RegisteredSsp | undefined,
  change: (member: State.SspMember) => State.SspMember
): void => {
  const member = State.memberAt(turn.state, home)
  if (member !== undefined) setMember(turn, change(member))
}

/** Ends the move of a view: the view has its new SSP, or needs none any more. */
const arrived = (turn: Turn, key: string): void => {
  if (HashMap.has(turn.state.moving, key)) set(turn, { moving: HashMap.remove(turn.state.moving, key) })
}

/** Stores a view with its expiry and its owner. No other function changes a view's owner. */
export const setView = (turn: Turn, view: State.View): void => {
  const old = State.view(turn.state, view.view)
  const at = State.expiryOf(view)
  const was = old === undefined ? undefined : State.expiryOf(old)
  if (was === undefined || was !== at) {
    const expiries = was === undefined ? turn.state.expiries : SortedMap.remove(turn.state.expiries, was)
    set(turn, { expiries: SortedMap.set(expiries, at, true) })
  }
  if (old?.home !== view.home) {
    updateAt(turn, old?.home, (member) => ({ ...member, views: HashSet.remove(member.views, view.view) }))
    updateAt(turn, view.home, (member) => ({ ...member, views: HashSet.add(member.views, view.view) }))
  }
  if (State.memberAt(turn.state, view.home) !== undefined) {
    set(turn, { waitingViews: Waiting.remove(turn.state.waitingViews, view.view) })
    arrived(turn, view.view)
  }
  set(turn, { views: HashMap.set(turn.state.views, view.view, view) })
}

/** Removes a view from the state, with its expiry and its place in its owner's list. */
export const dropView = (turn: Turn, view: State.View): void => {
  arrived(turn, view.view)
  if (HashMap.has(turn.state.deaths, view.view)) set(turn, { deaths: HashMap.remove(turn.state.deaths, view.view) })
  updateAt(turn, view.home, (member) => ({ ...member, views: HashSet.remove(member.views, view.view) }))
  set(turn, {
    views: HashMap.remove(turn.state.views, view.view),
    expiries: SortedMap.remove(turn.state.expiries, State.expiryOf(view)),
    waitingViews: Waiting.remove(turn.state.waitingViews, view.view)
  })
}

/** Removes a view from listings and placement; its row stays until the call about it has ended. */
export const markRemoved = (turn: Turn, view: State.View): void => {
  dropView(turn, view)
  set(turn, {
    views: HashMap.set(turn.state.views, view.view, { ...view, home: undefined, placed: false, gone: true })
  })
}

export const setJob = (turn: Turn, job: State.Job): void => {
  const old = State.job(turn.state, job.job)
  if (old?.home !== job.home) {
    updateAt(turn, old?.home, (member) => ({ ...member, jobs: HashSet.remove(member.jobs, job.job) }))
    updateAt(turn, job.home, (member) => ({ ...member, jobs: HashSet.add(member.jobs, job.job) }))
  }
  const settled = State.memberAt(turn.state, job.home) !== undefined
  set(turn, {
    jobs: HashMap.set(turn.state.jobs, job.job, job),
    waitingJobs: settled ? Waiting.remove(turn.state.waitingJobs, job.job) : turn.state.waitingJobs
  })
}

/** Removes a job from the state, also from its SSP's list. */
export const dropJob = (turn: Turn, job: State.Job): void => {
  updateAt(turn, job.home, (member) => ({ ...member, jobs: HashSet.remove(member.jobs, job.job) }))
  set(turn, {
    jobs: HashMap.remove(turn.state.jobs, job.job),
    endingJobs: HashMap.remove(turn.state.endingJobs, job.job),
    waitingJobs: Waiting.remove(turn.state.waitingJobs, job.job)
  })
}
