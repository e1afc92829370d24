/**
 * Functions and parameters that a database defines, in views (D58): the answers are the database's own, and follow the
 * definitions.
 */
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { install } from "../../kit/data/changeTable.ts"
import { registration } from "../../kit/data/registration.ts"
import { removeFolder, temporaryFolder, until } from "../../kit/processes/Door.ts"
import { type NodeBeside, startBeside } from "../../kit/processes/nodeBeside.ts"
import { RpcServer } from "../../kit/processes/surreal/RpcServer.ts"

const folder = temporaryFolder()

const definitions = `
  DEFINE PARAM $vat VALUE 0.5; DEFINE PARAM $place VALUE { city: { name: 'x' }, l: [1, 2.0, 3dec] };
  DEFINE PARAM $when VALUE time::now(); DEFINE PARAM $secret VALUE 'hidden' PERMISSIONS NONE;
  DEFINE PARAM $svc_headers VALUE { Authorization: 'Bearer x' };
  DEFINE FUNCTION fn::net($x: number, $rate: option<number>) -> number { LET $f = $rate ?? $vat; IF $x < 0 { RETURN 0; }; RETURN $x * (1 + $f); };
  DEFINE FUNCTION fn::shop::Label($s: any) { IF $s = NONE { 'none' } ELSE { <string> $s + '!' } };
  DEFINE FUNCTION fn::iff($x: any) { IF $x > 3 { 'big' }; 'after' };
  DEFINE FUNCTION fn::lastlet() { LET $a = 1; }; DEFINE FUNCTION fn::empty() { };
  DEFINE FUNCTION fn::field() { n }; DEFINE FUNCTION fn::row() { $this.id }; DEFINE FUNCTION fn::parent() { $parent.id };
  DEFINE FUNCTION fn::outer() { $y };
  DEFINE FUNCTION fn::two($x: number) { fn::net($x) + fn::net($x, 1) };
  DEFINE FUNCTION fn::greater($least: int) { SELECT VALUE n FROM item WHERE n > $least ORDER BY n };
  DEFINE FUNCTION fn::link($r: record<item>) { $r.n };
  DEFINE FUNCTION fn::ints($a: array<int>, $b: option<'x' | 'y'>) { [$a, $b] };
  DEFINE FUNCTION fn::whole($a: any) -> int { $a };
  DEFINE FUNCTION fn::noargs() -> int { RETURN 3 };
  DEFINE FUNCTION fn::rec($n: int) { IF $n <= 0 { 0 } ELSE { fn::rec($n - 1) } };
  DEFINE FUNCTION fn::loop() { FOR $i IN [1] { RETURN $i } }; DEFINE FUNCTION fn::now() { time::now() };
  DEFINE FUNCTION fn::writes() { CREATE item }; DEFINE FUNCTION fn::throws() { THROW 'no' };
  DEFINE FUNCTION fn::calls() { fn::now() }; DEFINE FUNCTION fn::closed() { 1 } PERMISSIONS NONE;`

const data = `DEFINE TABLE item; CREATE item:1 SET n = 5, tags = ['a']; CREATE item:2 SET n = -2; CREATE item:3 SET n = 7.5, of = item:1; ${install("item")}`

let server: RpcServer
let node: NodeBeside

beforeAll(async () => {
  server = await RpcServer.start({ path: `surrealkv://${join(folder, "database")}` })
  await server.ask("n", "d", `${data}; ${definitions}`)
  node = await startBeside(server.port, join(folder, "node"), { SVC_SCHEMA_INTERVAL_MS: "100" })
  await node.ready()
})
afterAll(async () => {
  await node.stop()
  await server.kill()
  removeFolder(folder)
})

let views = 0
const register = async (surql: string, params = {}) => {
  const id = `view${views++}`
  return { id, ...(await node.ask("POST", "/view/register", registration(id, surql, { format: "tree", params }))) }
}
const shown = async (id: string): Promise<unknown> =>
  ((await node.ask("GET", `/view/${id}`)).json as { readonly result_data: unknown }).result_data

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

const inDatabase = async (surql: string, params = {}): Promise<unknown> =>
  plain((await server.ask<ReadonlyArray<unknown>>("n", "d", surql, params))[0])

