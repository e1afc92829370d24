/**
 * Carries out the decisions of `core/cluster/term.ts`: reads the log's row, claims it, renews the lease, hands over,
 * ends.
 *
 * A follower does one step at a time, so its replica is at rest when its term begins. All times are of the steady
 * clock, in ms.
 */
import type * as HttpClient from "@effect/platform/HttpClient"
import { Deferred, Duration, Effect, Random, type Scope } from "effect"
import type { LogCopy } from "../../core/cluster/cutting.ts"
import * as Term from "../../core/cluster/term.ts"
import {
  type Durability,
  isAsGood,
  type LeadershipShape,
  type LeaderTerm,
  type LogRow,
  type LogStatus,
  type ReportedMember,
  type SharedLogShape
} from "../../ports/SharedLog.ts"
import { StartFault } from "../../ports/StartFault.ts"
import type { WalFailed } from "../../ports/Wal.ts"
import { Reachability } from "./Reachability.ts"

/** Leases after which a member that has not announced itself is not counted any more. */
const membersLeases = 10
/** How long the log is kept for a member that has not announced itself. */
const keptForMs = 600_000

/** Which log this process follows, and under which name. */
interface ElectionOptions {
  readonly name: string
  readonly leaseMs: number
  /** Client for `/livez` of the other schedulers; absent: reachability is not checked. */
  readonly asks?: HttpClient.HttpClient
}

/** The replica that a follower keeps up to date, and its positions. */
export interface FollowerReplica {
  /** Applies the next events, through `lastSeq` at most; answers whether there are more. */
  readonly step: (row: LogRow) => Effect.Effect<boolean, StartFault>
  /** Whether the replica can be brought to the log's end; otherwise this process must not take over. */
  readonly canLead: (row: LogRow) => boolean
  readonly applied: () => number
  readonly synced: () => number
}

const hex = Effect.map(Effect.replicateEffect(Random.nextIntBetween(0, 16), 16), (digits) =>
  digits.map((digit) => digit.toString(16)).join("")
)

/** Scheduler id in the name of a process, `<SCHEDULER_ID>/<random>`; undefined: no leader. */
const nameIn = (self: string | undefined): string | undefined => self?.slice(0, self.lastIndexOf("/"))

export class LeaderElection implements LeadershipShape {
  private readonly name: string
  private readonly rules: Term.Rules
  readonly reach: Reachability | undefined
  private term: Term.Term = Term.initial
  private row: LogRow | undefined
  private members: ReadonlyArray<ReportedMember> = []
  private durability: Durability
  private url = ""
  private takeOvers = 0
  private missed: string | undefined
  private isSilenced = false
  private readonly silenced: Array<() => void> = []
  /** Called when another scheduler has become the leader. */
  private readonly changed: Array<() => void> = []

  private constructor(
    readonly log: SharedLogShape,
    { asks, leaseMs, name }: ElectionOptions,
    readonly self: string,
    private readonly now: () => number,
    private readonly won: Deferred.Deferred<Term.Frame>,
    private readonly ended: Deferred.Deferred<never, StartFault>
  ) {
    this.durability = log.durability
    this.name = name
    this.rules = { self, leaseMs }
    this.reach = asks && new Reachability(asks, leaseMs, now)
  }

  /** The election of this process. Closing the scope hands the log over if this process leads. */
  static readonly make = (
    log: SharedLogShape,
    options: ElectionOptions
  ): Effect.Effect<LeaderElection, never, Scope.Scope> =>
    Effect.gen(function* () {
      const clock = yield* Effect.clock
      const self = `${options.name}/${yield* hex}`
      const won = yield* Deferred.make<Term.Frame>()
      const ended = yield* Deferred.make<never, StartFault>()
      const now = (): number => Number(clock.unsafeCurrentTimeNanos()) / 1e6
      const election = new LeaderElection(log, options, self, now, won, ended)
      yield* Effect.addFinalizer(() => election.tell({ tag: "Stopped" }))
      return election
    })

  /** Fails when the process must end. */
  get lost(): Effect.Effect<never, StartFault> {
    return Deferred.await(this.ended)
  }

  readonly mayAnswer = (): boolean => Term.mayAnswer(this.rules, this.term, this.now())

  readonly sspCalled = (): void => void Effect.runSync(this.tell({ tag: "Spoken" }))

  readonly onSilenced = (listener: () => void): void => void this.silenced.push(listener)

  readonly status = (): LogStatus => ({
    role: this.term.role === "leader" ? "leader" : "follower",
    epoch: this.row?.epoch ?? 0,
    leader: nameIn(this.row?.leader),
    leaderUrl: this.row?.leaderUrl,
    durability: this.durability,
    members: this.members,
    takeOvers: this.takeOvers
  })

