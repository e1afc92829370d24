/**
 * `ChangeTable` on a SurrealDB: rows and the records they name, read by one statement, so in one read transaction; and
 * the lease of the one service that reads it.
 *
 * Only inside a LET does the engine stop at the limit, and find no records in a dropped table (3.0.2).
 */
import { Effect, Either } from "effect"
import { chunksOf } from "../core/chunksOf.ts"
import * as Ids from "../core/surql/values/recordId.ts"
import { identifier } from "../core/surql/values/text.ts"
import { Duration, isObj, type Obj, RecordId, type Value } from "../core/surql/values/value.ts"
import * as Changes from "../core/surreal/surrealChanges.ts"
import * as Schema from "../core/surreal/surrealSchema.ts"
import { viewKey } from "../core/view/viewId.ts"
import type { SurrealError, SurrealShape } from "../ports/SurrealClient.ts"
import type {
  Acquired,
  ChangeRow,
  ChangesRead,
  ChangeTable,
  ReaderLease,
  UpstreamError,
  UpstreamRecord,
  ViewCall
} from "../ports/Upstream.ts"
import { recordOf } from "./memoryUpstream.ts"

const taken = `RETURN {
  LET $rows = (SELECT id, r, call FROM ${Schema.changeTable} WHERE id NOT IN $apart LIMIT $size);
  LET $ids = array::distinct($rows.r);
  LET $records = (SELECT * FROM $ids);
  LET $text = IF array::len($rows) > 1 { string::len(<string> $records) } ELSE { 0 };
  RETURN IF $text > $most { { text: $text, count: array::len($rows) } } ELSE { { rows: $rows, records: $records } };
}`
/** The same read without the filter, which would look at each row: most reads leave no row out. */
const takenAll = taken.replace(" WHERE id NOT IN $apart", "")

/** Our own deletions wake no reader. */
const written = `LIVE SELECT id FROM ${Schema.changeTable} WHERE $event = 'CREATE'`

/** Message that the deleting transaction throws if another service follows the database. */
const superseded = "svc_superseded"

/** The token is checked in the transaction that deletes, so that of two services that delete one fails. */
const removed = `BEGIN;
  LET $mine = (UPDATE ${Schema.readerTable} SET position = $position WHERE token = $me RETURN VALUE token);
  IF array::len($mine) = 0 { THROW '${superseded}' };
  DELETE $done RETURN NONE;
  COMMIT;`
const removedByAnyone = "DELETE $done RETURN NONE;"
/** For further parts of a deletion: the position is written by the first part, before any row is gone. */
const removedBeside = `BEGIN;
  IF array::len(SELECT VALUE token FROM ${Schema.readerTable} WHERE token = $me) = 0 { THROW '${superseded}' };
  DELETE $done RETURN NONE;
  COMMIT;`

/**
 * Rows deleted in one transaction, and transactions at once. The engine runs the statements of a transaction in order
 * and waits for all other clients between them: beside eight busy writers a thousand rows took 2 s in one transaction,
 * and 0.4 s in parts.
 */
const rowsPerPart = 100
const partsAtOnce = 8

/** Most rows of a read that reads each record separately. */
const fewer = 100

const recordsOf = (value: Value): ReadonlyArray<UpstreamRecord> => rowsOf(value).flatMap((row) => recordOf(row) ?? [])

const rowsOf = (value: Value): ReadonlyArray<Obj> => (Array.isArray(value) ? value.filter(isObj) : [])

const textOf = (value: Value): string => (typeof value === "string" ? value : "")

const callOf = ({ clientId, op, params, surql, ttl, view }: Obj): ViewCall => ({
  op: op === "unregister" ? op : "register",
  view: textOf(view),
  clientId: textOf(clientId),
  surql: textOf(surql),
  params: isObj(params) ? params : {},
  ttl: textOf(ttl)
})

const readOf = (answer: Value, size: number): ChangesRead => {
  const { records, rows } = isObj(answer) ? answer : { records: [], rows: [] }
  return {
    rows: rowsOf(rows).flatMap(({ call, id, r }): ReadonlyArray<ChangeRow> => {
      if (!(id instanceof RecordId && r instanceof RecordId)) return []
      const called = isObj(call) ? callOf(call) : undefined
      return [{ id, record: r, ...(called === undefined ? {} : { call: called }) }]
    }),
    records: recordsOf(records),
    unreadable: [],
    partial: rowsOf(rows).length >= size
  }
}

