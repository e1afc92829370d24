/**
 * Passes applied changes of job tables from the views to the job runner (D35).
 *
 * A separate service, because the runner writes through the views and the views must not know the runner. The runner
 * accepts a change at once or drops it; the sweep finds dropped jobs. A node without job tables watches nothing, so
 * that `/ingest` pays nothing.
 */
import { Context, Effect, Layer } from "effect"
import type { Change } from "../../core/record/change.ts"
import { SspConfig } from "../Config.ts"
import { Views } from "../views/Views.ts"

interface JobListener {
  /** Called when a change of a job table was applied. */
  readonly changed: (change: Change) => void
  /** Called when all records were replaced. */
  readonly replaced: () => void
  /** The change that must be committed together with this deletion of a job. */
  readonly deletes?: (change: Change) => Change
}

export class JobIntake extends Context.Tag("ssp/JobIntake")<
  JobIntake,
  {
    readonly tables: ReadonlySet<string>
    /** Passes on changes that were not applied by `Views.ingest`. */
    readonly applied: (changes: ReadonlyArray<Change>) => void
    /** Sets the listener; it replaces an earlier one. */
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
