/**
 * The bench of the cluster: durable ingest beside the least a server can do, what an event costs the scheduler by the
 * number of SSPs, a bootstrap beside the least a copy can cost, how fast an SSP that was away catches up, and what all
 * of it costs when nothing is asked.
 *
 * Everything is a real process. Ingest and bootstrap are judged by time of the clock, both sides in turns in one run:
 * what they wait for, the disk and each other, is part of what is asked.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import ts from "typescript"
import { request } from "../../kit/checks/http.ts"
import { registration } from "../../kit/data/registration.ts"
import { freePort, removeFolder, sleep, temporaryFolder, until } from "../../kit/processes/Door.ts"
import * as Nats from "../../kit/processes/nats.ts"
import * as Postgres from "../../kit/processes/postgres.ts"
import { type Process, ProcessCluster, usualTimes } from "../../kit/processes/processCluster.ts"
import { root } from "../../kit/rules/source.ts"
import { cpuMicros, type Judged, load, median, requestBytes } from "./load.ts"

const rounds = 7
const noGoal = Infinity

const bare = async (
  script: string,
  env: { readonly [name: string]: string }
): Promise<{ readonly port: number; readonly child: ChildProcess }> => {
  const port = await freePort()
  const code = ts.transpileModule(readFileSync(join(root, script), "utf8"), {
    compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 }
  }).outputText
  const child = spawn(process.execPath, ["--input-type=module", "--eval", code], {
    cwd: root,
    env: { ...env, PORT: String(port) },
    stdio: "inherit"
  })
  await until(
    `${script} listens`,
    () =>
      request(`http://127.0.0.1:${port}`, { method: "POST", path: "/?after=-1", body: {}, keepAlive: false }).then(
        () => true,
        () => false
      ),
    120_000
  )
  return { port, child }
}

const post = (n: number): object => ({
  author: `user:${n % 1000}`,
  title: `Post number ${n}`,
  likes: n % 100,
  tags: ["a", "b"],
  draft: false
})
const change = (n: number): object => ({ table: "post", op: "CREATE", id: `post:${n}`, record: post(n) })

let sent = 0

/** Milliseconds of the clock for `count` events over so many connections; no body is sent twice. */
const timed = async (port: number, pid: number, count: number, connections: number): Promise<number> => {
  const from = sent
  sent += count
  const start = performance.now()
  await load(port, pid, count, (n) => requestBytes("/ingest", change(from + n)), connections)
  return performance.now() - start
}

const serving = (cluster: ProcessCluster): Promise<unknown> =>
  until("the scheduler serves", async () => (await cluster.scheduler.ask({ path: "/livez" }))?.status === 200, 60_000)

const told = (what: string, ratio: number, goal: number, more: string): Judged => {
  console.log(
    `| ${what} | ${ratio.toFixed(2)}, ${more} | ${goal === noGoal ? "no goal |  |" : `at most ${goal} | ${ratio <= goal ? "met" : "missed"} |`}`
  )
  return { ratio, goal }
}

const ingest = async (): Promise<ReadonlyArray<Judged>> => {
  const folder = temporaryFolder()
  const yardstick = await bare("scripts/bench/bareLog.ts", { FILE: join(folder, "log") })
  const cluster = await ProcessCluster.start(0)
  try {
    await serving(cluster)
    const scheduler = { port: Number(new URL(cluster.scheduler.url).port), pid: cluster.scheduler.door!.pid }
    const other = { port: yardstick.port, pid: yardstick.child.pid! }
    const lines: Array<Judged> = []
    for (const [connections, count] of [
      [1, 1_500],
      [64, 8_000]
    ] as const) {
      const ratios: Array<number> = []
      let best = Infinity
      for (let round = 0; round < rounds + 2; round++) {
        const [a, b] = round % 2 === 0 ? [scheduler, other] : [other, scheduler]
        const first = await timed(a.port, a.pid, count, connections)
        const second = await timed(b.port, b.pid, count, connections)
        const [own, least] = round % 2 === 0 ? [first, second] : [second, first]
        if (round < 2) continue
        ratios.push(own / least)
        best = Math.min(best, own)
      }
      lines.push(
        told(
          `time of a durable event, ${connections} client${connections === 1 ? "" : "s"} / bare node:http with fdatasync per batch`,
          median(ratios),
          2,
          `best ${((count / best) * 1000).toFixed(0)} events/s, rounds ${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`
        )
      )
    }
    return lines
  } finally {
    yardstick.child.kill()
    await cluster.close()
    removeFolder(folder)
  }
}

