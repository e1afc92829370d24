/**
 * The pool's state: members, log, freeze, views, jobs; immutable, so that a decision is a value and an old state stays
 * what it was.
 *
 * Large collections are persistent maps (a change costs the logarithm, not the number of views); state per SSP is part
 * of its member, so that a leaving SSP is removed in one step.
 */
import { HashMap, HashSet, Order, SortedMap } from "effect"
import * as ViewTimes from "../view/viewTimes.ts"
import { type Candidate, defaultStrategy, type Strategy, strategies } from "./balance.ts"
import type * as DeliveryQueue from "./deliveryQueue.ts"
import type { Freeze } from "./freeze.ts"
import type { Member } from "./member.ts"
import type {
  JobRow,
  MemberRow,
  QuarantineRow,
  RegisteredSsp,
  SspRegistration,
  StrayRow,
  ToSsp,
  ViewRow,
  ViewSpec
} from "./messages.ts"
import type { SchedulerPhase } from "./schedulerPhase.ts"
import * as Waiting from "./waiting.ts"

/** Limits and intervals of the pool, and what it asks about a view. */
export interface Config extends DeliveryQueue.Limits {
  readonly strategy: Strategy
  /** The tables that a view reads; undefined where that is unknown. */
  readonly readsOf: (spec: ViewSpec) => ReadonlySet<string> | "all" | undefined
  /**
   * Whether SSPs write registrations and edges into a database that the scheduler reaches too: then rows of a removed
   * view are deleted there (D16, D21).
   */
  readonly database: boolean
  readonly heartbeatTimeoutMs: number
  readonly bootstrapTimeoutMs: number
  /**
   * Longest time between two ticks, in milliseconds, that counts as silence of SSPs: a scheduler that stood still
   * received no heartbeats.
   */
  readonly maxSilenceMs: number
  readonly pollIntervalMs: number
  /**
   * Milliseconds between two health calls to an SSP that has its data, to find out whether its process lives; 0: only
   * suspects are called.
   */
  readonly probeIntervalMs: number
  /** Milliseconds from a refused connection to the health call that decides. */
  readonly confirmMs: number
  /** Events in one delivery to an SSP that takes arrays. */
  readonly maxBatch: number
  /** Calls in flight per SSP that no client asked for: placing, moving, clearing views, assigning jobs. */
  readonly maxCalls: number
  /** Views moved per second to an SSP with less than its share. */
  readonly movesPerSecond: number
  /**
   * Milliseconds for which an SSP must have too few views before some are moved: new registrations even out short
   * differences.
   */
  readonly unevenMs: number
  /** Milliseconds after an unanswered call in which the SSP gets only calls that clients ask for. */
  readonly coolMs: number
  /** Milliseconds after which all calls of a stopping SSP have ended: longer than a stop takes. */
  readonly callsEndMs: number
  /**
   * Least age in milliseconds of a registration in flight to count as the cause of an SSP's death (D48): a few
   * intervals of health calls, so that an SSP that lives has answered some meanwhile.
   */
  readonly slowCallMs: number
  /** Most requests waiting per view. */
  readonly maxQueue: number
  /** Expired views looked at per tick. */
  readonly maxExpiries: number
  /** Milliseconds between bootstraps of a diverged SSP: none before the first, then this, doubling up to an hour. */
  readonly divergedBaseMs: number
}

export const defaults: Config = {
  strategy: strategies[defaultStrategy],
  readsOf: () => undefined,
  database: false,
  heartbeatTimeoutMs: 15_000,
  bootstrapTimeoutMs: 120_000,
  maxSilenceMs: Infinity,
  pollIntervalMs: 3000,
  probeIntervalMs: 1000,
  confirmMs: 500,
  maxBuffer: 10_000,
  retryBaseMs: 100,
  retryMaxMs: 5000,
  unauthorizedMs: 30_000,
  maxConflicts: 5,
  maxBatch: 500,
  maxCalls: 128,
  movesPerSecond: 50,
  unevenMs: 3000,
  coolMs: 1000,
  callsEndMs: 20_000,
  slowCallMs: 3000,
  maxQueue: 16,
  maxExpiries: 256,
  divergedBaseMs: 60_000
}

interface Stray extends StrayRow {
  readonly op: number | undefined
}

