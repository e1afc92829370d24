/**
 * The feed on the real engine, posting to a server of ours: what arrives is what was written, and nothing else arrives.
 *
 * What is received goes through the reading of `/ingest` itself and is compared with the record the database has, so a
 * type that JSON loses on the way shows.
 */

import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { Either } from "effect"
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest"
import { runs, seeded } from "../../../kit/data/random.ts"
import { RpcServer } from "../../../kit/processes/surreal/RpcServer.ts"
import { newClient } from "../../../kit/processes/surreal/sdk.ts"
import { decodeChange } from "../../../src/core/record/change.ts"
import * as CborReader from "../../../src/core/surql/values/cbor/cborReader.ts"
import * as CborWriter from "../../../src/core/surql/values/cbor/cborWriter.ts"
import { identical } from "../../../src/core/surql/values/order.ts"
import * as Ids from "../../../src/core/surql/values/recordId.ts"
import { render } from "../../../src/core/surql/values/text.ts"
import type { Obj, Value } from "../../../src/core/surql/values/value.ts"
import * as Feed from "../../../src/core/surreal/surrealFeed.ts"
import * as Schema from "../../../src/core/surreal/surrealSchema.ts"
import { viewKey } from "../../../src/core/view/viewId.ts"

interface Post {
  readonly path: string
  readonly authorization: string | undefined
  readonly body: { readonly [key: string]: unknown }
}

const posts: Array<Post> = []
let status = 200
let http: Server
const codecs = {
  cbor: () => ({
    encode: <T>(data: T) => CborWriter.encode(data as Value),
    decode: <T>(bytes: Uint8Array) => CborReader.decode(bytes) as T
  })
}
const db = newClient({ codecs })
let server: RpcServer
const tables = ["item", "odd `name'", "likes", "_svc_query"]

beforeAll(async () => {
  http = createServer((request, response) => {
    let text = ""
    request.on("data", (chunk: Buffer) => (text += chunk.toString("utf8")))
    request.on("end", () => {
      posts.push({
        path: request.url ?? "",
        authorization: request.headers.authorization,
        body: JSON.parse(text) as Post["body"]
      })
      response.writeHead(status, { "content-type": "application/json" }).end("{}")
    })
  })
  await new Promise<void>((listening) => http.listen(0, "127.0.0.1", listening))
  server = await RpcServer.start({ capabilities: { network_targets: true } })
  await db.connect(server.url, {
    namespace: "n",
    database: "d",
    authentication: { username: "root", password: "root" }
  })
  await db.query(`${Schema.script(Schema.sharedDefinitions)}; DEFINE TABLE item PERMISSIONS FULL; DEFINE TABLE \`odd \\\`name'\`; DEFINE TABLE likes TYPE RELATION;
    DEFINE TABLE user PERMISSIONS FOR select WHERE id = $auth.id; CREATE user:ann SET name = 'ann'; CREATE user:bob SET name = 'bob';
    DEFINE ACCESS account ON DATABASE TYPE RECORD SIGNIN (SELECT * FROM user WHERE name = $name)`)
  for (const _again of [1, 2])
    await db.query(
      Schema.script(
        Feed.feedDefinitions({
          url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
          secret: "s3cr'et",
          tables,
          mode: "sync",
          openToRecordUsers: true
        })
      )
    )
})
afterAll(async () => {
  await db.close()
  await server.kill()
  http.close()
})
beforeEach(() => {
  posts.length = 0
  status = 200
})

const changes = () =>
  posts
    .filter(({ path }) => path === "/ingest")
    .map(({ body }) =>
      Either.getOrThrowWith(decodeChange(body), (refused) => new Error(`${refused.message}: ${JSON.stringify(body)}`))
    )
const seen = (): ReadonlyArray<string> => changes().map(({ id, op }) => `${op} ${id.text}`)

/** A record user's own connection, answering the last statement. */
const as = async (name: string) => {
  const session = newClient({ codecs })
  onTestFinished(async () => void (await session.close()))
  await session.connect(server.url, { namespace: "n", database: "d" })
  await session.signin({ namespace: "n", database: "d", access: "account", variables: { name } })
  return async (query: string): Promise<Value> => (await session.query<Array<Value>>(query)).at(-1)
}

