/**
 * Quarantined views: neither filled nor maintained, because the process ended while it evaluated their query (D48).
 *
 * Their registrations stay stored, so that a restart knows them and an operator can free them. The count of abnormal
 * ends is saved before any query is evaluated, or a process that ends again at once would not know it.
 */
import { Effect, Schema } from "effect"
import * as Quarantine from "../../core/view/quarantine.ts"
import { viewKey } from "../../core/view/viewId.ts"
import { isoOf } from "../../core/view/viewTimes.ts"
import type { StoredView } from "../../ports/Database.ts"
import type { WatchdogShape } from "../../ports/Watchdog.ts"
import { type DebugView, formatNamed, type QuarantinedView, ViewNotFound, ViewQuarantined } from "../viewTypes.ts"

const QuarantineState = Schema.parseJson(
  Schema.Struct({
    format: Schema.Literal(1),
    entries: Schema.Array(
      Schema.Struct({ query: Schema.String, id: Schema.String, ends: Schema.Int, last: Schema.Number })
    )
  })
)

type Query = Pick<StoredView, "surql" | "params">

export class QuarantinedViews {
  private entries: ReadonlyArray<Quarantine.Entry> = []
  /** Registrations that are stored and not served, by key. */
  private readonly stored = new Map<string, StoredView>()

  constructor(private readonly watchdog: WatchdogShape) {}

  /** Reads the saved entries, and counts an abnormal end of the last process. */
  readonly load: Effect.Effect<void> = Effect.gen(this, function* () {
    const { kept, unfinished } = this.watchdog
    if (kept !== undefined) {
      const read = yield* Effect.either(Schema.decode(QuarantineState)(kept))
      if (read._tag === "Right") this.entries = read.right.entries
      else
        yield* Effect.logWarning(
          "what is set aside cannot be read and is forgotten: it is damaged or of another version"
        )
    }
    if (unfinished === undefined) return
    this.entries = Quarantine.withAbnormalEnd(this.entries, {
      query: unfinished.query,
      id: unfinished.id,
      last: unfinished.since
    })
    const entry = this.entries.at(-1)!
    yield* Effect.logWarning(
      `the last process ended while it evaluated view ${JSON.stringify(entry.id)} (query ${entry.query}), abnormal end ${entry.ends} in that query: it is set aside`
    )
    yield* this.save
  })

  /** Why this query is not evaluated; undefined if it may be. */
  of({ params, surql }: Query, id: string): ViewQuarantined | undefined {
    if (this.entries.length === 0) return undefined
    const query = this.watchdog.queryOf({ params, surql })
    const entry = this.entries.find((each) => each.query === query)
    return entry !== undefined ? new ViewQuarantined({ id, ends: entry.ends, last: entry.last }) : undefined
  }

  /** Quarantines a stored registration if its query is; answers why, or undefined. */
  keep(view: StoredView): ViewQuarantined | undefined {
    const why = this.of(view, view.id)
    if (why !== undefined) this.stored.set(view.key, view)
    return why
  }

  /** Why a stored registration is not served; undefined if it is not quarantined. */
  why(key: string, id: string): ViewQuarantined | undefined {
    const view = this.stored.get(key)
    return view === undefined ? undefined : this.of(view, id)
  }

  /** Answer of `/debug/view` for a quarantined view. */
  debug(key: string, id: string): DebugView | undefined {
    const view = this.stored.get(key),
      why = this.why(key, id)
    if (view === undefined || why === undefined) return undefined
    const nothing = {
      cache_size: 0,
      last_hash: "",
      cache: [],
      subquery_tables: [],
      referenced_tables: [],
      content_generation: 0,
      subquery_cache: {},
      plan: [],
      errors: []
    }
    return {
      ...nothing,
      view_id: id,
      format: formatNamed(view.format),
      quarantined: { ends: why.ends, last: isoOf(why.last) }
    }
  }

  all(): Iterable<StoredView> {
    return this.stored.values()
  }

  forget(key: string): void {
    this.stored.delete(key)
  }

  clear(): void {
    this.stored.clear()
  }

  /** All quarantined registrations, and quarantined queries without a stored one. */
  get list(): ReadonlyArray<QuarantinedView> {
    const views = [...this.stored.values()].map((view) => ({ view, query: this.watchdog.queryOf(view) }))
    return this.entries.flatMap(({ ends, id, last, query }) => {
      const held = views.filter((each) => each.query === query).map(({ view }) => ({ id: view.id, query: view.surql }))
      return (held.length === 0 ? [{ id, query: null }] : held).map((each) => ({ ...each, ends, last: isoOf(last) }))
    })
  }

  /** Frees the query of a view and serves all views with it again; fails if nothing under this id is quarantined. */
  free(
    id: string,
    given: Query | undefined,
    serve: (view: StoredView) => Effect.Effect<void>
  ): Effect.Effect<void, ViewNotFound> {
    return Effect.suspend(() => {
      const key = viewKey(id) ?? ""
      const stored = given ?? this.stored.get(key)
      const query = stored === undefined ? undefined : this.watchdog.queryOf(stored)
      const freed = new Set(
        this.entries.filter((entry) => entry.query === query || viewKey(entry.id) === key).map((entry) => entry.query)
      )
      if (freed.size === 0) return Effect.fail(new ViewNotFound({ id }))
      this.entries = this.entries.filter((entry) => !freed.has(entry.query))
      const views = [...this.stored.values()].filter((view) => freed.has(this.watchdog.queryOf(view)))
      for (const view of views) this.stored.delete(view.key)
      return Effect.zipRight(this.save, Effect.forEach(views, serve, { discard: true }))
    })
  }

  private get save(): Effect.Effect<void> {
    return Effect.suspend(() => this.watchdog.keep(JSON.stringify({ format: 1, entries: this.entries }))).pipe(
      Effect.catchAll((why) =>
        Effect.logError(`what is set aside cannot be written down, and a restart will not know it: ${why}`)
      )
    )
  }
}
