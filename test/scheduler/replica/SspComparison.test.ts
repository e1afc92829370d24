/**
 * SSPs whose memory is not the replica's are found, named and made to bootstrap once; those that are equal are left
 * alone while events flow (D41).
 *
 * Whole nodes in virtual time: the hashes of both sides come from code of their own, over records that went their own
 * ways.
 */
import { Effect } from "effect"
import { afterEach, describe, expect, it } from "vitest"
import { rng } from "../../../kit/data/random.ts"
import { VirtualTime } from "../../../kit/data/virtualTime.ts"
import * as Merkle from "../../../src/core/integrity/merkle.ts"
import { compareSsp } from "../../../src/scheduler/replica/SspComparison.ts"
import { calm, Network, type Reply } from "../../sim/network.ts"
import { isSentAll, schedulerNode, secret, sspNode, type World } from "../../sim/nodes.ts"

interface Roots {
  readonly seq: number
  readonly tables: ReadonlyArray<{ readonly table: string; readonly hash: string; readonly count: number }>
}

const scheduler = "127.0.0.1:9667"

/** A scheduler and two SSPs with a second between compares, asked as a client would. */
class Cluster {
  readonly time = new VirtualTime()
  readonly network = new Network(this.time, rng(1))
  readonly world: World = { time: this.time, network: this.network, logs: [], crashes: [] }
  private readonly nodes = [
    schedulerNode(this.world, { SVC_SCHEDULER_INTEGRITY_INTERVAL_SECS: "1", SVC_SCHEDULER_MAX_BUFFER_PER_SSP: "1000" })
      .node,
    sspNode(this.world, 1, isSentAll),
    sspNode(this.world, 2, isSentAll)
  ] as const
  private writing = false
  private written = 0

  async start(): Promise<void> {
    for (const node of this.nodes) await node.start()
    await this.time.advance(1000)
  }

  /** The second SSP dies and bootstraps again. */
  async again(): Promise<void> {
    await this.nodes[2].crash()
    await this.nodes[2].start()
    await this.time.advance(3000)
  }

  async stop(): Promise<void> {
    for (const node of [...this.nodes].reverse()) await node.crash()
  }

  async ask(host: string, method: string, path: string, body?: unknown): Promise<Reply> {
    let answer: Reply | undefined
    const headers = { "content-type": "application/json", authorization: `Bearer ${secret}` }
    this.network.send(
      "client",
      host,
      { method, path, headers, body: body === undefined ? "" : JSON.stringify(body) },
      (reply) => {
        answer = reply
      }
    )
    for (let i = 0; i < 1000 && answer === undefined; i++) await this.time.advance(5)
    return answer!
  }

  async roots(host: string): Promise<Roots> {
    return JSON.parse((await this.ask(host, "GET", "/integrity")).body) as Roots
  }

  /** One write every few milliseconds, of a table of its own and of one that is compared. */
  flow(on: boolean): void {
    const again = on && !this.writing
    this.writing = on
    if (again) this.next()
  }

  private next(): void {
    if (!this.writing) return
    const n = ++this.written
    const headers = { "content-type": "application/json" }
    const body = JSON.stringify({
      table: "item",
      op: n % 5 === 0 ? "DELETE" : "UPDATE",
      id: `item:hot${n % 40}`,
      record: { n }
    })
    this.network.send("client", scheduler, { method: "POST", path: "/ingest", headers, body }, () => {})
    this.time.after(15, () => this.next())
  }

  count(from: string, what: string): number {
    return this.network.trace.filter((line) => line.includes(`${from} -> `) && line.includes(what)).length
  }

  differ(): ReadonlyArray<string> {
    return this.world.logs.flatMap((line) => /ssp-\d differs from the replica in .*/.exec(line)?.[0] ?? [])
  }
}

const exotic = {
  at: "2020-01-01T00:00:00Z",
  list: [1, 2.5, null],
  deep: { "a b": ["x", true] },
  big: 9007199254740991,
  text: "ü\u2028"
}

let cluster: Cluster | undefined
afterEach(() => cluster?.stop())

/**
 * Two sides as maps of contents by id; the SSP answers, and then the replica has moved on in one record, every time.
 */
const alwaysMoving = (theirs: ReadonlyMap<string, string>) => {
  const ours = new Map<string, string>(Array.from({ length: 20 }, (_, i) => [`t:${i}`, "as ever"] as const))
  const moved = new Map<string, number>()
  let seq = 100
  const sides = { ours, theirs: new Map([...ours, ...theirs]) }
  const nodeOf = (side: ReadonlyMap<string, string>, level: number, index: number) => {
    const tree = new Merkle.MerkleTree()
    const leaves = (bucket: number) =>
      [...side]
        .filter(([id]) => Merkle.bucketOf(id) === bucket)
        .map(([id, content]) => ({ id, hash: Merkle.leafOf(id, content) }))
    for (const id of side.keys()) tree.mark(Merkle.bucketOf(id))
    for (let bucket = tree.take(); bucket !== undefined; bucket = tree.take()) tree.put(bucket, leaves(bucket))
    return {
      seq,
      table: "t",
      level,
      index,
      ...tree.node(level, index),
      ...(level === 2 ? { records: leaves(index) } : { children: tree.children(level, index) })
    }
  }
  const roots = (side: ReadonlyMap<string, string>) => ({ seq, tables: [nodeOf(side, 0, 0)] })
  const answered = <A>(answer: () => A) =>
    Effect.sync(() => {
      sides.theirs.set("t:7", ours.get("t:7")!)
      const given = answer()
      ours.set("t:7", `at ${++seq}`)
      moved.set("t:7", seq)
      return given
    })
  const parts = {
    momentMs: 0,
    client: {
      roots: () => answered(() => roots(sides.theirs)),
      node: (_: unknown, _table: string, level: number, index: number) =>
        answered(() => nodeOf(sides.theirs, level, index))
    },
    trees: {
      roots: Effect.sync(() => roots(ours)),
      node: (_: string, level: number, index: number) => Effect.sync(() => nodeOf(ours, level, index)),
      follow: Effect.sync(() => ({
        from: seq,
        movedAfter: (id: string, at: number) => (moved.get(id) ?? 0) > at,
        after: (at: number) => [...moved].flatMap(([id, when]) => (when > at ? [id] : []))
      }))
    }
  }
  return Effect.runPromise(compareSsp(parts, { ssp: "a", registration: 1, url: "http://a" }))
}

