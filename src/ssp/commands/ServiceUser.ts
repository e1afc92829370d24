/**
 * Commands that print and define the database user of the service, with least privilege.
 *
 * Job tables keep their permissions: these are read and extended for the one user. The password is bound and hashed by
 * the database; only its hash is in a definition, and printed text has neither.
 */
import { Console, Effect, Redacted } from "effect"
import { identifier } from "../../core/surql/values/text.ts"
import { isObj, type Value } from "../../core/surql/values/value.ts"
import { definitionsOf } from "../../core/surreal/definitions.ts"
import * as LeastPrivilege from "../../core/surreal/leastPrivilege.ts"
import { StartFault } from "../../ports/StartFault.ts"
import { retryingConflicts, SurrealClient, type SurrealError, type SurrealShape } from "../../ports/SurrealClient.ts"
import { Upstream } from "../../ports/Upstream.ts"
import type { SspConfigShape } from "../Config.ts"

export type UserSettings = Pick<SspConfigShape, "jobTables" | "storeServiceUser" | "storeServicePass">

const failed = ({ message }: SurrealError): StartFault =>
  new StartFault({ exitCode: 1, message: `the database of STORE_ADDR does not do it: ${message}` })

const clauseOf = (value: Value): LeastPrivilege.Clause =>
  typeof value === "boolean" || typeof value === "string" ? value : false

const permissionsOf = (value: Value, table: boolean): LeastPrivilege.Permissions => {
  const given = isObj(value) ? value : {}
  const each = {
    select: clauseOf(given["select"]),
    create: clauseOf(given["create"]),
    update: clauseOf(given["update"])
  }
  return table ? { ...each, delete: clauseOf(given["delete"]) } : each
}

/** The configured job tables that the database has, with their permissions. */
const thereOf = (
  { query }: SurrealShape,
  names: ReadonlyArray<string>
): Effect.Effect<ReadonlyArray<LeastPrivilege.JobTable>, SurrealError> =>
  Effect.gen(function* () {
    const [info] = yield* query("INFO FOR DB STRUCTURE")
    const there = definitionsOf(info, "tables")
      .filter(({ name }) => names.includes(name))
      .map(({ definition, name }) => ({ name, table: permissionsOf(definition["permissions"], true) }))
    return yield* Effect.forEach(there, ({ name, table }) =>
      Effect.map(query(`INFO FOR TABLE ${identifier(name)} STRUCTURE`), ([found]) => {
        const fields = definitionsOf(found, "fields")
          .filter((field) => LeastPrivilege.writtenFields.includes(field.name))
          .map((field) => [field.name, permissionsOf(field.definition["permissions"], false)] as const)
        return { name, table, fields: Object.fromEntries(fields) }
      })
    )
  })

/** The user as the settings have it; `client` is undefined without a database. */
const userOf = (
  { jobTables, storeServiceUser }: UserSettings,
  client: SurrealShape | undefined,
  passHash: string | undefined
): Effect.Effect<LeastPrivilege.ServiceUser, StartFault> =>
  Effect.gen(function* () {
    const names = [...new Set(jobTables.map(({ table }) => table))]
    const there = client === undefined ? [] : yield* Effect.mapError(thereOf(client, names), failed)
    return {
      name: storeServiceUser,
      passHash,
      jobTables: there,
      newJobTables: names.filter((name) => !there.some((table) => table.name === name))
    }
  })

export const print = (settings: UserSettings): Effect.Effect<void, StartFault, Upstream | SurrealClient> =>
  Effect.gen(function* () {
    const client = (yield* Upstream).present ? yield* SurrealClient : undefined
    yield* Console.log(LeastPrivilege.printed(yield* userOf(settings, client, undefined)))
  })

export const install = (settings: UserSettings): Effect.Effect<void, StartFault, SurrealClient> =>
  Effect.gen(function* () {
    const { storeServicePass: pass, storeServiceUser: name } = settings
    if (pass === undefined)
      return yield* new StartFault({
        exitCode: 2,
        message: `STORE_SERVICE_PASS is not set: it is the password that ${name} (STORE_SERVICE_USER) gets; set it, or STORE_SERVICE_PASS_FILE`
      })
    const client = retryingConflicts(yield* SurrealClient)
    const [hash] = yield* Effect.mapError(
      client.query("RETURN crypto::argon2::generate($pass)", { pass: Redacted.value(pass) }),
      failed
    )
    const user = yield* userOf(settings, client, String(hash))
    yield* Effect.mapError(client.query(LeastPrivilege.script(user)), failed)
    const names = [...user.jobTables.map((table) => table.name), ...user.newJobTables]
    yield* Console.log(
      `installed: our tables, and the user ${name}, who reads this database and writes our tables${names.length === 0 ? "" : ` and the state of jobs in ${names.join(", ")}`}. Start the service with STORE_USER=${name} (a scheduler with SVC_SCHEDULER_DB_USERNAME=${name}) and its password.`
    )
  })
