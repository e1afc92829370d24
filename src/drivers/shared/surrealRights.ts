/**
 * Checks a database user who may not define our tables: the tables must exist, and the user must be able to write them.
 *
 * Checked before any write, because the database answers a forbidden write with an empty list and no error: a service
 * without the right would look alive and write nothing.
 */
import { Effect } from "effect"
import { definitionsOf } from "../../core/surreal/definitions.ts"
import * as Schema from "../../core/surreal/surrealSchema.ts"
import { retryingConflicts, SurrealError, type SurrealShape } from "../../ports/SurrealClient.ts"

const sample: { readonly [table: string]: string } = {
  [Schema.queryTable]:
    "view = '', surql = '', clientId = '', ttl = 1s, params = '', format = '', lastActiveAt = time::now()",
  [Schema.edgeTable]: `in = ${Schema.queryTable}:svc_rights, out = ${Schema.queryTable}:svc_rights, version = 0, clientId = ''`,
  [Schema.integrityTable]: "hash = '', count = 0",
  [Schema.readerTable]: "token = '', name = '', until = time::now()",
  [Schema.refusalTable]: "view = '', clientId = '', op = '', reason = '', at = time::now()",
  [Schema.jobTable]: `job = ${Schema.queryTable}:svc_rights, holder = '', incarnation = '', until = time::now()`
}

const thrown = "svc_rights:"

/** Writes each table and rolls back: the transaction throws the counts of rows created, updated and deleted. */
const probe = (tables: ReadonlyArray<string>): string =>
  [
    "BEGIN",
    ...tables.flatMap((table, i) => {
      const [field] = sample[table]!.split(" = ")
      return [
        `LET $created${i} = (CREATE ${table} SET ${sample[table]!} RETURN VALUE id)`,
        `LET $updated${i} = (UPDATE $created${i} SET ${field!} = ${field!} RETURN VALUE id)`,
        `LET $deleted${i} = (DELETE $created${i} RETURN BEFORE)`
      ]
    }),
    `THROW '${thrown}' + array::join([${tables.map((_, i) => `array::len($created${i}), array::len($updated${i}), array::len($deleted${i})`).join(", ")}], ',')`,
    "COMMIT"
  ].join(";\n")

const actions = ["create", "update", "delete"]

/** Missing rights by the counts, one text for each table. */
const lacking = (tables: ReadonlyArray<string>, counts: ReadonlyArray<string>): ReadonlyArray<string> =>
  tables.flatMap((table, i) => {
    const missing = actions.filter((_, n) => counts[i * actions.length + n] !== "1")
    return missing.length === 0 ? [] : [`to ${missing.join(", ")} in ${table}`]
  })

const whatIsMissing = (
  client: SurrealShape,
  tables: ReadonlyArray<string>
): Effect.Effect<ReadonlyArray<string>, SurrealError> =>
  Effect.gen(function* () {
    const info = yield* Effect.either(client.query("INFO FOR DB STRUCTURE"))
    if (info._tag === "Left")
      return info.left.reason === "forbidden"
        ? ["to read definitions (INFO FOR DB, role VIEWER on the database)"]
        : yield* info.left
    const existing = definitionsOf(info.right[0], "tables").map(({ name }) => name)
    const absent = tables.filter((table) => !existing.includes(table))
    if (absent.length > 0) return [`to define ${absent.join(", ")}, which nobody has defined`]
    const answer = yield* Effect.flip(client.query(probe(tables))).pipe(
      Effect.orElseFail(
        () =>
          new SurrealError({
            reason: "refused",
            message: "a transaction that throws came to its end",
            uncertain: false
          })
      )
    )
    const at = answer.message.indexOf(thrown)
    if (at < 0) return yield* answer
    return lacking(tables, answer.message.slice(at + thrown.length).split(","))
  })

/** Succeeds if the signed-in user may write these tables; else fails with the missing rights by name. */
const check = (client: SurrealShape, tables: ReadonlyArray<string>): Effect.Effect<void, SurrealError> =>
  Effect.flatMap(whatIsMissing(client, tables), (missing) =>
    missing.length === 0
      ? Effect.void
      : Effect.fail(
          new SurrealError({
            reason: "forbidden",
            uncertain: false,
            message: `the database user of this service lacks the right ${missing.join("; ")}. --install-database-setup --least-privilege gives it what it needs, --print-database-setup --least-privilege shows it`
          })
        )
  )

/** Defines our tables; for a user without the right to define, checks that they exist. */
export const defineTables = (
  client: SurrealShape,
  definitions: ReadonlyArray<Schema.Definition>,
  tables: ReadonlyArray<string>
): Effect.Effect<void, SurrealError> =>
  retryingConflicts(client)
    .query(Schema.script(definitions))
    .pipe(
      Effect.asVoid,
      Effect.catchIf(
        ({ reason }) => reason === "forbidden",
        () => check(client, tables)
      )
    )