/** An SSP of the pool with everything that is known of it, from its registration on. */
export interface SspMember extends SspRegistration {
  /** Number of the registration, which grows with each; commands of an older one are void. */
  readonly registration: number
  readonly state: Exclude<Member, "Absent">
  /** `since`: when the SSP entered its state; `heardAt`: when it was last heard of. */
  readonly since: number
  readonly heardAt: number
  readonly queue: DeliveryQueue.DeliveryQueue
  /**
   * Whether the SSP overflowed in the registration before, or shares the snapshot of one that did: events that arrive
   * during its bootstrap then do not send it back (D55).
   */
  readonly sentBack: boolean
  /** Position that `queue.acked` must reach for the SSP to be ready. */
  readonly target: number
  /** When the SSP was last asked for its health, or showed by an applied event that it lives. */
  readonly polledAt: number
  /** When the SSP last answered a health call or applied an event. */
  readonly answeredAt: number
  readonly polling: boolean
  readonly heartbeat: { readonly views: number; readonly cpu: number | undefined; readonly memory: number | undefined }
  readonly views: HashSet.HashSet<string>
  readonly jobs: HashSet.HashSet<string>
  readonly strays: HashMap.HashMap<string, Stray>
  readonly calls: number
  readonly coolUntil: number
  /** Whether the SSP refused the scheduler's secret at its last call. */
  readonly refusesSecret: boolean
  /**
   * Number of calls that the SSP can answer in time, as far as is known: halved after a view not taken in time, one
   * more after each view taken, so doubled by a round of successes.
   */
  readonly window: number
}

/** The memory of an SSP id across its registrations; bounded per id. */
export interface History {
  /** Incarnations that a newer process has replaced, the latest last. */
  readonly fenced: ReadonlyArray<string>
  /** Number of forced bootstraps since the last day without one. */
  readonly rebootstraps: number
  readonly rebootstrappedAt: number
  /** When the SSP last said goodbye. */
  readonly leftAt: number
}

/** A client's call about a view that waits for its turn; `ref` names the answer's receiver. */
export type Request =
  | { readonly kind: "register"; readonly ref: number; readonly spec: ViewSpec }
  | { readonly kind: "unregister"; readonly ref: number }
  | { readonly kind: "touch"; readonly ref: number }

/**
 * The one call about a view that is in flight. `leave`: the view is taken from an SSP, or an SSP's stray view is
 * removed; `clear`: the scheduler itself removes it from the database.
 */
export interface ViewOp extends RegisteredSsp {
  readonly id: number
  readonly kind: "register" | "leave" | "clear"
  /** The client's request that the call serves, if any, and the SSPs that did not answer it. */
  readonly request: (Request & { readonly kind: "register" }) | undefined
  readonly tried: ReadonlyArray<string>
  /** When the call was sent. */
  readonly at: number
  /** When the SSP was first asked, if it has answered since that it is loading the view's tables. */
  readonly since?: number
}

/** A view of the pool: its stored row, and the calls about it. */
export interface View extends ViewRow {
  /** Whether some SSP has taken the view: a refusal then leaves the old registration. */
  readonly settled: boolean
  readonly op: ViewOp | undefined
  readonly queue: ReadonlyArray<Request>
}

/** A job of the pool: its stored row, and the calls about it. */
export interface Job extends JobRow {
  readonly op: number | undefined
}

/**
 * Expiry times are texts of fixed width followed by the view: the sorted map compares keys with `===`, so a pair would
 * not do.
 */
const width = 16

export const timesOf = ({ lastActiveAt, ttlMs }: ViewSpec): ViewTimes.ViewTimes => ({
  ttlMs,
  lastActiveAtMs: lastActiveAt
})

/** When a view expires, in whole Unix milliseconds, never before 1970. */
export const expiresAt = (of: ViewRow): number => Math.max(0, Math.ceil(ViewTimes.expiresAtMs(timesOf(of.spec))))

/** Key of the sorted expiries: the time padded to a fixed width, then the view's key. */
export const expiryOf = (of: ViewRow): string => `${String(expiresAt(of)).padStart(width, "0")}${of.view}`

/** Time and view of an expiry. */
export const readExpiry = (expiry: string): readonly [at: number, view: string] => [
  Number(expiry.slice(0, width)),
  expiry.slice(width)
]

