/**
 * The definitions of a SurrealDB that views depend on: the statements that read them, or only a hash of them, and the
 * parser of the answers.
 *
 * With the hash the database reads its definitions and answers one text, in one statement. `INFO FOR TABLE` also lists
 * live queries, which change all the time, so only fields and events are used.
 */
import type { Definitions, FunctionDefinition } from "../surql/syntax/definitions.ts"
import * as Encode from "../surql/values/encode.ts"
import { identifier } from "../surql/values/text.ts"
import { isObj, type Obj, type Value } from "../surql/values/value.ts"
import { definitionsOf } from "./definitions.ts"
import { changeEvent } from "./surrealChanges.ts"
import { changeTable, isOwn } from "./surrealSchema.ts"

/** A table as it is defined. */
export interface TableDefinition {
  readonly name: string
  /** Declared types by path (`tags.*`), as the database writes them. */
  readonly types: { readonly [path: string]: string }
  /** Whether the database computes the table from other tables. */
  readonly derived: boolean
  /** Definition of a derived table (`AS SELECT ...`); undefined for others. */
  readonly view: string | undefined
  /** Whether each write to it is announced in the change table. */
  readonly announced: boolean
  /** Whether an event of the setup, of either kind of feed, is defined on it. */
  readonly told: boolean
  /**
   * Equal texts mean the same fields, with the expressions of computed ones, and the same definition of a derived
   * table.
   */
  readonly shape: string
  /** Number of this table in the database; a table made again under the same name has another one. */
  readonly id?: number
}

/** The definitions that views depend on. */
export interface DatabaseSchema {
  /** The user's tables (without the service's own), by name. */
  readonly tables: ReadonlyArray<TableDefinition>
  /** Functions and parameters that views may use, without the service's own, which may contain a secret. */
  readonly definitions: Definitions
  /** Whether there is a change table. */
  readonly installed: boolean
  /** Equal texts mean that no definition has changed. */
  readonly mark: string
}

/** Expression with the compared facts of these tables and of the database. */
const factsOf = (names: ReadonlyArray<string>): string => {
  const tables = names.map((name) => `(INFO FOR TABLE ${identifier(name)} STRUCTURE).{ fields, events }`)
  return `LET $db = (INFO FOR DB STRUCTURE).{ functions, params, tables };
  LET $tables = [${tables.join(", ")}];`
}

const markOf = "crypto::blake3(<string> [$db, $tables])"

/** Whether an event, function or parameter is one of the setup's, of either kind of feed. */
const isOurs = ({ name }: { readonly name: string }): boolean => name.startsWith("svc_")

const typesOf = (info: Value | undefined): { readonly [path: string]: string } => {
  const types: Record<string, string> = {}
  for (const { definition, name } of definitionsOf(info, "fields")) {
    const { kind } = definition
    if (typeof kind === "string" && name !== "__proto__") types[name] = kind
  }
  return types
}

const toTable = (name: string, definition: Obj, info: Value | undefined): TableDefinition => {
  const events = definitionsOf(info, "events")
  const { id, view } = definition
  return {
    name,
    ...(typeof id === "number" ? { id } : {}),
    types: typesOf(info),
    derived: view !== undefined,
    view: typeof view === "string" ? view : undefined,
    announced: events.some((event) => event.name === changeEvent),
    told: events.some(isOurs),
    shape: Encode.encode([view, isObj(info) ? info["fields"] : undefined] as Value)
  }
}

export const namesOf = (db: Value | undefined): ReadonlyArray<string> =>
  definitionsOf(db, "tables").flatMap(({ name }) => (isOwn(name) ? [] : [name]))

const functionOf = (name: string, { args, block, permissions, returns }: Obj): FunctionDefinition => ({
  name,
  args: (Array.isArray(args) ? (args as ReadonlyArray<Value>) : []).flatMap((arg) =>
    Array.isArray(arg) && typeof arg[0] === "string" && typeof arg[1] === "string" ? [[arg[0], arg[1]] as const] : []
  ),
  block: typeof block === "string" ? block : "",
  returns: typeof returns === "string" ? returns : undefined,
  open: permissions === true
})

const usableOf = (db: Value | undefined): Definitions => ({
  functions: new Map(
    definitionsOf(db, "functions")
      .filter((one) => !isOurs(one))
      .map(({ definition, name }) => [name, functionOf(name, definition)])
  ),
  params: new Map(
    definitionsOf(db, "params")
      .filter((one) => !isOurs(one))
      .map(({ definition: { permissions, value }, name }) => [
        name,
        { name, value: typeof value === "string" ? value : "", open: permissions === true }
      ])
  )
})

export const schemaOf = (answer: Value | undefined): DatabaseSchema => {
  const { db, mark, tables } = isObj(answer) ? answer : {}
  const infos = Array.isArray(tables) ? (tables as ReadonlyArray<Value>) : []
  const defined = definitionsOf(db, "tables")
  return {
    mark: typeof mark === "string" ? mark : "",
    definitions: usableOf(db),
    installed: defined.some(({ name }) => name === changeTable),
    tables: defined.filter(({ name }) => !isOwn(name)).map((one, i) => toTable(one.name, one.definition, infos[i]))
  }
}

/** The statement that answers the names of all tables, for {@link wholeOf}. */
export const tableNamesStatement = "INFO FOR DB STRUCTURE"

/** One statement that reads all these definitions. */
export const wholeOf = (names: ReadonlyArray<string>): string =>
  `RETURN { ${factsOf(names)} RETURN { db: $db, tables: $tables, mark: ${markOf} } }`

/** One statement that reads only the mark. */
export const markStatement = (names: ReadonlyArray<string>): string => `RETURN { ${factsOf(names)} RETURN ${markOf} }`
