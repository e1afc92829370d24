/**
 * The pool's shell: one queue of commands, `decide` for each, the resulting actions in order.
 *
 * Only the shell holds the pool's state and moves the replica, so `Freeze` finds the replica exactly where the last
 * `Appended` left it. State is written to the store, in one step for all commands that have arrived, before any action
 * that depends on it. Calls are started and not awaited; each comes back as a command.
 */
import { Context, Duration, Effect, Exit, FiberSet, Layer, Queue, Schedule, type Scope } from "effect"
import type { Strategy } from "../../core/cluster/balance.ts"
import type { Action, Command, Reply } from "../../core/cluster/messages.ts"
import * as Decisions from "../../core/cluster/pool.ts"
import * as State from "../../core/cluster/state.ts"
import * as Backoff from "../../node/work/backoff.ts"
import * as Metered from "../../node/work/metered.ts"
import { Balance } from "../../ports/Balance.ts"
import type { DatabaseError } from "../../ports/Database.ts"
import { Serving } from "../../ports/Front.ts"
import { Meters } from "../../ports/Meters.ts"
import { PoolStore, type PoolStoreShape, type PoolWrite } from "../../ports/PoolStore.ts"
import { Replica, type ReplicaShape, startFault } from "../../ports/Replica.ts"
import { SspClient } from "../../ports/SspClient.ts"
import { exitCodeOf, StartFault } from "../../ports/StartFault.ts"
import { Tracing } from "../../ports/Tracing.ts"
import { steadyMs, steadyOf, Turn } from "../../ports/Turn.ts"
import { Upstream } from "../../ports/Upstream.ts"
import { Wal, type WalShape } from "../../ports/Wal.ts"
import { SchedulerConfig, type SchedulerConfigShape } from "../Config.ts"
import * as Calls from "./calls.ts"
import { Events } from "./Events.ts"
import { storedByDay } from "./poolTimes.ts"
import * as Recovery from "./recovery.ts"
import { ViewActivity } from "./ViewActivity.ts"
import { ViewClearing } from "./ViewClearing.ts"
import { ViewReads } from "./viewReads.ts"

export interface PoolShape {
  readonly state: () => State.State
  /** The log's id, and the epoch, which counts the starts of schedulers (D5). */
  readonly identity: { readonly logId: string; readonly epoch: number }
  readonly events: Events
  /** Queues a command and waits for its reply. */
  readonly ask: (command: (ref: number) => Command) => Effect.Effect<Reply>
  readonly tell: (command: Command) => Effect.Effect<void>
  /** Stored part of a job's answer, by the text of the job's id. */
  readonly resultOf: PoolStoreShape["resultOf"]
  /**
   * Runs `step`, which may move the replica, while no command is carried out; then decides the command it answers, if
   * any.
   */
  readonly alone: <E>(step: Effect.Effect<Command | undefined, E>) => Effect.Effect<void, E>
  /** `listener` is called after each round of decisions. */
  readonly watch: (listener: () => void) => void
  /** Steady time of the last checkpoint (replica on disk, log cut); before the first, of the start. */
  readonly checkpointedAt: () => number
}

export class Pool extends Context.Tag("scheduler/pool/Pool")<Pool, PoolShape>() {
  static readonly layer: Layer.Layer<
    Pool,
    StartFault,
    SchedulerConfig | Balance | Wal | Replica | PoolStore | SspClient | Upstream | Turn | Serving
  > = Layer.scoped(
    Pool,
    Effect.suspend(() => make)
  )
}

/** A step that runs while no command does, and a callback for when its command is decided. */
interface Alone {
  readonly alone: Effect.Effect<Command | undefined>
  readonly after: () => void
}

type Entry = Command | Alone

