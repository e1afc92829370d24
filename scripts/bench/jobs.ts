/**
 * The bench of jobs: how many one SSP runs in a second against a local backend, beside the same calls made by a bare
 * client, and how long a job waits until its call arrives.
 *
 * The backend lives here, so that a call's arrival and what announced it are read off one clock. It answers at once:
 * what is measured is ours. A run counts from the first change that is sent until the last status is written. The bare
 * client makes the same requests over as many connections, in turns with the SSP; the ratio says what claiming, writing
 * and serving cost beside a call.
 */

import { writeFileSync } from "node:fs"
import { Agent, createServer, request as httpRequest, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { request } from "../../kit/checks/http.ts"
import { Door, removeFolder, secret, sleep, temporaryFolder, until } from "../../kit/processes/Door.ts"
import { ProcessCluster } from "../../kit/processes/processCluster.ts"
import { ServerProcess } from "../../kit/processes/surreal/ServerProcess.ts"
import { rootClient } from "../../kit/processes/surreal/sdk.ts"
import { jobTable } from "../../src/core/surreal/jobTableSchema.ts"
import { printed } from "../../src/core/surreal/surrealSchema.ts"
import { cpuMicros, type Judged, load, median, requestBytes } from "./load.ts"

const rounds = 5
const perRound = 3_000
/** Changes in one request, and requests under way together. */
const perRequest = 100
const connections = 4
/** Calls under way together, of the SSP and of the bare client. */
const concurrency = 64
const noGoal = Infinity
/** One job after the other, and so many a second. */
const alone = 300
const paced = 1_000
const perSecond = 200

/** Notes when each job's call arrived. */
class Arrivals {
  readonly at = new Map<string, number>()
  readonly server: Server

  private constructor(server: Server) {
    this.server = server
    server.on("request", (message, response) => {
      this.at.set(String(message.headers["idempotency-key"]), performance.now())
      message.resume()
      message.on(
        "end",
        () => void response.writeHead(200, { "content-type": "application/json", "content-length": 2 }).end("{}")
      )
    })
  }

  static async start(): Promise<Arrivals> {
    const server = createServer({ keepAliveTimeout: 60_000 })
    await new Promise<void>((done) => void server.listen(0, "127.0.0.1", done))
    return new Arrivals(server)
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`
  }

  close(): void {
    this.server.closeAllConnections()
    this.server.close()
  }
}

/** The runner of the jobs: where changes go, and how it is seen that all have ended. */
interface Runner {
  readonly name: string
  readonly port: number
  /** Processes whose time counts. */
  readonly pids: ReadonlyArray<number>
  readonly before?: (records: ReadonlyArray<object>) => Promise<unknown>
  readonly over: () => Promise<boolean>
  readonly close: () => Promise<unknown>
}

let made = 0
const change = (n: number): object => ({
  table: "mail_job",
  op: "CREATE",
  id: `mail_job:${n}`,
  record: {
    path: "/send",
    payload: { to: `user${n}@example.org`, subject: "Hello" },
    status: "pending",
    retries: 0,
    max_retries: 3,
    retry_strategy: "linear",
    errors: []
  }
})

const bareCall = (url: string, agent: Agent, n: number): Promise<void> =>
  new Promise((done, failed) => {
    const body = JSON.stringify({ to: `user${n}@example.org`, subject: "Hello" })
    const headers = {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
      authorization: "Bearer t",
      "idempotency-key": `bare:${n}`
    }
    httpRequest(`${url}/send`, { agent, method: "POST", headers }, (response) => void response.resume().on("end", done))
      .on("error", failed)
      .end(body)
  })

/** Milliseconds for the calls alone. */
const bare = async (url: string): Promise<number> => {
  const agent = new Agent({ keepAlive: true, maxSockets: concurrency })
  const start = performance.now()
  let next = 0
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      while (next < perRound) await bareCall(url, agent, next++)
    })
  )
  agent.destroy()
  return performance.now() - start
}

interface Run {
  readonly ms: number
  readonly cpuMicros: number
}

const cpuOf = (pids: ReadonlyArray<number>): number => pids.reduce((sum, pid) => sum + cpuMicros(pid), 0)

const run = async (runner: Runner, arrivals: Arrivals): Promise<Run> => {
  const from = made
  made += perRound
  const bodies = Array.from({ length: perRound / perRequest }, (_, i) =>
    Array.from({ length: perRequest }, (_, k) => change(from + i * perRequest + k))
  )
  if (runner.before !== undefined) for (const body of bodies) await runner.before(body)
  const cpu = cpuOf(runner.pids)
  const start = performance.now()
  await load(runner.port, runner.pids[0]!, bodies.length, (n) => requestBytes("/ingest", bodies[n]), connections)
  await until(
    `${runner.name} has called for each job`,
    () =>
      arrivals.at.has(`mail_job:${made - 1}`) &&
      Array.from({ length: perRound }, (_, n) => arrivals.at.has(`mail_job:${from + n}`)).every(Boolean),
    300_000
  )
  await until(`${runner.name} has written each outcome`, runner.over, 300_000)
  return { ms: performance.now() - start, cpuMicros: (cpuOf(runner.pids) - cpu) / perRound }
}

const percentile = (figures: ReadonlyArray<number>, share: number): number =>
  [...figures].sort((a, b) => a - b)[Math.min(figures.length - 1, Math.floor(figures.length * share))] ?? Number.NaN

/** Milliseconds from the sending of a job's change to the arrival of its call. */
const latencies = async (
  runner: Runner,
  arrivals: Arrivals
): Promise<{ readonly alone: ReadonlyArray<number>; readonly paced: ReadonlyArray<number> }> => {
  const sentAt = new Map<string, number>()
  const send = async (): Promise<string> => {
    const n = made++
    const key = `mail_job:${n}`
    await runner.before?.([change(n)])
    sentAt.set(key, performance.now())
    const answer = await request(`http://127.0.0.1:${runner.port}`, {
      method: "POST",
      path: "/ingest",
      token: secret,
      body: change(n)
    })
    if (answer.status !== 200) throw new Error(answer.text)
    return key
  }
  const waited = (keys: ReadonlyArray<string>) => keys.map((key) => arrivals.at.get(key)! - sentAt.get(key)!)
  const one: Array<string> = []
  for (let i = 0; i < alone; i++) {
    const key = await send()
    while (!arrivals.at.has(key)) await new Promise((done) => setImmediate(done))
    one.push(key)
  }
  const start = performance.now()
  const many: Array<Promise<string>> = []
  for (let i = 0; i < paced; i++) {
    while (performance.now() - start < (i * 1000) / perSecond) await sleep(1)
    many.push(send())
  }
  const keys = await Promise.all(many)
  await until("each has been called", () => keys.every((key) => arrivals.at.has(key)), 120_000)
  await until(`${runner.name} has written each outcome`, runner.over, 120_000)
  return { alone: waited(one), paced: waited(keys) }
}

