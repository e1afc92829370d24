/**
 * The change table (a transactional outbox inside the user's database), as SurrealQL: which record was written, in the
 * transaction that wrote it.
 *
 * Only the id is kept. The reader reads the record as it is by then, so order among the rows says nothing and repeats
 * do no harm; a rolled-back transaction leaves no row, and no writer waits for us. The events run with the rights of
 * the user that defined them: record users, who may neither read nor write the table, are announced all the same.
 */

import { identifier } from "../surql/values/text.ts"
import { changeTable, type Definition, edgeTable, isOwn } from "./surrealSchema.ts"

export const changeEvent = "svc_change"

/**
 * A row that names this record asks for a compare of everything: writes made while no event stood there are found
 * by it.
 */
export const compareKey = "compare"

/** A row that names this record carries a call of a function for clients (`surrealFeed.ts`), in `call`. */
const callKey = "call"

/** The table; an operator's own definition stays. */
export const definition: Definition = {
  why: "Which records were written, one row per write, until this service has them durable: then it deletes the rows. Nobody else reads or writes it.",
  statements: [
    `DEFINE TABLE IF NOT EXISTS ${changeTable} TYPE NORMAL SCHEMAFULL PERMISSIONS NONE`,
    `DEFINE FIELD IF NOT EXISTS r ON ${changeTable} TYPE record`,
    `DEFINE FIELD IF NOT EXISTS call ON ${changeTable} TYPE any`
  ]
}

/**
 * When an event of a user's table tells of a record. Deleting a record runs its own table's event for the edges that go
 * with it, and not theirs (3.0.2). So the table is taken from the id, and edges of ours, which every record in a view
 * has, are left out. An edge that the same transaction has made comes without its id: which record it is cannot be
 * told, and the write must not fail. Comparing the name with the prefix of all our tables costs a bulk write 6 % more.
 */
export const condition = `WHEN $value.id != NONE AND record::tb($value.id) != '${edgeTable}'`

/** In parentheses and not in a block, which would cost a bulk write 6 % more. */
export const event = (name: string): string =>
  `DEFINE EVENT OVERWRITE ${changeEvent} ON ${identifier(name)} ${condition} THEN (CREATE ${changeTable}:ulid() SET r = $value.id RETURN NONE)`

/** Asks the reader for a compare of everything. */
export const askCompare = `CREATE ${changeTable}:ulid() SET r = ${changeTable}:${compareKey} RETURN NONE`

/**
 * The same where the table may be missing: writes on either side of a move from one kind of feed to the other
 * is found.
 */
export const askCompareIfThere = `IF '${changeTable}' IN object::keys((INFO FOR DB).tables) { ${askCompare} }`

/** Told in the transaction that deletes a registration: the row names it. */
export const registrationDeleted = `CREATE ${changeTable}:ulid() SET r = $before.id RETURN NONE`

/**
 * Leaves a call in the transaction that makes it. Its id begins with the time, so that calls are read in the order they
 * were made in; an ulid orders nothing within a millisecond.
 */
export const leaveCall = (call: string): string =>
  `CREATE type::record('${changeTable}', [time::nano(), rand::ulid()]) SET r = ${changeTable}:${callKey}, call = ${call} RETURN NONE`

/** Events on these tables; our own are left out even where they are named. */
export const events = (tables: ReadonlyArray<string>): Definition => ({
  why: "Says which record was written, in the same transaction: what is rolled back leaves nothing, and no write waits for this service or fails because of it.",
  statements: [...tables.filter((name) => !isOwn(name)).map(event), askCompare]
})

/** Takes the events away; rows that wait are still taken by the reader. */
export const removal = (tables: ReadonlyArray<string>): ReadonlyArray<string> =>
  tables.filter((name) => !isOwn(name)).map((name) => `REMOVE EVENT IF EXISTS ${changeEvent} ON ${identifier(name)}`)
