/**
 * What the scheduler knows of its SSPs, views and jobs, kept over restarts (D31): rows by kind and key, written as the
 * pool says.
 *
 * One table of JSON for all kinds, because rows are only ever written one by one and read all at once. Beside them the
 * epoch, which grows with every start and must never be used twice (D5), and the log that the positions are of: in
 * another log they mean nothing.
 */
import { Context, type Effect } from "effect"
import type { Action } from "../core/cluster/messages.ts"
import type { Saved } from "../core/cluster/pool.ts"
import type { Result } from "../core/job/result.ts"
import type { DatabaseError } from "./Database.ts"

/** The actions of the pool that are about its stored state. */
export type Write = Extract<
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

export interface Opened {
  /** 1 at the first start, then one more each time (D5). */
  readonly epoch: number
  readonly saved: Saved
  /** The log of the start before, if there was one; of another log no SSP is kept. */
  readonly lastLogId: string | undefined
}

export interface PoolStoreShape {
  /**
   * Begins an epoch with the log `logId`. Results of the last `maxResults` jobs are kept, fewer where they are long.
   */
  readonly open: (logId: string, maxResults?: number) => Effect.Effect<Opened, DatabaseError>
  /** One step, on disk when it returns. */
  readonly write: (writes: ReadonlyArray<Write>) => Effect.Effect<void, DatabaseError>
  /** The kept part of the answer to a job, by its id's text. */
  readonly resultOf: (job: string) => Result | undefined
}

/** Where a scheduler keeps its SSPs, views and jobs over restarts. */
export class PoolStore extends Context.Tag("ports/PoolStore")<PoolStore, PoolStoreShape>() {}
