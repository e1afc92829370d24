/**
 * The log on NATS: the conformance suites, answers that are lost at any byte, a writer that stood still, and what is
 * refused at a start.
 */
import { Effect, Layer } from "effect"
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest"
import { campaign } from "../../kit/data/random.ts"
import * as Nats from "../../kit/processes/nats.ts"
import { TcpProxy } from "../../kit/processes/tcpProxy.ts"
import type { NatsUrl } from "../../src/core/settings/logUrl.ts"
import * as LogUrl from "../../src/core/settings/logUrl.ts"
import * as Frame from "../../src/drivers/nats/frame.ts"
import { durabilityFault } from "../../src/drivers/nats/sharedLog.ts"
import { configFault, serverFault } from "../../src/drivers/nats/streams.ts"
import { layerNats } from "../../src/host/wal/natsLog.ts"
import type { SharedLog } from "../../src/ports/SharedLog.ts"
import type { StartFault } from "../../src/ports/StartFault.ts"
import { seqs, sharedLogSuite } from "./SharedLog.suite.ts"

const missing = Nats.isReachable ? "" : " (skipped: no NATS at 127.0.0.1:4222; SVC_TEST_NATS names one)"
const noServer = Nats.hasServer ? "" : " (skipped: no nats-server in the path)"

/** Why a start fails, and with which code. */
const faultOf = (layer: Layer.Layer<SharedLog, StartFault>): Promise<{ exitCode: number; message: string }> =>
  Effect.runPromise(
    Effect.matchEffect(Effect.scoped(Layer.build(layer)), {
      onFailure: ({ exitCode, message }) => Effect.succeed({ exitCode, message }),
      onSuccess: () => Effect.succeed({ exitCode: 0, message: "opened" })
    })
  )

const addressOf = (url: string): NatsUrl => {
  const address = LogUrl.parse(url)
  if (address?.engine !== "nats") throw new Error(url)
  return address
}

const at = (url: string, more: Partial<Parameters<typeof layerNats>[0]> = {}) => ({
  address: addressOf(url),
  leaseMs: 1_000,
  durability: undefined,
  replicas: 1,
  ...more
})

/** The message that the log ends with. */
const lastFrame = (url: string): Promise<Frame.Frame> =>
  Nats.asking(async (ask) => {
    const { message } = await ask(`STREAM.MSG.GET.svc-log-${Nats.nameOf(url)}`, {
      last_by_subj: `svc.log.${Nats.nameOf(url)}.*`
    })
    const { data, seq } = message as { readonly data: string; readonly seq: number }
    const frame = Frame.decode(seq, Buffer.from(data, "base64"))
    if (frame === undefined || typeof frame === "number") throw new Error(`message ${seq} is no frame`)
    return frame
  })

const numbered = (count: number) => Array.from({ length: count }, (_, i) => ({ seq: i + 1, json: String(i + 1) }))

const through = (proxy: TcpProxy): string => Nats.freshLog(`nats://127.0.0.1:${proxy.port}`)

const proxied = async (): Promise<TcpProxy> => {
  const { hostname, port } = new URL(Nats.address)
  const proxy = await TcpProxy.to(hostname, Number(port || 4222))
  onTestFinished(() => proxy.close())
  return proxy
}

