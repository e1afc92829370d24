/**
 * The database's definitions, as a record of the scheduler's log (D57): so they have a position among the changes, a
 * snapshot has those of its position, and every SSP changes them at the same change.
 *
 * The record is the service's: no client writes it, and no view reads it. Bodies of functions and values of parameters
 * that some users may not see are left out, because no view may use them (D58).
 */
import type { Change, ChangeRefused } from "../record/change.ts"
import type { RawChange } from "../record/event.ts"
import type { Definitions, FunctionDefinition, ParamDefinition } from "../surql/syntax/definitions.ts"
import * as Ids from "../surql/values/recordId.ts"
import type { Obj, RecordId } from "../surql/values/value.ts"
import type { DatabaseSchema, TableDefinition } from "./databaseSchema.ts"
import { ownPrefix } from "./surrealSchema.ts"

/** Tables, functions and parameters that a scheduler has read of its database. */
export type Defined = Pick<DatabaseSchema, "tables" | "definitions">

export const definitionsTable = `${ownPrefix}definitions`
export const definitionsId: RecordId = Ids.make(definitionsTable, "database")

/** The parsed text of the record. */
interface Written {
  readonly tables: ReadonlyArray<TableDefinition>
  readonly functions: ReadonlyArray<FunctionDefinition>
  readonly params: ReadonlyArray<ParamDefinition>
}

/** The definitions as text: equal texts mean that nothing a view depends on has changed. */
export const textOf = ({ definitions: { functions, params }, tables }: Defined): string => {
  const written: Written = {
    tables,
    functions: Array.from(functions.values(), (one) => (one.open ? one : { ...one, block: "" })),
    params: Array.from(params.values(), (one) => (one.open ? one : { ...one, value: "" }))
  }
  return JSON.stringify(written)
}

/**
 * The fault if the text does not fit into a delivery to an SSP, where a character takes up to three bytes; undefined if
 * it fits.
 */
export const tooLong = (text: string, maxBytes: number): string | undefined => {
  const most = Math.floor(maxBytes / 3) - 1_000
  return text.length <= most
    ? undefined
    : `the definitions of the database take ${text.length} characters, a request to an SSP holds ${most} for certain`
}

export const docOf = (text: string): Obj => ({ id: definitionsId, defined: text })

/** The change that sets the record to this text. */
export const rawOf = (text: string): RawChange => ({
  table: definitionsTable,
  id: definitionsId.text,
  record: { defined: text },
  types: {}
})

/** The text of the record; undefined without a record. */
export const textIn = (doc: Obj | undefined): string | undefined => {
  const text = doc?.["defined"]
  return typeof text === "string" ? text : undefined
}

/** Reads what {@link textOf} wrote. */
export const ofText = (text: string): Defined => {
  const { functions, params, tables } = JSON.parse(text) as Written
  const definitions: Definitions = {
    functions: new Map(functions.map((one) => [one.name, one])),
    params: new Map(params.map((one) => [one.name, one]))
  }
  return { tables, definitions }
}

export const isDefinitions = ({ id }: Pick<Change, "id">): boolean => id.table === definitionsTable

/** Why changes of a client that write this record are refused; undefined for all others. */
export const refused = (changes: ReadonlyArray<Change>): ChangeRefused | undefined => {
  const at = changes.findIndex(isDefinitions)
  if (at < 0) return undefined
  const path = changes.length === 1 ? "table" : `[${at}].table`
  const reason = `must not be ${definitionsTable}: a scheduler alone says what its database defines`
  return { code: "INVALID_REQUEST", message: `${path} ${reason}`, details: [{ path, reason }] }
}

/** The definitions of the last of these changes that has any. */
export const latest = (changes: ReadonlyArray<Change>): Defined | undefined => {
  const text = textIn(changes.findLast(isDefinitions)?.doc)
  return text === undefined ? undefined : ofText(text)
}
