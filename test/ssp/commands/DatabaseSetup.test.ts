/**
 * The setup of a database on the real engine: what is printed can be run, what is installed works, again and again, and
 * goes away.
 *
 * The engine says whether a text is right, so what is printed is run on it and compared with what the command defines.
 */

import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { Effect, Redacted } from "effect"
import { afterAll, beforeAll, expect, test } from "vitest"
import { noOptions, setupCommand } from "../../../kit/processes/setupCommand.ts"
import { RpcServer } from "../../../kit/processes/surreal/RpcServer.ts"
import { rootClient } from "../../../kit/processes/surreal/sdk.ts"
import { secretPlaceholder } from "../../../src/core/surreal/databaseSetup.ts"
import { read } from "../../../src/ssp/Config.ts"
import type * as DatabaseSetup from "../../../src/ssp/commands/DatabaseSetup.ts"

const secret = "s3cr'et"
const posts: Array<string> = []
/** What the receiver does before it answers. */
let meanwhile: (path: string, body: string) => Promise<unknown> = () => Promise.resolve()
let http: Server
let server: RpcServer
let databases = 0

beforeAll(async () => {
  http = createServer((request, response) => {
    posts.push(`${request.url} ${request.headers.authorization}`)
    let body = ""
    request.on("data", (chunk: Buffer) => (body += chunk.toString("utf8")))
    request.on("end", () => void meanwhile(request.url ?? "", body).then(() => response.end("{}")))
  })
  await new Promise<void>((listening) => http.listen(0, "127.0.0.1", listening))
  server = await RpcServer.start({ capabilities: { network_targets: true } })
})
afterAll(async () => {
  await server.kill()
  http.close()
})

const receiverUrl = (): string => `http://127.0.0.1:${(http.address() as AddressInfo).port}`

/** A database of its own, and the commands on it; each answers what it printed, and its fault if there was one. */
const database = async (
  tables = "DEFINE TABLE item; DEFINE TABLE `odd ``name'`; DEFINE TABLE sums AS SELECT count() FROM item GROUP ALL".replace(
    "``",
    "\\`"
  )
) => {
  const name = `d${databases++}`
  const ask = <A>(query: string): Promise<A> => server.ask<A>("n", name, query)
  if (tables !== "") await ask(tables)
  const run = async (
    command: DatabaseSetup.Command,
    options: Partial<DatabaseSetup.SetupOptions> = {},
    env: { readonly [name: string]: string } = {}
  ) => {
    const config = await Effect.runPromise(
      read(
        {
          env: { LISTEN_ADDR: "127.0.0.1:8667", ...env },
          file: undefined,
          readText: () => ({ fault: "" }),
          hostName: "h"
        },
        "u"
      )
    )
    const settings = {
      ...config,
      authSecret: Redacted.make(secret),
      storeAddr: server.url,
      storeNs: "n",
      storeDb: name,
      storeUser: "root",
      storePass: Redacted.make("root"),
      storeAuthLevel: undefined
    }
    return setupCommand(settings, command, { ...noOptions, mode: "sync", ...options })
  }
  /** Everything that is defined, but for the secret and the order of events. */
  const state = async (): Promise<string> => {
    const infos = await ask<ReadonlyArray<object>>(
      "INFO FOR DB; INFO FOR TABLE item; INFO FOR TABLE `odd \\`name'`; INFO FOR TABLE sums; INFO FOR TABLE _svc_query; INFO FOR TABLE _svc_list_ref"
    )
    return JSON.stringify(infos).replaceAll(
      JSON.stringify(`"Bearer ${secret}"`).slice(1, -1),
      `'Bearer ${secretPlaceholder("ssp")}'`
    )
  }
  return { ask, name, run, state }
}

for (const mode of ["sync", "async", "changes"] as const) {
  test(`D21 the printed script for ${mode} events can be run as it stands, twice, and equals the installed one`, async () => {
    const [byHand, installed] = [await database(), await database()]
    const { out } = await byHand.run("print", { mode, url: receiverUrl() })
    for (const _again of [1, 2]) await byHand.ask(out)
    for (const _again of [1, 2])
      expect((await installed.run("install", { mode, url: receiverUrl() })).fault).toBeUndefined()
    const state = await installed.state()
    expect(await byHand.state()).toBe(state)
    expect(state.match(mode === "changes" ? /DEFINE EVENT svc_change/g : /DEFINE EVENT svc_feed/g)).toHaveLength(2)
    expect(state.match(/ASYNC RETRY/g) ?? []).toHaveLength(mode === "async" ? 3 : 0)
  })
}

