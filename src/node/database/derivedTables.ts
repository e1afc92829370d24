/**
 * Tables defined AS SELECT, which raise no events: read again when a table of their query was written (D59).
 *
 * The database updates them in the transaction that writes their sources, so a read behind the change sees the result.
 * One read at a time, for at most half of the time; the next read finds the writes made meanwhile.
 */
import { Duration, Effect, Either } from "effect"
import { analyze } from "../../core/surql/syntax/analyze.ts"
import { parseSelect } from "../../core/surql/syntax/parse.ts"
import type { RecordId } from "../../core/surql/values/value.ts"
import type { TableDefinition } from "../../core/surreal/databaseSchema.ts"
import { steadyMs } from "../../ports/Turn.ts"

type Derived = Pick<TableDefinition, "name" | "view">

/** Tables that the query reads; undefined if it cannot be parsed: any table may be one. */
const sourcesOf = (view: string): ReadonlySet<string> | undefined => {
  const parsed = parseSelect(view.replace(/^\s*AS\s+/i, ""))
  if (Either.isLeft(parsed)) return undefined
  const { computedSource, mainTables, referencedTables } = analyze(parsed.right)
  return computedSource ? undefined : new Set([...mainTables, ...referencedTables])
}

/** Shortest pause between two reads. */
const pauseMs = 20

export class DerivedTables {
  readonly refresh: (tables: ReadonlySet<string>) => Effect.Effect<unknown, { readonly message: string }>
  private readonly bell = Effect.unsafeMakeLatch(false)
  private sources: ReadonlyMap<string, ReadonlySet<string> | undefined> = new Map()
  private readonly due = new Set<string>()
  private isFailing = false

  /** `refresh` reads these tables and applies differences. */
  constructor(refresh: DerivedTables["refresh"]) {
    this.refresh = refresh
  }

  /** Sets the derived tables. A new one is read at once, since a change may have passed already. */
  define(tables: ReadonlyArray<Derived>): void {
    const before = this.sources
    this.sources = new Map(
      tables.flatMap(({ name, view }) => (view === undefined ? [] : [[name, sourcesOf(view)] as const]))
    )
    for (const name of this.sources.keys()) if (!before.has(name)) this.due.add(name)
    if (this.due.size > 0) this.bell.unsafeOpen()
  }

  /** Notes that these records were written. */
  written(records: ReadonlyArray<{ readonly id: RecordId }>): void {
    if (this.sources.size === 0) return
    const tables = new Set(records.map(({ id }) => id.table))
    for (const [name, sources] of this.sources)
      if (sources === undefined || [...sources].some((source) => tables.has(source))) this.due.add(name)
    if (this.due.size > 0) this.bell.unsafeOpen()
  }

  readonly run: Effect.Effect<never> = Effect.forever(
    Effect.gen(this, function* () {
      yield* this.bell.await
      this.bell.unsafeClose()
      const tables = new Set(this.due)
      this.due.clear()
      const fromMs = yield* steadyMs
      const tried = yield* Effect.either(this.refresh(tables))
      if (Either.isLeft(tried)) {
        yield* this.failed([...tables], tried.left.message)
        for (const name of tables) if (this.sources.has(name)) this.due.add(name)
        if (this.due.size > 0) this.bell.unsafeOpen()
      } else this.isFailing = false
      const tookMs = (yield* steadyMs) - fromMs
      yield* Effect.sleep(Duration.millis(this.isFailing ? 1_000 : Math.max(pauseMs, tookMs)))
    })
  )

  private failed(tables: ReadonlyArray<string>, message: string): Effect.Effect<void> {
    if (this.isFailing) return Effect.logDebug(`derived tables cannot be read: ${message}`)
    this.isFailing = true
    return Effect.logWarning(
      `the tables ${tables.join(", ")}, defined AS SELECT, cannot be read after a change: ${message}; trying again`
    )
  }
}