test("D3 every kind of write arrives, in order, with the whole record; deletes without", async () => {
  await db.query(
    "CREATE item:1 SET v = 1; UPDATE item:1 SET v = 2; UPSERT item:2 SET v = 1; UPSERT item:2 SET v = 2; UPDATE item SET w = 1; RELATE item:1->likes:x->item:2 SET n = 1; INSERT INTO item [{ id: 3 }, { id: 4 }]; UPDATE item:3 SET id = item:3; DELETE item:1"
  )
  expect(seen()).toEqual([
    "CREATE item:1",
    "UPDATE item:1",
    "CREATE item:2",
    "UPDATE item:2",
    "UPDATE item:1",
    "UPDATE item:2",
    "CREATE likes:x",
    "CREATE item:3",
    "CREATE item:4",
    "DELETE likes:x",
    "DELETE item:1"
  ])
  expect(changes()[5]?.doc).toEqual({ id: Ids.make("item", 2), v: 2, w: 1 })
  expect(render([changes()[6]!.doc])).toBe("[{ id: likes:x, in: item:1, n: 1, out: item:2 }]")
  expect(posts[0]?.authorization).toBe("Bearer s3cr'et")
})

test("D1 links, datetimes, durations, decimals, uuids, sets, geometries and whole floats arrive as what they were", async () => {
  await db.query(`CREATE item:types SET at = d'2020-01-01T00:00:00.123456789Z', price = 1.50dec, long = 1h30m, link = item:\`x y\`, u = u'018f4e2a-0000-7000-8000-000000000000', one = 1.0, half = 0.5, int = 1, n = NULL,
    text = '2020-01-01', idText = 'item:1', nested = { at: d'2021-01-01T00:00:00Z', list: [item:1, item:['a', 1]], deep: [{ price: 2dec }] }, s = <set>[3, 1], point = (1, 2.5), empty = {}, none = [], b = true`)
  const [change] = changes()
  const [[row]] = await db.query<[ReadonlyArray<Obj>]>("SELECT * FROM item:types")
  expect(identical(change?.doc, row), `${render([change?.doc])}\n${render([row])}`).toBe(true)
})

test("D3 ids and tables with quotes, backticks, unicode, numbers, arrays, objects and uuids arrive exactly", async () => {
  const keys = [
    1,
    -1,
    "'",
    "`",
    '"',
    "\\",
    "a b",
    "ä😀",
    "123",
    "⟨⟩",
    "'; REMOVE TABLE item; --",
    ["x", 1],
    { a: 1 },
    "\n"
  ]
  for (const key of keys) {
    for (const table of ["item", "odd `name'"])
      await db.query("UPSERT $id SET v = $v", { id: Ids.make(table, key), v: "${x}'\"\\\n😀" })
  }
  expect(changes().map(({ id }) => id.text)).toEqual(
    keys.flatMap((key) => [Ids.make("item", key).text, Ids.make("odd `name'", key).text])
  )
  expect(new Set(changes().map(({ doc }) => doc["v"]))).toEqual(new Set(["${x}'\"\\\n😀"]))
})

test("our own rows never come back: registrations, edges, hashes, calls", async () => {
  await db.query(
    "CREATE _svc_query:own SET view = 'incantation:own', surql = 's', clientId = 'c', ttl = 1h, params = '{}', format = 'flat', lastActiveAt = time::now(), owner = 'me'; CREATE _svc_list_ref SET in = _svc_query:own, out = item:1, version = 1, clientId = 'c'; CREATE _svc_integrity:1 SET hash = 'x', count = 1; UPDATE _svc_query:own SET surql = 't'"
  )
  expect(posts).toEqual([])
  await db.query("UPDATE _svc_query:own SET owner = NONE; DELETE _svc_query:own; DELETE _svc_integrity")
  expect(posts).toEqual([])
})

test("edges of the user go with their record and are told, ours are not touched", async () => {
  await db.query(
    "CREATE _svc_query:v SET view = 'incantation:v', surql = 's', clientId = 'c', ttl = 1h, params = '{}', format = 'flat', lastActiveAt = time::now(), owner = 'me'; CREATE item:shown; CREATE _svc_list_ref SET in = _svc_query:v, out = item:shown, version = 1, clientId = 'c'; RELATE item:shown->likes:l->item:shown"
  )
  posts.length = 0
  await db.query("DELETE item:shown")
  expect([...seen()].sort()).toEqual(["DELETE item:shown", "DELETE likes:l"])
  await db.query("DELETE _svc_list_ref")
})

test("a registration that somebody deletes takes its view away", async () => {
  await db.query(
    "CREATE _svc_query:theirs SET view = 'incantation:theirs', surql = 's', clientId = 'c', ttl = 1h, params = '{}', format = 'flat', lastActiveAt = time::now(), owner = 'me'; DELETE _svc_query:theirs"
  )
  expect(posts.map(({ body, path }) => [path, body])).toEqual([
    ["/view/unregister", { id: "incantation:theirs", deleted: true }]
  ])
})