describe.skipIf(!Nats.isReachable)(`the log on NATS${missing}`, () => {
  afterAll(Nats.forget)
  sharedLogSuite("NATS", Nats)

  /** Bytes of an append and of its answer on the wire, at least; between cuts the client connects again. */
  const [there, back] = [900, 60]
  test(
    "D62 an append that is cut off at any byte, or whose answer is, is there once",
    async () => {
      const proxy = await proxied()
      const url = through(proxy)
      const step = campaign ? 1 : 60
      const lost = await Effect.gen(function* () {
        // A lease that outlasts every reconnection: the same writer settles each of them.
        const { wal } = yield* Nats.leading(url, "one", 60_000)
        let n = 0
        yield* wal.append([String(++n)])
        for (const [isBack, most] of [
          [false, there],
          [true, back]
        ] as const)
          for (let bytes = 1; bytes <= most; bytes += isBack ? Math.ceil(step / 6) : step) {
            proxy.cutAfter(bytes, isBack)
            expect(yield* wal.append([String(++n)])).toBe(n)
          }
        expect(yield* wal.append([String(++n)])).toBe(n)
        expect(yield* seqs(wal)).toEqual(numbered(n))
        return n
      }).pipe(Effect.scoped, Effect.runPromise)
      expect(proxy.cuts).toBeGreaterThan(lost / 2)
    },
    campaign ? 1_800_000 : 60_000
  )

  test("D62 an append of a writer that could not be heard while another took over is refused", async () => {
    const proxy = await proxied()
    const url = through(proxy)
    const direct = `${Nats.address}/${Nats.nameOf(url)}`
    await Effect.gen(function* () {
      const old = yield* Nats.leading(url, "old", 60_000)
      yield* old.wal.append(["1"])
      proxy.hold()
      const late = yield* Effect.fork(Effect.flip(old.wal.append(["late"])))
      yield* Effect.sleep(100)
      const next = yield* Nats.leading(direct, "next", 1_000)
      yield* next.wal.append(["2"])
      proxy.release()
      expect((yield* late).reason).toBe("fenced")
      yield* next.wal.append(["3"])
      expect(yield* seqs(next.wal)).toEqual(numbered(3))
    }).pipe(Effect.scoped, Effect.runPromise)
  })

  test("D62 what was cut from the log leaves the stream, and rows of the pool that lay there move up", () =>
    Effect.gen(function* () {
      const url = Nats.freshLog()
      const { log, pool, wal } = yield* Nats.leading(url, "one")
      yield* pool.open(log.logId)
      yield* pool.write([{ tag: "PersistJob", row: { job: "job:1", table: "job", home: undefined, told: false } }])
      for (let i = 1; i <= 40; i++) yield* wal.append([JSON.stringify("x".repeat(1_000))])
      const state = Effect.promise(() =>
        Nats.asking(
          async (ask) => (await ask(`STREAM.INFO.svc-log-${Nats.nameOf(url)}`)).state as Record<string, number>
        )
      )
      const { first_seq: first, messages } = yield* state
      expect([first, messages! > 40]).toEqual([1, true])
      yield* wal.dropBefore(31)
      expect(yield* wal.keptAfter).toBe(30)
      const now = yield* state
      expect(now.first_seq).toBeGreaterThan(30)
      expect(now.messages).toBeLessThan(20)
      yield* wal.dropBefore(41)
      expect((yield* state).messages).toBeLessThan(8)
      yield* log.handOver((yield* log.row).leader!)
      const next = yield* Nats.leading(url, "two")
      expect(yield* next.wal.lastSeq).toBe(40)
      expect((yield* next.pool.open(log.logId)).saved.jobs).toEqual([
        { job: "job:1", table: "job", home: undefined, told: false }
      ])
    }).pipe(Effect.scoped, Effect.runPromise))

  test("D62 a pool of hundreds of writes between records is what they come to, in their order", () =>
    Effect.gen(function* () {
      const url = Nats.freshLog()
      const { epoch, log, pool, wal } = yield* Nats.leading(url, "one", 60_000)
      yield* pool.open(log.logId)
      const row = (n: number) => ({ query: `q${n % 70}`, view: "v", ends: n, at: n })
      for (let n = 1; n <= 200; n++) {
        yield* pool.write([{ tag: "PersistQuarantine", row: row(n) }])
        if (n % 3 === 0) yield* wal.append([String(n)])
      }
      const kept = Array.from({ length: 70 }, (_, i) => row(131 + i))
      yield* log.handOver((yield* log.row).leader!)
      const next = yield* Nats.leading(url, "two", 60_000)
      const byQuery = (rows: ReadonlyArray<{ readonly query: string }> = []) =>
        [...rows].sort((a, b) => (a.query < b.query ? -1 : 1))
      expect(byQuery((yield* next.pool.open(log.logId)).saved.quarantined)).toEqual(byQuery(kept))
      // A write that is missing between two others is not passed over.
      const { head } = yield* Effect.promise(() => lastFrame(url))
      expect([head.kind, head.epoch]).toEqual(["pool", epoch + 1])
      const late = Frame.encode({ ...head, writes: head.writes + 2 }, Frame.bytesOf("[]"))
      yield* Effect.promise(() => Nats.publishing(`svc.log.${Nats.nameOf(url)}.pool`, late))
      yield* next.log.handOver((yield* log.row).leader!)
      const last = yield* Nats.leading(url, "three", 60_000)
      const { message, reason } = yield* Effect.flip(last.pool.open(log.logId))
      expect(reason).toBe("damaged")
      expect(message).toContain(`should hold write ${head.writes + 1} of the pool, and it is not there`)
    }).pipe(Effect.scoped, Effect.runPromise))

  test("D62 beats of a leader that writes nothing do not fill the stream", () =>
    Effect.gen(function* () {
      const url = Nats.freshLog()
      const { epoch, log, wal } = yield* Nats.leading(url, "one", 60_000)
      yield* wal.append(["1"])
      for (let i = 0; i < 700; i++) expect(yield* log.beat(epoch)).toBe("relaxed")
      yield* wal.append(["2"])
      const { messages } = yield* Effect.promise(() =>
        Nats.asking(
          async (ask) => (await ask(`STREAM.INFO.svc-log-${Nats.nameOf(url)}`)).state as Record<string, number>
        )
      )
      expect(messages).toBeLessThan(120)
      expect(yield* seqs(wal)).toEqual(numbered(2))
      // Another process knows of no message: it finds them across what was taken out.
      yield* log.handOver((yield* log.row).leader!)
      const other = yield* Nats.leading(url, "two")
      expect(yield* seqs(other.wal)).toEqual(numbered(2))
    }).pipe(Effect.scoped, Effect.runPromise))

  test("a log cut by hand ends the start with 3, and both positions are named", async () => {
    const url = Nats.freshLog()
    const five = ["1", "2", "3", "4", "5"]
    await Effect.gen(function* () {
      const { wal } = yield* Nats.leading(url, "one")
      for (const each of five) yield* wal.append([each])
    }).pipe(Effect.scoped, Effect.runPromise)
    // The beginning, the first term, then one message for each record.
    await Nats.asking((ask) => ask(`STREAM.PURGE.svc-log-${Nats.nameOf(url)}`, { seq: 5 }))
    const fault = await faultOf(Nats.sharedOf(url))
    expect(fault.exitCode).toBe(3)
    expect(fault.message).toMatch(/records begin at seq 3, and it should hold 1 to 5/)
    await Nats.asking((ask) => ask(`STREAM.PURGE.svc-log-${Nats.nameOf(url)}`))
    const empty = await faultOf(Nats.sharedOf(url))
    expect(empty.exitCode).toBe(3)
    expect(empty.message).toMatch(/has no message/)
  })

  test("a stream that loses records by itself is refused, and so are copies that no server can keep", async () => {
    const url = Nats.freshLog()
    const stream = `svc-log-${Nats.nameOf(url)}`
    await Effect.runPromise(Effect.scoped(Layer.build(Nats.sharedOf(url))))
    await Nats.asking(async (ask) => {
      const { config } = await ask(`STREAM.INFO.${stream}`)
      await ask(`STREAM.UPDATE.${stream}`, { ...(config as object), max_msgs: 10 })
    })
    expect((await faultOf(Nats.sharedOf(url))).message).toMatch(/max_msgs of 10, by which records would be lost/)
    expect((await faultOf(layerNats(at(Nats.freshLog(), { replicas: 3 })))).message).toMatch(
      /cannot keep 3 copies \(SVC_LOG_REPLICAS\).*SVC_LOG_REPLICAS to fewer/
    )
    const one = Nats.freshLog()
    await Effect.runPromise(Effect.scoped(Layer.build(Nats.sharedOf(one))))
    expect((await faultOf(layerNats(at(one, { replicas: 3 })))).message).toMatch(/cannot keep 3 copies/)
  })

  test("D62 a log on NATS is not said to be flushed", async () => {
    const fault = await faultOf(layerNats(at(Nats.freshLog(), { durability: "flushed" })))
    expect(fault).toMatchObject({ exitCode: 1, message: expect.stringMatching(/SVC_LOG_DURABILITY=flushed/) })
    expect(durabilityFault("replicated", 1)).toMatch(/SVC_LOG_REPLICAS=2/)
    for (const [asked, replicas] of [
      ["replicated", 3],
      ["relaxed", 1],
      [undefined, 1]
    ] as const)
      expect(durabilityFault(asked, replicas)).toBeUndefined()
  })
})

