/**
 * Follows the database's definitions while the node serves: new and removed tables, fields of other types.
 *
 * No event tells of a definition, so they are polled. A definition that changes records without a writer (a removed
 * table, a computed field) is found by a compare of those tables alone. A table that is new, or replaces another of its
 * name, is read as soon as it has its event. A transaction that began before the event announces nothing, and a
 * database does not tell which are open: the table is compared again in growing pauses.
 */
import { Duration, Effect, Either } from "effect"
import type { DatabaseSchema, TableDefinition } from "../../core/surreal/databaseSchema.ts"
import { isOwn, readerTable } from "../../core/surreal/surrealSchema.ts"
import type { ChangeTable, UpstreamError, UpstreamShape, UpstreamTable } from "../../ports/Upstream.ts"
import type { ReaderFigures } from "./changeReader.ts"

interface SchemaSink {
  /** Tables whose records this node has, or whose definitions it has read before. */
  readonly known: Effect.Effect<ReadonlyArray<Known>, { readonly message: string }>
  /** Adopts the definitions. */
  readonly declare: (schema: DatabaseSchema) => Effect.Effect<void, { readonly message: string }>
  /** Compares the records of these tables with the database. */
  readonly compare: (tables: ReadonlySet<string>) => Effect.Effect<unknown, { readonly message: string }>
  /** Reads these tables and shows them at once; undefined if this node reads no change table. */
  readonly refresh: ((tables: ReadonlySet<string>) => Effect.Effect<unknown, { readonly message: string }>) | undefined
  /** Notes that the records here belong to these tables. */
  readonly note: (tables: ReadonlyArray<TableDefinition>) => Effect.Effect<void>
  /** Whether definitions can be followed now. */
  readonly open: () => boolean
  /** Whether this node may define events now: it alone reads the change table. */
  readonly mayDefine: () => boolean
}

interface SchemaWatchSettings {
  /** 0: looks at the start only. */
  readonly intervalMs: number
  readonly defineEvents: boolean
}

/** Pause between looks while the sink is closed: the node is not ready, or clones. */
const closedMs = 100
/** Pauses between compares of a table whose event is young; they double from the first to the last: 511 s in all. */
const youngMs = { first: 1_000, last: 256_000 }

/** A table as it was known; an unknown fact counts as unchanged. */
type Known = Pick<UpstreamTable, "name"> & Partial<UpstreamTable>

interface Moved {
  /** Tables whose records may differ without an event. */
  readonly changed: ReadonlyArray<string>
  /** Tables that were not known. */
  readonly fresh: ReadonlyArray<string>
  /** Fresh tables that replace another of their name. */
  readonly replaced: ReadonlyArray<string>
  /** Tables that have just got their event. */
  readonly young: ReadonlyArray<string>
}

const isOther = <A>(known: A | undefined, now: A | undefined): boolean => known !== undefined && known !== now

const moved = (before: ReadonlyArray<Known>, after: ReadonlyArray<TableDefinition>): Moved => {
  const was = new Map(before.map((table) => [table.name, table]))
  const is = new Set(after.map(({ name }) => name))
  const isReplaced = ({ id, name }: TableDefinition): boolean => isOther(was.get(name)?.id, id)
  const isFresh = (table: TableDefinition): boolean => !was.has(table.name) || isReplaced(table)
  const names = (tables: ReadonlyArray<TableDefinition>): ReadonlyArray<string> => tables.map(({ name }) => name)
  return {
    changed: [
      ...before.flatMap(({ name }) => (is.has(name) || isOwn(name) ? [] : [name])),
      ...names(after.filter((table) => !isFresh(table) && isOther(was.get(table.name)?.shape, table.shape)))
    ],
    fresh: names(after.filter(isFresh)),
    replaced: names(after.filter(isReplaced)),
    young: names(after.filter(({ announced, name }) => announced && was.get(name)?.announced === false))
  }
}

/** Why views of a table do not follow its writes; undefined if they do. */
const caution = ({ derived, name, told }: UpstreamTable): string | undefined =>
  derived
    ? `table ${name} is defined AS SELECT and raises no events: views of it follow its sources behind a read of the whole table, where the change table is read, else with the compare (SVC_RECONCILE_INTERVAL_SECS)`
    : told === false
      ? `table ${name} has no event of --install-database-setup: views of it follow what is posted to /ingest, and the compare (SVC_RECONCILE_INTERVAL_SECS)`
      : undefined