/** A view at an SSP itself, which then holds its table. */
const follows = (ssp: Process, query: string, view = "bench"): Promise<unknown> =>
  until(
    `${ssp.name} has the table`,
    async () =>
      (await ssp.ask({ method: "POST", path: "/view/register", body: registration(view, query) }, 20_000))?.status ===
      200,
    600_000
  )

/** What an event costs the scheduler with one and with eight SSPs that apply it, in turns. */
const perSsp = async (): Promise<ReadonlyArray<Judged>> => {
  const clusters: Array<ProcessCluster> = []
  try {
    for (const count of [1, 8]) {
      const cluster = await ProcessCluster.start(count, usualTimes.scheduler, () => usualTimes.ssp)
      clusters.push(cluster)
      for (const ssp of cluster.ssps) await follows(ssp, "SELECT * FROM post WHERE likes > 1000")
    }
    const costs = clusters.map((): Array<number> => [])
    for (let round = 0; round < 2 * rounds + 2; round++)
      for (const [i, { scheduler }] of clusters.entries()) {
        const { pid } = scheduler.door!
        const before = cpuMicros(pid)
        await timed(Number(new URL(scheduler.url).port), pid, 4_000, 64)
        if (round > 1) costs[i]!.push((cpuMicros(pid) - before) / 4_000)
      }
    const [one, eight] = costs as [Array<number>, Array<number>]
    return [
      told(
        "scheduler CPU per event, 8 SSPs / 1 SSP",
        median(eight.map((cost, round) => cost / one[round]!)),
        1.1,
        `${median(one).toFixed(0)} and ${median(eight).toFixed(0)} us`
      )
    ]
  } finally {
    for (const cluster of clusters) await cluster.close()
  }
}

/** No SSP lacks an event. */
const caughtUp = (cluster: ProcessCluster): Promise<unknown> =>
  until(
    "the SSPs have caught up",
    async () => {
      const progress = (await cluster.scheduler.ask({ path: "/progress" }))?.json as
        | { readonly ssps?: ReadonlyArray<{ readonly waiting: number }> }
        | undefined
      return progress?.ssps?.every(({ waiting }) => waiting === 0) === true
    },
    120_000
  )

/** What an SSP spends whose views read two of twenty tables, beside one that is sent all of them, in one cluster. */
const tables = async (): Promise<ReadonlyArray<Judged>> => {
  const names = Array.from({ length: 20 }, (_, n) => `t${n}`)
  // Neither is sent back, whatever waits for it.
  const cluster = await ProcessCluster.start(
    2,
    { ...usualTimes.scheduler, SVC_SCHEDULER_MAX_BUFFER_PER_SSP: "2000000" },
    (id) => ({ ...usualTimes.ssp, SVC_CLUSTER_FEED: id === "ssp-1" ? "pull" : "push" })
  )
  try {
    for (const ssp of cluster.ssps)
      for (const table of ["t0", "t1"]) await follows(ssp, `SELECT * FROM ${table} WHERE likes > 97`, table)
    const port = Number(new URL(cluster.scheduler.url).port)
    const pids = cluster.ssps.map(({ door }) => door!.pid)
    const event = (n: number): object => ({ ...change(n), table: names[n % 20], id: `${names[n % 20]}:${n}` })
    const lines: Array<Judged> = []
    // A commit of the log wakes an SSP if it has events of its tables. With one client a commit has one event; with 64,
    // or in requests of 100, nearly every commit has events of all tables.
    for (const [what, size, count, clients] of [
      ["events one by one from one client", 1, 2_000, 1],
      ["events one by one from 64 clients", 1, 4_000, 64],
      ["events in requests of 100", 100, 400, 64]
    ] as const) {
      const ratios: Array<number> = []
      for (let round = 0; round < rounds + 1; round++) {
        const before = pids.map(cpuMicros)
        const from = sent
        sent += count * size
        await load(
          port,
          cluster.scheduler.door!.pid,
          count,
          (n) =>
            requestBytes(
              "/ingest",
              size === 1 ? event(from + n) : Array.from({ length: size }, (_, i) => event(from + n * size + i))
            ),
          clients
        )
        await caughtUp(cluster)
        const [some, all] = pids.map((pid, i) => cpuMicros(pid) - before[i]!) as [number, number]
        if (round > 0) ratios.push(some / all)
      }
      lines.push(
        told(
          `CPU of an SSP whose views read 2 of 20 tables / one that is sent all, ${what}`,
          median(ratios),
          0.25,
          `rounds ${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`
        )
      )
    }
    return lines
  } finally {
    await cluster.close()
  }
}

