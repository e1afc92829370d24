/**
 * From a write in SurrealQL to the edges in `_svc_list_ref`, on the real engine behind a real socket: its events post
 * to a whole node, whose edges go back to it, and at rest they are what the query run on the database says (D21, D3,
 * D4).
 *
 * What is compared is read by another client of the database, with statements of its own.
 */

import { join } from "node:path"
import { Effect, Logger, LogLevel } from "effect"
import type { Surreal } from "surrealdb"
import { afterAll, expect, onTestFinished, test } from "vitest"
import * as Blog from "../../kit/data/blog.ts"
import { campaign, type Rng, rng, seeded } from "../../kit/data/random.ts"
import { removeFolder, secret, sleep, temporaryFolder } from "../../kit/processes/Door.ts"
import { FeedPort, nobody } from "../../kit/processes/feedPort.ts"
import { type NodeBeside, startBeside } from "../../kit/processes/nodeBeside.ts"
import { RpcServer } from "../../kit/processes/surreal/RpcServer.ts"
import { ServerProcess } from "../../kit/processes/surreal/ServerProcess.ts"
import { isConflict, rootClient } from "../../kit/processes/surreal/sdk.ts"
import * as Feed from "../../src/core/surreal/surrealFeed.ts"
import * as Schema from "../../src/core/surreal/surrealSchema.ts"

const folder = temporaryFolder()
afterAll(() => removeFolder(folder))
let folders = 0

interface Row {
  readonly id: unknown
  readonly [alias: string]: unknown
}

/** The places the rows of a query stand at, as edges would name them. */
const placesOf = (
  rows: ReadonlyArray<Row>,
  [alias, ...inner]: ReadonlyArray<string>,
  parent: string,
  path: string
): ReadonlyArray<string> =>
  rows.flatMap((row) => [
    `${parent}${String(row.id)}`,
    ...(alias === undefined
      ? []
      : placesOf(row[alias] as ReadonlyArray<Row>, inner, `${path}${alias} of ${String(row.id)}: `, `${path}${alias}.`))
  ])

interface EdgeRow {
  readonly in: unknown
  readonly out: unknown
  readonly version: number
  readonly parent?: unknown
  readonly parent_rel?: string
}

const groupBy = (rows: ReadonlyArray<EdgeRow>): ReadonlyMap<string, ReadonlyArray<EdgeRow>> => {
  const groups = new Map<string, Array<EdgeRow>>()
  for (const row of rows) {
    const group = groups.get(String(row.in))
    if (group === undefined) groups.set(String(row.in), [row])
    else group.push(row)
  }
  return groups
}

type Placed = readonly [place: string, out: string, version: number]

const placed = ({ out, parent, parent_rel: path, version }: EdgeRow): Placed => [
  `${parent === undefined ? "" : `${path} of ${String(parent)}: `}${String(out)}`,
  String(out),
  version
]

const edgesIn = async (db: Surreal, key: string): Promise<ReadonlyArray<Placed>> => {
  const [, rows] = await db.query<[null, ReadonlyArray<EdgeRow>]>(
    "LET $in = type::record('_svc_query', $key); SELECT in, out, version, parent, parent_rel FROM _svc_list_ref WHERE in = $in",
    { key }
  )
  return rows.map(placed)
}

/** Edges that are not what the query says, by view; versions are those that the node has. */
const wrongIn = async (db: Surreal, node: NodeBeside): Promise<ReadonlyArray<string>> => {
  const versions = new Map<string, number>()
  for (const table of node.records.tableNames())
    for (const row of node.records.rowsBetween(table, everything)) versions.set(row.id.text, row.version)
  const wrong: Array<string> = []
  for (const { children, key, query, records } of Blog.views) {
    const [rows] = records ? await db.query<[ReadonlyArray<Row>]>(query) : [[]]
    const wanted = [...new Set(placesOf(rows, children, "", ""))].sort()
    const found = await edgesIn(db, key)
    if (JSON.stringify(wanted) !== JSON.stringify(found.map(([place]) => place).sort()))
      wrong.push(
        `${query}\n  wanted ${wanted.join(", ")}\n  found  ${found
          .map(([place]) => place)
          .sort()
          .join(", ")}`
      )
    for (const [place, out, version] of found)
      if (versions.get(out) !== version)
        wrong.push(`${query}: ${place} has version ${version}, the record ${versions.get(out)}`)
  }
  return wrong
}