/** The shell's dependencies. */
interface ShellDependencies {
  readonly config: SchedulerConfigShape
  readonly wal: WalShape
  readonly replica: ReplicaShape
  readonly store: PoolStoreShape
  readonly calls: Calls.CallContext
  readonly activity: ViewActivity
  readonly clearing: ViewClearing
  readonly queue: Queue.Queue<Entry>
  readonly replies: Map<number, (reply: Reply) => void>
  readonly listeners: Array<() => void>
  checkpointedAt: number
  /** Forks an effect. */
  readonly start: (effect: Effect.Effect<void>) => void
  /** Returns after one turn of the event loop: requests and answers that had arrived are read. */
  readonly turned: Effect.Effect<void>
  /** Returns when all requests that had arrived are in the queue. */
  readonly heard: Effect.Effect<void>
}

/** Largest number of entries in one round. */
const maxGathered = 1024

/** Turns of the event loop between a connection and the command of its request, and some spare. */
const turnsToHear = 8

const isWrite = (action: Action): action is PoolWrite => /^(?:Persist|Forget)/.test(action.tag)

/** Interval of the pool's ticks: short enough for its deadlines and polls, a second at most. */
const tickMs = ({ heartbeatIntervalMs, sspPollIntervalMs, sspProbeIntervalMs }: SchedulerConfigShape): number =>
  Math.min(
    1000,
    heartbeatIntervalMs,
    sspPollIntervalMs,
    sspProbeIntervalMs === 0 ? Infinity : Math.max(10, sspProbeIntervalMs)
  )

/** Limits of the pool's state, from the settings. */
export const limits = (config: SchedulerConfigShape, strategy: Strategy): State.Config => ({
  ...State.defaults,
  strategy,
  heartbeatTimeoutMs: config.heartbeatTimeoutMs,
  bootstrapTimeoutMs: config.bootstrapTimeoutSecs * 1000,
  pollIntervalMs: config.sspPollIntervalMs,
  probeIntervalMs: config.sspProbeIntervalMs,
  maxBuffer: config.maxBufferPerSsp,
  maxSilenceMs: 1.25 * tickMs(config)
})

const unwritten = { baseMs: 100, capMs: 2_000 }

/** Writes to the store, retried until it succeeds: actions that depend on a write must not go out before it. */
const persist = (store: PoolStoreShape, writes: ReadonlyArray<PoolWrite>): Effect.Effect<void> =>
  Backoff.untilSuccess(unwritten, ({ message }: DatabaseError) =>
    Effect.logError(`the pool cannot be written: ${message}; trying again`)
  )(store.write(writes))

/** Takes the snapshot that an SSP was promised; a replica that is not at the log's end is a broken invariant. */
const freeze = ({ replica }: ShellDependencies, id: number, seq: number): Effect.Effect<void> =>
  replica.freeze(id).pipe(
    Effect.retry({ times: 3, schedule: Schedule.spaced(Duration.millis(50)) }),
    Effect.orDie,
    Effect.flatMap((at) =>
      at === seq ? Effect.void : Effect.dieMessage(`broken invariant: the replica stands at ${at}, the log at ${seq}`)
    )
  )

/** Syncs the replica and drops the log behind it. A checkpoint that fails is tried again when the next is due. */
const checkpoint = (parts: ShellDependencies, keepFrom: number): Effect.Effect<void> => {
  const { queue, replica, wal } = parts
  return replica.sync.pipe(
    Effect.zipRight(wal.dropBefore(keepFrom)),
    Effect.zipRight(Effect.map(steadyMs, (now) => void (parts.checkpointedAt = now))),
    Effect.catchAll((error) => Effect.logError(`the checkpoint failed: ${error.message}`)),
    Effect.zipRight(wal.keptAfter),
    Effect.flatMap((kept) => queue.offerAll([{ tag: "Trimmed", first: kept + 1 }, { tag: "Checkpointed" }]))
  )
}

/**
 * Queues a tick behind the requests that had arrived before it. Ticks remove silent SSPs, and a busy process runs its
 * timers in time but reads its sockets late, so heartbeats may lie there unread. Ticks are further apart then, and the
 * pool does not count the difference as silence.
 */
