/**
 * The compare of a serving scheduler with its database: what no event told of is repaired by ordinary changes, what is
 * being told of is left alone (D20, D25).
 *
 * A whole scheduler and an SSP in virtual time, over a database in memory that a test changes without a word.
 */
import { Effect, Layer } from "effect"
import { afterEach, describe, expect, it } from "vitest"
import { rng } from "../../../kit/data/random.ts"
import { registration } from "../../../kit/data/registration.ts"
import { VirtualTime } from "../../../kit/data/virtualTime.ts"
import * as Ids from "../../../src/core/surql/values/recordId.ts"
import type { Obj } from "../../../src/core/surql/values/value.ts"
import { make as memoryUpstream } from "../../../src/drivers/memoryUpstream.ts"
import { Upstream, type UpstreamShape } from "../../../src/ports/Upstream.ts"
import { Network, type Reply } from "../../sim/network.ts"
import { isSentAll, schedulerNode, secret, sspNode, type World } from "../../sim/nodes.ts"

const host = "127.0.0.1:9667"

interface Shown {
  readonly content_generation: number
  readonly result_data: ReadonlyArray<unknown>
}

class Beside {
  readonly time = new VirtualTime()
  readonly network = new Network(this.time, rng(1))
  readonly world: World = { time: this.time, network: this.network, logs: [], crashes: [] }
  readonly records = new Map<string, Obj>()
  /** Runs while the database has looked for single records and not answered yet. */
  meanwhile: Effect.Effect<void> = Effect.void
  private readonly scheduler
  private readonly ssp = sspNode(this.world, 1, isSentAll)

  constructor(env: { readonly [name: string]: string } = {}) {
    const now = (): UpstreamShape => memoryUpstream([...this.records.values()])
    const upstream: UpstreamShape = {
      ...now(),
      tables: Effect.suspend(() => now().tables),
      chunk: (table, after, size) => Effect.suspend(() => now().chunk(table, after, size)),
      find: (ids) => Effect.suspend(() => Effect.zipLeft(now().find(ids), this.meanwhile))
    }
    this.scheduler = schedulerNode(
      this.world,
      { SVC_RECONCILE_INTERVAL_SECS: "5", ...env },
      Layer.succeed(Upstream, upstream)
    )
  }

  put(key: string | number, body: { readonly [field: string]: string | number } | undefined): void {
    const id = Ids.make("t", key)
    if (body === undefined) this.records.delete(id.text)
    else this.records.set(id.text, { ...body, id })
  }

  async start(): Promise<void> {
    await this.scheduler.node.start()
    await this.ssp.start()
    await this.time.advance(1500)
  }

  async stop(): Promise<void> {
    await this.ssp.crash()
    await this.scheduler.node.crash()
  }

  get head(): number {
    return this.scheduler.pool().state().log.head
  }

  /** What the database's own event would say; answers when it is taken. */
  tell(key: string | number, body: { readonly [field: string]: string | number } | undefined): Promise<void> {
    return new Promise((done) =>
      this.send(
        host,
        "POST",
        "/ingest",
        { table: "t", op: body === undefined ? "DELETE" : "UPDATE", id: Ids.make("t", key).text, record: body ?? {} },
        () => done()
      )
    )
  }

  send(to: string, method: string, path: string, body: unknown, then: (reply: Reply | undefined) => void): void {
    this.network.send(
      "client",
      to,
      {
        method,
        path,
        headers: { "content-type": "application/json", authorization: `Bearer ${secret}` },
        body: body === undefined ? "" : JSON.stringify(body)
      },
      then
    )
  }

  async ask(to: string, method: string, path: string, body?: unknown): Promise<unknown> {
    let answer: Reply | undefined
    this.send(to, method, path, body, (reply) => {
      answer = reply
    })
    for (let i = 0; i < 200 && answer === undefined; i++) await this.time.advance(5)
    return JSON.parse(answer!.body) as unknown
  }

  rows(): Promise<unknown> {
    return this.ask(host, "POST", "/proxy/query", { query: "SELECT *, _svc_rv FROM t" })
  }

  async equal(): Promise<void> {
    expect(await this.ask("127.0.0.1:8661", "GET", "/integrity")).toEqual(await this.ask(host, "GET", "/integrity"))
  }