const everything = { from: undefined, to: undefined } as unknown as Parameters<NodeBeside["records"]["rowsBetween"]>[1]

const settled = (node: NodeBeside): Promise<void> => Effect.runPromise(Effect.timeout(node.edges.settled, "60 seconds"))

const reconciled = (node: NodeBeside): Promise<unknown> =>
  Effect.runPromise(Effect.provide(node.reconcile.now, Logger.minimumLogLevel(LogLevel.None)))

const beside = async (
  server: { readonly port: number },
  dataDir: string,
  env: { readonly [name: string]: string } = {}
): Promise<NodeBeside> => {
  const node = await startBeside(server.port, dataDir, env)
  onTestFinished(() => node.stop())
  await node.ready()
  return node
}

const register = async (node: NodeBeside): Promise<void> => {
  for (const { key, query } of Blog.views) {
    const { json, status } = await node.ask("POST", "/view/register", {
      id: `incantation:${key}`,
      surql: query,
      clientId: "c",
      ttl: "1h",
      params: {}
    })
    expect(status, JSON.stringify(json)).toBe(200)
  }
}

/** A database with the feed installed, posting to `port`. */
const fed = async (port: FeedPort): Promise<{ readonly server: RpcServer; readonly db: Surreal }> => {
  const server = await RpcServer.start({ capabilities: { network_targets: true } })
  onTestFinished(() => server.kill())
  const db = await rootClient(server)
  onTestFinished(async () => void (await db.close()))
  await db.query(`${Blog.definitions}; ${Schema.script(Schema.sharedDefinitions)}`)
  await db.query(
    Schema.script(
      Feed.feedDefinitions({ url: port.url, secret, tables: Blog.tables, mode: "sync", openToRecordUsers: true })
    )
  )
  return { server, db }
}

const done = { committed: 0, rolledBack: 0, refused: 0, conflicts: 0 }

/**
 * Writes as a user does: a conflict is tried again, what the database refuses otherwise (an id that is there) is left.
 */
const writeSome = async (db: Surreal, random: Rng, count: number): Promise<void> => {
  for (let i = 0; i < count; i++) {
    const { rolledBack, text } = Blog.write(random)
    for (;;) {
      const failure = await db
        .query(text)
        .responses()
        .then((answers) =>
          answers
            .filter((answer) => !answer.success)
            .map(({ error }) => String(error))
            .join("\n")
        )
      if (isConflict(failure)) {
        done.conflicts++
        continue
      }
      if (rolledBack !== (failure !== "") && !/already (?:exists|contains)/.test(failure))
        throw new Error(`${text}: ${failure}`)
      if (failure === "") done.committed++
      else if (rolledBack) done.rolledBack++
      else done.refused++
      break
    }
  }
}

const allEdges = async (db: Surreal): Promise<ReadonlyMap<string, number>> => {
  const [rows] = await db.query<[ReadonlyArray<{ readonly id: unknown; readonly version: number }>]>(
    "SELECT id, version FROM _svc_list_ref"
  )
  return new Map(rows.map(({ id, version }) => [String(id), version]))
}

const differing = (before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>): number =>
  [...new Set([...before.keys(), ...after.keys()])].filter((id) => before.get(id) !== after.get(id)).length