const measure = async (
  runner: Runner,
  arrivals: Arrivals,
  goals: { readonly perSecond: number; readonly p50: number }
): Promise<ReadonlyArray<Judged>> => {
  const ratios: Array<number> = [],
    rates: Array<number> = [],
    cpu: Array<number> = []
  for (let round = -1; round < rounds; round++) {
    const bareMs = await bare(arrivals.url)
    const { cpuMicros: micros, ms } = await run(runner, arrivals)
    if (round < 0) continue
    ratios.push(ms / bareMs)
    rates.push((perRound / ms) * 1000)
    cpu.push(micros)
  }
  const waits = await latencies(runner, arrivals)
  const show = (figures: ReadonlyArray<number>): string =>
    `p50 ${percentile(figures, 0.5).toFixed(1)} ms, p99 ${percentile(figures, 0.99).toFixed(1)} ms`
  const rate = median(rates),
    p50 = percentile(waits.paced, 0.5)
  console.log(
    `  ${runner.name}: ${rate.toFixed(0)} jobs per second, rounds ${rates.map((figure) => figure.toFixed(0)).join(" ")}; ${median(cpu).toFixed(0)} us CPU per job; ${median(ratios).toFixed(1)} times the bare calls`
  )
  console.log(
    `  ${runner.name}: from change to call, one after the other ${show(waits.alone)}; ${perSecond} a second ${show(waits.paced)}`
  )
  const judged = [
    { what: "milliseconds for 1,000 jobs", ratio: 1e6 / rate, goal: 1e6 / goals.perSecond },
    { what: "start latency p50, ms", ratio: p50, goal: goals.p50 }
  ]
  for (const { goal, ratio, what } of judged)
    console.log(
      `| ${runner.name}: ${what} | ${ratio.toFixed(1)} | ${goal === noGoal ? "no goal |  |" : `at most ${goal} | ${ratio <= goal ? "met" : "missed"} |`}`
    )
  return judged
}