const tick = ({ heard, queue }: Pick<ShellDependencies, "heard" | "queue">): Effect.Effect<void> =>
  Effect.zipRight(heard, Effect.asVoid(queue.offer({ tag: "Tick" })))

const levels = { info: Effect.logInfo, warn: Effect.logWarning, error: Effect.logError } as const

const perform = (parts: ShellDependencies, action: Action): Effect.Effect<void> => {
  switch (action.tag) {
    case "Freeze":
      return freeze(parts, action.id, action.seq)
    case "Thaw":
      return parts.replica.thaw(action.id)
    case "Checkpoint":
      return Effect.sync(() => parts.start(checkpoint(parts, action.keepFrom)))
    case "Reply":
      return Effect.sync(() => {
        parts.replies.get(action.ref)?.(action.reply)
        parts.replies.delete(action.ref)
      })
    case "Log":
      return levels[action.level](action.message)
    case "ClearView":
      return parts.clearing.ask(action.view, action.op)
    case "AskActivity":
      return parts.activity.ask(action.view, action.lastActiveAt)
    case "Poll":
    case "Deliver":
    case "CallRegister":
    case "CallUnregister":
    case "ExecuteJob":
      return Effect.sync(() =>
        parts.start(Effect.flatMap(Calls.run(parts.calls, action), (command) => parts.queue.offer(command)))
      )
    default:
      return Effect.void
  }
}

/** The pool's state and the loop that moves it. */
class Shell {
  constructor(
    private readonly parts: ShellDependencies,
    public state: State.State,
    private readonly now: () => number
  ) {}

  /** Carries out actions: writes to the store first, then the others in order. */
  readonly carryOut = (actions: ReadonlyArray<Action>): Effect.Effect<void> => {
    const rest = actions.filter((action) => !isWrite(action))
    const writes = actions.filter(isWrite)
    const all =
      rest.length === 0 ? Effect.void : Effect.forEach(rest, (action) => perform(this.parts, action), { discard: true })
    return writes.length === 0 ? all : Effect.zipRight(persist(this.parts.store, writes), all)
  }

  private decide(command: Command): ReadonlyArray<Action> {
    const now = this.now()
    const [state, actions] = Decisions.decide(this.state, now, command)
    this.state = state
    if (command.tag === "Delivered" && command.answer.kind !== "applied") this.wakeFor(command.ssp, now)
    if (
      command.tag === "Polled" ||
      command.tag === "Delivered" ||
      command.tag === "ViewCalled" ||
      command.tag === "Refused"
    )
      this.wakeForSuspect(command.ssp, now)
    return actions
  }

  /** Wakes the pool when a failed delivery is due again, which is usually before the next tick. */
  private wakeFor(ssp: string, now: number): void {
    const retryAt = State.member(this.state, ssp)?.queue.retryAt ?? 0
    if (retryAt > now) this.wakeAt(retryAt, now)
  }

  /** Wakes the pool for the health call that decides about a suspected SSP. */
  private wakeForSuspect(ssp: string, now: number): void {
    const member = State.member(this.state, ssp)
    if (member?.state === "Suspect" && member.since === now) this.wakeAt(now + this.state.config.confirmMs, now)
  }

  private wakeAt(at: number, now: number): void {
    this.parts.start(Effect.delay(tick(this.parts), Duration.millis(at - now)))
  }

  /** Decides all entries that have arrived, in order; neighbouring commands share one write. */
  private readonly round = Effect.fnUntraced(function* (this: Shell, entries: Iterable<Entry>) {
    let owed: Array<Action> = []
    for (const entry of entries) {
      if ("alone" in entry) {
        yield* this.carryOut(owed)
        owed = []
        const command = yield* entry.alone
        if (command !== undefined) owed.push(...this.decide(command))
        entry.after()
      } else owed.push(...this.decide(entry))
    }
    yield* this.carryOut(owed)
    for (const listener of this.parts.listeners) listener()
  })