/** Reads record by record, if one of them makes the whole read fail; the records are no longer of one moment. */
const oneByOne = (client: SurrealShape, apart: ReadonlyArray<RecordId>): Effect.Effect<ChangesRead, SurrealError> =>
  Effect.gen(function* () {
    const answers = yield* client.query(
      `LET $rows = (SELECT id, r, call FROM ${Schema.changeTable} WHERE id NOT IN $apart LIMIT ${fewer}); RETURN { rows: $rows, records: [] }`,
      { apart }
    )
    const { rows } = readOf(answers.at(-1), fewer)
    if (rows.length === 0) return { rows, records: [], unreadable: [], partial: false }
    const found = yield* client.ask(
      rows.map((_, i) => `SELECT * FROM $r${i}`).join(";"),
      Object.fromEntries(rows.map(({ record }, i) => [`r${i}`, record]))
    )
    const read = rows.map((row, i) => ({ row, answer: found[i]! }))
    const refusal = ({ answer }: (typeof read)[number]): string | undefined =>
      Either.isLeft(answer) && answer.left.reason !== "missing" ? answer.left.message : undefined
    return {
      rows: read.filter((one) => refusal(one) === undefined).map(({ row }) => row),
      records: read.flatMap(({ answer }) => (Either.isRight(answer) ? recordsOf(answer.right) : [])),
      unreadable: read.flatMap((one) => {
        const reason = refusal(one)
        return reason === undefined ? [] : [{ ...one.row, reason }]
      }),
      partial: true
    }
  })

type Answers = ReadonlyArray<Either.Either<Value, SurrealError>>

/** Number of leading rows that fit into `bytes`, by the lengths of a read that was too large. */
const rowsWithin = (answer: Answers[number] | undefined, bytes: number): number | undefined => {
  if (answer === undefined || Either.isLeft(answer) || !isObj(answer.right)) return undefined
  const { count, text } = answer.right
  if (typeof count !== "number" || typeof text !== "number") return undefined
  return Math.max(1, Math.min(count - 1, Math.floor((count * bytes) / text)))
}

/** Parses the answers to a take: the statements that delete, then the read. */
const readFrom = (
  client: SurrealShape,
  answers: Answers,
  size: number,
  apart: ReadonlyArray<RecordId>
): Effect.Effect<ChangesRead | "superseded" | undefined, SurrealError> => {
  if (answers.some((answer) => Either.isLeft(answer) && answer.left.message.includes(superseded)))
    return Effect.succeed("superseded" as const)
  const conflict = answers.find((answer) => Either.isLeft(answer) && answer.left.reason === "conflict")
  if (conflict !== undefined && Either.isLeft(conflict)) return Effect.fail(conflict.left)
  const last = answers.at(-1)
  // Rows that were not deleted are read again, which does no harm.
  if (last === undefined || Either.isRight(last)) return Effect.succeed(readOf(last?.right, size))
  if (last.left.reason === "missing") return Effect.succeed(undefined)
  if (last.left.reason !== "refused") return Effect.fail(last.left)
  // Inside a block the engine reports a missing table like any failed statement (3.0.2).
  return Effect.catchIf(
    oneByOne(client, apart),
    ({ reason }) => reason === "missing",
    () => Effect.succeed(undefined)
  )
}

/** Query for the records of these tables; NONE if there are more than `$size`, or more text than `$most`. */
const allOf = (tables: ReadonlyArray<string>): string => `RETURN {
  ${tables.map((name, i) => `LET $t${i} = (SELECT * FROM ${identifier(name)} LIMIT $size + 1);`).join("\n  ")}
  LET $rows = [${tables.map((_, i) => `$t${i}`).join(", ")}];
  LET $count = math::sum([${tables.map((_, i) => `array::len($t${i})`).join(", ")}]);
  RETURN IF $count > $size OR string::len(<string> $rows) > $most { NONE } ELSE { { rows: $rows } };
}`

/** The row that names the service which follows the database. */
const leaseRow: RecordId = Ids.make(Schema.readerTable, "changes")

