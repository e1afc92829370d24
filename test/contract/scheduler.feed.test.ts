/**
 * `GET /feed` and `POST /ssp/applied` (D61): what a follower of some tables is sent, in memory, from the log and over
 * restarts, every refusal, and what the answers of `/ingest` wait for.
 *
 * Over real sockets; the reader here is a plain client that collects lines.
 */
import { get, type IncomingMessage } from "node:http"
import { isDeepStrictEqual } from "node:util"
import { Effect, Either } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { contract, type Row } from "../../kit/checks/contract.ts"
import { type Body, bodyOf } from "../../kit/checks/http.ts"
import { create } from "../../kit/data/registration.ts"
import { closing } from "../../kit/processes/closing.ts"
import { removeFolder, secret, temporaryFolder, until } from "../../kit/processes/Door.ts"
import { decodeChanges } from "../../src/core/record/change.ts"
import { receivedChangesOf } from "../../src/core/record/event.ts"
import * as FeedLines from "../../src/core/record/feedLines.ts"
import { FakeSsp } from "../scheduler/FakeSsp.ts"
import { inFolder, Node, type Options } from "../scheduler/node.ts"
import { Words } from "../scheduler/Words.ts"

const afterwards = closing()
const start = async (options: Options = {}): Promise<Node> => {
  const node = await Node.start(options)
  afterwards(node.close)
  return node
}

/** Registers an SSP that follows these tables. */
const follower = async (node: Node, id: string, tables: ReadonlyArray<string>): Promise<FakeSsp> => {
  const ssp = await FakeSsp.start(id)
  afterwards(() => ssp.close())
  expect(bodyOf(await ssp.register(node, { tables }))["feed"]).toBe(true)
  return ssp
}

/** An open feed, line by line. */
class Feed {
  readonly lines: Array<FeedLines.FeedEvent | FeedLines.Watermark> = []
  isOver = false
  private readonly cutter = new FeedLines.LineCutter(100_000)
  readonly response: IncomingMessage

  private constructor(response: IncomingMessage) {
    this.response = response
    response.setEncoding("utf8")
    response.on("data", (text: string) => {
      for (const line of this.cutter.push(text)!) {
        const read = line === "" ? undefined : FeedLines.read(line)
        if (typeof read === "string") throw new Error(`${read}: ${line}`)
        if (read !== undefined) this.lines.push(read)
      }
    })
    response.on("close", () => {
      this.isOver = true
    })
  }

  static async open(node: Node, query: string): Promise<Feed> {
    const response = await new Promise<IncomingMessage>((done, fail) =>
      get(`${node.url}/feed?${query}`, done).on("error", fail)
    )
    const feed = new Feed(response)
    afterwards(async () => void response.destroy())
    expect([response.statusCode, response.headers["content-type"]]).toEqual([200, "application/x-ndjson"])
    return feed
  }

  get events(): ReadonlyArray<FeedLines.FeedEvent> {
    return this.lines.filter((line) => "table" in line)
  }

  get through(): number {
    return Math.max(0, ...this.lines.map((line) => ("table" in line ? line.seq : line.through)))
  }

  /** Waits until everything through here is said to have come. */
  reached(seq: number): Promise<unknown> {
    return until(`the feed says ${seq}`, () => this.through >= seq)
  }
}

const queryOf = (ssp: FakeSsp, tables: string, after = ssp.snapshotSeq): string =>
  `after=${after}&tables=${tables}&registration=${ssp.registration}`

const applied = (node: Node, ssp: FakeSsp, seq: number) =>
  node.post("/ssp/applied", { ssp_id: ssp.id, registration: ssp.registration, seq })

/** An SSP that follows table t, with an open feed, and is Ready. */
const readyFollower = async (node: Node, id: string): Promise<FakeSsp> => {
  const ssp = await follower(node, id, ["t"])
  await Feed.open(node, queryOf(ssp, "t"))
  await applied(node, ssp, 0)
  await ssp.shown(node, "ready")
  return ssp
}

