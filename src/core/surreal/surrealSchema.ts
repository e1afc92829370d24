/**
 * The service's tables in the user's database, as SurrealQL to run at start or to give to the person who defines
 * schemas.
 *
 * Everything is `IF NOT EXISTS`: it can be run again and again, by several nodes at once, never rebuilds an index and
 * never takes back what an operator has changed. Record users read what belongs to their client and write nothing. One
 * function says which client a session belongs to, so that an operator can redefine it without touching the tables.
 */

export const queryTable = "_svc_query"
export const edgeTable = "_svc_list_ref"
export const integrityTable = "_svc_integrity"
export const jobTable = "_svc_job"
/** Records that transactions have written and the service has not stored durably yet. */
export const changeTable = "_svc_change"
/** The service that follows the database for its views: one at a time. */
export const readerTable = "_svc_reader"
/** Calls of client functions that were refused. */
export const refusalTable = "_svc_refusal"
/** Records and positions of the embedded store, read only by the service. */
export const recordTable = "_svc_record"
export const stateTable = "_svc_state"

/** Prefix of the service's tables: their changes are never reported, and views never show them. */
export const ownPrefix = "_svc_"

export const isOwn = (table: string): boolean => table.startsWith(ownPrefix)

export interface Definition {
  /** Purpose of the definition, for the printed schema. */
  readonly why: string
  readonly statements: ReadonlyArray<string>
}

const field = (table: string, name: string, type: string): string =>
  `DEFINE FIELD IF NOT EXISTS ${name} ON ${table} TYPE ${type}`

const table = (name: string, select: string, how: "IF NOT EXISTS" | "OVERWRITE" = "IF NOT EXISTS"): string =>
  `DEFINE TABLE ${how} ${name} TYPE NORMAL SCHEMAFULL PERMISSIONS FOR select ${select} FOR create, update, delete NONE`

const ofOwnClient = "WHERE fn::svc_owns(clientId)"

const owner: Definition = {
  why: "Whose views a record user may read: those registered with its own record id as clientId, or with the claim clientId of its signed token. Define it yourself beforehand to answer otherwise; never let it depend on what the user may write.",
  statements: [
    "DEFINE FUNCTION IF NOT EXISTS fn::svc_owns($clientId: string) { RETURN $auth.id != NONE AND ($clientId = <string> $auth.id OR ($token.clientId != NONE AND $clientId = $token.clientId)); } PERMISSIONS FULL"
  ]
}

const queries: Definition = {
  why: "One row per registered view. `view` is the id as it was registered, `params` its parameters as JSON; a row that is deleted takes its view away. `owner` and `assignment` say which SSP writes its edges.",
  statements: [
    table(queryTable, ofOwnClient),
    field(queryTable, "view", "string"),
    field(queryTable, "surql", "string"),
    field(queryTable, "clientId", "string"),
    field(queryTable, "ttl", "duration"),
    field(queryTable, "params", "string"),
    field(queryTable, "format", "string"),
    field(queryTable, "lastActiveAt", "datetime"),
    field(queryTable, "owner", "option<string>"),
    field(queryTable, "assignment", "option<int>")
  ]
}

/**
 * A normal table with `in` and `out`, because a graph step shows the rows of a RELATION table to every user
 * (`item:1<-(SELECT * FROM _svc_list_ref)`): the database checks no permissions there (3.0.2). Deleting a record does
 * not delete rows of a normal table either, so a user's transaction never conflicts with the service's. Edges are made
 * again whenever a view is compared, so those of the former type are deleted and not moved.
 */
const edges: Definition = {
  why: "One edge per view, alias path, parent and record: from the registration (`in`) to the record (`out`). `version` grows with the record's content; rows of subqueries name their parent row and the alias they stand under.",
  statements: [
    `IF string::contains((INFO FOR DB).tables['${edgeTable}'] ?? '', ' TYPE RELATION ') { DELETE ${edgeTable} RETURN NONE; ${table(edgeTable, ofOwnClient, "OVERWRITE")} }`,
    table(edgeTable, ofOwnClient),
    field(edgeTable, "in", `record<${queryTable}>`),
    field(edgeTable, "out", "record"),
    field(edgeTable, "version", "int"),
    field(edgeTable, "clientId", "string"),
    field(edgeTable, "parent", "option<record>"),
    field(edgeTable, "parent_rel", "option<string>"),
    `DEFINE INDEX IF NOT EXISTS ${edgeTable}_in ON ${edgeTable} FIELDS in`,
    `DEFINE EVENT IF NOT EXISTS svc_edges ON ${queryTable} WHEN $event = 'DELETE' THEN { DELETE (SELECT VALUE id FROM ${edgeTable} WHERE in = $before.id) RETURN NONE }`
  ]
}