describe("D41 comparing SSPs with the replica", () => {
  it("D41 what moved behind the position of an answer is no difference, however often; what stood still is", async () => {
    expect(await alwaysMoving(new Map())).toEqual({ ids: [], all: true })
    const found = await alwaysMoving(
      new Map([
        ["t:9", "changed"],
        ["t:more", "there"]
      ])
    )
    expect([...found!.ids].sort()).toEqual(["t:9", "t:more"])
  })
  it("D41 an SSP whose memory was changed behind its back is found while events flow: its records are named, it bootstraps once and is equal; the other is left alone", async () => {
    const own = (cluster = new Cluster())
    await own.start()
    const records = Array.from({ length: 150 }, (_, i) => ({
      table: i % 3 === 0 ? "other" : "item",
      op: "CREATE",
      id: `${i % 3 === 0 ? "other" : "item"}:${i}`,
      record: { ...exotic, i },
      ...(i % 2 === 0 ? { types: { at: "datetime" } } : {})
    }))
    expect((await own.ask(scheduler, "POST", "/ingest", records)).status).toBe(200)
    const tampered = [
      { table: "item", op: "UPDATE", id: "item:1", record: { i: -1 } },
      { table: "item", op: "DELETE", id: "item:2", record: {} },
      { table: "nowhere", op: "CREATE", id: "nowhere:x", record: {} }
    ]
    expect((await own.ask("127.0.0.1:8662", "POST", "/ingest", tampered)).status).toBe(200)
    // Ways long enough for something to move on each of them.
    own.network.weather = { ...calm, delayMs: 20 }
    own.flow(true)
    await own.time.advance(5000)
    own.flow(false)
    await own.time.advance(1000)
    expect(own.differ()).toEqual([
      expect.stringMatching(/^ssp-2 differs from the replica in 3 records: (?:(?:item:1|item:2|nowhere:x)(?:, )?){3}$/)
    ])
    expect([own.count("ssp-1", "POST /ssp/register 202"), own.count("ssp-2", "POST /ssp/register 202")]).toEqual([1, 2])
    // Hashes differed time and again because of what moved in between, and nobody was blamed for it.
    expect(own.count("scheduler", "ssp-1 GET /integrity?table=item&level=0")).toBeGreaterThan(0)
    const [ours, ...theirs] = [
      await own.roots(scheduler),
      await own.roots("127.0.0.1:8661"),
      await own.roots("127.0.0.1:8662")
    ]
    expect(ours!.tables.map(({ table }) => table)).toEqual(["item", "other"])
    expect(ours!.tables.find(({ table }) => table === "other")?.count).toBe(50)
    expect(theirs).toEqual([ours, ours])
    expect(own.world.crashes).toEqual([])
  })
  it("D1 an SSP that bootstraps over undeclared tables types later records as the scheduler and the others do, with types and without", async () => {
    const own = (cluster = new Cluster())
    await own.start()
    const write = (i: number) => [
      {
        table: "item",
        op: "UPDATE",
        id: `item:${i}`,
        record: { at: "2020-01-01T00:00:00Z", errors: [{ at: "2021-01-01T00:00:00Z" }], i },
        types: { at: "datetime" }
      },
      { table: "item", op: "UPDATE", id: `item:plain${i}`, record: { at: "2020-01-01T00:00:00Z", i } }
    ]
    expect((await own.ask(scheduler, "POST", "/ingest", write(1))).status).toBe(200)
    await own.again()
    expect((await own.ask(scheduler, "POST", "/ingest", write(2))).status).toBe(200)
    const [ours, ...theirs] = [
      await own.roots(scheduler),
      await own.roots("127.0.0.1:8661"),
      await own.roots("127.0.0.1:8662")
    ]
    expect(theirs).toEqual([ours, ours])
    await own.time.advance(5000)
    expect(own.differ()).toEqual([])
  })
  it("D41 of an SSP that lost everything some records are named, and it bootstraps once", async () => {
    const own = (cluster = new Cluster())
    await own.start()
    const each = <A>(make: (i: number) => A): ReadonlyArray<A> => Array.from({ length: 150 }, (_, i) => make(i))
    await own.ask(
      scheduler,
      "POST",
      "/ingest",
      each((i) => ({ table: "item", op: "CREATE", id: `item:${i}`, record: { i } }))
    )
    await own.ask(
      "127.0.0.1:8662",
      "POST",
      "/ingest",
      each((i) => ({ table: "item", op: "DELETE", id: `item:${i}`, record: {} }))
    )
    await own.time.advance(4000)
    expect(own.differ()).toEqual([
      expect.stringMatching(/^ssp-2 differs from the replica in at least \d+ records: item:\d+, .*, …$/)
    ])
    expect([own.count("ssp-1", "POST /ssp/register 202"), own.count("ssp-2", "POST /ssp/register 202")]).toEqual([1, 2])
    expect((await own.roots("127.0.0.1:8662")).tables).toEqual((await own.roots(scheduler)).tables)
  })
})
