/**
 * `npm run bench`: what an ingest costs, as ratios measured side by side in one run.
 *
 * Two questions. Does the cost of an ingest depend on how many views are registered (law L4)? And how far is
 * `POST /ingest` from the least a Node server can spend on such a request? All get the same bytes over as many
 * connections, in rounds that take turns, and what is judged is the median of the ratios within a round, so that
 * whatever else the machine does hits both sides alike. `--check` exits 1 when a goal is missed; absolute speed is
 * never judged.
 */
import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import ts from "typescript"
import { request } from "../../kit/checks/http.ts"
import { registration } from "../../kit/data/registration.ts"
import { Door, freePort, until } from "../../kit/processes/Door.ts"
import { root } from "../../kit/rules/source.ts"
import { client } from "./client.ts"
import { cluster } from "./cluster.ts"
import { database } from "./database.ts"
import { failover } from "./failover.ts"
import { faults } from "./faults.ts"
import { integrity } from "./integrity.ts"
import { jobs } from "./jobs.ts"
import { language } from "./language.ts"
import { type Judged, type Line, load, median, requestBytes } from "./load.ts"
import { replica } from "./replica.ts"
import { arrival } from "./streams/arrival.ts"
import { streams } from "./streams/run.ts"
import { turns } from "./turns.ts"
import { wal } from "./wal.ts"

interface Target {
  readonly name: string
  /** Connections of the load, 16 unless it says otherwise. */
  readonly connections?: number
  readonly port: number
  readonly pid: number
  readonly close: () => Promise<void> | void
  /** CPU microseconds per request, one figure per round. */
  readonly figures: Array<number>
}

/** Many short rounds: what disturbs one hits few of the others. */
const rounds = 11
const warmUps = 5
const perRound = 8_000
const ids = 2_000

/** Bodies of about 180 bytes; every one changes the content of its record. */
const posts = (authors: number): ((n: number) => Buffer) => {
  const prepared = Array.from({ length: ids * 3 }, (_, n) =>
    requestBytes("/ingest", {
      table: "post",
      op: n < ids ? "CREATE" : "UPDATE",
      id: `post:${n % ids}`,
      record: {
        author: `user:${(n * 7919 + Math.floor(n / ids) * 13) % authors}`,
        title: `Post number ${n}`,
        likes: n,
        tags: ["a", "b"],
        draft: false
      }
    })
  )
  return (n) => prepared[n % prepared.length] as Buffer
}

const door = async (name: string, env: Record<string, string | undefined>): Promise<Target> => {
  const running = await Door.start({ env: { SVC_LOG_LEVEL: "error", ...env } })
  return { name, port: running.port, pid: running.pid, close: () => running.close(), figures: [] }
}

const bare = async (): Promise<Target> => {
  const port = await freePort()
  const code = ts.transpileModule(readFileSync(join(root, "scripts/bench/bare.ts"), "utf8"), {
    compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 }
  }).outputText
  const child = spawn(process.execPath, ["--input-type=module", "--eval", code], {
    env: { PORT: String(port) },
    stdio: "inherit"
  })
  await until("the bare server listens", () =>
    request(`http://127.0.0.1:${port}`, { method: "POST", path: "/", body: {}, keepAlive: false }).then(
      () => true,
      () => false
    )
  )
  return { name: "bare node:http", port, pid: child.pid ?? -1, close: () => void child.kill(), figures: [] }
}

/**
 * Registers `views` views by `requests` requests (again and again where there are more requests than views), so that
 * two processes differ in what is registered and in nothing else they have been through.
 */
const register = async (target: Target, views: number, requests: number): Promise<void> => {
  await load(target.port, target.pid, requests, (n) =>
    requestBytes(
      "/view/register",
      registration(`view-${n % views}`, `SELECT * FROM post WHERE author = user:${n % views}`)
    )
  )
}

/** Runs every target in turn, round after round, to and fro; the first rounds warm up and are not counted. */
const race = async (targets: ReadonlyArray<readonly [Target, (n: number) => Buffer]>): Promise<void> => {
  for (let round = 0; round < warmUps + rounds; round++) {
    for (const [target, make] of round % 2 === 0 ? targets : [...targets].reverse()) {
      const figure = await load(
        target.port,
        target.pid,
        perRound,
        (n) => make(round * perRound + n),
        target.connections
      )
      if (round >= warmUps) target.figures.push(figure)
    }
  }
}