test("installed events post with the secret, and are removed, also twice, without a trace but our tables", async () => {
  const { ask, run, state } = await database()
  const before = await ask<ReadonlyArray<object>>("INFO FOR TABLE item")
  const { out } = await run("install", { url: receiverUrl() })
  expect(out).toMatch(/2 tables \(item, odd `name'\)/)
  posts.length = 0
  await ask("CREATE item:1; CREATE _svc_integrity:1 SET hash = 'x', count = 1")
  expect(posts).toEqual([`/ingest Bearer ${secret}`])
  for (const _again of [1, 2]) expect((await run("remove")).fault).toBeUndefined()
  await ask("CREATE item:2")
  expect(posts).toHaveLength(1)
  expect(await ask("INFO FOR TABLE item")).toEqual(before)
  expect(await state()).not.toMatch(/svc_feed|svc_register|\$svc_url/)
})

test("D44 the change table needs no network, moving between it and posts leaves one of them, and a database that may not post is refused events that do", async () => {
  const closed = await RpcServer.start()
  const open = server
  try {
    server = closed
    const { ask, run } = await database()
    expect((await run("install", { url: receiverUrl() })).fault).toMatch(
      /--allow-net.*SURREAL_CAPS_ALLOW_NET.*--feed changes/
    )
    expect(JSON.stringify(await ask("INFO FOR DB; INFO FOR TABLE item"))).not.toMatch(/svc_feed|svc_change/)
    // Said by nobody: an SSP on its own is told by the change table, and neither address nor secret is asked for.
    const installed = await run("install", { mode: undefined }, { LISTEN_ADDR: "127.0.0.1:0" })
    expect([installed.fault, installed.out]).toEqual([undefined, expect.stringContaining("the change table")])
    expect(JSON.stringify(await ask("INFO FOR DB"))).not.toMatch(/svc_url|svc_headers|s3cr/)
    await ask("DELETE _svc_change; BEGIN; CREATE item:1; UPDATE item:1 SET n = 1; CANCEL").catch(() => undefined)
    await ask("CREATE item:2; UPSERT item:2 SET n = 1")
    expect(await ask("SELECT VALUE r FROM _svc_change")).toMatchObject([[{ id: 2 }, { id: 2 }]])
    const clustered = await run("print", { mode: undefined }, { SCHEDULER_URL: "http://s:9667" })
    expect(clustered.out).not.toContain("http://s:9667")
    expect((await run("install", { mode: undefined }, { SCHEDULER_URL: "http://s:9667" })).fault).toBeUndefined()
  } finally {
    server = open
    await closed.kill()
  }
  const { ask, run } = await database()
  const events = async () => JSON.stringify(await ask("INFO FOR TABLE item")).match(/DEFINE EVENT svc_\w+/g)
  const found: Array<unknown> = []
  for (const step of ["sync", "changes", "async", "changes", "sync"] as const) {
    expect((await run("install", { mode: step, url: receiverUrl() })).fault).toBeUndefined()
    found.push(await events())
  }
  await run("install", { mode: "changes" })
  expect(JSON.stringify(await ask("INFO FOR DB"))).not.toMatch(/svc_url|svc_headers|svc_types/)
  await run("remove")
  expect([...found, await events()]).toEqual([
    ["DEFINE EVENT svc_feed"],
    ["DEFINE EVENT svc_change"],
    ["DEFINE EVENT svc_feed"],
    ["DEFINE EVENT svc_change"],
    ["DEFINE EVENT svc_feed"],
    null
  ])
})

/** Words that the language uses itself, and one that is no word at all. */
const keywords =
  "access after all alter analyzer and as asc async at before begin between break by cancel changefeed comment commit computed content continue create database default define delete desc diff drop else end enforced event exists explain fetch field fields flexible for from full function functions group having if in index info insert into is kill let like limit live merge namespace none not null on only option or order out overwrite param patch permissions readonly rebuild record relate remove replace return roles root schemafull schemaless scope select session set show since sleep split start structure table tables then throw timeout to token transaction true type unique unset update upsert use user value values version view when where with 7 a-b".split(
    " "
  )

test("D44 tables, ids and fields may have the name of any word of the language, for either kind of event", async () => {
  const quoted = keywords.map((word) => `\`${word}\``)
  const { ask, run } = await database(quoted.map((name) => `DEFINE TABLE ${name}`).join(";"))
  for (const mode of ["sync", "changes"] as const) {
    const { fault } = await run("install", { mode, url: receiverUrl() })
    expect(fault).toBeUndefined()
  }
  await ask("DELETE _svc_change")
  await ask(keywords.map((word) => `CREATE type::record('${word}', '${word}') SET \`${word}\` = 1`).join(";"))
  const [named] = await ask<[ReadonlyArray<{ readonly tb: string; readonly id: string }>]>(
    "SELECT VALUE { tb: record::tb(r), id: record::id(r) } FROM _svc_change"
  )
  expect(named.map(({ id, tb }) => `${tb}:${id}`).toSorted()).toEqual(
    keywords.map((word) => `${word}:${word}`).toSorted()
  )
  expect((await run("remove")).fault).toBeUndefined()
})

test("removing from a database that was never set up is no fault, and installing on one without tables says so", async () => {
  const { run } = await database("RETURN 1")
  expect((await run("remove")).fault).toBeUndefined()
  expect((await run("install", { url: receiverUrl() })).out).toContain("no table")
})

test("D22 a command on a database that does not exist is a fault that names STORE_DB, and --create lets the installer create it", async () => {
  const { run } = await database("")
  for (const command of ["install", "remove", "print"] as const)
    expect((await run(command)).fault).toMatch(/no database .* in the namespace n: correct STORE_DB/)
  expect((await run("install", { create: true })).out).toContain("no table")
  expect((await run("remove")).fault).toBeUndefined()
})

test("commands that meet each other's transactions all carry theirs out", async () => {
  const { ask, run } = await database()
  const env = { STORE_SERVICE_PASS: "p" }
  const all = await Promise.all([
    ...Array.from({ length: 4 }, () => run("install", { mode: "changes" })),
    ...Array.from({ length: 3 }, () => run("install", { leastPrivilege: true }, env)),
    run("remove")
  ])
  expect(all.map(({ fault }) => fault)).toEqual(all.map(() => undefined))
  expect((await run("install", { mode: "changes" })).fault).toBeUndefined()
  expect(JSON.stringify(await ask("INFO FOR TABLE item"))).toContain("svc_change")
})

test("D15 no secret is printed unless it is asked for, and none when it is installed", async () => {
  const { run } = await database()
  const plain = await run("print")
  expect([plain.out.includes(secret), plain.out.includes(`Bearer ${secretPlaceholder("ssp")}`)]).toEqual([false, true])
  expect((await run("print", { withSecret: true })).out).toContain(`"Bearer ${secret}"`)
  expect((await run("install", { url: receiverUrl() })).out).not.toContain(secret)
})

test("the text says what a refused and a slow event do to a write, and which answer is given when", async () => {
  const { run } = await database()
  const [sync, async, scheduler] = [
    await run("print"),
    await run("print", { mode: "async", openToRecordUsers: true }),
    await run("print", {}, { SCHEDULER_URL: "http://s:9667" })
  ]
  for (const words of [
    "rolls its whole transaction back",
    "503 SSP_NOT_READY",
    "503 OVERLOADED",
    "STORE_FAILED",
    "413",
    "401",
    "keeps the transaction open",
    "--allow-net",
    "http://127.0.0.1:8667"
  ])
    expect(sync.out).toContain(words)
  for (const words of ["writes never wait", "tried again 10 times", "overtake"]) expect(async.out).toContain(words)
  for (const words of ["http://s:9667", "SCHEDULER_CLONING", "$svc_headers VALUE {}"])
    expect(scheduler.out).toContain(words)
})

test("what cannot work is refused before anything is defined, naming what to change", async () => {
  const { ask, run } = await database()
  const refused: ReadonlyArray<
    readonly [Partial<DatabaseSetup.SetupOptions>, { readonly [name: string]: string }, RegExp]
  > = [
    [{ tables: ["itme"] }, {}, /itme.*did you mean item/],
    [{ tables: ["_svc_query"] }, {}, /_svc_query.*never fed back/],
    [{}, { LISTEN_ADDR: "127.0.0.1:0" }, /--url/]
  ]
  for (const [options, env, words] of refused) expect((await run("install", options, env)).fault).toMatch(words)
  expect(JSON.stringify(await ask("INFO FOR DB; INFO FOR TABLE item"))).not.toMatch(/svc_/)
})

test("the row of a registration that is written while somebody registers, unregisters or deletes it fails none of them", async () => {
  const { ask, name, run } = await database()
  await run("install", { url: receiverUrl() })
  const [caller, service] = [await rootClient(server, "n", name), await rootClient(server, "n", name)]
  meanwhile = (path, body) =>
    body.includes('"deleted":true')
      ? Promise.resolve()
      : path === "/view/register"
        ? service.query(
            "BEGIN; UPSERT _svc_query:mine MERGE { view: 'incantation:mine', surql: 's', clientId: 'c', ttl: 1h, params: '{}', format: 'flat', lastActiveAt: time::now() } RETURN NONE; UPDATE _svc_query:mine SET owner = 'me', assignment = 1; COMMIT"
          )
        : path === "/view/unregister"
          ? service.query("UPDATE _svc_query:mine SET owner = NONE; DELETE _svc_query:mine")
          : Promise.resolve()
  try {
    for (const _again of [1, 2])
      await caller.query("fn::svc_register('incantation:mine', 'SELECT * FROM item', {}, 1h, 'c')")
    expect(await ask("SELECT VALUE owner FROM _svc_query")).toEqual([["me"]])
    await caller.query("fn::svc_unregister('incantation:mine', 'c')")
    expect(await ask("SELECT VALUE owner FROM _svc_query")).toEqual([[]])
    await caller.query("fn::svc_register('incantation:mine', 'SELECT * FROM item', {}, 1h, 'c')")
    await caller.query("DELETE _svc_query:mine")
    expect(await ask("SELECT VALUE owner FROM _svc_query")).toEqual([[]])
  } finally {
    meanwhile = () => Promise.resolve()
    await Promise.all([caller.close(), service.close()])
  }
})
