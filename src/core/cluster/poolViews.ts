/**
 * Views and the one SSP that holds each (D31, D33): registering, refreshing, moving, unregistering, expiring.
 *
 * One call per view at a time, with a queue of requests behind it, so that a client's last request is the one that
 * counts. An assignment is persisted before the SSP hears of it and its number is never used twice: an SSP that writes
 * with a lower one has lost (D21). A view that an SSP may still hold though it should not is a stray: it is
 * unregistered there until the SSP confirms.
 */
import { HashMap } from "effect"
import * as ViewTimes from "../view/viewTimes.ts"
import * as Balance from "./balance.ts"
import type { Command, RegisteredSsp, ViewSpec } from "./messages.ts"
import * as Quarantine from "./poolQuarantine.ts"
import * as Tables from "./poolTables.ts"
import * as State from "./state.ts"
import { dropView, emit, log, markRemoved, nextSerial, reply, set, setView, type Turn, updateAt } from "./turn.ts"
import * as Waiting from "./waiting.ts"

type RegisterRequest = State.Request & { readonly kind: "register" }

const homeOf = (member: State.SspMember): RegisteredSsp => ({ ssp: member.ssp, registration: member.registration })

const persist = (turn: Turn, view: State.View): void => {
  setView(turn, view)
  emit(turn, { tag: "PersistView", row: State.viewRow(view) })
}

const wait = (turn: Turn, key: string): void =>
  set(turn, { waitingViews: Waiting.add(Waiting.remove(turn.state.waitingViews, key), key) })

/** Marks that an SSP must not hold the view. The SSP may get the view again only after it has confirmed that. */
const addStray = (turn: Turn, home: RegisteredSsp, view: State.View, op: number | undefined): void => {
  if (State.memberAt(turn.state, home) === undefined) return
  const row = { ssp: home.ssp, registration: home.registration, view: view.view, assignment: view.assignment }
  updateAt(turn, home, (member) => ({ ...member, strays: HashMap.set(member.strays, view.view, { ...row, op }) }))
  emit(turn, { tag: "PersistStray", row })
}

const endCall = (turn: Turn, home: RegisteredSsp, answered: boolean, own: boolean): void =>
  updateAt(turn, home, (member) => ({
    ...member,
    calls: own ? Math.max(0, member.calls - 1) : member.calls,
    coolUntil: answered ? member.coolUntil : turn.now + turn.state.config.coolMs
  }))

/**
 * Views that an SSP is given together are filled side by side and finish together. If that takes longer than a call may
 * take, all of the calls time out, and as many new calls would time out again. So an SSP that did not answer gets fewer
 * calls at once, down to one.
 */
const adjustWindow = (turn: Turn, home: RegisteredSsp, answered: boolean): void =>
  updateAt(turn, home, (member) => {
    const window = Math.min(turn.state.config.maxCalls, member.window)
    return { ...member, window: answered ? window + 1 : Math.max(1, Math.floor(window / 2)) }
  })

const choose = (
  turn: Turn,
  key: string,
  spec: ViewSpec,
  among: ReadonlyArray<State.SspMember>,
  tried: ReadonlyArray<string>
): State.SspMember | undefined => {
  const { config } = turn.state
  const suspected = Quarantine.deathsOf(turn.state, key) > 0
  const free = among.filter(
    (member) =>
      !tried.includes(member.ssp) &&
      !HashMap.has(member.strays, key) &&
      !(suspected && Quarantine.isTrying(turn.state, member.ssp, key))
  )
  const lacks = new Map(free.map((member) => [member.ssp, Tables.missing(config, member, spec).length]))
  const near = Balance.withFewestMissing(config.strategy, free.map(State.candidate), lacks)
  const id = config.strategy.choose(near, turn.state.lastPicked)
  if (id !== undefined) set(turn, { lastPicked: id })
  return free.find((member) => member.ssp === id)
}

