/**
 * The scheduler's stored state of its SSPs, views and jobs, kept over restarts (D31): rows by kind and key, written by
 * the pool's actions.
 *
 * One table of JSON for all kinds, because rows are only ever written one by one and read all at once. Beside the rows:
 * the epoch, which grows with every start and must never be used twice (D5), and the id of the log that the positions
 * refer to.
 */
import { Context, type Effect } from "effect"
import type { Action } from "../core/cluster/messages.ts"
import type { Saved } from "../core/cluster/pool.ts"
import type { Result } from "../core/job/result.ts"
import type { DatabaseError } from "./Database.ts"

/** The actions of the pool that write its stored state. */
export type PoolWrite = Extract<
  Action,
  {
    readonly tag:
      | "PersistMember"
      | "ForgetMember"
      | "PersistView"
      | "ForgetView"
      | "PersistQuarantine"
      | "ForgetQuarantine"
      | "PersistStray"
      | "ForgetStray"
      | "PersistJob"
      | "ForgetJob"
      | "PersistResult"
  }
>

/** Stored state at a start. */
export interface StoredPool {
  /** 1 at the first start, then one more each time (D5). */
  readonly epoch: number
  readonly saved: Saved
  /** Id of the log at the start before, if there was one; SSPs of another log are dropped. */
  readonly lastLogId: string | undefined
}

/** Stored rows of the pool; methods fail with a {@link DatabaseError}. */
export interface PoolStoreShape {
  /** Begins an epoch with the log `logId`. Keeps the results of the last `maxResults` jobs, fewer if they are long. */
  readonly open: (logId: string, maxResults?: number) => Effect.Effect<StoredPool, DatabaseError>
  /** Writes all rows in one step; on disk when it returns. */
  readonly write: (writes: ReadonlyArray<PoolWrite>) => Effect.Effect<void, DatabaseError>
  /** The stored part of a job's answer, by the text of its id; undefined once `maxResults` newer ones are stored. */
  readonly resultOf: (job: string) => Result | undefined
}

/** Where a scheduler keeps its SSPs, views and jobs over restarts. */
export class PoolStore extends Context.Tag("ports/PoolStore")<PoolStore, PoolStoreShape>() {}
