/**
 * The change table (a transactional outbox inside the user's database), as SurrealQL: which record was written, in the
 * transaction that wrote it.
 *
 * A row has only the id. The reader reads the record's later state, so the order of rows does not matter and repeats do
 * no harm; a rolled-back transaction leaves no row, and no writer waits for the service. The events run with the rights
 * of the user that defined them, so writes of record users, who may neither read nor write the table, are noted too.
 */

import { identifier } from "../surql/values/text.ts"
import { changeTable, type Definition, edgeTable, isOwn } from "./surrealSchema.ts"

export const changeEvent = "svc_change"

/** A row with this id asks for a compare of everything, which finds writes made while no event was defined. */
export const compareKey = "compare"

/** A row with this id carries a call of a client function (`surrealFeed.ts`), in `call`. */
const callKey = "call"

/** Definition of the change table; an operator's own definition stays. */
export const changeTableDefinition: Definition = {
  why: "Which records were written, one row per write, until this service has them durable: then it deletes the rows. Nobody else reads or writes it.",
  statements: [
    `DEFINE TABLE IF NOT EXISTS ${changeTable} TYPE NORMAL SCHEMAFULL PERMISSIONS NONE`,
    `DEFINE FIELD IF NOT EXISTS r ON ${changeTable} TYPE record`,
    `DEFINE FIELD IF NOT EXISTS call ON ${changeTable} TYPE any`
  ]
}

/**
 * When an event of a user's table notes a record. Deleting a record deletes its edges, and runs the record's own event
 * for them instead of theirs (3.0.2). So the table is taken from the id, and the service's edges, which every record in
 * a view has, are left out. An edge made in the same transaction has no id here: the record is unknown, and the write
 * must not fail. Comparing with the prefix of all the service's tables would cost a bulk write 6 % more.
 */
export const eventCondition = `WHEN $value.id != NONE AND record::tb($value.id) != '${edgeTable}'`

/** In parentheses and not in a block, which would cost a bulk write 6 % more. */
export const eventStatement = (name: string): string =>
  `DEFINE EVENT OVERWRITE ${changeEvent} ON ${identifier(name)} ${eventCondition} THEN (CREATE ${changeTable}:ulid() SET r = $value.id RETURN NONE)`

/** Adds a row that asks the reader for a compare of everything. */
export const askCompare = `CREATE ${changeTable}:ulid() SET r = ${changeTable}:${compareKey} RETURN NONE`

/**
 * As {@link askCompare}, if the table exists: finds the writes on either side of a move from one kind of feed to the
 * other.
 */
export const askCompareIfInstalled = `IF '${changeTable}' IN object::keys((INFO FOR DB).tables) { ${askCompare} }`

/** Statement of an event, in the transaction that deletes a registration: notes the registration. */
export const registrationDeleted = `CREATE ${changeTable}:ulid() SET r = $before.id RETURN NONE`

/**
 * Notes a call in the transaction that makes it. Its id begins with the time, so that calls are read in their order; an
 * ulid orders nothing within a millisecond.
 */
export const noteCall = (call: string): string =>
  `CREATE type::record('${changeTable}', [time::nano(), rand::ulid()]) SET r = ${changeTable}:${callKey}, call = ${call} RETURN NONE`

/** Events on these tables, without the service's own. */
export const events = (tables: ReadonlyArray<string>): Definition => ({
  why: "Says which record was written, in the same transaction: what is rolled back leaves nothing, and no write waits for this service or fails because of it.",
  statements: [...tables.filter((name) => !isOwn(name)).map(eventStatement), askCompare]
})

/** Removes the events; the reader still takes waiting rows. */
export const removal = (tables: ReadonlyArray<string>): ReadonlyArray<string> =>
  tables.filter((name) => !isOwn(name)).map((name) => `REMOVE EVENT IF EXISTS ${changeEvent} ON ${identifier(name)}`)