/** Measured, not judged. */
const noGoal = Infinity

interface Raced extends Line {
  /** One per round. */
  readonly ratios: ReadonlyArray<number>
}

const compare = (one: Target, other: Target, goal: number): Raced => {
  const ratios = one.figures.map((figure, round) => figure / (other.figures[round] ?? Number.NaN))
  return { what: one.name, against: other.name, ratios, ratio: median(ratios), goal }
}

const show = (targets: ReadonlyArray<Target>, lines: ReadonlyArray<Raced>): void => {
  for (const target of targets)
    console.log(
      `  ${target.name.padEnd(42)} ${median(target.figures).toFixed(1).padStart(7)} us CPU per request, rounds ${target.figures.map((figure) => figure.toFixed(0)).join(" ")}`
    )
  for (const { what, against, ratio, ratios, goal } of lines) {
    console.log(
      `| ${what} / ${against} | ${ratio.toFixed(2)}, rounds ${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)} | ${goal === noGoal ? "no goal |  |" : `at most ${goal} | ${ratio <= goal ? "met" : "missed"} |`}`
    )
  }
}

const viewCounts = async (): Promise<ReadonlyArray<Raced>> => {
  const few = await door("ingest, 100 views by author", {})
  const many = await door("ingest, 10,000 views by author", {})
  try {
    await register(few, 100, 10_000)
    await register(many, 10_000, 10_000)
    await race([
      [few, posts(100)],
      [many, posts(10_000)]
    ])
    const lines = [compare(many, few, 1.5)]
    show([few, many], lines)
    return lines
  } finally {
    await Promise.all([few.close(), many.close()])
  }
}

/** The same server under more connections, with figures of its own. */
const wider = (target: Target, connections: number): Target => ({
  ...target,
  name: `${target.name}, ${connections} connections`,
  connections,
  figures: []
})

const againstBare = async (): Promise<ReadonlyArray<Raced>> => {
  const targets = [
    await bare(),
    await door("POST /ingest, memory://", {}),
    await door("POST /ingest, SQLite", { STORE_ADDR: undefined })
  ] as const
  const [bare16, memory16, sqlite16] = targets
  const [bare64, memory64, sqlite64] = [wider(bare16, 64), wider(memory16, 64), wider(sqlite16, 64)]
  try {
    // A server that has seen nothing but ingests is none that anybody runs.
    await register(memory16, 1, 5_000)
    await load(memory16.port, memory16.pid, 1, () => requestBytes("/view/unregister", { id: "view-0" }), 1)
    const make = posts(1_000)
    const all = [...targets, bare64, memory64, sqlite64]
    await race(all.map((target) => [target, make] as const))
    // The goal is for the same work: the embedded store also writes and flushes, which the bare server does not.
    const lines = [
      compare(memory16, bare16, 2),
      compare(sqlite16, bare16, noGoal),
      compare(memory64, bare64, 2),
      compare(sqlite64, bare64, noGoal)
    ]
    show(all, lines)
    return lines
  } finally {
    await Promise.all(targets.map((target) => target.close()))
  }
}

/** The parts by name, for `--only <part>`; `--only cluster` runs all of the cluster's. */
const parts: { readonly [name: string]: () => Promise<ReadonlyArray<Judged>> } = {
  views: viewCounts,
  bare: againstBare,
  language: async () => language(),
  replica: async () => replica(),
  integrity: async () => integrity(),
  wal: async () => wal(),
  ...cluster,
  ...failover,
  database,
  faults,
  turns,
  jobs,
  client,
  ...streams,
  "streams-arrival": arrival
}

const only = process.argv.includes("--only") ? (process.argv[process.argv.indexOf("--only") + 1] ?? "") : undefined
const isChosen = (name: string): boolean => only === undefined || name === only || name.startsWith(`${only}-`)
if (!Object.keys(parts).some(isChosen)) throw new Error(`--only takes one of ${Object.keys(parts).join(", ")}`)

const lines: Array<Judged> = []
for (const [name, part] of Object.entries(parts)) if (isChosen(name)) lines.push(...(await part()))
if (process.argv.includes("--check") && lines.some(({ ratio, goal }) => !(ratio <= goal))) process.exitCode = 1