/** Cautions of all these tables; an unknown fact gives none. */
export const tableWarnings = (
  tables: Iterable<Pick<UpstreamTable, "name" | "types"> & Partial<UpstreamTable>>
): ReadonlyArray<string> => Array.from(tables).flatMap((table) => caution({ derived: false, ...table }) ?? [])

/** Most warnings in an overview. */
const maxShown = 50

/** Warnings about the database for an operator: tables whose views do not follow each write, and a reader that lags. */
export const warningsOf = (
  tables: Parameters<typeof tableWarnings>[0],
  reader: Pick<ReaderFigures, "behind"> | undefined
): ReadonlyArray<string> => {
  const all = [...(reader?.behind === undefined ? [] : [reader.behind]), ...tableWarnings(tables)]
  return all.length <= maxShown ? all : [...all.slice(0, maxShown), `and ${all.length - maxShown} more`]
}

export class SchemaWatch {
  private readonly read: NonNullable<UpstreamShape["schema"]>
  private readonly changes: Pick<ChangeTable, "announce" | "see" | "seen"> | undefined
  private seen: DatabaseSchema | undefined
  /** Tables that are not new; undefined until this node may define events. */
  private tables: ReadonlySet<string> | undefined
  /** Tables that must be compared. */
  private readonly owed = new Set<string>()
  /** Tables that must be read. */
  private readonly fresh = new Set<string>()
  /** Tables that were dropped and defined again, without their event. */
  private readonly replaced = new Set<string>()
  /** Tables whose event is young: how long they have waited for their next compare, and how long they must. */
  private readonly young = new Map<string, { waitedMs: number; pauseMs: number }>()
  private readonly cautioned = new Set<string>()
  private isFailing = false

  constructor(
    upstream: { readonly schema: NonNullable<UpstreamShape["schema"]>; readonly changes?: ChangeTable | undefined },
    private readonly sink: SchemaSink,
    private readonly settings: SchemaWatchSettings
  ) {
    this.read = upstream.schema
    this.changes = upstream.changes
  }

  readonly run: Effect.Effect<never> = Effect.gen(this, function* () {
    for (;;) {
      const isOpen = this.sink.open()
      const tried = isOpen ? yield* Effect.either(this.once) : undefined
      if (tried !== undefined && Either.isLeft(tried)) yield* this.failed(tried.left.message)
      else if (isOpen) {
        this.isFailing = false
        if (this.settings.intervalMs === 0 && this.young.size === 0) return yield* Effect.never
      }
      const pauseMs = isOpen ? Math.max(closedMs, this.settings.intervalMs || youngMs.first) : closedMs
      yield* Effect.sleep(Duration.millis(pauseMs))
      for (const one of this.young.values()) one.waitedMs += pauseMs
    }
  })

  private readonly once: Effect.Effect<void, { readonly message: string }> = Effect.gen(this, function* () {
    const schema = yield* this.read(this.seen)
    const before = this.seen?.tables ?? (yield* this.sink.known)
    const isOther = schema !== this.seen
    if (isOther) {
      yield* this.sink.declare(schema)
      const { changed, fresh, replaced, young } = moved(before, schema.tables)
      for (const name of changed) this.owed.add(name)
      for (const name of fresh) this.fresh.add(name)
      for (const name of replaced) this.replaced.add(name)
      for (const name of young) this.watch(name)
      this.seen = schema
    }
    if (isOther || (this.tables === undefined && this.mayDefine(schema))) yield* this.follow(before, schema)
    yield* this.readFresh(schema)
    const due = [...this.young].flatMap(([name, { pauseMs, waitedMs }]) => (waitedMs < pauseMs ? [] : [name]))
    const tables = new Set([...this.owed, ...due])
    if (tables.size > 0) {
      const [took] = yield* Effect.timed(this.sink.compare(tables))
      for (const name of tables) this.owed.delete(name)
      for (const name of due) this.compared(name, Duration.toMillis(took))
    }
    yield* this.sink.note(schema.tables)
  })

  private watch(name: string): void {
    this.young.set(name, { waitedMs: 0, pauseMs: youngMs.first })
  }

  /**
   * Schedules the next compare. The time of this one counts twice, so that a large table is not compared again at once.
   */
  private compared(name: string, tookMs: number): void {
    const pauseMs = ((this.young.get(name)?.pauseMs ?? 0) + tookMs) * 2
    if (pauseMs > youngMs.last) this.young.delete(name)
    else this.young.set(name, { waitedMs: 0, pauseMs })
  }

