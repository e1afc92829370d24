/** INFO: the answers about the tables of a source. */
import type { Value } from "../../values/value.ts"
import type { Source } from "../scope.ts"

/** `INFO FOR DB`: the tables by name (D28). */
export const infoDb = (source: Source): Value => ({
  tables: Object.fromEntries(
    Array.from(source.tables?.() ?? [], (name) => [name, `DEFINE TABLE ${name} TYPE ANY SCHEMALESS PERMISSIONS NONE`])
  )
})

/**
 * `INFO FOR TABLE`: the known fields as definitions (D28). For an undeclared table with records the answer says so,
 * because its records are typed by another rule (D1).
 */
export const infoTable = (source: Source, table: string): Value => {
  const fields = source.fields?.(table)
  return {
    events: {},
    indexes: {},
    lives: {},
    tables: {},
    ...(source.fields === undefined || fields !== undefined ? {} : { declared: false }),
    fields: Object.fromEntries(
      Object.entries(fields ?? {}).map(([name, type]) => [
        name,
        `DEFINE FIELD ${name} ON ${table} TYPE ${type} PERMISSIONS FULL`
      ])
    )
  }
}
