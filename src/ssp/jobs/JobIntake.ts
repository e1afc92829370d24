/**
 * Where changes of job tables are passed from the views, once they are applied, to the job runner (D35).
 *
 * Between the two, because the runner writes through the views and the views must not know the runner. Nothing waits
 * here: the runner takes a change at once or lets it go, and the sweep finds jobs let go. A node without job tables
 * watches nothing, so that `/ingest` pays nothing.
 */
import { Context, Effect, Layer } from "effect"
import type { Change } from "../../core/record/change.ts"
import { SspConfig } from "../Config.ts"
import { Views } from "../views/Views.ts"

interface JobListener {
  /** A job table's change was applied. */
  readonly changed: (change: Change) => void
  /** All records were replaced. */
  readonly replaced: () => void
  /** Adds to the change that deletes a job the writes that must be in the same commit. */
  readonly deletes?: (change: Change) => Change
}

export class JobIntake extends Context.Tag("ssp/JobIntake")<
  JobIntake,
  {
    readonly tables: ReadonlySet<string>
    /** Passes on changes that came by another way than `Views.ingest`. */
    readonly applied: (changes: ReadonlyArray<Change>) => void
    /** The one listener; the last to subscribe. */
    readonly attach: (listener: JobListener) => void
  }
>() {
  static readonly layer: Layer.Layer<JobIntake, never, SspConfig | Views> = Layer.effect(
    JobIntake,
    Effect.gen(function* () {
      const { jobTables } = yield* SspConfig
      const views = yield* Views
      const tables = new Set(jobTables.map(({ table }) => table))
      let listener: JobListener | undefined
      const applied = (changes: ReadonlyArray<Change>): void => {
        for (const change of changes) if (tables.has(change.id.table)) listener?.changed(change)
      }
      if (tables.size > 0)
        views.watch({
          applied,
          replaced: () => listener?.replaced(),
          joins: (change) =>
            change.op === "DELETE" && tables.has(change.id.table) ? listener?.deletes?.(change) : undefined
        })
      return { tables, applied, attach: (next) => void (listener = next) }
    })
  )
}