  said(what: RegExp): ReadonlyArray<string> {
    return this.world.logs.flatMap((line) => what.exec(line)?.[0] ?? [])
  }
}

let beside: Beside | undefined
afterEach(() => beside?.stop())

describe("D25 reconciling while the scheduler serves", () => {
  it("D55 more than an SSP may lack reaches it in steps, and sends it back to no bootstrap", async () => {
    const own = (beside = new Beside({ SVC_SCHEDULER_MAX_BUFFER_PER_SSP: "20" }))
    own.put(0, { n: 0 })
    await own.start()
    for (let n = 1; n <= 200; n++) own.put(n, { n })
    await own.time.advance(60_000)
    expect(own.head).toBe(200)
    await own.equal()
    expect(own.network.trace.filter((line) => line.includes("POST /ssp/register 202"))).toHaveLength(1)
  })

  it("D25 D20 what no event told of is found at a second look and becomes ordinary changes, which SSPs get without a bootstrap", async () => {
    const own = (beside = new Beside())
    for (const n of [1, 2, 3]) own.put(n, { n })
    await own.start()
    expect(own.head).toBe(0)
    own.put(1, { n: 10 })
    own.put(2, undefined)
    own.put("new", { n: 4 })
    await own.time.advance(12_000)
    expect(own.head).toBe(3)
    expect(await own.rows()).toEqual([
      { id: "t:1", n: 10, _svc_rv: 2 },
      { id: "t:3", n: 3, _svc_rv: 1 },
      { id: "t:new", n: 4, _svc_rv: 1 }
    ])
    expect(own.said(/3 differed and were repaired: .*/)).toHaveLength(1)
    await own.equal()
    expect(own.network.trace.filter((line) => line.includes("POST /ssp/register 202"))).toHaveLength(1)
    // And nothing is said again.
    await own.time.advance(60_000)
    expect(own.head).toBe(3)
  })
  it("D76 what one compare finds is one step of the log, and SSPs show it at once", async () => {
    const own = (beside = new Beside())
    for (const n of [1, 2, 3]) own.put(n, { n })
    await own.start()
    await own.ask(host, "POST", "/view/register", registration("incantation:all", "SELECT * FROM t"))
    const read = () => own.ask("127.0.0.1:8661", "GET", "/view/incantation:all") as Promise<Shown>
    const before = await read()
    for (let n = 0; n < 80; n++) own.put(`new${n}`, { n })
    await own.time.advance(12_000)
    expect(own.head).toBe(80)
    const after = await read()
    expect([before, after].map(({ result_data }) => result_data.length)).toEqual([3, 83])
    expect(after.content_generation - before.content_generation).toBe(1)
  })
  it("D25 D20 records whose events are on their way are left alone while events flow", async () => {
    const own = (beside = new Beside())
    await own.start()
    let told = 0
    for (let i = 0; i < 300; i++) {
      const key = i % 30
      const body = i % 7 === 0 ? undefined : { n: i }
      own.put(key, body)
      own.time.after(400, () => {
        told++
        void own.tell(key, body)
      })
      await own.time.advance(50)
    }
    await own.time.advance(12_000)
    expect(told).toBe(300)
    expect([own.head, own.said(/differed and were repaired/)]).toEqual([300, []])
    await own.equal()
  })
  it("D25 a repair that does not hold any more when its turn comes is dropped", async () => {
    const own = (beside = new Beside())
    for (const n of [1, 2, 3]) own.put(n, { n })
    await own.start()
    own.put(1, { n: 10 })
    own.put("born", { n: 5 })
    let times = 0
    own.meanwhile = Effect.suspend(() => {
      if (++times > 1) return Effect.void
      // The database goes on and tells of it, while its older answer is under way.
      own.put(1, { n: 11 })
      own.put("born", undefined)
      return Effect.promise(async () => {
        await own.tell(1, { n: 11 })
        await own.tell("born", undefined)
      })
    })
    await own.time.advance(8000)
    expect(times).toBeGreaterThan(0)
    expect(await own.rows()).toEqual([
      { id: "t:1", n: 11, _svc_rv: 2 },
      { id: "t:2", n: 2, _svc_rv: 1 },
      { id: "t:3", n: 3, _svc_rv: 1 }
    ])
    expect([own.head, own.said(/differed and were repaired/)]).toEqual([2, []])
  })
})