  /** Set when the loop has ended: no command is answered any more. */
  ended = false

  /**
   * The first entry, and the entries that one turn of the event loop adds: they are decided and written together, so
   * they share one flush to disk.
   */
  private readonly gathered: Effect.Effect<Iterable<Entry>> = Effect.suspend(() => {
    const { queue, turned } = this.parts
    return Effect.flatMap(Queue.take(queue), (first) =>
      Effect.map(Effect.zipRight(turned, Queue.takeUpTo(queue, maxGathered - 1)), (others) => [first, ...others])
    )
  })

  readonly loop: Effect.Effect<never> = Effect.suspend(() =>
    Effect.forever(Effect.flatMap(this.gathered, (entries) => this.round(entries)))
  ).pipe(
    Effect.ensuring(
      Effect.sync(() => {
        this.ended = true
      })
    )
  )
}

const fromStore = (error: DatabaseError): StartFault =>
  new StartFault({
    exitCode: exitCodeOf(error.reason),
    message: `${error.message}; see SVC_SCHEDULER_REPLICA_DB_PATH`
  })

const askOn = ({ queue, replies }: ShellDependencies) => {
  let refs = 0
  return (command: (ref: number) => Command): Effect.Effect<Reply> =>
    Effect.async<Reply>((resume) => {
      const ref = ++refs
      replies.set(ref, (reply) => resume(Effect.succeed(reply)))
      queue.unsafeOffer(command(ref))
    })
}

const aloneOn =
  ({ queue }: ShellDependencies) =>
  <E>(step: Effect.Effect<Command | undefined, E>): Effect.Effect<void, E> =>
    Effect.async<void, E>((resume) => {
      let ended: Exit.Exit<Command | undefined, E> | undefined
      const alone = Effect.map(Effect.exit(step), (exit) => {
        ended = exit
        return Exit.isSuccess(exit) ? exit.value : undefined
      })
      queue.unsafeOffer({ alone, after: () => resume(ended === undefined ? Effect.void : Effect.asVoid(ended)) })
    })

/** At a stop: saves positions, carries out pending actions, syncs the replica. */
const close = ({ queue, replica, store }: ShellDependencies, shell: Shell): Effect.Effect<void> =>
  Effect.gen(function* () {
    if (!shell.ended)
      yield* Effect.async<void>(
        (resume) => void queue.unsafeOffer({ alone: Effect.succeed(undefined), after: () => resume(Effect.void) })
      )
    const rows = [...State.ready(shell.state)].map(
      (member) => ({ tag: "PersistMember", row: State.memberRow(member) }) as const
    )
    yield* Effect.ignoreLogged(store.write(rows))
    yield* Effect.ignoreLogged(replica.sync)
  })

/**
 * Saved positions of SSPs are valid only for the replica they bootstrapped from. A replica that is incomplete or was
 * recreated is filled by cloning, which writes no events, so an SSP that went on from its position would miss those
 * records. All SSPs are forgotten; each registers and bootstraps again on its next heartbeat.
 */
const stillOfOnePiece = (
  store: PoolStoreShape,
  cloned: boolean,
  saved: Decisions.Saved
): Effect.Effect<Decisions.Saved, StartFault> =>
  Effect.gen(function* () {
    if (cloned || saved.members.length === 0) return saved
    yield* Effect.logWarning("the replica is cloned anew: every SSP bootstraps again")
    yield* Effect.mapError(
      store.write(saved.members.map(({ ssp }) => ({ tag: "ForgetMember", ssp }) as const)),
      fromStore
    )
    return { ...saved, members: [], strays: [] }
  })

