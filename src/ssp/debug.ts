/**
 * What `/debug/view` and `/debug/deps` show (D13).
 *
 * Read-only and made on demand: nothing is kept for it.
 */
import type { Engine } from "../core/ivm/engine.ts"
import { formatOf, generationOf, type Registered, type Registry } from "./registry.ts"
import type { DebugDeps, DebugView } from "./viewTypes.ts"

export const debugViewOf = (view: Registered, id: string): DebugView => {
  const { instance } = view
  return {
    view_id: id,
    cache_size: instance.size,
    last_hash: instance.hash(),
    format: formatOf(view),
    cache: instance.rows().map((row) => ({ key: row.key, version: row.version, weight: 1 })),
    subquery_tables: instance.otherTables,
    referenced_tables: [...new Set([...instance.mainTables, ...instance.otherTables])],
    content_generation: generationOf(view),
    subquery_cache: {},
    plan: instance.plan(),
    errors: instance.errors()
  }
}

export const debugDepsOf = (registry: Registry, engine: Engine): DebugDeps => {
  const dependencies = new Map<string, Array<string>>()
  for (const view of registry.all()) {
    for (const table of new Set([...view.instance.mainTables, ...view.instance.otherTables])) {
      const ids = dependencies.get(table)
      if (ids === undefined) dependencies.set(table, [view.stored.id])
      else ids.push(view.stored.id)
    }
  }
  return {
    dependency_map: Object.fromEntries(dependencies),
    tables_in_store: engine.store.tableNames(),
    view_count: registry.size,
    shapes: engine.shapes()
  }
}
