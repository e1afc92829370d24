/**
 * The least privileged database user that the service can run as, in SurrealQL: it reads everything and writes only the
 * service's tables and the state of jobs.
 *
 * Why a VIEWER and not an EDITOR, the role above it: an editor writes every record and defines whatever it likes. A
 * viewer reads all tables and all definitions, which no record user may; where it writes, the database asks the table's
 * permissions, and ours admit this one user. It signs in at the database, so that its token names it: `ID` is its name,
 * and tokens of an access method carry that method (`$access`). Probed on 3.0.2.
 */

import { nameText } from "../surql/values/names.ts"
import { identifier, quote } from "../surql/values/text.ts"
import { jobTable as definitionOf, ownerOfJob } from "./jobTableSchema.ts"
import * as Changes from "./surrealChanges.ts"
import * as Schema from "./surrealSchema.ts"

export const defaultName = "svc_sidecar"

/** A permission: `true`, every user; `false`, none; else the `WHERE` clause. */
export type Clause = boolean | string

/** Permissions by `INFO FOR ... STRUCTURE`; a field has no `delete`. */
export interface Permissions {
  readonly select: Clause
  readonly create: Clause
  readonly update: Clause
  readonly delete?: Clause
}

/** A job table with its present permissions. */
export interface JobTable {
  readonly name: string
  readonly table: Permissions
  readonly fields: { readonly [name: string]: Permissions }
}

/** Fields of a job that its runner writes. */
export const writtenFields: ReadonlyArray<string> = ["status", "errors", "updated_at"]

const allButUpdate: Permissions = { select: true, create: true, update: false }

/** The specification's job table, for a database that has none yet. */
const specifiedJobTable = (name: string): JobTable => ({
  name,
  table: { select: ownerOfJob, create: ownerOfJob, update: ownerOfJob, delete: ownerOfJob },
  fields: { status: allButUpdate, updated_at: allButUpdate, errors: { select: false, create: true, update: false } }
})

/** Expression that is true in this user's session. */
const isUser = (user: string): string =>
  `$access = NONE AND $auth = NONE AND $token.DB != NONE AND $token.ID = ${quote(user)}`

/** The clause, opened to the user; unchanged if it already is. */
const opened = (clause: Clause, user: string): Clause =>
  clause === true
    ? true
    : clause === false
      ? isUser(user)
      : clause.includes(isUser(user))
        ? clause
        : `(${clause}) OR (${isUser(user)})`

const worded = (permissions: Permissions): string =>
  Object.entries(permissions)
    .map(
      ([action, clause]) =>
        `FOR ${action} ${clause === true ? "FULL" : clause === false ? "NONE" : `WHERE ${String(clause)}`}`
    )
    .join(" ")

const ours = (user: string): Schema.Definition => ({
  why: `What ${user} writes: registrations, edges, hashes and leases. Everybody else has the rights there that they had before.`,
  statements: [
    ...Schema.ownTables.map(
      ({ name, select }) =>
        `ALTER TABLE ${name} PERMISSIONS FOR select ${select} FOR create, update, delete WHERE ${isUser(user)}`
    ),
    // Rows are written in the users' own transactions; the service only deletes them.
    ...Changes.changeTableDefinition.statements,
    `ALTER TABLE ${Schema.changeTable} PERMISSIONS FOR delete WHERE ${isUser(user)} FOR select, create, update NONE`
  ]
})

const jobs = (user: string, { fields, name, table }: JobTable): Schema.Definition => ({
  why: `Jobs of ${name}: ${user} writes ${writtenFields.join(", ")} and nothing else.`,
  statements: [
    `ALTER TABLE ${identifier(name)} PERMISSIONS ${worded({ ...table, update: opened(table.update, user) })}`,
    ...Object.entries(fields)
      .filter(([, permissions]) => permissions.update !== true)
      .map(
        ([field, permissions]) =>
          `ALTER FIELD ${field} ON ${identifier(name)} PERMISSIONS ${worded({ ...permissions, update: opened(permissions.update, user) })}`
      )
  ]
})

export interface ServiceUser {
  readonly name: string
  /** Argon2 hash of the password; undefined prints a placeholder, with which no sign-in works. */
  readonly passHash: string | undefined
  /** Job tables that exist already. */
  readonly jobTables: ReadonlyArray<JobTable>
  /** Job tables to be defined by the specification. */
  readonly newJobTables: ReadonlyArray<string>
}

const hashPlaceholder = "<hash of its password>"

/** The service's tables, the user, and its rights, in the order they have to run in; may be run again. */
const definitions = ({ jobTables, name, newJobTables, passHash }: ServiceUser): ReadonlyArray<Schema.Definition> => [
  ...Schema.sharedDefinitions,
  ...newJobTables.map(definitionOf),
  {
    why: `The user of the service (STORE_USER, SVC_SCHEDULER_DB_USERNAME). It reads every record of this database, and its definitions.${passHash === undefined ? `\nPut the hash of its password in: RETURN crypto::argon2::generate('the password'). As it stands nobody can sign in.` : ""}`,
    statements: [
      `DEFINE USER OVERWRITE ${nameText(name)} ON DATABASE PASSHASH ${quote(passHash ?? hashPlaceholder)} ROLES VIEWER`
    ]
  },
  ours(name),
  ...[...jobTables, ...newJobTables.map(specifiedJobTable)].map((table) => jobs(name, table))
]

const about = (name: string): string =>
  `The database user of surreal-live-sidecar, once, by an owner of the database. The service runs as it from then on: STORE_USER=${name}, and SVC_SCHEDULER_DB_USERNAME=${name} for a scheduler.
It may not define anything: what --install-database-setup defines (events, functions), and job tables that are added later, an owner defines.
To take it away: REMOVE USER ${nameText(name)} ON DATABASE;`

export const script = (user: ServiceUser): string => `BEGIN;\n${Schema.script(definitions(user))}COMMIT;\n`

/** The definitions as one text with their reasons; the text can be run as it is. */
export const printed = (user: ServiceUser): string =>
  [Schema.comment(about(user.name)), Schema.printed(definitions(user))].join("\n")
