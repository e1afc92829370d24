/**
 * The database user of `--least-privilege` on the real engine: what it may, what it may not, and what a lesser one is
 * told.
 */
import { Effect, Logger, LogLevel, Redacted } from "effect"
import { afterAll, beforeAll, expect, test } from "vitest"
import { noOptions, setupCommand } from "../../../kit/processes/setupCommand.ts"
import { RpcServer } from "../../../kit/processes/surreal/RpcServer.ts"
import { jobTable } from "../../../src/core/surreal/jobTableSchema.ts"
import * as Schema from "../../../src/core/surreal/surrealSchema.ts"
import * as SurrealJobs from "../../../src/drivers/surrealJobs.ts"
import * as ServerClient from "../../../src/host/serverClient.ts"
import { JobStore } from "../../../src/ports/JobStore.ts"
import { SurrealClient } from "../../../src/ports/SurrealClient.ts"
import { Upstream } from "../../../src/ports/Upstream.ts"
import { read } from "../../../src/ssp/Config.ts"
import type * as DatabaseSetup from "../../../src/ssp/commands/DatabaseSetup.ts"

const password = "it's a password"
let server: RpcServer
let databases = 0
beforeAll(async () => {
  server = await RpcServer.start()
})
afterAll(() => server.kill())

const options: DatabaseSetup.SetupOptions = { ...noOptions, mode: "sync", leastPrivilege: true, create: true }

const jobFile = {
  path: "svc.yml",
  fault: undefined,
  content: { job_tables: { mail_job: { name: "mail", base_url: "http://x" } } }
}

/** A database of its own; `as` runs an effect as one of its users, `command` the set-up as root. */
const database = async (schema = "DEFINE TABLE item; CREATE item:1 SET v = 1") => {
  const name = `d${databases++}`
  const ask = <A>(query: string): Promise<A> => server.ask<A>("n", name, query)
  await ask(schema)
  const settings = async (env: { readonly [name: string]: string } = {}, user = "root", pass = "root") => {
    const config = await Effect.runPromise(
      read({ env, file: jobFile, readText: () => ({ fault: "" }), hostName: "h" }, "u")
    )
    return {
      ...config,
      storeAddr: server.url,
      storeNs: "n",
      storeDb: name,
      storeUser: user,
      storePass: Redacted.make(pass),
      storeAuthLevel: user === "root" ? undefined : ("database" as const)
    }
  }
  const command = async (what: DatabaseSetup.Command, env: { readonly [name: string]: string } = {}) => {
    const config = await settings(env)
    return setupCommand(config, what, options)
  }
  const as = async <A, E>(
    user: string,
    pass: string,
    effect: Effect.Effect<A, E, Upstream | SurrealClient>
  ): Promise<A> => {
    const config = await settings({}, user, pass)
    return Effect.runPromise(
      effect.pipe(Effect.provide(ServerClient.layer(config, true)), Logger.withMinimumLogLevel(LogLevel.None))
    )
  }
  return { ask, command, as }
}

const query = (text: string) => Effect.flatMap(SurrealClient, (client) => client.query(text))
const refusal = (text: string) =>
  Effect.flatMap(SurrealClient, (client) =>
    Effect.map(Effect.either(client.query(text)), (answer) => (answer._tag === "Left" ? answer.left.reason : "taken"))
  )
const prepared = Effect.flatMap(Upstream, (upstream) =>
  Effect.map(Effect.either(upstream.prepare), (answer) => (answer._tag === "Left" ? answer.left.message : "prepared"))
)

test("D21 what is printed runs as it stands, holds no password, and admits no sign-in until a hash is put in", async () => {
  const { as, ask, command } = await database()
  const { out } = await command("print", { STORE_SERVICE_PASS: password })
  expect([out.includes(password), out.includes("argon2id"), out.includes("ROLES VIEWER")]).toEqual([false, false, true])
  for (const _again of [1, 2]) await ask(out)
  for (const wrong of ["<hash of its password>", "", password])
    await expect(as("svc_sidecar", wrong, query("RETURN 1"))).rejects.toThrow(/authentication/)
  const [hash] = await ask<[string]>("RETURN crypto::argon2::generate('other')")
  await ask(out.replace("<hash of its password>", hash))
  expect(await as("svc_sidecar", "other", prepared)).toBe("prepared")
})

test("D21 the user that is installed reads everything, writes our tables, and nothing else", async () => {
  const { as, ask, command } = await database()
  for (const _again of [1, 2]) {
    const { fault, out } = await command("install", { STORE_SERVICE_USER: "side_car", STORE_SERVICE_PASS: password })
    expect([fault, out.includes(password), out.includes("STORE_USER=side_car")]).toEqual([undefined, false, true])
  }
  await ask("DEFINE USER other ON DATABASE PASSWORD 'p' ROLES VIEWER; CREATE mail_job:1 SET path = '/a', payload = {}")
  const user = <A, E>(effect: Effect.Effect<A, E, Upstream | SurrealClient>): Promise<A> =>
    as("side_car", password, effect)
  expect(await user(prepared)).toBe("prepared")
  expect(await ask("SELECT * FROM _svc_query; SELECT * FROM _svc_list_ref")).toEqual([[], []])
  const registered =
    "CREATE _svc_query:a SET view = 'a', surql = '', clientId = '', ttl = 1h, params = '{}', format = 'flat', lastActiveAt = time::now() RETURN VALUE view"
  expect(await user(query(`${registered}; SELECT VALUE v FROM item; INFO FOR TABLE item STRUCTURE`))).toMatchObject([
    ["a"],
    [1],
    {}
  ])
  expect(await as("other", "p", query(`DELETE _svc_query RETURN BEFORE; ${registered.replace(":a", ":b")}`))).toEqual([
    [],
    []
  ])
  // What is not permitted answers nothing and changes nothing.
  await user(
    query(
      "UPDATE item:1 SET v = 2; CREATE item:2; DELETE item; UPDATE mail_job:1 SET path = '/evil', payload = { a: 1 }, max_retries = 9, status = 'failed'; DELETE mail_job"
    )
  )
  expect(await ask("SELECT * FROM item; SELECT path, payload, status FROM mail_job")).toMatchObject([
    [{ v: 1 }],
    [{ path: "/a", payload: {}, status: "failed" }]
  ])
  for (const text of [
    "DEFINE TABLE x",
    "DEFINE EVENT OVERWRITE e ON item WHEN true THEN {}",
    "DEFINE USER x ON DATABASE PASSWORD 'x' ROLES OWNER",
    "DEFINE FUNCTION fn::x() { RETURN 1 }",
    "REMOVE TABLE item",
    "ALTER TABLE item PERMISSIONS FULL",
    "DEFINE PARAM $x VALUE 1",
    "INFO FOR NS",
    "INFO FOR ROOT"
  ]) {
    expect([text, await user(refusal(text))]).toEqual([text, "forbidden"])
  }
})