/** The SSP that a moving view goes to, as long as that SSP is Ready; any other choice could undo the move. */
const destination = (turn: Turn, key: string): State.SspMember | undefined => {
  const to = HashMap.get(turn.state.moving, key)
  const member = to._tag === "Some" ? State.member(turn.state, to.value) : undefined
  return member?.state === "Ready" && !HashMap.has(member.strays, key) ? member : undefined
}

/** Registers the view on `target`; a change of owner is persisted first. */
const start = (
  turn: Turn,
  view: State.View,
  target: State.SspMember,
  request: RegisterRequest | undefined,
  tried: ReadonlyArray<string>
): void => {
  const stays = State.memberAt(turn.state, view.home)?.ssp === target.ssp
  const moved = stays
    ? view
    : { ...view, home: homeOf(target), assignment: nextSerial(turn), assignedAt: turn.now, placed: false }
  const op: State.ViewOp = { ...homeOf(target), id: nextSerial(turn), kind: "register", request, tried, at: turn.now }
  if (stays) setView(turn, { ...moved, op })
  else persist(turn, { ...moved, op })
  if (request === undefined) updateAt(turn, target, (member) => ({ ...member, calls: member.calls + 1 }))
  Tables.noteAssigned(turn, target, request?.spec ?? view.spec)
  emit(turn, {
    tag: "CallRegister",
    op: op.id,
    view: view.view,
    assignment: moved.assignment,
    spec: request?.spec ?? view.spec,
    ...State.calleeOf(target)
  })
}

/**
 * `traces`: some SSP may have written edges of this view. No live SSP knows the edges of a dead one, so the scheduler
 * clears them.
 */
const forget = (turn: Turn, view: State.View, traces: boolean, answered?: () => void): void => {
  if (traces && turn.state.config.database) {
    setView(turn, { ...view, op: undefined })
    clear(turn, view.view)
    return answered?.()
  }
  emit(turn, { tag: "ForgetView", view: view.view })
  answered?.()
  deleteView(turn, view)
}

/**
 * Deletes all rows that the database holds of a view, of every writer. Requests for this view wait meanwhile: rows that
 * its next owner writes must not be deleted as old ones.
 */
export const clear = (turn: Turn, key: string): void => {
  const view = State.view(turn.state, key)
  if (view === undefined) return
  const op: State.ViewOp = {
    ssp: "",
    registration: 0,
    id: nextSerial(turn),
    kind: "clear",
    request: undefined,
    tried: [],
    at: turn.now
  }
  markRemoved(turn, { ...view, op })
  persistGone(turn, key)
  emit(turn, { tag: "ClearView", op: op.id, view: key })
}

/** An SSP that might write rows of a view is done: rows that it wrote after the view was cleared are deleted too. */
export const writerEnded = (turn: Turn, key: string): void => {
  const view = State.view(turn.state, key)
  if (!turn.state.config.database || (view !== undefined && view.op?.kind !== "clear")) return
  if (view === undefined) setView(turn, { ...unknown, view: key, assignedAt: turn.now })
  clear(turn, key)
}

const unknown = {
  spec: { body: undefined, ttlMs: 0, lastActiveAt: 0 },
  assignment: 0,
  home: undefined,
  placed: false,
  settled: false,
  gone: false,
  op: undefined,
  queue: []
} as const

const persistGone = (turn: Turn, key: string): void => {
  const removed = State.view(turn.state, key)
  if (removed !== undefined) emit(turn, { tag: "PersistView", row: State.viewRow(removed) })
}

/** The rows of a view were deleted from the database, or could not be. */
export const cleared = (turn: Turn, command: Command & { readonly tag: "ViewCleared" }): void => {
  const view = State.view(turn.state, command.view)
  if (view?.op?.id === command.op) forget(turn, view, false)
}

/** Removes the view for good; requests that waited for it start again, as for an unknown view. */
const deleteView = (turn: Turn, view: State.View): void => {
  dropView(turn, view)
  for (const request of view.queue) requested(turn, view.view, request)
}

/**
 * Registers a view for a client: on its present SSP if that is Ready, else on the next one that has not been tried; 503
 * when none is left. An SSP that refuses the scheduler's secret is tried last, and once per pause.
 */