test("a synchronous event that is refused fails the write and leaves nothing; a write that is rolled back has been announced", async () => {
  status = 503
  await expect(db.query("CREATE item:refused")).rejects.toThrow("503")
  status = 200
  expect(await db.query("SELECT * FROM item:refused")).toEqual([[]])
  posts.length = 0
  await db.query("BEGIN; CREATE item:phantom; THROW 'no'; COMMIT").catch(() => undefined)
  expect([seen(), await db.query("SELECT * FROM item:phantom")]).toEqual([["CREATE item:phantom"], [[]]])
})

test("D15 a record user's writes are fed with the secret, which the user cannot read", async () => {
  const ann = await as("ann")
  await ann("CREATE item:byAnn")
  expect(posts.map(({ authorization, body }) => [authorization, body["id"]])).toEqual([
    ["Bearer s3cr'et", "item:byAnn"]
  ])
  for (const attempt of [
    "RETURN $svc_headers",
    "RETURN $svc_url",
    "INFO FOR DB",
    "INFO FOR TABLE item",
    "SELECT * FROM _svc_call",
    "RETURN (SELECT $svc_headers AS h FROM item)"
  ]) {
    expect(
      String(
        await ann(attempt).then(
          (answer) => render([answer]),
          (error: Error) => error.message
        )
      ),
      attempt
    ).not.toContain("s3cr")
  }
})

test("a record user registers, refreshes and unregisters a view of its own", async () => {
  const ann = await as("ann")
  expect(
    render([await ann("fn::svc_register('incantation:mine', 'SELECT * FROM item WHERE v > $v', { v: 2 }, 1h30m)")])
  ).toBe("[_svc_query:mine]")
  expect(posts.map(({ body, path }) => [path, body])).toEqual([
    [
      "/view/register",
      {
        id: "incantation:mine",
        surql: "SELECT * FROM item WHERE v > $v",
        clientId: "user:ann",
        ttl: "1h30m",
        params: { v: 2 }
      }
    ]
  ])
  await db.query(
    "CREATE _svc_query:mine SET view = 'incantation:mine', surql = 's', clientId = 'user:ann', ttl = 1h, params = '{}', format = 'flat', lastActiveAt = d'2020-01-01T00:00:00Z', owner = 'me'"
  )
  await ann("fn::svc_refresh('incantation:mine')")
  expect(
    await db.query(
      "RETURN (SELECT VALUE lastActiveAt FROM _svc_query:mine)[0] > time::now() - 1m; SELECT * FROM _svc_call"
    )
  ).toEqual([true, []])
  posts.length = 0
  await ann("fn::svc_unregister('incantation:mine')")
  expect(posts.map(({ body, path }) => [path, body])).toEqual([["/view/unregister", { id: "incantation:mine" }]])
})

test("a record user has no way to another client's view, nor to another client's name", async () => {
  await db.query(
    "CREATE _svc_query:anns SET view = 'incantation:anns', surql = 's', clientId = 'user:ann', ttl = 1h, params = '{}', format = 'flat', lastActiveAt = time::now(), owner = 'me'"
  )
  const bob = await as("bob")
  const attempts = [
    ...[
      "_svc_query:⟨anns⟩",
      "incantation:⟨anns⟩",
      "_svc_query:`anns`",
      "incantation:`anns`",
      "incantation:⟨anns⟩ ",
      "incantation:⟨anns⟩..",
      "incantation:`anns`.x"
    ].flatMap((id) => [
      `fn::svc_register('${id}', 'SELECT 1 FROM item', {}, 1h)`,
      `fn::svc_unregister('${id}')`,
      `fn::svc_refresh('${id}')`
    ]),
    "fn::svc_register('incantation:anns', 'SELECT 1 FROM item', {}, 1h)",
    "fn::svc_register('_svc_query:anns', 'SELECT 1 FROM item', {}, 1h)",
    "fn::svc_unregister('anns')",
    "fn::svc_refresh('anns')",
    "fn::svc_register('incantation:new', 'SELECT 1 FROM item', {}, 1h, 'user:ann')",
    "fn::svc_unregister('anns', 'user:ann')",
    "CREATE _svc_call SET op = 'unregister', view = 'anns', clientId = 'user:ann'",
    "INSERT INTO _svc_call { op: 'unregister', view: 'anns', clientId: 'user:ann' }"
  ]
  for (const attempt of attempts) await bob(attempt).catch(() => undefined)
  expect(posts).toEqual([])
  expect(await db.query("SELECT VALUE clientId FROM _svc_query:anns")).toEqual([["user:ann"]])
})

