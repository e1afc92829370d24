/**
 * Where changes of job tables are passed from the views, once they are applied, to the job runner (D35).
 *
 * Between the two, because the runner writes through the views and the views must not know the runner. Nothing waits
 * here: the runner takes a change at once or lets it go, and the sweep finds what was let go. A node without job tables
 * has its views as they are, so that `/ingest` pays nothing.
 */
import { Context, Effect, Layer } from "effect"
import type { Change } from "../../core/record/change.ts"
import { SspConfig } from "../Config.ts"
import { Views } from "../views/Views.ts"

type Listener = (change: Change) => void

export class JobIntake extends Context.Tag("ssp/JobIntake")<
  JobIntake,
  {
    readonly tables: ReadonlySet<string>
    readonly applied: (changes: ReadonlyArray<Change>) => void
    readonly replaced: () => void
    /** Who is told of changes to job tables, and that everything held here was replaced; the last to ask. */
    readonly attach: (listener: Listener, replaced: () => void) => void
  }
>() {
  static readonly layer: Layer.Layer<JobIntake, never, SspConfig> = Layer.effect(
    JobIntake,
    Effect.map(SspConfig, ({ jobTables }) => {
      const tables = new Set(jobTables.map(({ table }) => table))
      let listener: Listener | undefined
      let begunAnew: (() => void) | undefined
      return {
        tables,
        applied: (changes) => {
          for (const change of changes) if (tables.has(change.id.table)) listener?.(change)
        },
        replaced: () => begunAnew?.(),
        attach: (next, replaced) => {
          listener = next
          begunAnew = replaced
        }
      }
    })
  )
}

type ViewsShape = Views["Type"]

const watched = (views: ViewsShape, { applied, replaced }: JobIntake["Type"]): ViewsShape => {
  const offer: ViewsShape["offer"] = (changes, done) =>
    views.offer(changes, (answer) => {
      if (!("_tag" in answer)) applied(changes)
      done(answer)
    })
  const ingest: ViewsShape["ingest"] = (changes) =>
    Effect.tap(views.ingest(changes), () => Effect.sync(() => applied(changes)))
  const replace: ViewsShape["replace"] = (replacement) =>
    Effect.tap(views.replace(replacement), () => Effect.sync(replaced))
  return Object.create(views, {
    offer: { value: offer },
    ingest: { value: ingest },
    replace: { value: replace }
  }) as ViewsShape
}

/** The views, watched for changes of job tables. */
export const layerViews = Layer.effect(
  Views,
  Effect.gen(function* () {
    const views = yield* Views
    const intake = yield* JobIntake
    return intake.tables.size === 0 ? views : watched(views, intake)
  })
).pipe(Layer.provide(Views.layer), Layer.provideMerge(JobIntake.layer))