export const make = (client: SurrealShape, failure: (error: SurrealError) => UpstreamError): ChangeTable => ({
  installed: client.query("RETURN $table IN object::keys((INFO FOR DB).tables)", { table: Schema.changeTable }).pipe(
    Effect.map((answers) => answers.at(-1) === true),
    Effect.mapError(failure)
  ),
  take: ({ bytes, rows: size }, done, apart, holding) => {
    const holder = { me: holding?.token, position: holding?.position }
    const remove = holding === undefined ? removedByAnyone : removed
    const read = apart.length === 0 ? takenAll : taken
    const few = done.length <= rowsPerPart
    const asked = few
      ? client.ask(`${done.length === 0 ? "" : remove}${read}`, { size, most: bytes, done, apart, ...holder })
      : Effect.gen(function* () {
          const parts = chunksOf(done, rowsPerPart)
          const first = yield* client.ask(remove, { done: parts[0]!, ...holder })
          const beside = holding === undefined ? removedByAnyone : removedBeside
          const rest = yield* Effect.forEach(parts.slice(1), (part) => client.ask(beside, { done: part, ...holder }), {
            concurrency: partsAtOnce
          })
          return [...first, ...rest.flat(), ...(yield* client.ask(read, { size, most: bytes, apart }))]
        })
    // A read that is too large answers its length instead of its rows; the next one reads fewer rows.
    const fewer = (answers: Answers, size: number): ReturnType<typeof readFrom> => {
      const rows = rowsWithin(answers.at(-1), bytes)
      return rows === undefined
        ? readFrom(client, answers, size, apart)
        : Effect.flatMap(client.ask(read, { size: rows, most: bytes, apart }), (next) => fewer(next, rows))
    }
    return asked.pipe(
      Effect.flatMap((answers) => fewer(answers, size)),
      Effect.mapError(failure)
    )
  },
  whole: (tables, { bytes: most, rows: size }) =>
    client.query(allOf(tables), { size, most }).pipe(
      Effect.map((answers) => {
        const answer = answers.at(-1)
        return isObj(answer) && Array.isArray(answer["rows"]) ? answer["rows"].flatMap(recordsOf) : undefined
      }),
      Effect.catchIf(
        ({ transient }) => !transient,
        () => Effect.succeed(undefined)
      ),
      Effect.mapError(failure)
    ),
  listen: (heard) => Effect.mapError(client.listen(written, heard), failure),
  seen: client.query("SELECT VALUE tables FROM $row", { row: leaseRow }).pipe(
    Effect.map(([found]) => {
      const names = Array.isArray(found) ? found[0] : undefined
      return Array.isArray(names) ? names.filter((name) => typeof name === "string") : undefined
    }),
    Effect.mapError(failure)
  ),
  see: (tables) =>
    Effect.mapError(
      Effect.asVoid(client.query("UPDATE $row SET tables = $tables RETURN NONE", { row: leaseRow, tables })),
      failure
    ),
  announce: (tables) =>
    Effect.mapError(Effect.asVoid(client.query(tables.map((name) => Changes.eventStatement(name)).join(";"))), failure),
  answer: (call, refusal) => Effect.mapError(answered(client, call, refusal), failure)
})

/** How long a client can read why its call was not carried out. */
const refusalKept = "1h"

/** Writes a refusal; one row per view and client. */
const answered = (
  client: SurrealShape,
  { clientId, op, view }: ViewCall,
  reason: string | undefined
): Effect.Effect<void, SurrealError> => {
  const row = Ids.make(Schema.refusalTable, [viewKey(view) ?? view, clientId])
  if (reason === undefined) return Effect.asVoid(client.query("DELETE $row RETURN NONE", { row }))
  return Effect.flatMap(
    client.ask(
      `UPSERT $row SET view = $view, clientId = $clientId, op = $op, reason = $reason, at = time::now() RETURN NONE;
      DELETE ${Schema.refusalTable} WHERE at < time::now() - ${refusalKept} RETURN NONE`,
      { row, view, clientId, op, reason }
    ),
    // Old rows that stay because of a conflict are deleted with the next.
    ([written]) => (written !== undefined && Either.isLeft(written) ? Effect.fail(written.left) : Effect.void)
  )
}

/**
 * Takes the lease (`ReaderLease`) if it is free. Of two services that take it at once, one transaction fails on the row
 * both write, and is repeated.
 */
const acquire = `BEGIN;
  LET $old = (SELECT * FROM $row)[0];
  LET $same = $old.token IN $was;
  LET $free = $old = NONE OR $same OR $old.token = $me OR $old.until <= time::now();
  IF $free {
    UPSERT $row SET token = $me, name = $name, until = time::now() + $ttl, position = IF $same THEN $old.position ELSE NONE END RETURN NONE
  };
  LET $answer = [{ held: $free, by: $old.name, left: IF $free THEN 0 ELSE duration::millis($old.until - time::now()) END, position: IF $same THEN $old.position ELSE NONE END }];
  RETURN $answer;
  COMMIT`

const renew =
  "UPDATE $row SET until = time::now() + $ttl, position = $position ?? position WHERE token = $me RETURN VALUE token"

const release = "UPDATE $row SET until = time::now() WHERE token = $me RETURN NONE"

const duration = (ms: number): Duration => new Duration(BigInt(Math.floor(ms / 1_000)), (ms % 1_000) * 1_000_000)

export const makeLease = (client: SurrealShape, failure: (error: SurrealError) => UpstreamError): ReaderLease => ({
  acquire: (token, { name, ttlMs, was }) =>
    client.query(acquire, { row: leaseRow, me: token, was, name, ttl: duration(ttlMs) }).pipe(
      Effect.map((answers): Acquired => {
        const [answer] = answers.findLast((one): one is ReadonlyArray<Value> => Array.isArray(one)) ?? []
        if (!isObj(answer)) return { held: false, by: "nobody known", forMs: 0 }
        return answer["held"] === true
          ? { held: true, position: typeof answer["position"] === "number" ? answer["position"] : undefined }
          : { held: false, by: String(answer["by"]), forMs: Number(answer["left"]) }
      }),
      Effect.mapError(failure)
    ),
  renew: (token, ttlMs, position) =>
    client.query(renew, { row: leaseRow, me: token, ttl: duration(ttlMs), position }).pipe(
      Effect.map(([rows]) => Array.isArray(rows) && rows.length > 0),
      Effect.mapError(failure)
    ),
  release: (token) => Effect.mapError(Effect.asVoid(client.query(release, { row: leaseRow, me: token })), failure)
})