describe.skipIf(!Nats.hasServer)(`a NATS of its own${noServer}`, () => {
  let small: Nats.Servers
  let bare: Nats.Servers
  beforeAll(async () => {
    small = await Nats.Servers.start(1, "max_payload: 65536")
    bare = await Nats.Servers.start(1, "# no jetstream")
  })
  afterAll(() => Promise.all([small?.close(), bare?.close()]))

  test("D62 records longer than a message of the server are there whole, and the log goes on behind them", () =>
    Effect.gen(function* () {
      const url = Nats.freshLog(small.url)
      const long = JSON.stringify("ü😀".repeat(60_000))
      const { log, pool, wal } = yield* Nats.leading(url, "one")
      expect(yield* wal.append(["1", long, "3"])).toBe(3)
      expect(yield* wal.append(["4"])).toBe(4)
      const row = { query: long, view: "v", ends: 1, at: 1 }
      yield* pool.open(log.logId)
      yield* pool.write([{ tag: "PersistQuarantine", row }])
      yield* log.handOver((yield* log.row).leader!)
      const next = yield* Nats.leading(url, "two")
      expect((yield* seqs(next.wal)).map(({ json }) => json)).toEqual(["1", long, "3", "4"])
      expect((yield* next.pool.open(log.logId)).saved.quarantined).toEqual([row])
    }).pipe(Effect.scoped, Effect.runPromise))

  test("a server without JetStream is named, with what to turn on", async () => {
    expect((await faultOf(Nats.sharedOf(Nats.freshLog(bare.url)))).message).toMatch(/no JetStream.*-js/)
  })
})