const open = Effect.gen(function* () {
  const config = yield* SchedulerConfig
  const wal = yield* Wal
  const replica = yield* Replica
  const store = storedByDay(yield* PoolStore, yield* Effect.clock)
  const { epoch, lastLogId, saved } = yield* Effect.mapError(store.open(wal.logId, config.jobResults), fromStore)
  const upstream = yield* Upstream
  const log = yield* Recovery.recover({ ...config, walPath: config.logName }, wal, replica, upstream.present)
  if (lastLogId !== undefined && lastLogId !== wal.logId)
    yield* Effect.logWarning(`the log at ${config.logName} is a new one: every SSP bootstraps again`)
  // A complete replica serves while it is compared with the database; only missing records must be cloned first (D25).
  const cloned = !upstream.present || (yield* Effect.mapError(replica.whole, startFault))
  return {
    config,
    wal,
    replica,
    store,
    upstream,
    epoch,
    log,
    cloned,
    saved: yield* stillOfOnePiece(store, cloned, saved)
  }
})

const make: Effect.Effect<
  PoolShape,
  StartFault,
  SchedulerConfig | Balance | Wal | Replica | PoolStore | SspClient | Upstream | Turn | Serving | Scope.Scope
> = Effect.gen(function* () {
  const { cloned, config, epoch, log, replica, saved, store, upstream, wal } = yield* open
  const clock = yield* Effect.clock
  const fibers = yield* FiberSet.makeRuntime<never>()
  const serving = yield* Serving
  const events = new Events(wal, epoch)
  // Unbounded: each entry is a waiting request, the end of a call, or a tick, and those are bounded themselves.
  const queue = yield* Queue.unbounded<Entry>()
  const turn = yield* Turn
  const turned = Effect.async<void>((resume) => turn.next(() => resume(Effect.void)))
  const heard = Effect.repeatN(turned, turnsToHear - 1)
  const start = (effect: Effect.Effect<void>): void => void fibers(Serving.guard(serving, effect))
  // The pool measures ages and times to live with the steady clock (D73).
  const nowMs = steadyOf(clock)
  const reads = new ViewReads()
  const parts: ShellDependencies = {
    config,
    wal,
    replica,
    store,
    queue,
    start,
    turned,
    heard,
    replies: new Map(),
    listeners: [],
    checkpointedAt: nowMs(),
    activity: new ViewActivity(upstream, (command) => queue.offer(command), start),
    clearing: new ViewClearing(upstream, config.schedulerId, (command) => queue.offer(command), start),
    calls: {
      client: Metered.sspClient(yield* SspClient, { meters: yield* Meters, clock }),
      events,
      replica,
      reads,
      maxBodyBytes: config.maxBodyBytes,
      tracing: yield* Tracing
    }
  }
  parts.calls.client.watchSecrets?.((ssp) => queue.unsafeOffer({ tag: "SecretRefused", ssp }))
  const limited = { ...limits(config, yield* Balance), readsOf: reads.of, database: upstream.present }
  const initial = State.initial(limited, epoch, log, cloned)
  const [state, actions] = Decisions.restore(initial, nowMs(), saved)
  const shell = new Shell(parts, state, nowMs)
  yield* shell.carryOut(actions)
  yield* Serving.fork(shell.loop)
  yield* Effect.addFinalizer(() => close(parts, shell))
  yield* Serving.fork(Effect.repeat(tick(parts), Schedule.spaced(Duration.millis(tickMs(config)))))
  yield* Serving.fork(
    Effect.delay(
      Effect.repeat(
        parts.queue.offer({ tag: "CheckpointDue" }),
        Schedule.spaced(Duration.seconds(config.snapshotUpdateIntervalSecs))
      ),
      Duration.seconds(config.snapshotUpdateIntervalSecs)
    )
  )
  return {
    state: () => shell.state,
    identity: { logId: wal.logId, epoch },
    events,
    ask: askOn(parts),
    alone: aloneOn(parts),
    tell: (command) => Effect.asVoid(parts.queue.offer(command)),
    resultOf: store.resultOf,
    watch: (listener) => void parts.listeners.push(listener),
    checkpointedAt: () => parts.checkpointedAt
  }
})
