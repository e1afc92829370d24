/**
 * The lives of jobs, drawn: created, deleted, created again as they were, delivered again, retried, handed over by a
 * stop or a death of their runner, in any order, on a node of its own and in a cluster.
 *
 * Identical content on purpose: what tells one job of an id from the next is its creation. The backend is the judge,
 * and the status that is shown: a job that stays is called and done, nothing is shown done that was not called since it
 * was created, nothing is called after it was shown done, and its errors are those of its own calls.
 */
import { HttpApiBuilder, HttpServer } from "@effect/platform"
import { Effect, Layer, Logger, LogLevel } from "effect"
import { expect } from "vitest"
import { type Rng, rounds, seeded } from "../../kit/data/random.ts"
import { secret, sleep, until } from "../../kit/processes/Door.ts"
import * as Loopback from "../../src/drivers/loopback.ts"
import { Database } from "../../src/ports/Database.ts"
import { Serving } from "../../src/ports/Front.ts"
import * as SchedulerMemory from "../../src/scheduler/Memory.ts"
import * as SspMemory from "../../src/ssp/Memory.ts"
import * as Ssp from "../../src/ssp/Ssp.ts"

const file = "test/live/jobLives.test.ts"
const steps = rounds(60)
const keys = ["job:1", "job:2", "job:3", "job:4"] as const

type Key = (typeof keys)[number]
type Node = ReturnType<typeof HttpApiBuilder.toWebHandler>
type Hosts = Map<string, Loopback.Handler>

const quiet = Logger.minimumLogLevel(LogLevel.None)
const jobTables = { job_tables: { job: { name: "backend", base_url: "http://backend:8080", timeout_ms: 2000 } } }
const sspEnv = { SVC_AUTH_SECRET: secret, SVC_JOB_RETRY_BASE_MS: "5", HEARTBEAT_INTERVAL_MS: "100" }

interface Call {
  readonly at: number
  readonly status: number
}

/** One life of an id, from its creation to its deletion. */
interface Life {
  readonly from: number
  doneSeen: number | undefined
}

/** Answers most calls well, and notes when each came. */
class Judge {
  readonly calls = new Map<string, Array<Call>>()
  readonly faults: Array<string> = []
  private readonly lives = new Map<Key, Life>()
  private readonly random: Rng

  constructor(random: Rng) {
    this.random = random
  }

  readonly handler: Loopback.Handler = async (request) => {
    const key = request.headers.get("idempotency-key") as Key
    const at = performance.now()
    const status = this.random.chance(0.7) ? 200 : this.random.chance(0.7) ? 503 : 429
    this.calls.set(key, [...(this.calls.get(key) ?? []), { at, status }])
    const life = this.lives.get(key)
    if (life?.doneSeen !== undefined && life.doneSeen < at)
      this.faults.push(`${key} is called ${at} after it was done ${life.doneSeen}`)
    await sleep(this.random.below(60))
    return new Response(`{"at":${at}}`, { status, headers: status === 429 ? { "retry-after": "1" } : {} })
  }

  born(key: Key): void {
    if (!this.lives.has(key)) this.lives.set(key, { from: performance.now(), doneSeen: undefined })
  }

  died(key: Key): void {
    this.lives.delete(key)
  }

  life(key: Key): Life | undefined {
    return this.lives.get(key)
  }

  /** `sentAt`: when the answer was asked for, in which this was shown. */
  shown(
    key: Key,
    sentAt: number,
    job: { readonly status?: string; readonly errors?: ReadonlyArray<Attempt> }
  ): boolean {
    const life = this.lives.get(key)
    if (life === undefined || life.from > sentAt) return true
    const since = (this.calls.get(key) ?? []).filter(({ at }) => at >= life.from)
    for (const { reason } of job.errors ?? []) {
      const at = Number(/"at":([\d.]+)/.exec(reason)?.[1])
      if (!since.some((call) => call.at === at)) this.faults.push(`${key} shows an error of another: ${reason}`)
    }
    if (job.status !== "success") return false
    if (!since.some(({ status }) => status === 200)) this.faults.push(`${key} is shown done, and was not called`)
    life.doneSeen ??= performance.now()
    return true
  }
}