const startFor = (turn: Turn, view: State.View, request: RegisterRequest, tried: ReadonlyArray<string>): void => {
  const ready = State.ready(turn.state)
  const open = ready.filter(({ refusesSecret }) => !refusesSecret)
  const awake = ready.filter(({ coolUntil, refusesSecret }) => refusesSecret && coolUntil <= turn.now)
  const target =
    State.memberAt(turn.state, view.home) ??
    (tried.length === 0 ? destination(turn, view.view) : undefined) ??
    choose(turn, view.view, request.spec, open, tried) ??
    choose(turn, view.view, request.spec, awake, tried)
  if (target !== undefined) return start(turn, view, target, request, tried)
  const answer = (): void => reply(turn, request.ref, { kind: "noSsp" })
  if (!view.settled && HashMap.has(turn.state.views, view.view)) return forget(turn, view, true, answer)
  answer()
  if (!view.settled) return
  setView(turn, { ...view, op: undefined })
  settle(turn, view.view)
}

/** After a call has ended: runs the next request, or queues a view without an owner for placement. */
const settle = (turn: Turn, key: string): void => {
  const view = State.view(turn.state, key)
  if (view === undefined || view.op !== undefined) return
  const [next, ...queue] = view.queue
  if (next !== undefined) {
    setView(turn, { ...view, queue })
    return requested(turn, key, next)
  }
  if (State.memberAt(turn.state, view.home) === undefined || !view.placed) wait(turn, key)
}

/** Asks the SSP that holds a view to drop it, as the one call about this view. */
const recall = (turn: Turn, view: State.View, from: State.SspMember): State.ViewOp => {
  const id = nextSerial(turn)
  addStray(turn, from, view, id)
  updateAt(turn, from, (member) => ({ ...member, calls: member.calls + 1 }))
  return { ...homeOf(from), id, kind: "leave", request: undefined, tried: [], at: turn.now }
}

const sendRecall = (turn: Turn, view: State.View, op: State.ViewOp, from: State.SspMember, gone: boolean): void =>
  emit(turn, {
    tag: "CallUnregister",
    op: op.id,
    view: view.view,
    assignment: view.assignment,
    gone,
    ...State.calleeOf(from)
  })

/** Removes the view. A registration that comes while its SSP is being told waits for the SSP's answer. */
const remove = (turn: Turn, view: State.View): void => {
  const from = State.memberAt(turn.state, view.home)
  if (from === undefined) return forget(turn, view, true)
  const op = recall(turn, view, from)
  markRemoved(turn, { ...view, op })
  if (turn.state.config.database) persistGone(turn, view.view)
  else emit(turn, { tag: "ForgetView", view: view.view })
  sendRecall(turn, view, op, from, true)
}

/** A client's call about a view. */
export const requested = (turn: Turn, key: string, request: State.Request): void => {
  const view = State.view(turn.state, key)
  if (view?.op !== undefined) {
    if (view.queue.length < turn.state.config.maxQueue)
      return setView(turn, { ...view, queue: [...view.queue, request] })
    return reply(turn, request.ref, {
      kind: "overloaded",
      retryAfterMs: 1000,
      reason: `${view.queue.length} requests wait for this view`
    })
  }
  if (request.kind === "unregister") {
    if (view !== undefined) remove(turn, view)
    return reply(turn, request.ref, view === undefined ? { kind: "unknownView" } : { kind: "ok" })
  }
  if (request.kind === "touch") return extendExpiry(turn, key, request.ref)
  const aside = Quarantine.of(turn.state, request.spec)
  if (aside !== undefined) {
    reply(turn, request.ref, { kind: "quarantined", ends: aside.ends, at: aside.at })
    return settle(turn, key)
  }
  const fresh: State.View = { ...unknown, view: key, spec: request.spec, assignedAt: turn.now }
  startFor(turn, view ?? fresh, request, [])
}