  /** URL of the leader; undefined if there is none, or if this process leads. */
  leaderUrl(): string | undefined {
    return this.row?.leader === this.self ? undefined : this.row?.leaderUrl
  }

  /** Returns when the leader changes. */
  get otherLeader(): Effect.Effect<void> {
    return Effect.async((resume) => {
      const done = (): void => resume(Effect.void)
      this.changed.push(done)
      return Effect.sync(() => void this.changed.splice(this.changed.indexOf(done), 1))
    })
  }

  private readonly tell = (fact: Term.Fact): Effect.Effect<void> =>
    Effect.suspend(() => {
      const [term, orders] = Term.decide(this.rules, this.term, this.now(), fact)
      this.term = term
      this.look()
      return Effect.forEach(orders, (order) => this.carryOut(order), { discard: true })
    })

  /** Calls the listeners once, when this process has lost the right to answer. */
  private look(): void {
    if (this.isSilenced || this.term.role === "follower" || this.mayAnswer()) return
    this.isSilenced = true
    for (const listener of this.silenced) listener()
  }

  private seen(row: LogRow): void {
    const isOther = row.leader !== this.row?.leader
    this.row = row
    if (isOther) for (const done of [...this.changed]) done()
  }

  private carryOut(order: Term.Order): Effect.Effect<void> {
    switch (order.tag) {
      case "Claim":
        return this.claim(order.expected)
      case "Lead":
        this.takeOvers++
        return Effect.asVoid(Deferred.succeed(this.won, order.frame))
      case "Beat":
        return Effect.asVoid(Effect.forkDaemon(this.beat))
      case "HandOver":
        return Effect.catchAll(this.log.handOver(this.self), (error) =>
          Effect.logWarning(`the log is not handed over, others wait for the lease: ${error.message}`)
        )
      case "End":
        return this.end({ exitCode: 4, message: `the log at ${this.log.shown} (SVC_LOG_URL): ${order.message}` })
    }
  }

  private end(fault: { readonly exitCode: 1 | 4; readonly message: string }): Effect.Effect<void> {
    return Effect.asVoid(Deferred.fail(this.ended, new StartFault(fault)))
  }

  private claim(expected: Term.Frame): Effect.Effect<void> {
    const sentAt = this.now()
    return Effect.matchEffect(this.log.claim(expected, this.self), {
      onSuccess: (row) => {
        if (row !== undefined) this.seen(row)
        return this.tell({ tag: "Claimed", sentAt, frame: row })
      },
      onFailure: (error) =>
        Effect.zipRight(Effect.logWarning(`taking over: ${error.message}`), this.tell({ tag: "ClaimUnknown" }))
    })
  }

