/**
 * `GET /integrity` of the scheduler (D41, extension): roots of the replica's tables, or a node of one table's tree, at
 * their position.
 *
 * The answer of an SSP has the same form, so that nodes can be compared.
 */
import { Effect } from "effect"
import { bucketLevel } from "../../core/integrity/merkle.ts"
import { invalidRequest, overloaded } from "../../node/http/answers.ts"
import { routeGroup } from "../../node/http/routes.ts"
import type { ReplicaError } from "../../ports/Replica.ts"
import { nodesOnLevel } from "../../protocol/integrity.ts"
import { SchedulerApi } from "../../protocol/SchedulerApi.ts"
import type { Overloaded } from "../errors.ts"
import { RecordTrees } from "../replica/RecordTrees.ts"

const failed = (error: ReplicaError | Overloaded) =>
  error._tag === "Overloaded"
    ? overloaded(error)
    : { code: "REPLICA_FAILED" as const, message: `the replica cannot be read: ${error.message}` }

export const make = Effect.map(RecordTrees, (trees) =>
  routeGroup(SchedulerApi, "integrity", {
    nodes: {
      value: ({ urlParams: { index = 0, level = 0, table } }) => {
        const last = nodesOnLevel(level) - 1
        if (index > last)
          return Effect.fail(
            invalidRequest([
              {
                path: "index",
                reason: `must be a whole number from 0 to ${last} on level ${level} of 0 to ${bucketLevel}`
              }
            ])
          )
        return table === undefined
          ? Effect.mapError(trees.roots, failed)
          : Effect.mapError(trees.node(table, level, index), failed)
      }
    }
  })
)