describe("D58 as the database answers", () => {
  for (const [query, params] of [
    ["SELECT id, fn::net(n) AS net, fn::net(n, 1) AS twice, fn::net(n, NONE) AS none FROM item"],
    ["SELECT id, $vat AS v, $place.city.name AS c, $place.l AS l FROM item"],
    ["SELECT VALUE $nothing FROM item"],
    ["SELECT VALUE $vat FROM item", { vat: 7 }],
    ["SELECT VALUE fn::net(n) FROM item", { vat: 7, x: 3 }],
    ["SELECT VALUE { LET $vat = 9; RETURN fn::net(n) } FROM item"],
    ["SELECT fn::net(n), fn::noargs(), fn::noargs() + 1, [fn::noargs()] FROM item"],
    ["SELECT VALUE fn::shop::Label(tags[0]) FROM item"],
    ["SELECT VALUE [fn::iff(n), fn::lastlet(), fn::empty(), fn::two(n)] FROM item"],
    ["SELECT fn::field() AS f, fn::row() AS r, (SELECT VALUE fn::parent() FROM item:1) AS p FROM item"],
    ["SELECT VALUE { LET $y = n; RETURN fn::outer() } FROM item"],
    ["SELECT id, fn::greater(1) AS g FROM item"],
    ["SELECT VALUE fn::link(of) FROM item WHERE of != NONE"],
    ["SELECT VALUE fn::ints([1, 2.0], 'x') FROM item"],
    ["SELECT VALUE [n].map(|$v| fn::net($v)) FROM item"],
    ["SELECT id, n FROM item WHERE fn::net(n) > 6 ORDER BY n LIMIT fn::noargs() - 2"],
    ["SELECT VALUE id FROM type::record('item', fn::noargs())"],
    ["SELECT fn::net(n) AS k, count() AS c FROM item GROUP BY k"],
    ["SELECT math::sum(fn::net(n)) AS s FROM item GROUP ALL"]
  ] as ReadonlyArray<readonly [string, object?]>)
    test(`${query} ${params === undefined ? "" : JSON.stringify(params)}`, async () => {
      const { id, json, status } = await register(query, params)
      expect({ status, json }).toMatchObject({ status: 200 })
      expect(await shown(id)).toEqual(await inDatabase(query, params))
    })

  for (const call of ["fn::link('item:1')", "fn::ints(['a'])", "fn::ints([1], 'z')", "fn::whole('a')", "fn::net('a')"])
    test(`${call} fails with the database's words`, async () => {
      const query = `SELECT VALUE ${call} FROM item`
      const reason = await inDatabase(query).then(String, (error: Error) => error.message)
      const { json } = await register(query)
      const errors = (json as { readonly errors: ReadonlyArray<{ readonly reason: string }> }).errors
      expect(new Set(errors.map((error) => error.reason))).toEqual(new Set([reason]))
    })
})

test("D58 what cannot be used is refused, by name and reason", async () => {
  const refusals: ReadonlyArray<readonly [string, RegExp]> = [
    ["fn::nope(1)", /`fn::nope` does not exist/],
    ["fn::NET(1)", /`fn::NET` does not exist/],
    ["fn::net()", /Incorrect arguments for function fn::net\(\). The function expects 1 to 2 arguments\./],
    ["fn::noargs(1)", /The function expects 0 arguments\./],
    ["fn::rec(3)", /`fn::rec` cannot be used: it calls itself/],
    ["fn::loop()", /`fn::loop` cannot be used: FOR is not supported/],
    ["fn::writes()", /`fn::writes` cannot be used: CREATE is not allowed/],
    ["fn::throws()", /`fn::throws` cannot be used: THROW is not supported/],
    ["fn::now()", /time::now\(\) in fn::now/],
    ["fn::calls()", /time::now\(\) in fn::calls/],
    ["fn::closed()", /`fn::closed` cannot be used: PERMISSIONS/],
    ["$secret", /`\$secret` cannot be used: PERMISSIONS/]
  ]
  for (const [call, reason] of refusals) {
    const { json, status } = await register(`SELECT VALUE ${call} FROM item`)
    expect([call, status, (json as { readonly message: string }).message]).toEqual([
      call,
      400,
      expect.stringMatching(reason)
    ])
  }
  const own = await register("SELECT VALUE $svc_headers FROM item")
  expect(JSON.stringify(await shown(own.id))).toBe("[null,null,null]")
})

test("D58 views are planned anew when a definition changes, goes or comes back", async () => {
  await server.ask(
    "n",
    "d",
    "DEFINE PARAM $step VALUE 1; DEFINE FUNCTION fn::inner($x: any) { $x }; DEFINE FUNCTION fn::plus($x: any) { fn::inner($x) + $step }"
  )
  const query = "SELECT VALUE fn::plus(n) FROM item WHERE n = 5"
  const other = await register("SELECT VALUE n FROM item")
  const { id } = await until("the new function is known", async () => {
    const tried = await register(query)
    return tried.status === 200 ? tried : undefined
  })
  const shows = (value: unknown): Promise<unknown> =>
    until(`shows ${JSON.stringify(value)}`, async () => JSON.stringify(await shown(id)) === JSON.stringify(value))
  await shows([6])
  const { content_generation: generation } = (await node.ask("GET", `/view/${other.id}`)).json as {
    readonly content_generation: number
  }
  await server.ask("n", "d", "DEFINE PARAM OVERWRITE $step VALUE 10")
  await shows([15])
  await server.ask("n", "d", "DEFINE FUNCTION OVERWRITE fn::inner($x: any) { $x * 2 }")
  await shows([20])
  await server.ask("n", "d", "REMOVE FUNCTION fn::inner")
  await until("not served", async () => (await node.ask("GET", `/view/${id}`)).status === 404)
  await server.ask("n", "d", "DEFINE FUNCTION fn::inner($x: any) { $x }")
  await shows([15])
  const untouched = (await node.ask("GET", `/view/${other.id}`)).json
  expect(untouched).toMatchObject({ content_generation: generation })
  await server.ask("n", "d", "UPDATE item:1 SET n = 5, more = 1; CREATE item:9 SET n = 5")
  await shows([15, 15])
  await server.ask("n", "d", "DELETE item:9")
  await shows([15])
})