/** Extends the view's expiry here and at its SSP, if the gain is worth a write (D63). */
const extendExpiry = (turn: Turn, key: string, ref: number): void => {
  const known = State.view(turn.state, key)
  if (known !== undefined && ViewTimes.isWithinGrace(State.timesOf(known.spec), turn.now)) {
    reply(turn, ref, { kind: "ok" })
    return settle(turn, key)
  }
  activityFound(turn, { tag: "ActivityFound", view: key, lastActiveAt: turn.now })
  const view = State.view(turn.state, key)
  if (view === undefined) return reply(turn, ref, { kind: "unknownView" })
  requested(turn, key, { kind: "register", ref, spec: { ...view.spec, lastActiveAt: turn.now } })
}

const taken = (turn: Turn, view: State.View, op: State.ViewOp): void => {
  Quarantine.forgetDeaths(turn, view.view)
  const owner = State.memberAt(turn.state, op)
  persist(turn, { ...view, spec: op.request?.spec ?? view.spec, placed: true, settled: true, op: undefined })
  if (op.request !== undefined)
    reply(turn, op.request.ref, { kind: "assigned", ssp: op.ssp, url: owner?.url ?? "", assignedAt: view.assignedAt })
  settle(turn, view.view)
}

const refused = (turn: Turn, view: State.View, op: State.ViewOp, details: unknown): void => {
  const answer = (): void => {
    if (op.request !== undefined) reply(turn, op.request.ref, { kind: "refused", details })
    else log(turn, "error", `${op.ssp} refuses view ${view.view}, which another SSP took; it is dropped`)
  }
  // An SSP that refuses has written nothing; an SSP that did not answer earlier may have written.
  if (!view.settled || op.request === undefined) return forget(turn, view, view.settled || op.tried.length > 0, answer)
  answer()
  setView(turn, { ...view, op: undefined })
  settle(turn, view.view)
}

/**
 * Quarantines the query: its waiting requests are answered so, and the view waits for an operator. `stays`: its SSP
 * still holds the view with the earlier query.
 */
const setAside = (turn: Turn, view: State.View, op: State.ViewOp, ends: number, stays: boolean): void => {
  const { at } = Quarantine.quarantine(turn, view.view, op.request?.spec ?? view.spec, ends)
  const answer = (): void => {
    if (op.request !== undefined) reply(turn, op.request.ref, { kind: "quarantined", ends, at })
  }
  if (!view.settled) return forget(turn, view, true, answer)
  answer()
  if (stays) setView(turn, { ...view, op: undefined })
  else persist(turn, { ...view, home: undefined, placed: false, op: undefined })
  settle(turn, view.view)
}

/**
 * The SSP did not answer and may hold the view, so the view is a stray there, unless it was certainly not taken
 * (`isHeldNot`). The next SSP is tried, unless two have died of the query.
 */
const unanswered = (turn: Turn, view: State.View, op: State.ViewOp, died: boolean, isHeldNot = false): void => {
  if (!isHeldNot) addStray(turn, op, view, undefined)
  const deaths = died ? Quarantine.countDeath(turn, view.view) : 0
  if (deaths >= Quarantine.deathsToSetAside) return setAside(turn, view, op, deaths, false)
  const homeless = { ...view, home: undefined, placed: false, op: undefined }
  persist(turn, homeless)
  if (op.request !== undefined) return startFor(turn, homeless, op.request, [...op.tried, op.ssp])
  settle(turn, view.view)
}

/**
 * The SSP is still loading the tables that the view reads, and is asked again: another SSP would have to load them from
 * the start. After the time of a bootstrap another one is asked.
 */
const joining = (turn: Turn, view: State.View, op: State.ViewOp): void => {
  const target = State.memberAt(turn.state, op)
  const since = op.since ?? op.at
  if (target === undefined || turn.now - since > turn.state.config.bootstrapTimeoutMs)
    return unanswered(turn, view, op, false)
  start(turn, { ...view, op: undefined }, target, op.request, op.tried)
  const again = State.view(turn.state, view.view)
  if (again?.op !== undefined) setView(turn, { ...again, op: { ...again.op, since } })
}

