/**
 * Our schema on the real engine: defined twice, and tried by a record user who means harm.
 *
 * Only the engine can say whether a permission holds, so nothing here looks at the text.
 */
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest"
import { RpcServer } from "../../../kit/processes/surreal/RpcServer.ts"
import { newClient } from "../../../kit/processes/surreal/sdk.ts"
import * as Schema from "../../../src/core/surreal/surrealSchema.ts"

let server: RpcServer
const root = <A>(query: string): Promise<A> => server.ask<A>("n", "d", query)

const accounts = `
  DEFINE TABLE user PERMISSIONS FOR select, update WHERE id = $auth.id;
  CREATE user:ann SET name = 'ann', clientId = 'user:bob'; CREATE user:bob SET name = 'bob'; CREATE item:1; CREATE item:2;
  DEFINE ACCESS account ON DATABASE TYPE RECORD SIGNIN (SELECT * FROM user WHERE name = $name) AUTHENTICATE { RETURN $auth.id };
`
const row = (key: string, clientId: string): string =>
  `CREATE _svc_query:${key} SET view = 'incantation:${key}', surql = 'SELECT * FROM item', clientId = '${clientId}', ttl = 1h, params = '{}', format = 'flat', lastActiveAt = time::now();
   CREATE _svc_list_ref SET in = _svc_query:${key}, out = item:1, version = 1, clientId = '${clientId}';`

beforeAll(async () => {
  server = await RpcServer.start()
  await root(
    accounts +
      Schema.script(Schema.sharedDefinitions) +
      row("a", "user:ann") +
      row("b", "user:bob") +
      row("none", "NONE") +
      "CREATE _svc_integrity:['item', 0, 0] SET hash = 'x', count = 2"
  )
})
afterAll(() => server.kill())

const signedIn = async (name: string) => {
  const db = newClient()
  onTestFinished(async () => void (await db.close()))
  await db.connect(server.url, { namespace: "n", database: "d" })
  await db.signin({ namespace: "n", database: "d", access: "account", variables: { name } })
  return async <A>(query: string): Promise<A> => (await db.query<[A]>(query))[0]
}

test("D21 the schema can be defined again, and changes nothing then", async () => {
  const before = await root(
    "INFO FOR DB; INFO FOR TABLE _svc_query; INFO FOR TABLE _svc_list_ref; INFO FOR TABLE _svc_integrity"
  )
  await root(Schema.script(Schema.sharedDefinitions))
  await root(Schema.script(Schema.embeddedDefinitions))
  await root("REMOVE TABLE _svc_record; REMOVE TABLE _svc_state")
  expect(
    await root("INFO FOR DB; INFO FOR TABLE _svc_query; INFO FOR TABLE _svc_list_ref; INFO FOR TABLE _svc_integrity")
  ).toEqual(before)
})

test("D21 the printed schema is the same schema", async () => {
  await server.ask("n", "printed", Schema.printed(Schema.sharedDefinitions))
  const [printed] = await server.ask<[{ readonly tables: object }]>("n", "printed", "INFO FOR DB")
  const [scripted] = await root<[{ readonly tables: Readonly<Record<string, string>> }]>("INFO FOR DB")
  const { item: _item, user: _user, ...own } = scripted.tables
  expect(printed.tables).toEqual(own)
  expect(Object.keys(own).sort()).toEqual([
    "_svc_integrity",
    "_svc_job",
    "_svc_list_ref",
    "_svc_query",
    "_svc_reader",
    "_svc_refusal"
  ])
})

test("D21 a record user reads the registrations and edges of its own client, and no others", async () => {
  const ann = await signedIn("ann")
  expect(await ann("SELECT VALUE record::id(id) FROM _svc_query")).toEqual(["a"])
  expect(await ann("SELECT VALUE record::id(in) FROM _svc_list_ref")).toEqual(["a"])
  expect(await ann("SELECT VALUE ->_svc_list_ref.version FROM _svc_query:b")).toEqual([])
  for (const step of [
    "item:1<-(SELECT * FROM _svc_list_ref)",
    "item:1<-_svc_list_ref",
    "item:1<-_svc_list_ref.*",
    "item:1<-?",
    "item:1<->_svc_list_ref",
    "_svc_query:b->(SELECT * FROM _svc_list_ref)"
  ]) {
    expect(await ann(`RETURN ${step}`), step).toEqual([])
  }
  expect(await ann("SELECT * FROM _svc_integrity")).toEqual([])
  const bob = await signedIn("bob")
  expect(await bob("SELECT VALUE record::id(in) FROM _svc_list_ref")).toEqual(["b"])
})