const written = (folder: string, url: string): string => {
  const path = join(folder, "svc.yml")
  writeFileSync(
    path,
    `job_tables:\n  mail_job:\n    name: mail\n    base_url: ${url}\n    auth_token: t\n    concurrency: ${concurrency}\n`
  )
  return path
}

const none = (port: number) => async (): Promise<boolean> => {
  for (const status of ["pending", "processing"]) {
    const answer = await request(`http://127.0.0.1:${port}`, {
      path: `/jobs?table=mail_job&status=${status}&limit=1`,
      token: secret
    })
    if (answer.status !== 200) throw new Error(answer.text)
    if ((answer.json as { readonly jobs: ReadonlyArray<unknown> }).jobs.length > 0) return false
  }
  return true
}

const embedded = async (
  name: string,
  config: string,
  env: { readonly [name: string]: string | undefined }
): Promise<Runner> => {
  const door = await Door.start({ env: { SVC_LOG_LEVEL: "error", SVC_CONFIG_PATH: config, ...env } })
  return { name, port: door.port, pids: [door.pid], over: none(door.port), close: () => door.close() }
}

const beside = async (config: string): Promise<Runner> => {
  const server = await ServerProcess.start()
  const db = await rootClient(server)
  await db.query(printed([jobTable("mail_job")]))
  const door = await Door.start({
    env: {
      SVC_LOG_LEVEL: "error",
      SVC_CONFIG_PATH: config,
      STORE_ADDR: `127.0.0.1:${server.port}`,
      STORE_NS: "n",
      STORE_DB: "d",
      STORE_USER: "root",
      STORE_PASS: "root"
    }
  })
  return {
    name: "one SSP beside a database",
    port: door.port,
    pids: [door.pid],
    over: none(door.port),
    before: (body) =>
      db.query(
        "FOR $job IN $jobs { CREATE type::record($job.id) CONTENT { path: $job.record.path, payload: $job.record.payload } }",
        { jobs: body }
      ),
    close: async () => {
      await db.close()
      await door.close()
      await server.kill()
    }
  }
}

const cluster = async (config: string, ssps: number): Promise<Runner> => {
  const env = { SVC_CONFIG_PATH: config, SVC_LOG_LEVEL: "error" }
  const running = await ProcessCluster.start(ssps, env, () => env)
  await until(
    "the SSPs are ready",
    async () => (await running.scheduler.ask({ path: "/health" }))?.status === 200,
    60_000
  )
  const port = Number(new URL(running.scheduler.url).port)
  const over = async (): Promise<boolean> =>
    (
      (await running.scheduler.ask({ path: "/metrics" }))?.json as
        | { readonly scheduler?: { readonly running_jobs: number } }
        | undefined
    )?.scheduler?.running_jobs === 0
  return {
    name: `a cluster of ${ssps}`,
    port,
    pids: running.all.map(({ door }) => door!.pid),
    over,
    close: () => running.close()
  }
}

const goals = { perSecond: 1_000, p50: 10 }
const noGoals = { perSecond: 1e6 / noGoal, p50: noGoal }

/** `SVC_BENCH_JOBS` names one of the settings, for a closer look. */
export const jobs = async (): Promise<ReadonlyArray<Judged>> => {
  const folder = temporaryFolder()
  const arrivals = await Arrivals.start()
  const config = written(folder, arrivals.url)
  const settings = [
    ["memory", () => embedded("one SSP, memory://", config, {}), goals],
    ["sqlite", () => embedded("one SSP, SQLite", config, { STORE_ADDR: undefined }), goals],
    ["database", () => beside(config), noGoals],
    ["cluster1", () => cluster(config, 1), noGoals],
    ["cluster3", () => cluster(config, 3), noGoals]
  ] as const
  const lines: Array<Judged> = []
  try {
    for (const [name, start, goal] of settings) {
      if ((process.env["SVC_BENCH_JOBS"] ?? name) !== name) continue
      const runner = await start()
      try {
        lines.push(...(await measure(runner, arrivals, goal)))
      } finally {
        await runner.close()
      }
    }
  } finally {
    arrivals.close()
    removeFolder(folder)
  }
  return lines
}
