/**
 * Whether and how this SSP follows tables (D61), across its registrations: which tables it asks for, which it begins
 * with, and the follower that answers the views.
 */
import { Effect } from "effect"
import * as Interest from "../../core/surql/syntax/interest.ts"
import { IngestTimes } from "../../ports/IngestTimes.ts"
import { Heap } from "../../ports/ProcessFigures.ts"
import { SchedulerClient } from "../../ports/SchedulerClient.ts"
import { Tracing } from "../../ports/Tracing.ts"
import type { SspRegistered } from "../../protocol/wire.ts"
import { SspConfig } from "../Config.ts"
import { DeclaredTypes } from "../reconcile/DeclaredTypes.ts"
import * as Bootstrap from "../tables/bootstrap.ts"
import { TableFollower } from "../tables/TableFollower.ts"
import { TableUses } from "../tables/TableUses.ts"
import { Views } from "../views/Views.ts"
import { TablesJoining } from "../viewTypes.ts"
import type { Assignments } from "./Assignments.ts"
import type { MembershipState } from "./MembershipState.ts"

/** Tables that a registration asks for. `push`: this SSP follows no feed; `every`: all tables. */
type Wanted = ReadonlySet<string> | "every" | "push"

/** An accepted registration. `feeds`: this SSP follows the scheduler's feed. */
export interface AcceptedRegistration {
  readonly attempt: number
  readonly registered: typeof SspRegistered.Type
  readonly feeds: boolean
  /** Tables that are pulled; undefined: all. */
  readonly held: ReadonlySet<string> | undefined
}

/** Field `tables` of a registration. */
export const tablesField = (wanted: Wanted): { readonly tables?: ReadonlyArray<string> } =>
  wanted === "push" ? {} : { tables: wanted === "every" ? ["*"] : [...wanted] }

/** A scheduler without a feed pushes changes of all tables. */
export const acceptedAs = (
  attempt: number,
  registered: typeof SspRegistered.Type,
  wanted: Wanted
): AcceptedRegistration => {
  const feeds = wanted !== "push" && registered.feed === true && registered.registration !== undefined
  return { attempt, registered, feeds, held: feeds && wanted !== "every" ? wanted : undefined }
}

export const make = (membership: MembershipState, assignments: Assignments, isStopping: () => boolean) =>
  Effect.gen(function* () {
    const config = yield* SspConfig
    const views = yield* Views
    const client = yield* SchedulerClient
    const types = yield* DeclaredTypes
    const heap = yield* Heap
    const tracing = yield* Tracing
    const times = yield* IngestTimes
    const uses = new TableUses(config.jobTables.map(({ table }) => table))
    /** `sent`: all tables are held, and changes are pushed; undefined: there are no records yet. */
    let follower: TableFollower | "sent" | undefined
    const follows = config.clusterFeed === "pull" && client.feed !== undefined && client.applied !== undefined
    const pulling = Effect.fail(new TablesJoining({ message: "this SSP pulls its records", retryAfterSecs: 1 }))
    if (follows)
      views.tables.follow({
        hold: (interest) => (follower === "sent" ? Effect.succeed(() => {}) : (follower?.hold(interest) ?? pulling)),
        put: (view, interest) => uses.put(view, interest),
        dropped: (view) => uses.remove(view),
        held: () => (follower instanceof TableFollower ? follower.shown : undefined)
      })
    const parts = (registered: typeof SspRegistered.Type, attempt: number) => ({
      client,
      views,
      types,
      uses,
      tracing,
      heap,
      reading: Bootstrap.makeTableReader(client, registered.bootstrap_chunk_size, heap),
      sspId: config.sspId,
      registration: registered.registration ?? 0,
      maxPending: config.maxPendingChanges,
      graceMs: config.tableGraceSecs * 1000,
      times,
      isOver: () => membership.state.attempt !== attempt || isStopping(),
      lost: (reason: string) => membership.tell({ tag: "Lost", reason })
    })
    return {
      /** Tables needed from the start, and those held before. */
      wanted: Effect.map(views.registrations, (stored): Wanted => {
        if (!follows) return "push"
        const interests = stored.filter(({ key }) => assignments.isDirect(key)).map(views.tables.interestOf)
        const before = follower instanceof TableFollower ? follower.tables : []
        // The tables that records link to are known only when the records are there.
        if (before === undefined || interests.some(({ all, follows }) => all || follows)) return "every"
        return new Set([...uses.base, ...before, ...interests.flatMap(({ tables }) => [...tables])])
      }),
      /** Begins at the position of the pulled records. */
      begin: (
        { attempt, feeds, held, registered }: AcceptedRegistration,
        { names, position, records }: Bootstrap.PulledSnapshot
      ): Effect.Effect<void> =>
        Effect.suspend(() => {
          if (!feeds) {
            const isNews = follows && follower !== "sent"
            follower = "sent"
            return isNews
              ? Effect.logInfo(
                  "the scheduler has no feed of tables (GET /feed): this SSP is sent every change and holds all records, as with SVC_CLUSTER_FEED=push"
                )
              : Effect.void
          }
          uses.clearLinks()
          for (const { doc, id } of records)
            if (doc !== undefined) Interest.eachLink(doc, (to) => void uses.linked(id.table, to))
          follower = new TableFollower({
            ...parts(registered, attempt),
            position,
            isAll: held === undefined,
            held: held === undefined ? names : [...held]
          })
          return Effect.void
        }),
      /** Follows the feed, if the scheduler has one. */
      run: Effect.suspend((): Effect.Effect<void> => (follower instanceof TableFollower ? follower.run : Effect.void))
    }
  })
