/**
 * Bodies of `/debug/view` and `/debug/deps` (D13).
 *
 * Read-only and made on demand.
 */
import { Effect } from "effect"
import type { Engine } from "../../core/ivm/engine.ts"
import { tablesRead } from "../../core/ivm/view/tablesRead.ts"
import type { View } from "../../core/ivm/view/view.ts"
import type { Slices } from "../../core/surql/evaluate/scope.ts"
import type { Slicer } from "../../node/work/Slicer.ts"
import type { Sees } from "../../protocol/access.ts"
import type { RefusedEdges } from "../edges/EdgeWriter.ts"
import { type DebugDeps, type DebugView, formatNamed } from "../viewTypes.ts"
import { visibleErrors } from "./answerBytes.ts"
import { generationOf, type RegisteredView, type Registry } from "./registry.ts"

export const debugViewOf = (
  view: RegisteredView,
  id: string,
  engine: Engine,
  refused: RefusedEdges | undefined
): DebugView => {
  const { instance } = view
  return {
    view_id: id,
    cache_size: instance.size,
    last_hash: instance.hash(),
    format: formatNamed(view.stored.format),
    cache: instance.rows().map((row) => ({ key: row.key, version: row.version, weight: 1 })),
    subquery_tables: instance.otherTables,
    referenced_tables: [...tablesRead(engine.dependencies, instance)],
    content_generation: generationOf(view),
    subquery_cache: subqueryCache(instance),
    plan: instance.plan(),
    errors: instance.errors(),
    ...(refused === undefined ? {} : { edges_refused: refused })
  }
}

const unseen = "the database refuses it; the log and the scope admin have its words"

/**
 * Reduces the answer to what the caller may see: the database's messages quote values of records, as failures of rows
 * do (D72).
 */
export const visibleDebugView = ({ edges_refused, errors, ...debug }: DebugView, sees: Sees) => ({
  ...debug,
  errors: visibleErrors(errors, sees),
  ...(edges_refused === undefined
    ? {}
    : { edges_refused: sees === "whole" ? edges_refused : { ...edges_refused, reason: unseen } })
})

/**
 * Rows of the subqueries by alias and parent. Built by `Object.fromEntries`, so an alias like `__proto__` is plain
 * data.
 */
const subqueryCache = (instance: View): DebugView["subquery_cache"] => {
  const cache = new Map<string, Array<readonly [string, ReadonlyArray<string>]>>()
  for (const [alias, parent, children] of instance.children())
    cache.set(alias, [...(cache.get(alias) ?? []), [parent, children]])
  return Object.fromEntries([...cache].map(([alias, entries]) => [alias, Object.fromEntries(entries)]))
}

/** Pauses behind each view: ten thousand views take a while. */
function* dependents(registry: Registry, engine: Engine): Slices<DebugDeps> {
  const dependencies = new Map<string, Array<string>>()
  for (const view of registry.all()) {
    for (const table of tablesRead(engine.dependencies, view.instance)) {
      const ids = dependencies.get(table)
      if (ids === undefined) dependencies.set(table, [view.stored.id])
      else ids.push(view.stored.id)
    }
    yield
  }
  return {
    dependency_map: Object.fromEntries(dependencies),
    tables_in_store: engine.store.tableNames(),
    view_count: registry.size,
    shapes: engine.shapes()
  }
}

export const depsOf = (registry: Registry, engine: Engine, slicer: Slicer): Effect.Effect<DebugDeps> =>
  Effect.orDie(slicer.run(() => dependents(registry, engine)))
