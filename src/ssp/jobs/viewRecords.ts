/**
 * This node's records for the job store, written through the views like any change, so that every view sees the write.
 *
 * A group is written only while each of its records is still the one that was read; the committer checks that right
 * before it commits.
 */
import { Effect } from "effect"
import type { Change } from "../../core/record/change.ts"
import { type Obj, Range, type RecordId } from "../../core/surql/values/value.ts"
import { JobStoreError } from "../../ports/JobStore.ts"
import type { Views } from "../views/Views.ts"
import type { IngestError } from "../viewTypes.ts"
import type { JobRecords, RecordPut } from "./recordJobs.ts"

const failure = (error: IngestError): JobStoreError =>
  new JobStoreError({
    transient: error._tag === "Overloaded" || error._tag === "StoreFailed",
    message: error.message,
    cause: error
  })

const changeOf = ({ doc, id }: RecordPut): Change => ({
  op: "UPDATE",
  id,
  doc,
  version: undefined,
  position: undefined,
  jobAssignee: undefined
})

export const make = (views: Views["Type"]): JobRecords => {
  const get = (id: RecordId): Obj | undefined => views.records.get(id)?.doc
  return {
    get,
    chunk: (table, after, size) => {
      const found: Array<Obj> = []
      const range = new Range(
        after === undefined ? undefined : { value: after.key as never, inclusive: false },
        undefined
      )
      for (const { doc } of views.records.rowsBetween(table, range)) {
        if (found.push(doc) === size) break
      }
      return found
    },
    put: (groups) => {
      const groupOf = new Map(groups.flatMap((group) => group.map(({ id }) => [id.text, group] as const)))
      const unchanged = (change: Change): boolean =>
        groupOf.get(change.id.text)?.every(({ id, was }) => get(id) === was) === true
      return views.repair(groups.flat().map(changeOf), unchanged).pipe(
        Effect.mapError(failure),
        Effect.map((changes) => {
          const held = new Set(changes.map(({ id }) => id.text))
          return groups.map((group) => group.every(({ id }) => held.has(id.text)))
        })
      )
    }
  }
}

/** Deletes a job's lease row together with the job, so that a job created again under its id is another job. */
export const deletion = (id: RecordId): Change => ({
  op: "DELETE",
  id,
  doc: { id },
  version: undefined,
  position: undefined,
  jobAssignee: undefined
})
