/**
 * Which SSPs have the tables of a view already (D65): an SSP that follows single tables holds only those, and each
 * further table costs it the records and the changes of that table.
 *
 * An SSP that is given a view counts as having its tables from then on, until it reports what it follows (`Followed`):
 * views of one table that are registered together go to one SSP. O(tables of the view) each.
 */
import type { ViewSpec } from "./messages.ts"
import type * as State from "./state.ts"
import { type Turn, updateAt } from "./turn.ts"

const sets = new WeakMap<ReadonlyArray<string>, ReadonlySet<string>>()

const setOf = (tables: ReadonlyArray<string>): ReadonlySet<string> => {
  const known = sets.get(tables)
  if (known !== undefined) return known
  const made = new Set(tables)
  sets.set(tables, made)
  return made
}

/** Tables that a view reads and an SSP lacks: empty if unknown, `*` if the view may read any table. */
export const missing = (
  { readsOf }: Pick<State.Config, "readsOf">,
  { tables }: Pick<State.SspMember, "tables">,
  spec: ViewSpec
): ReadonlyArray<string> => {
  if (tables === undefined) return []
  const held = setOf(tables)
  const reads = held.has("*") ? undefined : readsOf(spec)
  if (reads === undefined) return []
  return reads === "all" ? ["*"] : [...reads].filter((table) => !held.has(table))
}

/** Notes that the SSP is given the view, and with it the view's tables. */
export const noteAssigned = (turn: Turn, member: State.SspMember, spec: ViewSpec): void => {
  const added = missing(turn.state.config, member, spec)
  if (added.length > 0) updateAt(turn, member, (now) => ({ ...now, tables: [...(now.tables ?? []), ...added] }))
}