test("a server that cannot be reached, or a client that is missing, is named without the password", async () => {
  const nowhere = await faultOf(layerNats(at("nats://u:hidden@127.0.0.1:1/log")))
  expect(nowhere.exitCode).toBe(1)
  expect(nowhere.message).toMatch(/SVC_LOG_URL.*cannot be reached/)
  expect(nowhere.message).not.toContain("hidden")
  const absent = layerNats(at("nats://u:hidden@127.0.0.1:1/log"), () =>
    Promise.reject(new Error("Cannot find package"))
  )
  expect(await faultOf(absent)).toMatchObject({
    exitCode: 2,
    message: expect.stringMatching(/npm install @nats-io\/transport-node@/)
  })
})

test("a server is refused that is too old, or takes too short messages", () => {
  const good = { version: "2.9.10", max_payload: 1_048_576 }
  for (const version of ["2.9.0", "2.10.1", "2.12.0-RC.1", "3.0.0"])
    expect(serverFault({ ...good, version })).toBeUndefined()
  for (const version of ["2.8.4", "1.9.9", "?"])
    expect(serverFault({ ...good, version })).toMatch(/must be 2.9 or later/)
  expect(serverFault({ ...good, max_payload: 1024 })).toMatch(/max_payload is 1024.*65536/)
})

test("a stream is refused that is not as it was made, and each difference is named", () => {
  const good = {
    name: "svc-log-a",
    subjects: ["svc.log.a.*"],
    num_replicas: 1,
    storage: "file",
    retention: "limits",
    max_age: 0,
    max_bytes: -1,
    max_msgs: -1,
    max_msgs_per_subject: -1
  }
  expect(configFault(good, "svc.log.a.*")).toBeUndefined()
  const wrong = { storage: "memory", retention: "workqueue", max_age: 5, max_bytes: 1, subjects: ["b"], sealed: true }
  const fault = configFault({ ...good, ...wrong }, "svc.log.a.*")
  for (const each of ["memory", "workqueue", "max_age of 5", "max_bytes of 1", "svc.log.a.*", "sealed"])
    expect(fault).toContain(each)
})

test("an address of a log on NATS: what is taken, and what is shown of it", () => {
  expect(LogUrl.parse("nats://u:p%40@a,b:5/x-1")).toEqual({
    engine: "nats",
    servers: ["a:4222", "b:5"],
    isTls: false,
    credentials: ["u", "p@"],
    log: "x-1",
    shown: "nats://a:4222,b:5/x-1"
  })
  expect(LogUrl.parse("tls://token@[::1]:7?log=y")).toMatchObject({
    servers: ["[::1]:7"],
    isTls: true,
    credentials: ["token"],
    log: "y"
  })
  expect(LogUrl.parse("nats://a")).toMatchObject({ log: "svc", credentials: [] })
  for (const bad of [
    "nats://",
    "nats://a,,b",
    "nats://a:99999",
    "nats://a/X",
    "nats://a/b/c",
    "nats://a/b?log=c",
    "nats://a?log=",
    "nats://a?x=1",
    "nats://:p@a",
    "nats://u:%zz@a"
  ])
    expect(LogUrl.parse(bad), bad).toBeUndefined()
})