/** The whole state of the pool. */
export interface State {
  readonly config: Config
  readonly phase: SchedulerPhase
  readonly log: DeliveryQueue.Log
  readonly freeze: Freeze | undefined
  readonly checkpointing: boolean
  readonly members: HashMap.HashMap<string, SspMember>
  readonly histories: HashMap.HashMap<string, History>
  readonly views: HashMap.HashMap<string, View>
  readonly expiries: SortedMap.SortedMap<string, true>
  readonly waitingViews: Waiting.Waiting
  /** Quarantined queries (D48), by parameters and text. */
  readonly quarantined: HashMap.HashMap<string, QuarantineRow>
  /** Views that SSPs may have died of, with the number of those SSPs. */
  readonly deaths: HashMap.HashMap<string, number>
  readonly jobs: HashMap.HashMap<string, Job>
  readonly waitingJobs: Waiting.Waiting
  /** Jobs that a leaving SSP was calling, with the time until which its reports are awaited. */
  readonly endingJobs: HashMap.HashMap<string, number>
  /** Last number given: registrations, assignments, freezes and calls share one counter that grows over restarts. */
  readonly serial: number
  readonly lastPicked: string | undefined
  readonly movedAt: number
  /** The SSP with too few views, and since when without interruption. */
  readonly uneven: { readonly taker: string; readonly since: number } | undefined
  /** Moving views, with the SSP that each goes to. */
  readonly moving: HashMap.HashMap<string, string>
  /** Time of the last tick, or of the start. */
  readonly tickedAt: number | undefined
}

/** Numbers of one epoch do not reach those of the next. */
const perEpoch = 2 ** 32

/** An empty pool. `cloned`: the replica is complete already (D25). */
export const initial = (config: Config, epoch: number, log: DeliveryQueue.Log, cloned: boolean): State => ({
  config,
  log,
  phase: cloned ? "Ready" : "Cloning",
  freeze: undefined,
  checkpointing: false,
  members: HashMap.empty(),
  histories: HashMap.empty(),
  views: HashMap.empty(),
  expiries: SortedMap.empty(Order.string),
  waitingViews: Waiting.none,
  quarantined: HashMap.empty(),
  deaths: HashMap.empty(),
  jobs: HashMap.empty(),
  endingJobs: HashMap.empty(),
  waitingJobs: Waiting.none,
  serial: epoch * perEpoch,
  lastPicked: undefined,
  movedAt: 0,
  uneven: undefined,
  moving: HashMap.empty(),
  tickedAt: undefined
})

export const member = (state: State, ssp: string): SspMember | undefined => {
  const found = HashMap.get(state.members, ssp)
  return found._tag === "Some" ? found.value : undefined
}

export const view = (state: State, key: string): View | undefined => {
  const found = HashMap.get(state.views, key)
  return found._tag === "Some" ? found.value : undefined
}

export const job = (state: State, id: string): Job | undefined => {
  const found = HashMap.get(state.jobs, id)
  return found._tag === "Some" ? found.value : undefined
}

/** The member a home names, if it is still in that registration. */
export const memberAt = (state: State, home: RegisteredSsp | undefined): SspMember | undefined => {
  const found = home === undefined ? undefined : member(state, home.ssp)
  return found?.registration === home?.registration ? found : undefined
}

/** When an SSP last gave a sign of life: a heartbeat, an answer, an applied event, or its goodbye. */
export const aliveAt = (state: State, ssp: string): number => {
  const { answeredAt, heardAt } = member(state, ssp) ?? { answeredAt: -Infinity, heardAt: -Infinity }
  const history = HashMap.get(state.histories, ssp)
  return Math.max(answeredAt, heardAt, history._tag === "Some" ? history.value.leftAt : -Infinity)
}

/** The SSP that holds a view now; undefined while the view waits. */
export const ownerOf = (state: State, key: string): SspMember | undefined => memberAt(state, view(state, key)?.home)

/** The SSP that is to run the job (D35); undefined while the job waits: its logged change then names no SSP. */
export const assigneeOf = (state: State, id: string): string | undefined => memberAt(state, job(state, id)?.home)?.ssp

/** The member with a registration number. */
export const inRegistration = (state: State, registration: number): SspMember | undefined => {
  for (const each of HashMap.values(state.members)) if (each.registration === registration) return each
  return undefined
}

/** Cache of {@link ready} by the map of members, since every waiting answer asks for it. */
const readyOf = new WeakMap<State["members"], ReadonlyArray<SspMember>>()

/** Ready SSPs in the order of their ids. */
export const ready = ({ members }: State): ReadonlyArray<SspMember> => {
  const known = readyOf.get(members)
  if (known !== undefined) return known
  const found = [...HashMap.values(members)]
    .filter((each) => each.state === "Ready")
    .sort((a, b) => (a.ssp < b.ssp ? -1 : 1))
  readyOf.set(members, found)
  return found
}