/** Time of an event by where the log lies, 64 clients, in turns: a file of the scheduler's, PostgreSQL, NATS. */
const engines = async (): Promise<ReadonlyArray<Judged>> => {
  const servers = [
    { name: "PostgreSQL", isReachable: Postgres.isReachable, url: Postgres.freshLog, goal: 1 / 0.7 },
    { name: "NATS", isReachable: Nats.isReachable, url: () => Nats.freshLog(), goal: 1 }
  ]
  for (const { isReachable, name } of servers) if (!isReachable) console.log(`${name} is not reachable: skipped`)
  const found = servers.filter(({ isReachable }) => isReachable)
  const count = 8_000
  const clusters = [
    await ProcessCluster.start(0),
    ...(await Promise.all(
      found.map(({ url }) =>
        ProcessCluster.start(0, { SVC_LOG_URL: url(), SVC_LOG_REPLICAS: "1", SVC_LOG_DURABILITY: "relaxed" })
      )
    ))
  ]
  try {
    for (const cluster of clusters) await serving(cluster)
    const times = clusters.map((): Array<number> => [])
    for (let round = 0; round < rounds + 1; round++)
      for (const [i, { scheduler }] of clusters.entries()) {
        const ms = await timed(Number(new URL(scheduler.url).port), scheduler.door!.pid, count, 64)
        if (round > 0) times[i]!.push(ms)
      }
    const [file = []] = times
    return found.map(({ goal, name }, i) => {
      const own = times[i + 1]!
      return told(
        `time of an event, log on ${name} / in a file, 64 clients`,
        median(own.map((ms, round) => ms / file[round]!)),
        goal,
        `${((count / median(own)) * 1000).toFixed(0)} and ${((count / median(file)) * 1000).toFixed(0)} events/s`
      )
    })
  } finally {
    for (const cluster of clusters) await cluster.close()
    await Promise.all(found.map(({ name }) => (name === "NATS" ? Nats.forget() : Postgres.forget())))
  }
}

/** Behind a start, V8 optimizes and collects for so long. */
const settleMs = 60_000
const idleMs = 20_000

/**
 * What a scheduler and an SSP spend of which nothing is asked, beside a bare Node process that a timer wakes a hundred
 * times a second: whatever looks at the clock by itself pays for each wake as long as the service runs.
 */
const idle = async (): Promise<ReadonlyArray<Judged>> => {
  const bare = spawn(process.execPath, ["--eval", "setInterval(() => {}, 10)"], { stdio: "inherit" })
  const cluster = await ProcessCluster.start(1, usualTimes.scheduler, () => usualTimes.ssp)
  try {
    const [ssp] = cluster.ssps
    await follows(ssp!, "SELECT * FROM post")
    await sleep(settleMs)
    const pids = [bare.pid!, ssp!.door!.pid, cluster.scheduler.door!.pid]
    const before = pids.map(cpuMicros)
    await sleep(idleMs)
    const [least, ...own] = pids.map((pid, i) => (cpuMicros(pid) - before[i]!) / idleMs) as [number, ...Array<number>]
    return ["SSP with a view", "scheduler with an SSP"].map((what, i) =>
      told(
        `CPU of an idle ${what} / bare node with a timer of 10 ms`,
        own[i]! / least,
        1.5,
        `${own[i]!.toFixed(1)} and ${least.toFixed(1)} ms a second`
      )
    )
  } finally {
    bare.kill()
    await cluster.close()
  }
}

const fill = async (cluster: ProcessCluster, records: number): Promise<void> => {
  const port = Number(new URL(cluster.scheduler.url).port)
  await load(
    port,
    cluster.scheduler.door!.pid,
    records / 500,
    (n) =>
      requestBytes(
        "/ingest",
        Array.from({ length: 500 }, (_, i) => change(n * 500 + i))
      ),
    4
  )
}