const write = async (node: Node, ...ids: ReadonlyArray<string>): Promise<void> => {
  for (const id of ids) expect((await node.post("/ingest", create(id))).status).toBe(200)
}

/** How many events each SSP lacks. */
const lacking = async (node: Node): Promise<ReadonlyArray<number>> => {
  const { ssps } = bodyOf(await node.get("/progress")) as unknown as {
    readonly ssps: ReadonlyArray<{ readonly waiting: number }>
  }
  return ssps.map(({ waiting }) => waiting)
}

const openWords = async (node: Node, bearer: string): Promise<Words> => {
  const words = await Words.open(node.url, bearer)
  afterwards(words.close)
  return words
}

const shown = (feed: Feed) => feed.events.map(({ prev, seq, table }) => [table, seq, prev])

describe("D61 GET /feed", () => {
  it("sends the events of its tables with the one before each, and says that the others have passed", async () => {
    const node = await start()
    const ssp = await follower(node, "a", ["t", "u"])
    const feed = await Feed.open(node, queryOf(ssp, "t,u"))
    await write(node, "t:1", "x:1", "u:1", "x:2", "t:2", "x:3")
    await feed.reached(6)
    expect(shown(feed)).toEqual([
      ["t", 1, undefined],
      ["u", 3, undefined],
      ["t", 5, 1]
    ])
    const { epoch, logId } = node.pool.identity
    expect(feed.events[2]?.json).toEqual({
      ...create("t:2"),
      record: { ...(create("t:2")["record"] as object), _svc_rv: 1 },
      seq: 5,
      log_id: logId,
      epoch,
      prev: 1
    })
    expect(feed.lines.at(-1)).toEqual({ through: 6, logId, epoch })
    expect(ssp.calls("/ingest")).toEqual([])
  })
  it("is not woken for each commit of other tables: what has passed is said four times a second at most", async () => {
    const node = await start()
    const ssp = await follower(node, "a", ["t"])
    const feed = await Feed.open(node, queryOf(ssp, "t"))
    const begun = performance.now()
    let commits = 0
    while (commits < 20 || performance.now() - begun < 1000) await write(node, `x:${commits++}`)
    await feed.reached(commits)
    // One when it opens, and one for the last part of a quarter of a second.
    expect(feed.lines.length).toBeLessThanOrEqual((performance.now() - begun) / 250 + 2)
    expect(feed.events).toEqual([])
  })
  it("sends all tables for `*`, and names that are odd", async () => {
    const node = await start()
    const ssp = await follower(node, "a", ["*"])
    const feed = await Feed.open(node, queryOf(ssp, "*"))
    const odd = await Feed.open(
      node,
      queryOf(await follower(node, "b", ["a,b"]), encodeURIComponent(encodeURIComponent("a,b")))
    )
    await node.post("/ingest", [create("t:1"), { ...create("t:1"), table: "a,b", id: "⟨a,b⟩:1", record: {} }])
    await Promise.all([feed.reached(2), odd.reached(2)])
    expect(feed.events.map(({ table }) => table)).toEqual(["t", "a,b"])
    expect(odd.events.map(({ table }) => table)).toEqual(["a,b"])
  })
  it("reads from the log what is no longer in memory, and goes on from there without a seam", async () => {
    const folder = temporaryFolder()
    afterAll(() => removeFolder(folder))
    const first = await Node.start({ stores: inFolder(folder) })
    await first.post(
      "/ingest",
      Array.from({ length: 30 }, (_, n) => create(`${n % 3 === 0 ? "t" : "x"}:${n}`))
    )
    const ssp = await follower(first, "a", ["t"])
    ssp.snapshotSeq = 0
    await applied(first, ssp, 30)
    await first.close()
    const node = await start({ stores: inFolder(folder) })
    const feed = await Feed.open(node, queryOf(ssp, "t"))
    await feed.reached(30)
    await write(node, "t:new", "t:newer")
    await feed.reached(32)
    // A new process has not seen which event of the table was the last one before it.
    const before = Array.from({ length: 10 }, (_, n) => ["t", 3 * n + 1, n === 0 ? undefined : 3 * n - 2])
    expect(shown(feed)).toEqual([...before, ["t", 31, undefined], ["t", 32, 31]])
  })
  it("D44 ends a step with a watermark where its end is of another table, and says nothing within one", async () => {
    const node = await start()
    const ssp = await follower(node, "a", ["t"])
    const feed = await Feed.open(node, queryOf(ssp, "t"))
    await applied(node, ssp, 0)
    const changes = [create("t:1"), create("x:1"), create("t:2"), create("x:2")]
    const arrived = receivedChangesOf(Either.getOrThrow(decodeChanges(changes)), changes)
    await Effect.runPromise(node.ingest.ingest(arrived, { asOne: true, answers: "durable" }))
    await feed.reached(4)
    expect(feed.lines.filter((line) => "table" in line || line.through > 0)).toMatchObject([
      { seq: 1, json: { step_continues: true } },
      { seq: 3, json: { step_continues: true } },
      { through: 4 }
    ])
  })
  it("GET /overview names the tables that each SSP holds", async () => {
    const node = await start()
    const [a, all] = [await follower(node, "a", []), await follower(node, "all", ["*"])]
    const pushed = await FakeSsp.start("pushed")
    afterwards(() => pushed.close())
    await pushed.register(node)
    await Feed.open(node, queryOf(a, "u,t"))
    await Feed.open(node, queryOf(all, "*"))
    const held = async (): Promise<unknown> =>
      (bodyOf(await node.get("/overview"))["ssps"] as ReadonlyArray<Body>).map(({ id, tables }) => [id, tables])
    const wanted = [
      ["a", ["t", "u"]],
      ["all", ["*"]],
      ["pushed", null]
    ]
    await until("it has heard what they follow", async () => isDeepStrictEqual(await held(), wanted))
  })
  it("ends when the registration is over, and a second one takes the place of the first", async () => {
    const node = await start()
    const ssp = await follower(node, "a", ["t"])
    const [first, second] = [await Feed.open(node, queryOf(ssp, "t")), await Feed.open(node, queryOf(ssp, "t"))]
    await until("the first ends", () => first.isOver)
    expect(second.isOver).toBe(false)
    await ssp.register(node, { tables: ["t"] })
    await until("the second ends", () => second.isOver)
  })

  const unused = "registration=123456789"
  const bad = (query: string, path: string): Row => ({
    name: `GET /feed 400 INVALID_REQUEST for ${query}`,
    ask: `GET /feed?${query}`,
    token: null,
    status: 400,
    code: "INVALID_REQUEST",
    check: (_, body) => expect(JSON.stringify(body)).toContain(path)
  })
  let served: Node
  beforeAll(async () => {
    served = await Node.start()
  })
  afterAll(() => served.close())
  contract(
    () => served,
    [
      {
        name: "GET /feed 404 SSP_NOT_REGISTERED for a registration that is over",
        ask: `GET /feed?after=0&tables=t&${unused}`,
        token: null,
        status: 404,
        code: "SSP_NOT_REGISTERED"
      },
      bad(`after=-1&tables=t&${unused}`, "after"),
      bad(`after=x&tables=t&${unused}`, "after"),
      bad(`after=0&${unused}`, "tables"),
      bad(`after=0&tables=%ZZ&${unused}`, "tables"),
      bad("after=0&tables=t", "registration"),
      {
        name: "POST /ssp/applied 404 SSP_NOT_REGISTERED for a registration that is over",
        ask: "POST /ssp/applied",
        body: { ssp_id: "a", registration: 123456789, seq: 1 },
        token: null,
        status: 404,
        code: "SSP_NOT_REGISTERED"
      },
      {
        name: "POST /ssp/applied 400 INVALID_REQUEST names every fault",
        ask: "POST /ssp/applied",
        body: { ssp_id: "", seq: -1 },
        token: null,
        status: 400,
        code: "INVALID_REQUEST"
      }
    ]
  )
  it("GET /feed 404 for an SSP that is sent its events, 409 behind the log", async () => {
    const node = await start()
    const pushed = await FakeSsp.start("p")
    afterwards(() => pushed.close())
    await pushed.join(node)
    expect((await node.get(`/feed?${queryOf(pushed, "t")}`)).status).toBe(404)
    const ssp = await follower(node, "a", ["t"])
    const answer = await node.get(`/feed?${queryOf(ssp, "t", 99)}`)
    expect([answer.status, bodyOf(answer)["code"]]).toEqual([409, "BUFFER_OVERFLOW"])
  })
  it("goes on where only other tables passed since, though the log was cut behind what its SSP says it has", async () => {
    const node = await start({ env: { SVC_SCHEDULER_SNAPSHOT_UPDATE_INTERVAL_SECS: "1" } })
    const ssp = await readyFollower(node, "a")
    await write(node, "t:1")
    await applied(node, ssp, 1)
    await write(node, "x:1", "x:2")
    await until("the log is cut behind them", () => node.pool.state().log.first === 4)
    // Another table may have had events there.
    expect((await node.get(`/feed?${queryOf(ssp, "t,x", 1)}`)).status).toBe(409)
    // So may the same one, behind a position before the last event that was sent.
    expect((await node.get(`/feed?${queryOf(ssp, "t", 0)}`)).status).toBe(409)
    const feed = await Feed.open(node, queryOf(ssp, "t", 1))
    await write(node, "t:2")
    await feed.reached(4)
    expect(shown(feed)).toEqual([["t", 4, 1]])
  })
  it("GET /feed 409 for an SSP that fell too far behind, and its heartbeat says the same", async () => {
    const node = await start({ env: { SVC_SCHEDULER_MAX_BUFFER_PER_SSP: "5" } })
    const ssp = await follower(node, "a", ["t"])
    const feed = await Feed.open(node, queryOf(ssp, "t"))
    await applied(node, ssp, 0)
    await ssp.shown(node, "ready")
    await node.post(
      "/ingest",
      Array.from({ length: 6 }, (_, n) => create(`t:${n}`))
    )
    await until("its feed ends", () => feed.isOver)
    expect((await ssp.beat(node)).status).toBe(409)
  })
})

