/**
 * Which SSPs have the tables of a view already (D65): those that follow some tables hold no others, and each that a
 * view adds costs its SSP the records and the changes of a whole table.
 *
 * An SSP that is given a view counts as having its tables from then on, until it says what it follows (`Followed`):
 * views of one table that come together go to one SSP. O(tables of the view) each.
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

/** Tables that a view reads and an SSP has not: none where that is unknown, `*` where the view may read any table. */
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

/** The SSP is given the view. */
export const given = (turn: Turn, member: State.SspMember, spec: ViewSpec): void => {
  const added = missing(turn.state.config, member, spec)
  if (added.length > 0) updateAt(turn, member, (now) => ({ ...now, tables: [...(now.tables ?? []), ...added] }))
}