/** Seconds to pull a plain table over HTTP and read it, the least a copy costs. */
const plainCopy = async (port: number): Promise<number> => {
  const start = performance.now()
  for (let after = -1, size = 1000; size === 1000; ) {
    const rows = (await (await fetch(`http://127.0.0.1:${port}/?after=${after}`)).json()) as ReadonlyArray<object>
    size = rows.length
    after += size
  }
  return (performance.now() - start) / 1000
}

/** Seconds from the SSP's registration to its readiness, by its own log. */
const bootstrapped = (logs: string): number | undefined => {
  const times = logs
    .split("\n")
    .flatMap((line) =>
      line.startsWith("{") ? [JSON.parse(line) as { readonly time: string; readonly message: string }] : []
    )
  const from = times.find(({ message }) => message.includes("listens on")),
    to = times.find(({ message }) => message.includes("-> ready"))
  return from === undefined || to === undefined ? undefined : (Date.parse(to.time) - Date.parse(from.time)) / 1000
}

const bootstrap = async (): Promise<ReadonlyArray<Judged>> => {
  const records = process.argv.includes("--full") ? 1_000_000 : 100_000
  const folder = temporaryFolder()
  const yardstick = await bare("scripts/bench/bareTable.ts", {
    FILE: join(folder, "table.db"),
    RECORDS: String(records)
  })
  // One is sent every table, the other one reads the table of a view.
  const cluster = await ProcessCluster.start(
    2,
    { SVC_SCHEDULER_BOOTSTRAP_TIMEOUT_SECS: "600", SVC_SCHEDULER_MAX_BUFFER_PER_SSP: "2000000" },
    (id) => ({ SVC_CLUSTER_FEED: id === "ssp-1" ? "push" : "pull", SVC_TABLE_GRACE_SECS: "0" })
  )
  const [ssp, follower] = cluster.ssps
  try {
    await ssp!.stop()
    await fill(cluster, records)
    const plain: Array<number> = [],
      own: Array<number> = [],
      joined: Array<number> = []
    for (let round = 0; round < 3; round++) {
      plain.push(await plainCopy(yardstick.port))
      ssp!.past = ""
      await ssp!.start()
      own.push(await until("the SSP is ready", () => bootstrapped(ssp!.logs), 600_000))
      await ssp!.stop()
      const begun = performance.now()
      await follows(follower!, "SELECT * FROM post WHERE likes > 1000")
      joined.push((performance.now() - begun) / 1000)
      await follower!.stop()
      await follower!.start()
      await until("the SSP is ready", async () => (await follower!.ask({ path: "/health" }))?.status === 200, 60_000)
    }
    const lines = [
      [`bootstrap of ${records} records`, median(own), 3],
      [`a table of ${records} records joins`, median(joined), noGoal]
    ] as const
    return lines.map(([what, seconds, goal]) =>
      told(
        `${what} / plain SQLite table as JSON over HTTP`,
        seconds / median(plain),
        goal,
        `${seconds.toFixed(1)} s, plain ${median(plain).toFixed(1)} s`
      )
    )
  } finally {
    yardstick.child.kill()
    await cluster.close()
    removeFolder(folder)
  }
}

/** How fast an SSP that was stopped takes what came meanwhile. */
const replay = async (): Promise<ReadonlyArray<Judged>> => {
  const events = 8_000
  const cluster = await ProcessCluster.start(1, { SVC_SCHEDULER_HEARTBEAT_TIMEOUT_MS: "120000" })
  const [ssp] = cluster.ssps
  try {
    const port = Number(new URL(cluster.scheduler.url).port)
    await follows(ssp!, "SELECT * FROM post WHERE likes > 1000")
    ssp!.door!.signal("SIGSTOP")
    await timed(port, cluster.scheduler.door!.pid, events, 64)
    const start = performance.now()
    ssp!.door!.signal("SIGCONT")
    await caughtUp(cluster)
    const ms = performance.now() - start
    return [
      told(
        "milliseconds to replay an event to an SSP that was away",
        ms / events,
        noGoal,
        `${((events / ms) * 1000).toFixed(0)} events/s`
      )
    ]
  } finally {
    ssp!.door?.signal("SIGCONT")
    await cluster.close()
  }
}

export const cluster = {
  "cluster-ingest": ingest,
  "cluster-idle": idle,
  "cluster-engines": engines,
  "cluster-ssps": perSsp,
  "cluster-tables": tables,
  "cluster-bootstrap": bootstrap,
  "cluster-replay": replay
}
