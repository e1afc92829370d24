/**
 * A scheduler and its SSPs as real processes on fixed ports, and the load on them: killed, stopped and started again by
 * a test.
 *
 * Fixed ports, because a scheduler that comes back must be found where it was. Every call has a time-out of its own: a
 * stopped process answers nothing, and takes every connection.
 */
import { join } from "node:path"
import { type Answer, type Ask, request } from "../checks/http.ts"
import type { Rng } from "../data/random.ts"
import { Door, freePort, removeFolder, secret, sleep, temporaryFolder, until } from "./Door.ts"

export const within = <A>(ms: number, what: Promise<A>): Promise<A | undefined> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((done) => {
    timer = setTimeout(() => done(undefined), ms)
  })
  return Promise.race([what.catch(() => undefined), late]).finally(() => clearTimeout(timer))
}

/** One process, over its deaths. */
export class Process {
  readonly name: string
  readonly url: string
  door: Door | undefined
  /** Logs of the lives before this one. */
  past = ""
  /**
   * How often it was killed or stopped in its tracks: the same count twice means that it ran in
   * between.
   */
  blows = 0
  private readonly start0: () => Promise<Door>

  constructor(name: string, url: string, start: () => Promise<Door>) {
    this.name = name
    this.url = url
    this.start0 = start
  }

  get logs(): string {
    return this.past + (this.door?.logs ?? "")
  }

  async start(): Promise<void> {
    this.door = await this.start0()
  }

  async kill(): Promise<void> {
    this.blows++
    await this.door?.kill()
    this.past += this.door?.logs ?? ""
    this.door = undefined
  }

  async pause(ms: number): Promise<void> {
    this.blows++
    this.door?.signal("SIGSTOP")
    await sleep(ms)
    this.door?.signal("SIGCONT")
  }

  async stop(): Promise<number | null> {
    const exit = await this.door?.stop()
    this.past += this.door?.logs ?? ""
    this.door = undefined
    return exit?.code ?? null
  }

  /** Undefined: no answer in time. */
  ask(ask: Ask, ms = 2000): Promise<Answer | undefined> {
    return within(ms, request(this.url, { token: secret, keepAlive: false, ...ask }))
  }
}

/** Undefined: what the service has unless told otherwise, and not what is set here for tests. */
type Env = { readonly [name: string]: string | undefined }

const sspProcess = async (id: string, schedulerUrl: string, dataDir: string, more: Env = {}): Promise<Process> => {
  const port = await freePort()
  const env = {
    LISTEN_ADDR: `127.0.0.1:${port}`,
    STORE_ADDR: undefined,
    SCHEDULER_URL: schedulerUrl,
    SSP_ID: id,
    HEARTBEAT_INTERVAL_MS: "500",
    ...more
  }
  return new Process(id, `http://127.0.0.1:${port}`, () => Door.spawn({ dataDir, env }))
}

/** The service's own times; those that {@link ProcessCluster.start} sets for tests keep a cluster busy. */
export const usualTimes = {
  scheduler: {
    SVC_SCHEDULER_SSP_POLL_INTERVAL_MS: undefined,
    SVC_SCHEDULER_HEARTBEAT_INTERVAL_MS: undefined,
    SVC_SCHEDULER_HEARTBEAT_TIMEOUT_MS: undefined
  },
  ssp: { HEARTBEAT_INTERVAL_MS: undefined }
}

export class ProcessCluster {
  readonly scheduler: Process
  readonly ssps: ReadonlyArray<Process>
  private readonly twins: Array<Process> = []
  private readonly folder: string

  private constructor(scheduler: Process, ssps: ReadonlyArray<Process>, folder: string) {
    this.scheduler = scheduler
    this.ssps = ssps
    this.folder = folder
  }

  static async start(
    count: number,
    schedulerEnv: Env = {},
    sspEnv: (id: string) => Env = () => ({})
  ): Promise<ProcessCluster> {
    const folder = temporaryFolder()
    const port = await freePort()
    const url = `http://127.0.0.1:${port}`
    const scheduler = new Process("scheduler", url, () =>
      Door.spawn({
        command: [process.execPath, "dist/scheduler.js"],
        dataDir: folder,
        env: {
          LISTEN_ADDR: undefined,
          STORE_ADDR: undefined,
          SVC_DATA_DIR: undefined,
          SVC_SCHEDULER_INGEST_HOST: "127.0.0.1",
          SVC_SCHEDULER_INGEST_PORT: String(port),
          SVC_SCHEDULER_REPLICA_DB_PATH: join(folder, "replica"),
          SVC_SCHEDULER_WAL_PATH: join(folder, "wal.log"),
          SVC_SCHEDULER_SSP_POLL_INTERVAL_MS: "200",
          SVC_SCHEDULER_HEARTBEAT_INTERVAL_MS: "200",
          SVC_SCHEDULER_HEARTBEAT_TIMEOUT_MS: "1500",
          ...schedulerEnv
        }
      })
    )
    const ssps = await Promise.all(
      Array.from({ length: count }, (_, i) =>
        sspProcess(`ssp-${i + 1}`, url, join(folder, `ssp-${i + 1}`), sspEnv(`ssp-${i + 1}`))
      )
    )
    const cluster = new ProcessCluster(scheduler, ssps, folder)
    await Promise.all([scheduler, ...ssps].map((each) => each.start()))
    await cluster.settled()
    return cluster
  }