seeded(
  "D21 D20 edges equal the query run on the database, for 50 views over 5 tables, through every kind of write, rolled back ones too, and a restart that missed some",
  "test/live/edges.test.ts",
  async (random) => {
    const own = rng(random.below(2 ** 31))
    const port = await FeedPort.start()
    onTestFinished(() => port.close())
    const { db, server } = await fed(port)
    const dataDir = join(folder, `node-${folders++}`)
    const first = await beside(server, dataDir)
    port.behind = first
    expect(Blog.views.length).toBe(50)
    await writeSome(db, own, 40)
    await register(first)
    await writeSome(db, own, campaign ? 5_000 : 100)
    // What was announced and rolled back is in memory until the compare.
    await reconciled(first)
    await settled(first)
    expect(await wrongIn(db, first)).toEqual([])
    const edges = await allEdges(db)
    expect(edges.size).toBeGreaterThan(150)
    expect(first.edges.counts()).toMatchObject({ refused: 0, lost: 0, waiting: 0 })

    await first.stop()
    port.behind = nobody
    await writeSome(db, own, 30)
    const before = await allEdges(db)
    const second = await beside(server, dataDir)
    port.behind = second
    await settled(second)
    expect(await wrongIn(db, second)).toEqual([])
    const counts = second.edges.counts()
    const changed = differing(before, await allEdges(db))
    expect(changed).toBeGreaterThan(20)
    expect(counts).toMatchObject({ compared: 50, found: before.size, differences: changed })
    expect(counts.puts + counts.removals).toBe(changed)
    await writeSome(db, own, 10)
    await reconciled(second)
    await settled(second)
    expect(await wrongIn(db, second)).toEqual([])
    expect(done.rolledBack).toBeGreaterThan(5)
    expect(done.committed).toBeGreaterThan(100)
  }
)

test("D21 D14 a view that is registered, refreshed, replaced and taken back in SurrealQL has its edges for as long as it is there", async () => {
  const port = await FeedPort.start()
  onTestFinished(() => port.close())
  const { db, server } = await fed(port)
  const node = await beside(server, join(folder, `node-${folders++}`))
  port.behind = node
  const places = async (key: string) => {
    await settled(node)
    return (await edgesIn(db, key)).map(([place, , version]) => `${place} v${version}`).sort()
  }
  await db.query("CREATE user:1 SET age = 10; CREATE user:2 SET age = 20")
  for (const id of ["incantation:mine", "other"])
    await db.query("fn::svc_register($id, 'SELECT * FROM user WHERE age > $n', { n: 15 }, 1h, 'ann')", { id })
  expect(await places("mine")).toEqual(["user:2 v1"])
  await db.query("BEGIN; UPDATE user:1 SET age = 30; UPDATE user:1 SET age = 31; DELETE user:2; COMMIT")
  expect(await places("mine")).toEqual(["user:1 v3"])
  await db.query("fn::svc_refresh('mine', 'ann'); fn::svc_register('mine', 'SELECT * FROM user', {}, 30m, 'ann')")
  await db.query("CREATE user:2 SET age = 1")
  expect(await places("mine")).toEqual(["user:1 v3", "user:2 v2"])
  expect(await places("other")).toEqual(["user:1 v3"])
  const [clients] = await db.query<[ReadonlyArray<unknown>]>("SELECT VALUE clientId FROM _svc_list_ref")
  expect(clients).toEqual(["ann", "ann", "ann"])
  // One is taken back by its client; the other's registration is deleted, by somebody who may.
  await db.query("fn::svc_unregister('mine', 'ann')")
  await db.query("DELETE _svc_query:other")
  expect([await places("mine"), await places("other")]).toEqual([[], []])
  expect(await db.query("SELECT * FROM _svc_query; SELECT * FROM _svc_list_ref")).toEqual([[], []])
  expect((await node.ask("GET", "/debug/deps")).json).toMatchObject({ view_count: 0 })
  expect(node.edges.counts()).toMatchObject({ lost: 0, refused: 0 })
})

