/**
 * Long work on the wire: the running tasks, their progress and the estimated time (D34, extension).
 *
 * One shape for both servers, so that a reader of a cluster reads them alike.
 */
import { Schema } from "effect"
import { taskKinds } from "../core/telemetry/metrics.ts"
import { type Task as Going, paceOf } from "../core/telemetry/progress.ts"
import * as Examples from "./examples.ts"
import { count } from "./wire.ts"

export const Task = Schema.Struct({
  kind: Schema.Literal(...taskKinds),
  of: Schema.String.annotations({ description: "What it works on" }),
  at: Schema.NullOr(Schema.String).annotations({ description: "Where it is at the moment" }),
  unit: Schema.String.annotations({ description: "What is counted: records, events" }),
  done: count,
  total: Schema.NullOr(count).annotations({ description: "Null where it is unknown before the end" }),
  elapsed_seconds: Schema.Number,
  per_second: Schema.Number,
  remaining_seconds: Schema.NullOr(Schema.Number)
}).annotations({ identifier: "Task" })

export const Tasks = Schema.Array(Task)

export const SspProgress = Schema.Struct({
  state: Schema.String.annotations({ description: "bootstrapping, ready or failed" }),
  seq: Schema.NullOr(count).annotations({ description: "Position in the scheduler's log" }),
  tasks: Tasks
}).annotations({ identifier: "SspProgress", examples: [Examples.sspProgress], description: "Extension (D34)" })

const tenths = (value: number): number => Math.round(value * 10) / 10

export const taskOf = (task: Going): typeof Task.Type => {
  const { perSecond, remainingMs } = paceOf(task)
  const { at = null, done, elapsedMs, kind, total = null, unit, what } = task
  return {
    kind,
    of: what,
    at,
    unit,
    done,
    total,
    elapsed_seconds: tenths(elapsedMs / 1000),
    per_second: tenths(perSecond),
    remaining_seconds: remainingMs === undefined ? null : tenths(remainingMs / 1000)
  }
}