  get all(): ReadonlyArray<Process> {
    return [this.scheduler, ...this.ssps, ...this.twins]
  }

  /** Another process with the id of an SSP, on another port. */
  async twin(of: Process): Promise<Process> {
    const twin = await sspProcess(of.name, this.scheduler.url, join(this.folder, `${of.name}-twin`))
    this.twins.push(twin)
    await twin.start()
    return twin
  }

  /** The SSPs that are Ready by the scheduler's word; none when it does not answer. */
  async ready(): Promise<ReadonlyArray<Process>> {
    const answer = await this.scheduler.ask({ path: "/overview" })
    const { ssps = [] } = (answer?.json ?? {}) as {
      readonly ssps?: ReadonlyArray<{ readonly id: string; readonly state: string }>
    }
    return this.ssps.filter(({ name }) => ssps.some(({ id, state }) => id === name && state === "ready"))
  }

  /** All SSPs are Ready. */
  async settled(): Promise<void> {
    await until("all SSPs ready", async () => (await this.ready()).length === this.ssps.length, 120_000).catch(
      (error: unknown) => {
        throw new Error(
          `${String(error)}\n${this.all.map(({ logs, name }) => `--- ${name}\n${logs.slice(-3000)}`).join("\n")}`
        )
      }
    )
  }

  async query(query: string): Promise<ReadonlyArray<{ readonly [field: string]: unknown }>> {
    const answer = await this.scheduler.ask({ method: "POST", path: "/proxy/query", body: { query } }, 30_000)
    if (answer?.status !== 200) throw new Error(`${query}: ${answer?.status} ${answer?.text}`)
    return answer.json as ReadonlyArray<{ readonly [field: string]: unknown }>
  }

  async close(): Promise<void> {
    await Promise.all(this.all.map((each) => each.kill()))
    removeFolder(this.folder)
  }
}

/**
 * Writes records at a rate until it is told to end; a write that is not acknowledged is repeated until it is, so what
 * was acknowledged last is what must be there.
 */
export class Load {
  /** What each record was last acknowledged as; undefined: deleted. */
  readonly known = new Map<number, number | undefined>()
  acknowledged = 0
  /** When each write that was acknowledged was begun, and when it was. */
  readonly times: Array<readonly [begun: number, acknowledged: number]> = []
  /** Writes that were sent more than once. */
  readonly repeated = new Set<number>()
  private ended = false
  private n = 0
  private readonly busy = new Set<number>()
  private readonly scheduler: Pick<Process, "ask">
  private readonly random: Rng
  private readonly keys: number

  constructor(scheduler: Pick<Process, "ask">, random: Rng, keys: number) {
    this.scheduler = scheduler
    this.random = random
    this.keys = keys
  }

  /** The first content of every record. */
  async fill(): Promise<void> {
    for (let from = 0; from < this.keys; from += 500) {
      const batch = Array.from({ length: Math.min(500, this.keys - from) }, (_, i) => this.change(from + i, 0))
      const answer = await this.scheduler.ask({ method: "POST", path: "/ingest", body: batch }, 30_000)
      if (answer?.status !== 200) throw new Error(`filling: ${answer?.status} ${answer?.text}`)
      for (let i = 0; i < batch.length; i++) this.known.set(from + i, 0)
    }
  }

  async run(perSecond: number): Promise<void> {
    const waiting = new Set<Promise<void>>()
    const begun = performance.now()
    let sent = 0
    while (!this.ended) {
      for (; sent < ((performance.now() - begun) / 1000) * perSecond && waiting.size < 200; sent++) {
        const writing: Promise<void> = this.write().finally(() => waiting.delete(writing))
        waiting.add(writing)
      }
      if (waiting.size >= 200) sent = ((performance.now() - begun) / 1000) * perSecond
      await sleep(5)
    }
    await Promise.all(waiting)
  }

  end(): void {
    this.ended = true
  }

  /** The number of the last write; they are counted from 1. */
  get last(): number {
    return this.n
  }

  private change(key: number, n: number | undefined) {
    return n === undefined
      ? { table: "item", op: "DELETE", id: `item:${key}`, record: {} }
      : { table: "item", op: "UPDATE", id: `item:${key}`, record: { n, group: key % 50, even: n % 2 === 0 } }
  }

  private async write(): Promise<void> {
    let key = this.random.below(this.keys)
    while (this.busy.has(key)) key = this.random.below(this.keys)
    this.busy.add(key)
    const n = this.random.chance(0.1) ? undefined : ++this.n
    for (;;) {
      const begun = performance.now()
      const body = this.change(key, n)
      const answer = await this.scheduler.ask({ method: "POST", path: "/ingest", body, keepAlive: true }, 20_000)
      if (answer?.status === 200) {
        this.times.push([begun, performance.now()])
        break
      }
      if (n !== undefined) this.repeated.add(n)
      await sleep(50)
    }
    this.known.set(key, n)
    this.acknowledged++
    this.busy.delete(key)
  }
}