/** Records that come over `/ingest`, as a feed of somebody else's would bring them: the database does not have them. */
const ingest = async (node: NodeBeside, random: Rng, count: number): Promise<void> => {
  for (let i = 0; i < count; i++) {
    const id = `post:${random.below(60)}`
    const record = random.chance(0.2) ? undefined : { author: `user:${random.below(9)}`, score: random.below(20) }
    const { json, status } = await node.ask("POST", "/ingest", {
      table: "post",
      op: record === undefined ? "DELETE" : "CREATE",
      id,
      record: record ?? {}
    })
    if (status !== 200) throw new Error(JSON.stringify(json))
  }
}

/** Views whose edges in the database are not their result in memory. */
const unlike = async (db: Surreal, node: NodeBeside): Promise<ReadonlyArray<string>> => {
  const [all] = await db.query<[ReadonlyArray<EdgeRow>]>(
    "SELECT in, out, version, parent, parent_rel FROM _svc_list_ref"
  )
  const byView = groupBy(all)
  const wrong: Array<string> = []
  for (const { children, key, query, records } of Blog.views) {
    const { json } = await node.ask("GET", `/view/${key}`)
    const rows = records
      ? (json as { readonly result_data: ReadonlyArray<readonly [string, number]> }).result_data.map(
          ([id, version]) => `${id} ${version}`
        )
      : []
    const found = (byView.get(`_svc_query:${key}`) ?? [])
      .map(placed)
      .filter(([place, out]) => children.length === 0 || place === out)
      .map(([, out, version]) => `${out} ${version}`)
    if (JSON.stringify([...rows].sort()) !== JSON.stringify([...found].sort()))
      wrong.push(`${query}\n  wanted ${[...rows].sort().join(", ")}\n  found  ${[...found].sort().join(", ")}`)
  }
  return wrong
}

seeded(
  "D21 a database that is killed, hangs, is slow and ends sessions costs no edge and no change; when too much waits, 503 OVERLOADED says which limit",
  "test/live/edges.test.ts",
  async (random) => {
    const path = `surrealkv://${join(folder, `faults-${folders++}`)}`
    let server = await ServerProcess.start({ path })
    onTestFinished(() => server.kill())
    await (await rootClient(server)).close()
    const node = await beside(server, join(folder, `node-${folders++}`), { SVC_MAX_PENDING_EDGES: "600" })
    await register(node)
    const check = async (what: string): Promise<void> => {
      await settled(node)
      const db = await rootClient(server)
      expect(await unlike(db, node), what).toEqual([])
      await db.close()
    }
    await ingest(node, random, 30)
    await check("at first")
    await server.kill()
    await ingest(node, random, 30)
    expect(node.edges.counts().waiting).toBeGreaterThan(0)
    server = await server.restart()
    await check("killed and started again")
    server.pause()
    await ingest(node, random, 30)
    expect(node.edges.counts().waiting).toBeGreaterThan(0)
    if (campaign) await sleep(30_000)
    server.resume()
    await check("hanging")
    await server.slow(campaign ? 1_000 : 200)
    await ingest(node, random, 30)
    await settled(node)
    await server.slow(0)
    await check("slow")
    await server.expireSessions()
    await ingest(node, random, 30)
    await check("sessions ended")
    await server.cut()
    await ingest(node, random, 30)
    await check("connections cut")

    server.pause()
    let refused: Awaited<ReturnType<NodeBeside["ask"]>> | undefined
    for (let n = 0; n < 1_000 && refused === undefined; n++) {
      const answer = await node.ask("POST", "/ingest", {
        table: "user",
        op: "CREATE",
        id: `user:more${n}`,
        record: { age: n % 40 }
      })
      if (answer.status !== 200) refused = answer
    }
    expect(refused).toMatchObject({
      status: 503,
      json: { code: "OVERLOADED", message: expect.stringMatching(/the limit is 600 \(SVC_MAX_PENDING_EDGES\)/) }
    })
    server.resume()
    await check("overloaded")
    await ingest(node, random, 10)
    await check("at last")
    expect(node.edges.counts()).toMatchObject({ lost: 0, refused: 0 })
  }
)