seeded(
  "D10 the database and this service read one key from every spelling of a view's id",
  "test/core/surreal/surrealFeed.test.ts",
  async (random) => {
    const pieces = [
      "incantation:",
      "_svc_query:",
      "`",
      "⟨",
      "⟩",
      "\\",
      "a",
      "b c",
      "1",
      "01",
      "😀",
      ".",
      "..",
      "[",
      "'",
      "\n",
      "ä"
    ]
    const ids = Array.from(
      { length: runs(400) },
      () =>
        (random.chance(0.8) ? pieces[random.below(2)]! : "") +
        (random.chance(0.5) ? pieces[2 + random.below(2)]! : "") +
        Array.from({ length: random.below(4) }, () => pieces[random.below(pieces.length)]!).join("") +
        (random.chance(0.6) ? pieces[2 + random.below(3)]! : "")
    )
    const answers = await db
      .query(
        ids.map((_, n) => `RETURN type::record('_svc_query', fn::svc_key($id${n}))`).join(";"),
        Object.fromEntries(ids.map((id, n) => [`id${n}`, id]))
      )
      .responses()
    const theirs = answers.map((answer) => (answer.success ? render([answer.result as Value]) : "refused"))
    const ours = ids
      .map((id) => viewKey(id))
      .map((key) => (key === undefined ? "refused" : render([Ids.make("_svc_query", key)])))
    for (const [n, id] of ids.entries()) expect(theirs[n], JSON.stringify(id)).toBe(ours[n])
    expect(ours.filter((key) => key === "refused").length).toBeGreaterThan(20)
    expect(ids.filter((id) => /:[`⟨]/.test(id) && viewKey(id) !== undefined).length).toBeGreaterThan(10)
  }
)

test("closed to record users without the flag: what was registered for them can be refreshed and unregistered, nothing registered", async () => {
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`
  await db.query(
    Schema.script(Feed.feedDefinitions({ url, secret: undefined, tables, mode: "sync", openToRecordUsers: false }))
  )
  await db.query(
    "UPSERT _svc_query:forAnn SET view = 'incantation:forAnn', surql = 's', clientId = 'user:ann', ttl = 1h, params = '{}', format = 'flat', lastActiveAt = d'2020-01-01T00:00:00Z', owner = 'me'"
  )
  const ann = await as("ann")
  for (const attempt of [
    "fn::svc_register('incantation:pin', 'SELECT * FROM user WHERE pin = 1', {}, 1h)",
    "CREATE _svc_call SET op = 'register', view = 'pin', surql = 'SELECT * FROM user WHERE pin = 1', clientId = 'user:ann', ttl = 1h"
  ]) {
    await ann(attempt).catch(() => undefined)
  }
  expect(posts).toEqual([])
  await ann("fn::svc_refresh('incantation:forAnn')")
  expect(await db.query("RETURN (SELECT VALUE lastActiveAt FROM _svc_query:forAnn)[0] > time::now() - 1m")).toEqual([
    true
  ])
  await ann("fn::svc_unregister('incantation:forAnn')")
  await db.query("fn::svc_register('incantation:sys', 'SELECT * FROM item', NONE, 1h, 'anybody')")
  expect(posts.map(({ path }) => path)).toEqual(["/view/unregister", "/view/register"])
  await db.query(
    Schema.script(Feed.feedDefinitions({ url, secret: "s3cr'et", tables, mode: "sync", openToRecordUsers: true }))
  )
})

test("a system user registers for a client it names", async () => {
  await db.query("fn::svc_register('incantation:sys', 'SELECT * FROM item', NONE, 1h, 'anybody')")
  expect(posts.map(({ body }) => body)).toEqual([
    { id: "incantation:sys", surql: "SELECT * FROM item", clientId: "anybody", ttl: "1h", params: {} }
  ])
})

test("asynchronous events are defined as such, again and again, and everything is taken away again", async () => {
  const async = Schema.script(
    Feed.feedDefinitions({
      url: "http://127.0.0.1:1",
      secret: undefined,
      tables,
      mode: "async",
      openToRecordUsers: true
    })
  )
  for (const _again of [1, 2]) await db.query(async)
  const [info] = await db.query<[{ readonly events: { readonly [name: string]: string } }]>("INFO FOR TABLE item")
  expect(Object.keys(info.events)).toEqual([Feed.eventName])
  expect(info.events[Feed.eventName]).toMatch(/ASYNC RETRY 10/)
  await db.query("CREATE item:unheard")
  expect(posts).toEqual([])
  for (const _again of [1, 2]) await db.query(Feed.removal(tables).join(";"))
  const left = await db.query<
    [{ readonly functions: object; readonly params: object; readonly tables: object }, { readonly events: object }]
  >("INFO FOR DB; INFO FOR TABLE item")
  expect([Object.keys(left[0].functions), left[0].params, left[1].events]).toEqual([["svc_owns"], {}, {}])
})