/** Message for an operator about an SSP that does not take the scheduler's secret. */
export const secretFault = (ssp: string): string =>
  `${ssp} does not take this scheduler's secret (401, or 403 where it lacks a scope): SVC_AUTH_SECRET, or the secret of this SSP in SVC_AUTH_SECRETS, differs between the scheduler and this SSP`

/** Ready SSPs that have applied `seq` (D7). */
export const appliedBy = (state: State, seq: number): number =>
  ready(state).filter((each) => each.queue.acked >= seq).length

/** Whether answers to `/ingest` wait for this SSP (D26). */
export const isAwaited = ({ queue, state }: SspMember): boolean => state === "Ready" && !queue.late

/** Whether an answer to `/ingest` still waits for an SSP that is behind `seq` (D26). */
export const awaited = (state: State, seq: number): boolean =>
  ready(state).some((each) => isAwaited(each) && each.queue.acked < seq)

/** The oldest position the log must keep: below the snapshot and every persisted position within the buffers (D26). */
export const oldestKept = (state: State): number => {
  const positions = [...HashMap.values(state.members)]
    .filter((each) => each.state !== "Overflowed")
    .map((each) => Math.min(each.queue.saved, each.queue.acked))
  return Math.min(state.log.head, state.freeze?.seq ?? state.log.head, ...positions) + 1
}

/** An SSP as a strategy of balancing sees it. */
export const candidate = (of: SspMember): Candidate => ({
  id: of.ssp,
  views: HashSet.size(of.views),
  cpu: of.heartbeat.cpu,
  memory: of.heartbeat.memory
})

/** Whether the registration has no field beyond the specification, so that the SSP may know no others. */
export const isPlain = ({ batch, incarnation, jobTables, tables }: SspRegistration): boolean =>
  [batch, incarnation, jobTables, tables].every((extension) => extension === undefined)

/** Address and registration of an SSP, for calls to it. */
export const calleeOf = (of: SspMember): ToSsp => ({
  ssp: of.ssp,
  registration: of.registration,
  url: of.url,
  plain: isPlain(of)
})

/** The part of a member that is stored. */
export const memberRow = (of: SspMember): MemberRow => ({
  ssp: of.ssp,
  incarnation: of.incarnation,
  url: of.url,
  batch: of.batch,
  jobTables: of.jobTables,
  ...(of.tables === undefined ? {} : { tables: of.tables }),
  registration: of.registration,
  acked: of.queue.acked
})

/** The part of a view that is stored. */
export const viewRow = (of: View): ViewRow => ({
  view: of.view,
  spec: of.spec,
  assignment: of.assignment,
  assignedAt: of.assignedAt,
  home: of.home,
  placed: of.placed,
  gone: of.gone
})

/** The part of a job that is stored. */
export const jobRow = (of: Job): JobRow => ({
  job: of.job,
  table: of.table,
  home: of.home,
  told: of.told,
  created: of.created
})

/** Ready SSPs that may get one more call that no client asked for. */
export const membersWithRoom = (state: State, now: number): ReadonlyArray<SspMember> =>
  ready(state).filter((each) => roomOf(state, each) > 0 && each.coolUntil <= now)

/** Number of further calls, asked for by no client, that an SSP may get. */
export const roomOf = ({ config }: State, { calls, window }: SspMember): number =>
  Math.min(config.maxCalls, window) - calls

/** Calls in flight allowed to an SSP before any has succeeded or failed. */
const firstWindow = 16

/** Fields of a new member, which holds nothing yet. */
export const nothingHeld = {
  heartbeat: { views: 0, cpu: undefined, memory: undefined },
  views: HashSet.empty<string>(),
  jobs: HashSet.empty<string>(),
  strays: HashMap.empty<string, Stray>(),
  calls: 0,
  coolUntil: 0,
  refusesSecret: false,
  window: firstWindow
} as const

export const withView = (of: SspMember, key: string): SspMember => ({ ...of, views: HashSet.add(of.views, key) })

export const withJob = (of: SspMember, id: string): SspMember => ({ ...of, jobs: HashSet.add(of.jobs, id) })

/** Number of views that have an owner, or wait for one. */
export const viewCount = (state: State): number =>
  HashMap.reduce(state.views, 0, (count, view) => (view.gone ? count : count + 1))