/** An unregister call has ended; one without an answer is tried again. */
const unregistered = (turn: Turn, command: Command & { readonly tag: "ViewCalled" }): void => {
  const member = State.memberAt(turn.state, command)
  const found = member === undefined ? undefined : HashMap.get(member.strays, command.view)
  if (member === undefined || found?._tag !== "Some" || found.value.op !== command.op) return
  const { op: _, ...row } = found.value
  const answered = command.outcome.kind !== "unreachable"
  endCall(turn, command, answered, true)
  updateAt(turn, command, (now) => ({
    ...now,
    strays: answered
      ? HashMap.remove(now.strays, command.view)
      : HashMap.set(now.strays, command.view, { ...row, op: undefined })
  }))
  if (!answered) return
  emit(turn, { tag: "ForgetStray", row })
  writerEnded(turn, command.view)
}

/** A call to an SSP about a view has ended. */
export const called = (turn: Turn, command: Command & { readonly tag: "ViewCalled" }): void => {
  unregistered(turn, command)
  const view = State.view(turn.state, command.view)
  const op = view?.op
  if (view === undefined || op === undefined || op.id !== command.op) return
  if (op.kind === "leave") {
    if (view.gone) return turn.state.config.database ? clear(turn, view.view) : deleteView(turn, view)
    setView(turn, { ...view, op: undefined })
    return settle(turn, view.view)
  }
  const gone = State.memberAt(turn.state, op) === undefined
  endCall(turn, op, command.outcome.kind !== "unreachable", op.request === undefined)
  adjustWindow(turn, op, command.outcome.kind !== "unreachable")
  if (gone || command.outcome.kind === "unreachable") {
    const isHeldNot = !view.placed && command.outcome.kind === "unreachable" && command.outcome.secret === true
    return unanswered(turn, view, op, Quarantine.hasDied(turn.state, turn.now, op, command.outcome), isHeldNot)
  }
  if (command.outcome.kind === "joining") return joining(turn, view, op)
  if (command.outcome.kind === "quarantined")
    return setAside(turn, view, op, command.outcome.ends, op.request !== undefined)
  return command.outcome.kind === "done" ? taken(turn, view, op) : refused(turn, view, op, command.outcome.details)
}

/** Takes a view from its SSP; after the answer, or if none can come, the view waits for another SSP. */
const leave = (turn: Turn, view: State.View, from: State.SspMember): void => {
  const op = recall(turn, view, from)
  persist(turn, { ...view, home: undefined, placed: false, op })
  sendRecall(turn, view, op, from, false)
}

const clearStrays = (turn: Turn): void => {
  for (const member of State.membersWithRoom(turn.state, turn.now)) {
    let room = State.roomOf(turn.state, member)
    for (const stray of HashMap.values(member.strays)) {
      if (room <= 0) break
      if (stray.op !== undefined) continue
      room--
      const op = nextSerial(turn)
      updateAt(turn, member, (now) => ({
        ...now,
        calls: now.calls + 1,
        strays: HashMap.set(now.strays, stray.view, { ...stray, op })
      }))
      const gone = State.view(turn.state, stray.view)?.gone !== false
      emit(turn, {
        tag: "CallUnregister",
        op,
        view: stray.view,
        assignment: stray.assignment,
        gone,
        ...State.calleeOf(member)
      })
    }
  }
}

/** Clears strays and places waiting views where there is room. O(SSPs + calls allowed), however many views wait. */
export const pump = (turn: Turn): void => {
  clearStrays(turn)
  if (turn.state.waitingViews.length === 0 || State.membersWithRoom(turn.state, turn.now).length === 0) return
  for (const key of Waiting.peek(turn.state.waitingViews, 2 * turn.state.config.maxCalls)) {
    const view = State.view(turn.state, key)
    const home = State.memberAt(turn.state, view?.home)
    if (
      view === undefined ||
      view.op !== undefined ||
      (home !== undefined && view.placed) ||
      Quarantine.of(turn.state, view.spec) !== undefined
    ) {
      set(turn, { waitingViews: Waiting.remove(turn.state.waitingViews, key) })
      continue
    }
    const rooms = State.membersWithRoom(turn.state, turn.now)
    if (rooms.length === 0) return
    const wanted = home ?? destination(turn, key)
    const target =
      wanted === undefined ? choose(turn, key, view.spec, rooms, []) : rooms.find((room) => room.ssp === wanted.ssp)
    if (target !== undefined) start(turn, view, target, undefined, [])
  }
}

