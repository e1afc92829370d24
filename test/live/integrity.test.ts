/**
 * Setup, feed, compare and repair as an operator meets them: the door as processes, beside a real engine behind a real
 * socket (D41, D21).
 *
 * One story, because each step is only worth something when the one before it worked.
 */
import { execFile } from "node:child_process"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { expect, test } from "vitest"
import { bodyOf, client } from "../../kit/checks/http.ts"
import { taken } from "../../kit/data/changeTable.ts"
import { secret, until } from "../../kit/processes/Door.ts"
import { RpcServer } from "../../kit/processes/surreal/RpcServer.ts"
import { workshop } from "../../kit/processes/workshop.ts"
import { root } from "../../kit/rules/source.ts"
import * as Feed from "../../src/core/surreal/surrealFeed.ts"

const schema =
  "DEFINE TABLE item; DEFINE TABLE note; FOR $i IN 0..300 { CREATE type::record('item', $i) SET n = $i, at = time::now(), boss = item:1 }; CREATE note:`a b` SET text = 'x'"

interface Row {
  readonly id: { readonly id: readonly [string, number, number] }
  readonly hash: string
}

/** What the command prints on standard output: SurrealQL alone, for what it logs goes elsewhere. */
const printed = async (env: { readonly [name: string]: string }): Promise<string> => {
  const command = [join(root, "dist/ssp.js"), "--print-database-setup"]
  const { stderr, stdout } = await promisify(execFile)(process.execPath, command, { cwd: tmpdir(), env })
  expect(stderr).toContain("connected to the database")
  return stdout
}

/** The service's own user may tell why a call cannot be carried out, and take that away again. */
const refusedThenServed = async (server: RpcServer): Promise<void> => {
  const ask = <A>(query: string): Promise<A> => server.ask<A>("n", "d", query)
  for (const [query, refusals] of [
    ["SELEC", 1],
    ["SELECT * FROM item", 0]
  ] as const) {
    await ask(`fn::svc_register('refused', '${query}', NONE, 1h, 'me')`)
    await taken(server)
    expect((await ask<readonly [ReadonlyArray<unknown>]>("SELECT * FROM _svc_refusal"))[0]).toHaveLength(refusals)
  }
}

test("D41 D21 the feed is installed, a change behind its back is named and repaired, the hashes are in the database, no secret is printed, and the service runs as the user of --least-privilege", async ({
  onTestFinished
}) => {
  const use = workshop(onTestFinished)
  const server = await RpcServer.start({ capabilities: { network_targets: true } })
  onTestFinished(() => server.kill())
  const ask = <A>(query: string): Promise<A> => server.ask<A>("n", "d", query)
  await ask(schema)
  const owner = {
    STORE_ADDR: `127.0.0.1:${server.port}`,
    STORE_NS: "n",
    STORE_DB: "d",
    STORE_USER: "root",
    STORE_PASS: "root",
    STORE_SERVICE_PASS: "not the root's",
    SVC_INTEGRITY_QUIET_SECS: "1",
    // No look within this test: one that finds tables without their event compares them.
    SVC_SCHEMA_INTERVAL_MS: "3600000"
  }
  /** A process of its own, as few as there can be: each takes as long as all else here. */
  const command = async (...args: ReadonlyArray<string>) => {
    const ran = await use.run({ env: owner }, ...args)
    for (const hidden of [secret, owner.STORE_SERVICE_PASS]) expect(ran.logs).not.toContain(hidden)
    return { code: ran.exit?.code, text: ran.logs }
  }
  expect(await command("--install-database-setup", "--least-privilege")).toEqual({
    code: 0,
    text: expect.stringContaining("STORE_USER=svc_sidecar")
  })
  const door = await use.start({
    env: { ...owner, STORE_USER: "svc_sidecar", STORE_PASS: owner.STORE_SERVICE_PASS, STORE_SERVICE_PASS: undefined }
  })
  const { get, post } = client(door.url, secret)
  const compare = async () => bodyOf(await get("/integrity/compare"))

  await ask(await printed(owner))
  const installed = await command("--install-database-setup", "--url", door.url)
  expect(installed, installed.text).toEqual({ code: 0, text: expect.stringContaining("on 2 tables (item, note)") })
  await ask(
    "CREATE item:new SET n = 1.0, at = time::now(); UPDATE item:5 SET n = -5; DELETE item:6; UPDATE note:`a b` SET boss = item:5"
  )
  await taken(server)
  expect(await compare()).toEqual({ tables: ["item", "note"], compared: 301, different: 0, differences: [] })

  // Twice: a registration that is written while somebody deletes it would fail one of the two now and then.
  for (const key of ["first", "second"]) {
    await ask(`fn::svc_register('incantation:${key}', 'SELECT * FROM item WHERE n > 290', NONE, 1h, 'me')`)
    await until(
      "the edges are there",
      async () =>
        (await ask<readonly [ReadonlyArray<unknown>]>(`SELECT * FROM _svc_list_ref WHERE in = _svc_query:${key}`))[0]
          .length === 9
    )
    await ask(`DELETE _svc_query:${key}`)
    await until("the view is gone", async () => (await get(`/view/${key}`)).status === 404)
    expect(await ask("SELECT * FROM _svc_query; SELECT * FROM _svc_list_ref")).toEqual([[], []])
  }
  await refusedThenServed(server)

  // Without the compare that the removal asks a running reader for: what is written next must be found by the check.
  await ask(
    Feed.removal(["item", "note"])
      .filter((statement) => statement.startsWith("REMOVE "))
      .join("; ")
  )
  await ask("UPDATE item:7 SET n = '7'; DELETE item:8; CREATE note:late")
  const differing = await command("--check-integrity", "--url", door.url)
  expect(differing.code).toBe(1)
  expect(differing.text.match(/^\S+ (?:is|differs).*$/gm)).toEqual([
    "item:7 differs (version 1 here)",
    "item:8 is here (version 1) and not in the database",
    "note:late is in the database and not here"
  ])
  const { json } = await post("/reconcile")
  expect([...(json as { repaired: ReadonlyArray<string> }).repaired].sort()).toEqual(["item:7", "item:8", "note:late"])
  expect(await compare()).toMatchObject({ different: 0 })

  const root = bodyOf(await get("/integrity?table=item"))
  const rows = await until("the hashes are written", async () => {
    const [found] = await ask<readonly [ReadonlyArray<Row>]>(
      "SELECT id, hash FROM _svc_integrity WHERE record::id(id)[0] = 'item' AND hash != string::repeat('0', 64)"
    )
    return found.some(({ hash }) => hash === root["hash"]) ? found : undefined
  })
  const children = (root["children"] as ReadonlyArray<{ readonly index: number; readonly hash: string }>).map(
    ({ hash, index }) => `1/${index} ${hash}`
  )
  expect(
    rows.map(
      ({
        hash,
        id: {
          id: [, level, index]
        }
      }) => `${level}/${index} ${hash}`
    )
  ).toEqual([`0/0 ${String(root["hash"])}`, ...children])
})