test("D21 permissions of job tables stay as they are for all other users, and are opened once", async () => {
  const { ask, command } = await database(
    `${Schema.script([jobTable("mail_job")])} ALTER TABLE mail_job PERMISSIONS FOR select FULL FOR create WHERE $auth.admin FOR update WHERE assigned_to = $auth FOR delete NONE`
  )
  for (const _again of [1, 2])
    expect((await command("install", { STORE_SERVICE_PASS: password })).fault).toBeUndefined()
  const [{ tables }, { fields }] = await ask<
    [
      { readonly tables: ReadonlyArray<{ readonly name: string; readonly permissions: object }> },
      { readonly fields: ReadonlyArray<{ readonly name: string; readonly permissions: object }> }
    ]
  >("INFO FOR DB STRUCTURE; INFO FOR TABLE mail_job STRUCTURE")
  const user = "$access = NONE AND $auth = NONE AND $token.DB != NONE AND $token.ID = 'svc_sidecar'"
  expect(tables.find(({ name }) => name === "mail_job")?.permissions).toEqual({
    select: true,
    create: "$auth.admin",
    update: `assigned_to = $auth OR ${user}`,
    delete: false
  })
  expect(fields.find(({ name }) => name === "status")?.permissions).toEqual({
    select: true,
    create: true,
    update: user
  })
  expect(fields.find(({ name }) => name === "path")?.permissions).toEqual({ select: true, create: true, update: false })
})

test("D21 a password that is not set is named before anything is defined", async () => {
  const { ask, command } = await database()
  expect((await command("install")).fault).toMatch(/STORE_SERVICE_PASS is not set.*svc_sidecar/)
  expect(JSON.stringify(await ask("INFO FOR DB"))).not.toMatch(/svc_/)
})

test("D21 a user that lacks a right is told which: to define, to write, to read definitions, to update jobs", async () => {
  const { as, ask } =
    await database(`DEFINE TABLE item; DEFINE USER viewer ON DATABASE PASSWORD 'p' ROLES VIEWER; DEFINE USER editor ON DATABASE PASSWORD 'p' ROLES EDITOR;
    DEFINE ACCESS account ON DATABASE TYPE RECORD SIGNIN (SELECT * FROM user WHERE name = $name)`)
  const viewer = <A, E>(effect: Effect.Effect<A, E, Upstream | SurrealClient>): Promise<A> => as("viewer", "p", effect)
  expect(await viewer(prepared)).toMatch(
    /lacks the right to define _svc_query, _svc_list_ref, _svc_integrity, _svc_job, _svc_reader, _svc_refusal, which nobody has defined.*--least-privilege/
  )
  await ask(Schema.script(Schema.sharedDefinitions))
  expect(await viewer(prepared)).toMatch(
    /lacks the right to create, update, delete in _svc_query; to create, update, delete in _svc_list_ref; .* in _svc_integrity; .* in _svc_job; .* in _svc_reader; .* in _svc_refusal\. /
  )
  await ask(
    "ALTER TABLE _svc_query PERMISSIONS FULL; ALTER TABLE _svc_list_ref PERMISSIONS FOR select, create FULL; ALTER TABLE _svc_integrity PERMISSIONS FULL; ALTER TABLE _svc_job PERMISSIONS FULL; ALTER TABLE _svc_reader PERMISSIONS FULL; ALTER TABLE _svc_refusal PERMISSIONS FULL"
  )
  expect(await viewer(prepared)).toMatch(/lacks the right to update, delete in _svc_list_ref\. /)
  expect(await ask("SELECT * FROM _svc_query; SELECT * FROM _svc_list_ref; SELECT * FROM _svc_job")).toEqual([
    [],
    [],
    []
  ])
  await ask(`${Schema.script([jobTable("mail_job")])} CREATE mail_job:1 SET path = '/a', payload = {}`)
  const claim = Effect.gen(function* () {
    const jobs = yield* JobStore
    const [ref] = yield* jobs.open("mail_job", 1)
    return yield* Effect.either(jobs.claim([ref!], { holder: "h", incarnation: "i" }, 1_000))
  })
  const claimed = await viewer(
    Effect.flatMap(SurrealClient, (client) =>
      Effect.provide(claim, SurrealJobs.layer).pipe(Effect.provideService(SurrealClient, client))
    )
  )
  expect(claimed._tag === "Left" && claimed.left.message).toMatch(
    /may not update status in the job table mail_job: --print-database-setup --least-privilege/
  )
  expect(await as("editor", "p", prepared)).toBe("prepared")
})
