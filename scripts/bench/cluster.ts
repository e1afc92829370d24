/**
 * The bench of the cluster: durable ingest beside the least a server can do, what an event costs the scheduler by the
 * number of SSPs, a bootstrap beside the least a copy can cost, and how fast an SSP that was away catches up.
 *
 * Everything is a real process. Ingest and bootstrap are judged by time of the clock, both sides in turns in one run:
 * what they wait for, the disk and each other, is part of what is asked.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import ts from "typescript"
import { freePort, removeFolder, temporaryFolder, until } from "../../test/kit/Door.ts"
import { request } from "../../test/kit/http.ts"
import { ProcessCluster } from "../../test/kit/processCluster.ts"
import { root } from "../../test/kit/source.ts"
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

/** What an event costs the scheduler with one, two and four SSPs that apply it. */
const perSsp = async (): Promise<ReadonlyArray<Judged>> => {
  const figures: Array<number> = []
  for (const count of [1, 2, 4]) {
    const cluster = await ProcessCluster.start(count)
    try {
      const { pid } = cluster.scheduler.door!
      const port = Number(new URL(cluster.scheduler.url).port)
      const costs: Array<number> = []
      for (let round = 0; round < 5; round++) {
        const before = cpuMicros(pid)
        await timed(port, pid, 4_000, 64)
        costs.push((cpuMicros(pid) - before) / 4_000)
      }
      figures.push(median(costs.slice(1)))
    } finally {
      await cluster.close()
    }
  }
  const [one, two, four] = figures as [number, number, number]
  const text = `${one.toFixed(0)}, ${two.toFixed(0)}, ${four.toFixed(0)} us with 1, 2, 4`
  return [told("scheduler CPU per event, 4 SSPs / 1 SSP", four / one, noGoal, text)]
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
  const cluster = await ProcessCluster.start(1, {
    SVC_SCHEDULER_BOOTSTRAP_TIMEOUT_SECS: "600",
    SVC_SCHEDULER_MAX_BUFFER_PER_SSP: "2000000"
  })
  const [ssp] = cluster.ssps
  try {
    await ssp!.stop()
    await fill(cluster, records)
    const plain: Array<number> = [],
      own: Array<number> = []
    for (let round = 0; round < 3; round++) {
      plain.push(await plainCopy(yardstick.port))
      ssp!.past = ""
      await ssp!.start()
      own.push(await until("the SSP is ready", () => bootstrapped(ssp!.logs), 600_000))
      await ssp!.stop()
    }
    const seconds = median(own)
    const line = told(
      `bootstrap of ${records} records / plain SQLite table as JSON over HTTP`,
      seconds / median(plain),
      3,
      `${seconds.toFixed(1)} s, plain ${median(plain).toFixed(1)} s`
    )
    return records < 1_000_000
      ? [line]
      : [line, told("bootstrap of 1,000,000 records, minutes", seconds / 60, 1, `${seconds.toFixed(1)} s`)]
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
    ssp!.door!.signal("SIGSTOP")
    await timed(port, cluster.scheduler.door!.pid, events, 64)
    const start = performance.now()
    ssp!.door!.signal("SIGCONT")
    await until(
      "the SSP has caught up",
      async () => {
        const progress = (await cluster.scheduler.ask({ path: "/progress" }))?.json as
          | { readonly ssps?: ReadonlyArray<{ readonly waiting: number }> }
          | undefined
        return progress?.ssps?.[0]?.waiting === 0
      },
      120_000
    )
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
  "cluster-ssps": perSsp,
  "cluster-bootstrap": bootstrap,
  "cluster-replay": replay
}