const integrity: Definition = {
  why: "Hashes over the records of each table, id [table, level, index]; they tell about data of everybody, so record users do not read them.",
  statements: [
    table(integrityTable, "NONE"),
    field(integrityTable, "hash", "string"),
    field(integrityTable, "count", "int"),
    field(integrityTable, "seq", "option<int>")
  ]
}

const leases: Definition = {
  why: "One row per job that is being run, under the text of the job's id: who runs it, and until when it is not given to another.",
  statements: [
    table(jobTable, "NONE"),
    field(jobTable, "job", "record"),
    field(jobTable, "holder", "string"),
    field(jobTable, "incarnation", "string"),
    field(jobTable, "until", "datetime")
  ]
}

const readers: Definition = {
  why: "One row: which service follows this database, until when it is not given to another, how far that one's own store was when it last took rows of the change table, and which tables it has seen: another one is new.",
  statements: [
    table(readerTable, "NONE"),
    field(readerTable, "token", "string"),
    field(readerTable, "name", "string"),
    field(readerTable, "until", "datetime"),
    field(readerTable, "position", "option<int>"),
    field(readerTable, "tables", "option<array<string>>")
  ]
}

const refusals: Definition = {
  why: "One row per client and view whose last fn::svc_register or fn::svc_unregister could not be carried out, with the reason; it goes with the next call that is, or after an hour.",
  statements: [
    table(refusalTable, ofOwnClient),
    field(refusalTable, "view", "string"),
    field(refusalTable, "clientId", "string"),
    field(refusalTable, "op", "string"),
    field(refusalTable, "reason", "string"),
    field(refusalTable, "at", "datetime")
  ]
}

/** The service's tables beside the user's data, with the users that may read them. */
export const ownTables: ReadonlyArray<{ readonly name: string; readonly select: string }> = [
  { name: queryTable, select: ofOwnClient },
  { name: edgeTable, select: ofOwnClient },
  { name: integrityTable, select: "NONE" },
  { name: jobTable, select: "NONE" },
  { name: readerTable, select: "NONE" },
  { name: refusalTable, select: ofOwnClient }
]

/** Further definitions for running jobs. */
export const jobDefinitions: ReadonlyArray<Definition> = [leases]

/** Definitions that a database needs beside its own tables. */
export const sharedDefinitions: ReadonlyArray<Definition> = [
  owner,
  queries,
  edges,
  integrity,
  leases,
  readers,
  refusals
]

/**
 * Definitions of the embedded store: registrations, and the records and position that a real database has elsewhere.
 */
export const embeddedDefinitions: ReadonlyArray<Definition> = [
  owner,
  queries,
  {
    why: "Records as they were ingested, by the text of their id, their content in the service's own encoding; the position in the log.",
    statements: [
      table(recordTable, "NONE"),
      field(recordTable, "version", "int"),
      field(recordTable, "content", "option<string>"),
      table(stateTable, "NONE"),
      field(stateTable, "writes", "int"),
      field(stateTable, "seq", "option<int>"),
      field(stateTable, "logId", "option<string>"),
      field(stateTable, "epoch", "option<int>"),
      field(stateTable, "layout", "int")
    ]
  }
]

/** One text of many statements. */
export const script = (definitions: ReadonlyArray<Definition>): string =>
  definitions.flatMap(({ statements }) => statements).join(";\n") + ";\n"

/** A comment in SurrealQL. */
export const comment = (text: string): string =>
  text
    .split("\n")
    .map((line) => `-- ${line}\n`)
    .join("")

/** The definitions with their reasons, for people. */
export const printed = (definitions: ReadonlyArray<Definition>): string =>
  definitions
    .filter(({ statements }) => statements.length > 0)
    .map(({ statements, why }) => `${comment(why)}${statements.join(";\n")};\n`)
    .join("\n")
