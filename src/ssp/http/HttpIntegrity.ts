/**
 * Routes of the integrity endpoints (D41, extension): nodes of the tree, a compare with the database, and its repair.
 */
import { Effect } from "effect"
import { bucketLevel } from "../../core/integrity/merkle.ts"
import type { Compared } from "../../node/database/liveCompare.ts"
import * as Answers from "../../node/http/answers.ts"
import { routeGroup } from "../../node/http/routes.ts"
import * as Audit from "../../ports/Audit.ts"
import type { UpstreamError } from "../../ports/Upstream.ts"
import { nodesOnLevel } from "../../protocol/integrity.ts"
import { SspApi } from "../../protocol/SspApi.ts"
import { Integrity } from "../database/Integrity.ts"
import { Reconcile } from "../reconcile/Reconcile.ts"
import { type IngestError, type Overloaded, StoreFailed } from "../viewTypes.ts"
import { wireErrorOf } from "./HttpErrors.ts"

const noDatabase = Answers.invalidRequest([
  { path: "", reason: "cannot be answered: this SSP has no database to compare with (setting STORE_ADDR)" }
])

const notHere = Answers.invalidRequest([
  {
    path: "",
    reason: "cannot be done here: in scheduler mode records and their versions come from the scheduler alone"
  }
])

const notHeld = (table: string) =>
  Answers.invalidRequest([
    {
      path: "table",
      reason: `is ${JSON.stringify(table)}, which this SSP does not hold, because no view reads it (SVC_CLUSTER_FEED=pull)`
    }
  ])

const storeFailed = (error: UpstreamError) =>
  wireErrorOf(new StoreFailed({ message: `the database could not be read: ${error.message}`, cause: error }))

const compareFailed = (error: UpstreamError | Overloaded) =>
  error._tag === "UpstreamError" ? storeFailed(error) : wireErrorOf(error)

/** A repair carries no positions, so the errors of D5 cannot come from it. */
const repaired = (work: Effect.Effect<Compared, UpstreamError | IngestError>) =>
  work.pipe(
    Effect.catchTags({ SequenceGap: Effect.die, StaleEpoch: Effect.die }),
    Effect.mapError((error) => (error._tag === "UpstreamError" ? storeFailed(error) : wireErrorOf(error)))
  )

export const make = Effect.gen(function* () {
  const integrity = yield* Integrity
  const reconcile = yield* Reconcile
  const audited = yield* Audit.make
  return routeGroup(SspApi, "integrity", {
    nodes: {
      value: ({ urlParams: { index = 0, level = 0, table } }) => {
        if (table === undefined) return Effect.mapError(integrity.tables, wireErrorOf)
        if (!integrity.holds(table)) return Effect.fail(notHeld(table))
        const last = nodesOnLevel(level) - 1
        return index > last
          ? Effect.fail(
              Answers.invalidRequest([
                {
                  path: "index",
                  reason: `must be a whole number from 0 to ${last} on level ${level} of 0 to ${bucketLevel}`
                }
              ])
            )
          : Effect.mapError(integrity.node(table, level, index), wireErrorOf)
      }
    },
    compare: {
      value: ({ urlParams: { table } }) =>
        table !== undefined && !integrity.holds(table)
          ? Effect.fail(notHeld(table))
          : integrity.hasDatabase
            ? Effect.mapError(integrity.compare(table), compareFailed)
            : Effect.fail(noDatabase)
    },
    reconcile: {
      isWhole: true,
      value: (call) =>
        integrity.repairs
          ? audited(call, "")(repaired(reconcile.now))
          : audited(call, "")(Effect.fail(integrity.hasDatabase ? notHere : noDatabase))
    }
  })
})