test("D21 a record user writes nothing of ours, also not its own rows", async () => {
  const ann = await signedIn("ann")
  const before = await root("SELECT * FROM _svc_query, _svc_list_ref, _svc_integrity")
  const attempts = [
    "UPDATE _svc_query:a SET surql = 'x'",
    "UPDATE _svc_list_ref SET version = 9",
    "DELETE _svc_query:a",
    "DELETE _svc_list_ref",
    "DELETE _svc_integrity",
    "CREATE _svc_query:new SET view = 'v', surql = 's', clientId = 'user:ann', ttl = 1h, params = '{}', format = 'flat', lastActiveAt = time::now()",
    "CREATE _svc_list_ref SET in = _svc_query:a, out = item:2, version = 1, clientId = 'user:ann'",
    "RELATE _svc_query:a->_svc_list_ref->item:2 SET version = 1, clientId = 'user:ann'",
    "UPSERT _svc_integrity:['item', 0, 0] SET hash = 'y', count = 0",
    "INSERT RELATION INTO _svc_list_ref { in: _svc_query:a, out: item:2, version: 1, clientId: 'user:ann' }",
    "DEFINE FUNCTION OVERWRITE fn::svc_owns($clientId: string) { RETURN true }",
    "REMOVE TABLE _svc_query"
  ]
  for (const attempt of attempts) await ann(attempt).catch(() => undefined)
  expect(await root("SELECT * FROM _svc_query, _svc_list_ref, _svc_integrity")).toEqual(before)
})

test("D21 a user that only claims in its own record to be a client is none, and an anonymous user is none either", async () => {
  const ann = await signedIn("ann")
  expect(await ann("RETURN fn::svc_owns('user:bob')")).toBe(false)
  expect(await ann("RETURN fn::svc_owns('user:ann')")).toBe(true)
  expect(await root("RETURN fn::svc_owns('NONE')")).toEqual([false])
})

test("D21 edges of the former type, which a graph step shows to every user, are made normal ones and written anew", async () => {
  const ask = <A>(query: string): Promise<A> => server.ask<A>("n", "former", query)
  await ask(`DEFINE TABLE _svc_query; DEFINE TABLE _svc_list_ref TYPE RELATION FROM _svc_query SCHEMAFULL; DEFINE FIELD version ON _svc_list_ref TYPE int;
    CREATE item:1; CREATE _svc_query:a; RELATE _svc_query:a->_svc_list_ref:['a', item:1]->item:1 SET version = 7`)
  expect(await ask("RETURN count(item:1<-(SELECT * FROM _svc_list_ref))")).toEqual([1])
  for (const _again of [1, 2]) await ask(Schema.script(Schema.sharedDefinitions))
  expect(
    await ask("SELECT * FROM _svc_list_ref; RETURN string::contains((INFO FOR DB).tables._svc_list_ref, 'TYPE NORMAL')")
  ).toEqual([[], true])
  await ask("CREATE _svc_list_ref:['a', item:1] SET in = _svc_query:a, out = item:1, version = 7, clientId = 'c'")
  await ask(Schema.script(Schema.sharedDefinitions))
  expect(
    await ask("SELECT VALUE version FROM _svc_list_ref; RETURN item:1<-(SELECT * FROM _svc_list_ref); RETURN item:1<-?")
  ).toEqual([[7], [], []])
})

test("D21 edges follow their registration away, and stay out of the deletion of a record", async () => {
  await root(row("gone", "user:x") + "DELETE _svc_query:gone")
  expect(await root("SELECT VALUE id FROM _svc_list_ref WHERE clientId = 'user:x'")).toEqual([[]])
  await root(
    "CREATE item:away; CREATE _svc_list_ref SET in = _svc_query:a, out = item:away, version = 1, clientId = 'user:y'; DELETE item:away"
  )
  expect(
    await root(
      "SELECT VALUE version FROM _svc_list_ref WHERE clientId = 'user:y'; DELETE _svc_list_ref WHERE clientId = 'user:y'"
    )
  ).toEqual([[1], []])
})