  /** Whether this node is the one that reads the change table. */
  private reads({ installed }: DatabaseSchema): boolean {
    return installed && this.sink.refresh !== undefined && this.sink.mayDefine()
  }

  /**
   * Reads new tables. If changes are posted, a change under way may be newer than the read, so the tables are compared
   * instead, which looks twice.
   */
  private readFresh(schema: DatabaseSchema): Effect.Effect<void, { readonly message: string }> {
    return Effect.gen(this, function* () {
      const tables = new Set(this.fresh)
      if (tables.size === 0) return
      if (this.reads(schema) && this.sink.refresh !== undefined) yield* this.sink.refresh(tables)
      else for (const name of tables) this.owed.add(name)
      for (const name of tables) this.fresh.delete(name)
    })
  }

  /** Gives new tables their event before they are read, and logs tables that have none. */
  private follow(before: ReadonlyArray<Known>, schema: DatabaseSchema): Effect.Effect<void, UpstreamError> {
    return Effect.gen(this, function* () {
      const { tables } = schema
      const given = this.mayDefine(schema) ? yield* this.welcome(before, tables) : new Set<string>()
      // Earlier writes to these tables were not announced.
      for (const name of given) {
        this.replaced.delete(name)
        this.fresh.add(name)
        this.watch(name)
      }
      for (const name of this.cautioned) if (!tables.some((table) => table.name === name)) this.cautioned.delete(name)
      for (const table of tables) {
        const why = given.has(table.name) ? undefined : caution(table)
        if (why === undefined) this.cautioned.delete(table.name)
        else if (!this.cautioned.has(table.name)) {
          this.cautioned.add(table.name)
          yield* Effect.logWarning(why)
        }
      }
    })
  }

  private mayDefine({ installed }: DatabaseSchema): boolean {
    return installed && this.settings.defineEvents && this.changes !== undefined && this.sink.mayDefine()
  }

  /**
   * Defines the event of new tables; answers those that got it. A table is new if no service that followed this
   * database has seen it, or if it replaces another of its name; if no service has noted tables, those that this node
   * knew are not new.
   */
  private welcome(
    before: ReadonlyArray<Known>,
    tables: ReadonlyArray<TableDefinition>
  ): Effect.Effect<ReadonlySet<string>, UpstreamError> {
    return Effect.gen(this, function* () {
      const seen = this.tables === undefined ? yield* this.changes?.seen ?? Effect.succeed(undefined) : undefined
      const known = this.tables ?? new Set(seen ?? before.map(({ name }) => name))
      const names = tables.map(({ name }) => name)
      const added = tables.filter(
        ({ derived, name, told }) => (!known.has(name) || this.replaced.has(name)) && !derived && !told
      )
      const given = added.length === 0 ? new Set<string>() : yield* this.announce(added.map(({ name }) => name))
      if (this.tables === undefined || names.length !== known.size || names.some((name) => !known.has(name)))
        yield* this.remember(names)
      this.tables = new Set(names)
      return given
    })
  }

  private remember(names: ReadonlyArray<string>): Effect.Effect<void> {
    return Effect.catchAll(this.changes?.see(names) ?? Effect.void, ({ message }) =>
      Effect.logWarning(
        `which tables there are could not be noted in ${readerTable} (${message}), so one that is made while no service follows the database gets no event: an owner of the database runs --install-database-setup`
      )
    )
  }

  private announce(names: ReadonlyArray<string>): Effect.Effect<ReadonlySet<string>> {
    const { changes } = this
    if (changes === undefined) return Effect.succeed(new Set())
    return changes.announce(names).pipe(
      Effect.zipRight(Effect.logInfo(`writes to the new tables ${names.join(", ")} are announced from now on`)),
      Effect.as<ReadonlySet<string>>(new Set(names)),
      Effect.catchAll(({ message }: UpstreamError) =>
        Effect.as(
          Effect.logWarning(
            `the new tables ${names.join(", ")} get no event (${message}): an owner of the database runs --install-database-setup`
          ),
          new Set<string>()
        )
      )
    )
  }

  private failed(message: string): Effect.Effect<void> {
    if (this.isFailing) return Effect.logDebug(`what the database defines could not be followed: ${message}`)
    this.isFailing = true
    return Effect.logWarning(`what the database defines cannot be followed: ${message}; trying again`)
  }
}
