/**
 * `ChangeTable` on a SurrealDB: rows and the records they name, read by one statement, so in one read transaction.
 *
 * The LETs make the engine stop at the limit and take a table that is gone as an empty one (3.0.2).
 */
import { Effect, Either } from "effect"
import * as Schema from "../core/surreal/surrealSchema.ts"
import { isObj, type Obj, RecordId, type Value } from "../core/surql/values/value.ts"
import { recordOf } from "./memoryUpstream.ts"
import type { SurrealError, SurrealShape } from "../ports/SurrealClient.ts"
import type { ChangesRead, ChangeTable, UpstreamError, UpstreamRecord } from "../ports/Upstream.ts"

const taken = `RETURN {
  LET $rows = (SELECT id, r FROM ${Schema.changeTable} WHERE id NOT IN $apart LIMIT $size);
  LET $ids = array::distinct($rows.r);
  LET $records = (SELECT * FROM $ids);
  RETURN { rows: $rows, records: $records };
}`
/** Most reads leave nothing out: who filters would ask each row. */
const takenAll = taken.replace(" WHERE id NOT IN $apart", "")

/** Deletions, which are ours, wake nobody. */
const written = `LIVE SELECT id FROM ${Schema.changeTable} WHERE $event = 'CREATE'`

const removed = "DELETE $done RETURN NONE;"

/** Rows taken at once when each record is read by itself. */
const fewer = 100

const recordsOf = (value: Value): ReadonlyArray<UpstreamRecord> => rowsOf(value).flatMap((row) => recordOf(row) ?? [])

const rowsOf = (value: Value): ReadonlyArray<Obj> => (Array.isArray(value) ? value.filter(isObj) : [])

const readOf = (answer: Value): ChangesRead => {
  const { records, rows } = isObj(answer) ? answer : { records: [], rows: [] }
  return {
    rows: rowsOf(rows).flatMap(({ id, r }) =>
      id instanceof RecordId && r instanceof RecordId ? [{ id, record: r }] : []
    ),
    records: recordsOf(records),
    unreadable: []
  }
}

/** Record by record, for when one of them makes the whole read fail: not at one moment any more, and it goes on. */
const oneByOne = (client: SurrealShape, apart: ReadonlyArray<RecordId>): Effect.Effect<ChangesRead, SurrealError> =>
  Effect.gen(function* () {
    const answers = yield* client.query(
      `LET $rows = (SELECT id, r FROM ${Schema.changeTable} WHERE id NOT IN $apart LIMIT ${fewer}); RETURN { rows: $rows, records: [] }`,
      { apart }
    )
    const { rows } = readOf(answers.at(-1))
    if (rows.length === 0) return { rows, records: [], unreadable: [] }
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
      })
    }
  })

export const make = (client: SurrealShape, failure: (error: SurrealError) => UpstreamError): ChangeTable => ({
  take: (size, done, apart) =>
    client
      .ask(`${done.length === 0 ? "" : removed}${apart.length === 0 ? takenAll : taken}`, { size, done, apart })
      .pipe(
        Effect.flatMap((answers) => {
          const last = answers.at(-1)
          // Rows that were not deleted are read again, which does no harm.
          if (last === undefined || Either.isRight(last)) return Effect.succeed(readOf(last?.right))
          if (last.left.reason === "missing") return Effect.succeed(undefined)
          return last.left.reason === "refused" ? oneByOne(client, apart) : Effect.fail(last.left)
        }),
        Effect.mapError(failure)
      ),
  listen: (heard) => Effect.mapError(client.listen(written, heard), failure)
})
