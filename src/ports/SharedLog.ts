/**
 * A log on a server that several schedulers reach: the statements that a term of leadership consists of, each atomic.
 *
 * One scheduler leads (`core/cluster/term.ts`): it alone appends, through `ports/Wal`; the others read. Each write
 * names its term, and the engine refuses a write of another term, so no lock is needed. A failure with the reason
 * `unreachable` says that the outcome is unknown; every other is definite. No method retries.
 */
import { Context, type Effect } from "effect"
import type { Attempt, Contacts, Frame } from "../core/cluster/term.ts"
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

/** Whether a durability is at least the one asked for. */
export const isAsGood = (durability: Durability, asked: Durability): boolean => weight[durability] >= weight[asked]

/** The log's row with its data. */
export interface LogRow extends Frame {
  /** Every record after this position can be read. */
  readonly keptAfter: number
  /** The leader's address, as it announced it. */
  readonly leaderUrl: string | undefined
}

/** A scheduler's last report of itself; `self` as in {@link Frame.leader}. */
export interface LogMember extends Contacts {
  /** Name of the scheduler (SCHEDULER_ID). */
  readonly name: string
  readonly url: string
  /** Position through which its replica is applied, and through which that is on its disk. */
  readonly applied: number
  readonly synced: number
}

/** A report with its age. */
export interface ReportedMember extends LogMember {
  readonly agoMs: number
}

/** The term of a leader, for the code that writes in it. */
export interface LeaderTerm {
  readonly epoch: number
  /** Whether the term is over: then no write can succeed, and none is tried. */
  readonly isOver: () => boolean
  /** Completes once the engine has refused a write because of its term. */
  readonly superseded: Effect.Effect<void>
}

/**
 * The statements of a shared log. Methods fail with {@link WalFailed}; `undefined` means that the term is over or
 * another one.
 */
export interface SharedLogShape {
  /** Random id, drawn when the log is made (D5). */
  readonly logId: string
  /** Name of the log for people, without passwords. */
  readonly shown: string
  /** Least durability of an answered write. */
  readonly durability: Durability
  readonly row: Effect.Effect<LogRow, WalFailed>
  /** Begins a term if the row is still `expected`; undefined if it is not. */
  readonly claim: (expected: Frame, self: string) => Effect.Effect<LogRow | undefined, WalFailed>
  /** Writes that the leader of the term lives; undefined: the term is over. */
  readonly beat: (epoch: number) => Effect.Effect<Durability | undefined, WalFailed>
  /** Gives up leadership, if this process has it. */
  readonly handOver: (self: string) => Effect.Effect<void, WalFailed>
  /** Appends records at a position in a term; undefined: the row has another position or term. */
  readonly append: (at: Attempt, records: ReadonlyArray<string>) => Effect.Effect<Durability | undefined, WalFailed>
  /** The first records after `after` and up to `upTo`; at least one, if there is one. */
  readonly page: (after: number, upTo: number) => Effect.Effect<ReadonlyArray<WalRecord>, WalFailed>
  /** Drops records before `seq` unless the term is over; answers the position after which all are kept. */
  readonly drop: (epoch: number, seq: number) => Effect.Effect<number, WalFailed>
  /** Reports this scheduler to the others. */
  readonly announce: (member: LogMember) => Effect.Effect<void, WalFailed>
  /** Reports of the last `withinMs` milliseconds by the server's clock, with their ages. */
  readonly members: (withinMs: number) => Effect.Effect<ReadonlyArray<ReportedMember>, WalFailed>
  /** The stored pool of a term. A write after the end of the term fails. */
  readonly pool: (term: LeaderTerm) => PoolStoreShape
  /** The place beside the log where its servers keep snapshots; absent if the engine has none. */
  readonly snapshots?: Effect.Effect<SnapshotStore, SnapshotFailed>
}

/** The log of a cluster with several schedulers. */
export class SharedLog extends Context.Tag("ports/SharedLog")<SharedLog, SharedLogShape>() {}

/** The log and its schedulers, for `/info` and the dashboard. */
export interface LogStatus {
  readonly role: "leader" | "follower"
  readonly epoch: number
  /** The leader's SCHEDULER_ID; undefined: none is known. */
  readonly leader: string | undefined
  readonly leaderUrl: string | undefined
  /** Durability of the last write; before the first write, the one asked for. */
  readonly durability: Durability
  /** Schedulers that report themselves, this one included. */
  readonly members: ReadonlyArray<LogMember>
  /** Number of terms that this process has begun. */
  readonly takeOvers: number
}

/** Whether this scheduler may act as the leader. */
export interface LeadershipShape {
  /** False: another may lead, so only requests about this process itself are answered. */
  readonly mayAnswer: () => boolean
  /** Called when {@link mayAnswer} turns false. */
  readonly onSilenced: (listener: () => void) => void
  /** To be called when an SSP that hears the answers has called. */
  readonly sspCalled: () => void
  /** Undefined if this scheduler has its log alone. */
  readonly status: () => LogStatus | undefined
}

/** Leadership of a shared log; by default a scheduler has its log alone and always may answer. */
export class Leadership extends Context.Reference<Leadership>()("ports/SharedLog/Leadership", {
  defaultValue: (): LeadershipShape => ({
    mayAnswer: () => true,
    onSilenced: () => {},
    sspCalled: () => {},
    status: () => undefined
  })
}) {}