describe("D61 POST /ssp/applied", () => {
  it("D7 counts an SSP once it says what it has applied, and one without interest at once", async () => {
    const node = await start({ env: { SVC_SCHEDULER_DELIVERY_WAIT_MS: "30000" } })
    const [a, b] = [await follower(node, "a", ["t"]), await follower(node, "b", ["u"])]
    const feeds = [await Feed.open(node, queryOf(a, "t")), await Feed.open(node, queryOf(b, "u"))]
    await Promise.all([applied(node, a, 0), applied(node, b, 0)])
    await Promise.all([a.shown(node, "ready"), b.shown(node, "ready")])
    let answered: number | undefined
    const answer = node.post("/ingest", create("t:1")).then((got) => {
      answered = Number(bodyOf(got)["delivered"])
    })
    await feeds[0]!.reached(1)
    expect(answered).toBeUndefined()
    expect((await applied(node, a, 1)).status).toBe(200)
    await answer
    expect(answered).toBe(2)
    expect(bodyOf(await node.post("/ingest", create("x:1")))["delivered"]).toBe(2)
  })
  it("D7 answers with the last of several SSPs, and knows how far the others are though one says nothing", async () => {
    const node = await start({ env: { SVC_SCHEDULER_DELIVERY_WAIT_MS: "30000" } })
    const ssps = [await readyFollower(node, "a"), await readyFollower(node, "b"), await readyFollower(node, "c")]
    let delivered: unknown
    const answer = node.post("/ingest", create("t:1")).then((got) => {
      delivered = bodyOf(got)["delivered"]
    })
    await until("all lack it", async () => isDeepStrictEqual(await lacking(node), [1, 1, 1]))
    for (const ssp of ssps.slice(0, 2)) await applied(node, ssp, 1)
    await until("what two have applied is known", async () => isDeepStrictEqual(await lacking(node), [0, 0, 1]))
    expect(delivered).toBeUndefined()
    await applied(node, ssps[2]!, 1)
    await answer
    expect(delivered).toBe(3)
  })
  it("D26 answers with those that keep up, each time the last of them speaks, while another one is late", async () => {
    const node = await start({ env: { SVC_SCHEDULER_DELIVERY_WAIT_MS: "1500" } })
    const ssps = [await readyFollower(node, "a"), await readyFollower(node, "b")]
    const first = node.post("/ingest", create("t:1"))
    await until("both lack it", async () => isDeepStrictEqual(await lacking(node), [1, 1]))
    await applied(node, ssps[0]!, 1)
    expect(bodyOf(await first)["delivered"]).toBe(1)
    for (const seq of [2, 3]) {
      const next = node.post("/ingest", create(`t:${seq}`))
      await until("both lack it", async () => isDeepStrictEqual(await lacking(node), [1, seq]))
      await applied(node, ssps[0]!, seq)
      expect(bodyOf(await next)["delivered"]).toBe(1)
    }
  })
  it("takes lines of it as they come: an answer of /ingest waits for one; a wrong one cuts the request", async () => {
    const node = await start({ env: { SVC_SCHEDULER_DELIVERY_WAIT_MS: "30000" } })
    const ssp = await follower(node, "a", ["t"])
    const feed = await Feed.open(node, queryOf(ssp, "t"))
    await applied(node, ssp, 0)
    await ssp.shown(node, "ready")
    const words = await openWords(node, secret)
    expect(words.status).toBe(200)
    const answer = node.post("/ingest", create("t:1"))
    await feed.reached(1)
    words.say({ ssp_id: ssp.id, registration: ssp.registration, seq: 1 })
    expect(bodyOf(await answer)["delivered"]).toBe(1)
    words.say({ ssp_id: ssp.id, registration: ssp.registration + 1, seq: 1 })
    await until("it is cut", () => words.isOver)
    for (const line of ["{", "[]", '{"seq":1}', '{"ssp_id":"a","registration":1.5,"seq":1}', "\u0000"]) {
      const wrong = await openWords(node, secret)
      wrong.write(`${line}\n`)
      await until(`${line} cuts it`, () => wrong.isOver)
    }
    const last = await openWords(node, secret)
    expect(last.status).toBe(200)
    await node.close()
    await until("a scheduler that stops waits for none", () => last.isOver)
  })
  it("D15 takes lines of a caller who shows the secret", async () => {
    const node = await start({ env: { SVC_SCHEDULER_AUTH_SECRET: secret } })
    expect((await openWords(node, "another")).status).toBe(401)
    expect((await openWords(node, secret)).status).toBe(200)
  })
  it("D31 a restart of the scheduler restores where it stood, and sends it nothing", async () => {
    const folder = temporaryFolder()
    afterAll(() => removeFolder(folder))
    const first = await Node.start({ stores: inFolder(folder) })
    const ssp = await follower(first, "a", ["t"])
    const feed = await Feed.open(first, queryOf(ssp, "t"))
    await applied(first, ssp, 0)
    await ssp.shown(first, "ready")
    const written = write(first, "t:1", "t:2")
    await feed.reached(1)
    await applied(first, ssp, 1)
    await feed.reached(2)
    await applied(first, ssp, 2)
    await written
    await first.close()
    const node = await start({ stores: inFolder(folder) })
    await Feed.open(node, queryOf(ssp, "t", 2))
    expect((await applied(node, ssp, 2)).status).toBe(200)
    await ssp.shown(node, "ready")
    expect(ssp.calls("/ingest")).toEqual([])
  })
})
