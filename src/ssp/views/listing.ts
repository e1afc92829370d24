/**
 * The list of registered views for operators, and the service's figures.
 *
 * Read-only and made on demand: only the views of the page are read.
 */
import { Effect } from "effect"
import type { Engine } from "../../core/ivm/engine.ts"
import * as Holdings from "../../core/ivm/holdings.ts"
import type { PlanRow } from "../../core/ivm/query/explain.ts"
import * as JsonText from "../../core/jsonText.ts"
import { containsText, page } from "../../core/listing.ts"
import type { Slices } from "../../core/surql/evaluate/scope.ts"
import { viewKey } from "../../core/view/viewId.ts"
import { isoOf } from "../../core/view/viewTimes.ts"
import type { Slicer } from "../../node/work/Slicer.ts"
import type { StoredPosition } from "../../ports/Database.ts"
import type { ListedView, ListedViews, Listing, ViewFigures } from "../viewTypes.ts"
import { formatOf, generationOf, type RegisteredView, type Registry } from "./registry.ts"

/** Most tables in the figures. */
const maxTables = 50

// Operators that are maintained together report the same work, so a view's cost is the largest and not the sum.
const costOf = (plan: ReadonlyArray<PlanRow>, cost: "last_cost" | "total_cost"): number =>
  plan.reduce((all, row) => Math.max(all, row[cost]), 0)

const listed = (view: RegisteredView): ListedView => {
  const { instance, stored } = view
  const plan = instance.plan()
  return {
    id: stored.id,
    query: stored.surql,
    params: JsonText.parse(stored.params),
    format: formatOf(view),
    client_id: stored.clientId,
    ttl_seconds: stored.ttlMs / 1000,
    last_active_at: isoOf(stored.lastActiveAtMs),
    rows: instance.size,
    errors: instance.errors().length,
    generation: generationOf(view),
    last_cost: costOf(plan, "last_cost"),
    total_cost: costOf(plan, "total_cost"),
    streams: (view.feed?.listening ?? 0) + (view.rowsFeed?.listening ?? 0),
    incremental: plan.every(({ incremental }) => incremental)
  }
}

function* byKey(registry: Registry): Iterable<readonly [string, RegisteredView]> {
  for (const view of registry.all()) yield [view.stored.key, view]
}

const isWanted =
  (search: string | undefined) =>
  ({ stored }: RegisteredView): boolean =>
    containsText(search, stored.id, stored.clientId, stored.surql)

/** Views visited between two pauses. */
const pauseAfter = 64

/** The views with the highest cost; every view is visited. */
function* costliest(registry: Registry, { limit, search }: Listing): Slices<ListedViews> {
  const wanted = isWanted(search)
  let found: Array<{ readonly cost: number; readonly view: RegisteredView }> = []
  const cut = (): void => {
    found = found.sort((a, b) => b.cost - a.cost || (a.view.stored.key < b.view.stored.key ? -1 : 1)).slice(0, limit)
  }
  let seen = 0
  for (const view of registry.all()) {
    if (++seen % pauseAfter === 0) yield
    if (!wanted(view)) continue
    found.push({ cost: costOf(view.instance.plan(), "total_cost"), view })
    if (found.length >= 2 * limit + pauseAfter) cut()
  }
  cut()
  return { views: found.map(({ view }) => listed(view)), total: registry.size, next: null }
}

const inOrder = (registry: Registry, { after, limit, search }: Listing): ListedViews => {
  const wanted = isWanted(search)
  const { items, next } = page(byKey(registry), {
    after: after === undefined ? undefined : (viewKey(after) ?? after),
    limit,
    wanted
  })
  return {
    views: items.map(listed),
    total: registry.size,
    next: next === undefined ? null : (items.at(-1)?.stored.id ?? null)
  }
}

export const listedViews = (registry: Registry, slicer: Slicer, listing: Listing): Effect.Effect<ListedViews> =>
  listing.order === "cost"
    ? Effect.orDie(slicer.run(() => costliest(registry, listing)))
    : Effect.sync(() => inOrder(registry, listing))

const rowsOf = (registry: Registry): number => {
  let rows = 0
  for (const { instance } of registry.all()) rows += instance.size
  return rows
}

export const figuresOf = (
  registry: Registry,
  engine: Engine,
  committer: { readonly position: StoredPosition; readonly waiting: number },
  { count: streams, streamedChars }: { readonly count: number; readonly streamedChars: number },
  pendingEdges: number,
  quarantined: ViewFigures["quarantined"]
): ViewFigures => {
  const { store } = engine
  const tables = store.tableNames().map((table) => ({ table, records: store.size(table), bytes: store.bytes(table) }))
  return {
    writes: committer.position.writes,
    seq: committer.position.seq,
    views: registry.size,
    streams,
    streamedChars,
    records: tables.reduce((sum, { records }) => sum + records, 0),
    record_bytes: tables.reduce((sum, { bytes }) => sum + bytes, 0),
    tables: [...tables].sort((a, b) => b.bytes - a.bytes).slice(0, maxTables),
    pendingChanges: committer.waiting,
    pendingEdges,
    quarantined,
    rows: () => rowsOf(registry),
    held: () => Holdings.figuresOf(engine.kept)
  }
}