  private get beat(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const sentAt = this.now()
      return this.term.role !== "leader"
        ? Effect.void
        : Effect.matchEffect(this.log.beat(this.term.epoch), {
            onSuccess: (durability) => (durability === undefined ? this.superseded : this.accepted(sentAt, durability)),
            onFailure: (error) => Effect.logWarning(error.message)
          })
    })
  }

  /** Reports that the log's server has refused a write of this term. */
  get superseded(): Effect.Effect<void> {
    return this.tell({ tag: "Superseded" })
  }

  /** Positions of the other schedulers for which the log is kept. */
  get copies(): Effect.Effect<ReadonlyArray<LogCopy>, WalFailed> {
    return Effect.map(this.log.members(keptForMs), (members) => {
      const near = new Set(this.members.map(({ self }) => self))
      return members
        .filter(({ self }) => self !== this.self)
        .map(({ applied, self, synced }) => ({ applied, synced, isNear: near.has(self) }))
    })
  }

  /** The term that began with `frame`, for the parts that write in it. */
  termOf({ epoch }: Term.Frame): LeaderTerm {
    return { epoch, isOver: this.isOver, superseded: this.superseded }
  }

  /** Reports that the log's server has accepted a write of this term, begun at `sentAt` ({@link time}). */
  accepted(sentAt: number, durability: Durability): Effect.Effect<void> {
    this.durability = durability
    const told = this.tell({ tag: "Accepted", sentAt })
    if (isAsGood(durability, this.log.durability)) return told
    const message = `the log at ${this.log.shown} (SVC_LOG_URL): the server answers before it has flushed, so a power failure would lose what was answered; turn fsync and synchronous_commit on, or set SVC_LOG_DURABILITY=relaxed to accept that`
    return Effect.zipRight(told, this.end({ exitCode: 1, message }))
  }

  /** Whether the term of this process has ended. */
  readonly isOver = (): boolean => this.term.role === "fenced" || this.term.role === "stopped"

  /** Steady time in ms, for {@link accepted}. */
  readonly time = (): number => this.now()

  /** Announces this process and its positions to the other members, and reads theirs. */
  private announce(follower: Pick<FollowerReplica, "applied" | "synced">): Effect.Effect<void, WalFailed> {
    return Effect.suspend(() => {
      const { name, self, url } = this
      // Only a follower reports which members it reaches.
      const ways = this.term.role === "follower" ? this.reach?.ways(this.row?.leader) : undefined
      const told = this.log.announce({
        ...(ways ?? Term.noContacts),
        self,
        name,
        url,
        applied: follower.applied(),
        synced: follower.synced()
      })
      return told.pipe(
        Effect.zipRight(this.log.members(membersLeases * this.rules.leaseMs)),
        Effect.flatMap((members) => {
          this.members = members
          const ways = members.filter((each) => each.self !== self && each.agoMs < this.rules.leaseMs)
          return this.tell({ tag: "Told", ways })
        }),
        Effect.zipRight(this.complaint(ways?.misses))
      )
    })
  }

  /** Logs an unreachable leader, once for each leader. */
  private complaint(missed: string | undefined): Effect.Effect<void> {
    if (missed === this.missed) return Effect.void
    this.missed = missed
    return missed === undefined
      ? Effect.void
      : Effect.logWarning(
          `the leader ${missed} has answered nothing at ${this.row?.leaderUrl} for ${this.rules.leaseMs} ms (SVC_LEASE_MS), and still writes the log; it is told there`
        )
  }

  /**
   * Follows the log until this process leads; answers the row with which its term began. `url`: address of this process
   * for the other schedulers.
   */
  follow(url: string, follower: FollowerReplica): Effect.Effect<Term.Frame, StartFault> {
    this.url = url
    const everyMs = Math.min(100, this.rules.leaseMs / 30)
    const asking = this.reach?.asking(() => this.peers()) ?? Effect.never
    return Effect.raceFirst(this.followLoop(everyMs, follower), asking)
  }

  private followLoop(everyMs: number, follower: FollowerReplica): Effect.Effect<Term.Frame, StartFault> {
    return Effect.gen(this, function* () {
      let announcedAt = Number.NEGATIVE_INFINITY
      let isAway = false
      while (!(yield* Deferred.isDone(this.won))) {
        const sentAt = this.now()
        const answer = yield* Effect.either(
          sentAt - announcedAt < Term.beatMs(this.rules)
            ? this.log.row
            : Effect.zipRight(this.announce(follower), this.log.row)
        )
        if (answer._tag === "Left") {
          if (answer.left.reason !== "unreachable")
            return yield* new StartFault({
              exitCode: answer.left.reason === "damaged" ? 3 : 1,
              message: answer.left.message
            })
          if (!isAway) yield* Effect.logWarning(answer.left.message)
          isAway = true
          yield* Effect.sleep(Duration.millis(everyMs))
          continue
        }
        if (sentAt - announcedAt >= Term.beatMs(this.rules)) announcedAt = sentAt
        isAway = false
        const row = answer.right
        this.seen(row)
        // A row that names this process as leader is a term of this process, even if its replica could not lead.
        if (row.leader === this.self || follower.canLead(row))
          yield* this.tell({ tag: "Looked", sentAt, frame: row, standing: this.reach?.standing ?? "near" })
        if (yield* Deferred.isDone(this.won)) break
        const hasMore = yield* Effect.raceFirst(follower.step(row), this.announceLoop(follower))
        if (!hasMore) yield* Effect.sleep(Duration.millis(everyMs))
      }
      return yield* Deferred.await(this.won)
    })
  }

  /** Announces this process while a long step runs; otherwise the log would be cut before this process has read it. */
  private announceLoop(follower: Pick<FollowerReplica, "applied" | "synced">): Effect.Effect<never> {
    return Effect.forever(
      Effect.delay(
        Effect.catchAll(this.announce(follower), () => Effect.void),
        Duration.millis(Term.beatMs(this.rules))
      )
    )
  }

  /** The other schedulers that announce themselves. */
  peers(): ReadonlyArray<ReportedMember & { readonly leads: boolean }> {
    return this.members
      .filter(({ self }) => self !== this.self)
      .map((member) => ({ ...member, leads: member.self === this.row?.leader }))
  }

  /** Renews the lease and announces the leader's positions, until the scope is closed. */
  lead(follower: Pick<FollowerReplica, "applied" | "synced">): Effect.Effect<void, never, Scope.Scope> {
    const { leaseMs } = this.rules
    const tick = Effect.repeat(Effect.delay(this.tell({ tag: "Tick" }), Duration.millis(leaseMs / 30)), {
      until: () => this.term.role !== "leader"
    })
    return Effect.zipRight(Effect.forkScoped(tick), Effect.asVoid(Effect.forkScoped(this.announceLoop(follower))))
  }
}