/** An operator's command (D48): every view with this query and without an SSP waits for one again. */
export const freed = (turn: Turn, key: string, ref: number): void => {
  const queries = Quarantine.free(turn, key)
  if (queries.size === 0) return reply(turn, ref, { kind: "unknownView" })
  for (const view of HashMap.values(turn.state.views))
    if (queries.has(Quarantine.queryOf(view.spec))) settle(turn, view.view)
  reply(turn, ref, { kind: "ok" })
}

/** The moves that are due: the strategy has wanted them for long enough, and the configured rate allows them. */
const dueMoves = (turn: Turn): Balance.Moves | undefined => {
  const {
    config: { movesPerSecond, strategy, unevenMs },
    movedAt,
    moving,
    uneven,
    waitingViews
  } = turn.state
  // While views wait or move, it is unknown which SSP will have the fewest.
  if (waitingViews.length > 0 || HashMap.size(moving) > 0) return undefined
  const moves = Balance.planMoves(strategy, State.ready(turn.state).map(State.candidate))
  const since = moves === undefined ? turn.now : uneven?.taker === moves.to ? uneven.since : turn.now
  set(turn, { uneven: moves === undefined ? undefined : { taker: moves.to, since } })
  const most = Math.min(movesPerSecond, Math.floor(((turn.now - movedAt) * movesPerSecond) / 1000))
  return moves === undefined || most <= 0 || turn.now - since < unevenMs
    ? undefined
    : { ...moves, count: Math.min(most, moves.count) }
}

/** Moves views from SSPs with more to SSPs with too few (D31, D32). */
export const rebalance = (turn: Turn): void => {
  const moves = dueMoves(turn)
  if (moves === undefined) return
  const rooms = State.membersWithRoom(turn.state, turn.now)
  const giver = rooms.find(({ ssp }) => ssp === moves.from)
  const taker = rooms.find(({ ssp }) => ssp === moves.to)
  if (giver === undefined || taker === undefined) return
  let left = Math.min(moves.count, State.roomOf(turn.state, giver))
  let looked = 0
  set(turn, { movedAt: turn.now })
  for (const key of giver.views) {
    if (left <= 0 || ++looked > 4 * turn.state.config.maxCalls) return
    const view = State.view(turn.state, key)
    const from = State.memberAt(turn.state, homeOf(giver))
    if (view === undefined || from === undefined || view.op !== undefined || !view.placed) continue
    if (moves.onlyNear && Tables.missing(turn.state.config, taker, view.spec).length > 0) continue
    leave(turn, view, from)
    set(turn, { moving: HashMap.set(turn.state.moving, key, moves.to) })
    left--
  }
}

/** Asks for the last activity of views that seem to have expired (D14); oldest first, a bounded number per tick. */
export const expire = (turn: Turn): void => {
  let asked = 0
  for (const [expiry] of turn.state.expiries) {
    const [at, key] = State.readExpiry(expiry)
    if (at > turn.now || asked++ >= turn.state.config.maxExpiries) return
    const view = State.view(turn.state, key)
    if (view !== undefined) emit(turn, { tag: "AskActivity", view: key, lastActiveAt: view.spec.lastActiveAt })
  }
}

/** Decides by the present state, so that a refresh that came meanwhile wins over the sweep. */
export const activityFound = (turn: Turn, command: Command & { readonly tag: "ActivityFound" }): void => {
  const view = State.view(turn.state, command.view)
  if (view === undefined || view.op !== undefined) return
  if (command.lastActiveAt > view.spec.lastActiveAt)
    persist(turn, { ...view, spec: { ...view.spec, lastActiveAt: command.lastActiveAt } })
  const known = State.view(turn.state, command.view)
  if (known !== undefined && State.expiresAt(known) <= turn.now) remove(turn, known)
}