interface Attempt {
  readonly reason: string
}

const send = async ({ handler }: Node, method: string, path: string, body?: unknown): Promise<unknown> => {
  const response = await handler(
    new Request(`http://node${path}`, {
      method,
      headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
  )
  const text = await response.text()
  if (method === "POST" && response.status !== 200) throw new Error(`${path} answered ${response.status}: ${text}`)
  return JSON.parse(text)
}

/** The nodes of a test, and how one of those that run jobs leaves and comes again. */
interface World {
  readonly entry: () => Node
  readonly stop: (random: Rng) => Promise<void>
  readonly kill: (random: Rng) => Promise<void>
  readonly close: () => Promise<void>
}

const alone = async (backend: Loopback.Handler): Promise<World> => {
  const client = Loopback.layer(new Map([["backend:8080", backend]]))
  const database = await Effect.runPromise(Database.pipe(Effect.provide(Database.layerMemory)))
  const kept = Layer.succeed(Database, { ...database, exclusive: true })
  const begin = async (): Promise<Node> => {
    const drivers = Layer.mergeAll(SspMemory.ports({ ...sspEnv, SSP_ID: "me" }, client, jobTables), kept, quiet)
    const node = HttpApiBuilder.toWebHandler(
      Layer.mergeAll(Ssp.layer.pipe(Layer.provide(drivers)), HttpServer.layerContext, quiet)
    )
    await until("ready", async () => JSON.stringify(await send(node, "GET", "/health")).includes('"ready"'))
    return node
  }
  let node = await begin()
  const stop = async (): Promise<void> => {
    await node.dispose()
    node = await begin()
  }
  return { entry: () => node, stop, kill: stop, close: () => node.dispose() }
}

const cluster = async (backend: Loopback.Handler): Promise<World> => {
  const atScheduler: Hosts = new Map()
  const env = {
    SVC_AUTH_SECRET: secret,
    SVC_SCHEDULER_SSP_URL_ALLOW: "a,b",
    SVC_SCHEDULER_SSP_POLL_INTERVAL_MS: "20",
    SVC_SCHEDULER_HEARTBEAT_INTERVAL_MS: "100",
    SVC_SCHEDULER_HEARTBEAT_TIMEOUT_MS: "2000"
  }
  const scheduler = HttpApiBuilder.toWebHandler(
    Layer.merge(
      SchedulerMemory.layer(env, Loopback.layer(atScheduler), jobTables).pipe(Layer.provide(quiet)),
      Layer.merge(HttpServer.layerContext, quiet)
    )
  )
  const ended: Array<Promise<void>> = []
  const begin = async (id: string) => {
    const hosts: Hosts = new Map([
      ["backend:8080", backend],
      ["scheduler:9667", scheduler.handler]
    ])
    const settings = { ...sspEnv, SSP_ID: id, SCHEDULER_URL: "http://scheduler:9667", ADVERTISE_ADDR: `${id}:8667` }
    const node = HttpApiBuilder.toWebHandler(
      Layer.merge(
        Serving.layerListening(8667).pipe(
          Layer.provideMerge(SspMemory.layer(settings, Loopback.layer(hosts), jobTables)),
          Layer.provide(quiet)
        ),
        Layer.merge(HttpServer.layerContext, quiet)
      )
    )
    atScheduler.set(`${id}:8667`, node.handler)
    await until(`${id} is ready`, async () => JSON.stringify(await send(node, "GET", "/health")).includes('"ready"'))
    return { id, node, hosts }
  }
  await until("the scheduler is ready", async () => JSON.stringify(await send(scheduler, "GET", "/health")) !== "")
  const ssps = [await begin("a"), await begin("b")]
  const leave = async (random: Rng, how: (ssp: (typeof ssps)[number]) => Promise<void>): Promise<void> => {
    const at = random.below(2)
    const ssp = ssps[at]!
    await how(ssp)
    ssps[at] = await begin(ssp.id)
  }
  return {
    entry: () => scheduler,
    stop: (random) => leave(random, ({ node }) => node.dispose()),
    kill: (random) =>
      leave(random, async ({ hosts, id, node }) => {
        // Whatever it still does is seen by nobody, as of a process that is gone.
        hosts.clear()
        atScheduler.delete(`${id}:8667`)
        ended.push(node.dispose())
      }),
    close: async () => {
      await Promise.all([...ssps.map(({ node }) => node.dispose()), ...ended])
      await scheduler.dispose()
    }
  }
}

const change = (op: string, id: Key) => ({
  table: "job",
  op,
  id,
  record: op === "DELETE" ? {} : { path: "/send", payload: { n: 1 }, status: "pending", max_retries: 1000, errors: [] }
})

for (const [name, make] of [
  ["on a node of its own", alone],
  ["in a cluster", cluster]
] as const)
  seeded(
    `D35 D38 D74 ${name}: a job that stays is called and done, whatever had its id before; nothing is called after it was shown done`,
    file,
    async (random) => {
      const judge = new Judge(random)
      const world = await make(judge.handler)
      const ingest = (...changes: ReadonlyArray<object>) => send(world.entry(), "POST", "/ingest", changes)
      const look = async (key: Key): Promise<boolean> => {
        const at = performance.now()
        const listed = (await send(world.entry(), "GET", "/jobs?table=job")) as {
          readonly jobs?: ReadonlyArray<{
            readonly id: string
            readonly status: string
            readonly errors: ReadonlyArray<Attempt>
          }>
        }
        const job = listed.jobs?.find(({ id }) => id === key)
        return job !== undefined && judge.shown(key, at, job)
      }
      const acts: ReadonlyArray<readonly [number, (key: Key) => Promise<unknown>]> = [
        [
          6,
          (key) => {
            judge.born(key)
            return ingest(change("CREATE", key))
          }
        ],
        [
          3,
          async (key) => {
            await ingest(change("DELETE", key))
            judge.died(key)
          }
        ],
        [
          6,
          async (key) => {
            judge.died(key)
            judge.born(key)
            await ingest(change("DELETE", key), change("CREATE", key))
          }
        ],
        [6, look],
        [4, () => sleep(random.below(80))],
        [1, () => world.stop(random)]
      ]
      const drawn = acts.flatMap(([weight, act]) => Array.from({ length: weight }, () => act))
      const history: Array<string> = []
      try {
        for (let step = 0; step < steps; step++) {
          if (step === Math.floor(steps / 2)) {
            history.push(`${performance.now().toFixed(0)} kill`)
            await world.kill(random)
          }
          const [act, key] = [random.pick(drawn), random.pick(keys)]
          history.push(`${performance.now().toFixed(0)} ${key} ${acts.findIndex(([, one]) => one === act)}`)
          await act(key)
        }
        for (const key of keys)
          if (judge.life(key) !== undefined) await until(`${key} is done`, () => look(key), 30_000)
        // Delivered again as it was, it is neither run again nor shown otherwise.
        for (const key of keys) if (judge.life(key) !== undefined) await ingest(change("CREATE", key))
        for (const key of keys)
          if (judge.life(key) !== undefined) await until(`${key} is still done`, () => look(key), 30_000)
        expect(judge.faults).toEqual([])
      } catch (error) {
        const listed = await send(world.entry(), "GET", "/jobs?table=job").catch(String)
        throw new Error(
          `${String(error)}\n${JSON.stringify(listed)}\n${JSON.stringify([...judge.calls])}\n${history.join(", ")}`
        )
      } finally {
        await world.close()
      }
    },
    180_000
  )
