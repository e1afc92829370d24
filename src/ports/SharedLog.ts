/**
 * A log on a server that several schedulers reach: every statement that a term of it is made of, each of them whole or
 * not at all.
 *
 * One scheduler leads (`core/cluster/term.ts`): it alone appends, through `ports/Wal`; the others read. Each write
 * names the term it belongs to, and the engine refuses one of another term, so nothing here needs a lock. A failure
 * with the reason `unreachable` says that the outcome is unknown; every other is definite. No method tries again.
 */
import { Context, type Effect } from "effect"
import type { Attempt, Frame, Ways } from "../core/cluster/term.ts"
import type { WalRecord } from "../core/wal/walFormat.ts"
import type { PoolStoreShape } from "./PoolStore.ts"
import type { SnapshotFailed, SnapshotStore } from "./Snapshots.ts"
import type { WalFailed } from "./Wal.ts"

/**
 * Durability of a write when it is answered. `flushed`: on disk; `replicated`: on most of several servers, so that the
 * loss of one server loses nothing, though perhaps none has flushed it; `relaxed`: a power failure may lose it (D62).
 */
export type Durability = "flushed" | "replicated" | "relaxed"

const weight: { readonly [durability in Durability]: number } = { flushed: 2, replicated: 1, relaxed: 0 }

export const isAsGood = (durability: Durability, asked: Durability): boolean => weight[durability] >= weight[asked]

/** The log's row, and what belongs to it. */
export interface LogRow extends Frame {
  /** Every record behind this position is there to be read. */
  readonly keptAfter: number
  /** Where the leader says that others reach it. */
  readonly leaderUrl: string | undefined
}

/** A scheduler as it told of itself last; `self` as {@link Frame.leader} has it. */
export interface LogMember extends Ways {
  /** SCHEDULER_ID. */
  readonly name: string
  readonly url: string
  /** Position through which its replica is applied, and through which that is on its disk. */
  readonly applied: number
  readonly synced: number
}

export interface Told extends LogMember {
  readonly agoMs: number
}

/** The term of a leader, for what writes in it. */
export interface TermOf {
  readonly epoch: number
  /** Whether the term is over: no write can succeed any more, and none is tried. */
  readonly isOver: () => boolean
  /** Completes once the engine has refused a write because of its term. */
  readonly superseded: Effect.Effect<void>
}

export interface SharedLogShape {
  /** Random, born with the log (D5). */
  readonly logId: string
  /** As people are told of it; no password is in it. */
  readonly shown: string
  /** The least that must be said of an answered write. */
  readonly durability: Durability
  readonly row: Effect.Effect<LogRow, WalFailed>
  /** Begins a term, if the row is still this one; undefined: it is not. */
  readonly claim: (expected: Frame, self: string) => Effect.Effect<LogRow | undefined, WalFailed>
  /** Says that the leader of the term lives; undefined: the term is over. */
  readonly beat: (epoch: number) => Effect.Effect<Durability | undefined, WalFailed>
  /** Gives the log back, if it is this process's. */
  readonly handOver: (self: string) => Effect.Effect<void, WalFailed>
  /** Adds records at a position in a term; undefined: the row says another one. */
  readonly append: (at: Attempt, records: ReadonlyArray<string>) => Effect.Effect<Durability | undefined, WalFailed>
  /** The first of the records behind `after` and up to `upTo`; at least one, where there is one. */
  readonly page: (after: number, upTo: number) => Effect.Effect<ReadonlyArray<WalRecord>, WalFailed>
  /** Drops what lies before `seq`, as far as its term is not over; answers the position behind which all is kept. */
  readonly drop: (epoch: number, seq: number) => Effect.Effect<number, WalFailed>
  /** Tells the others of this scheduler. */
  readonly announce: (member: LogMember) => Effect.Effect<void, WalFailed>
  /** Schedulers that have told of themselves within `withinMs`, by the server's clock, and how long ago. */
  readonly members: (withinMs: number) => Effect.Effect<ReadonlyArray<Told>, WalFailed>
  /** The pool of a term. A write of a term that is over fails. */
  readonly pool: (term: TermOf) => PoolStoreShape
  /** Makes the place beside the log where its servers keep snapshots; an engine without one has none. */
  readonly snapshots?: Effect.Effect<SnapshotStore, SnapshotFailed>
}

/** The log of a cluster with several schedulers. */
export class SharedLog extends Context.Tag("ports/SharedLog")<SharedLog, SharedLogShape>() {}

export interface LogStatus {
  readonly role: "leader" | "follower"
  readonly epoch: number
  /** The leader's SCHEDULER_ID; undefined: none is known. */
  readonly leader: string | undefined
  readonly leaderUrl: string | undefined
  /** Durability of the last write; before the first write, the durability that was asked for. */
  readonly durability: Durability
  /** Schedulers that tell of themselves, this one among them. */
  readonly members: ReadonlyArray<LogMember>
  /** Terms that this process has begun. */
  readonly takeOvers: number
}

export interface LeadershipShape {
  /** False: another may lead, and nothing is answered but what is this process's own. */
  readonly mayAnswer: () => boolean
  /** Called when {@link mayAnswer} turns false. */
  readonly onSilenced: (listener: () => void) => void
  /** To be told when an SSP speaks that hears its answers. */
  readonly spoken: () => void
  /** Undefined: alone with its log. */
  readonly status: () => LogStatus | undefined
}

/**
 * Whether and with whom a scheduler shares its log; by default it is alone with it, and always may answer.
 */
export class Leadership extends Context.Reference<Leadership>()("ports/SharedLog/Leadership", {
  defaultValue: (): LeadershipShape => ({
    mayAnswer: () => true,
    onSilenced: () => {},
    spoken: () => {},
    status: () => undefined
  })
}) {}
