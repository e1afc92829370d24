/**
 * The bench beside a database server: edges in batches, bootstrap, registration to first edge, and what the change table
 * costs (`databaseChanges.ts`).
 *
 * The server is the real engine in a process of its own, on a folder in memory where there is one. `databaseRun.ts`
 * measures the drivers; here a whole node is measured as its users see it. 100,000 records, or (`--full`) a million.
 */
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { client } from "../../kit/checks/http.ts"
import { install } from "../../kit/data/changeTable.ts"
import { registration } from "../../kit/data/registration.ts"
import { Door, secret, until } from "../../kit/processes/Door.ts"
import { ServerProcess } from "../../kit/processes/surreal/ServerProcess.ts"
import { rootClient } from "../../kit/processes/surreal/sdk.ts"
import { changes } from "./databaseChanges.ts"
import { onDist } from "./language.ts"
import { type Line, median } from "./load.ts"

interface Figures {
  readonly name: string
  readonly figures: ReadonlyArray<number>
}

const registrations = 30

const ratioOf = (one: Figures, other: Figures): number =>
  median(one.figures.map((figure, round) => figure / (other.figures[round] ?? Number.NaN)))

const drivers = (port: number, records: number): Array<Line> => {
  const { edges, fillMs, reads } = JSON.parse(
    onDist("scripts/bench/databaseRun.ts", [String(port), String(records)])
  ) as { readonly fillMs: number; readonly edges: ReadonlyArray<Figures>; readonly reads: ReadonlyArray<Figures> }
  console.log(`  ${records} records, written in ${(fillMs / 1000).toFixed(1)} s`)
  for (const { figures, name } of [...edges, ...reads]) {
    console.log(
      `    ${name.padEnd(48)} ${Math.round(1e6 / median(figures))
        .toString()
        .padStart(
          8
        )} per second, ${median(figures).toFixed(1).padStart(7)} us each, rounds ${figures.map((figure) => figure.toFixed(0)).join(" ")}`
    )
  }
  const [batches, several, single, flying] = edges,
    [chunks, whole] = reads
  if (
    batches === undefined ||
    several === undefined ||
    single === undefined ||
    flying === undefined ||
    chunks === undefined ||
    whole === undefined
  )
    throw new Error("the run has not measured everything")
  return [
    { what: batches.name, against: single.name, ratio: ratioOf(batches, single), goal: 0.2 },
    { what: several.name, against: flying.name, ratio: ratioOf(several, flying), goal: 1 },
    { what: chunks.name, against: whole.name, ratio: ratioOf(chunks, whole), goal: 3 }
  ]
}

/** Milliseconds from the request to the edges' being there, seen by asking again and again. */
const firstEdges = async (door: Door, ask: (query: string) => Promise<ReadonlyArray<unknown>>): Promise<Figures> => {
  const { post } = client(door.url, secret)
  const figures: Array<number> = []
  for (let n = 0; n < registrations; n++) {
    const start = performance.now()
    await post("/view/register", registration(`first-${n}`, `SELECT * FROM post WHERE author = user:${n} LIMIT 20`))
    while ((await ask(`SELECT VALUE id FROM _svc_list_ref WHERE in = _svc_query:\`first-${n}\` LIMIT 1`)).length === 0);
    figures.push(performance.now() - start)
  }
  return { name: "registration to first edge", figures: figures.slice(5) }
}

export const database = async (): Promise<ReadonlyArray<Line>> => {
  const records = process.argv.includes("--full") ? 1_000_000 : 100_000
  const folder = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "svc-bench-"))
  const server = await ServerProcess.start({ path: `surrealkv://${join(folder, "database")}` })
  const [db, listener] = [await rootClient(server), await rootClient(server)]
  const plain = await rootClient(server, "n", "plain")
  const ask = async (query: string): Promise<ReadonlyArray<unknown>> =>
    (await db.query<Array<ReadonlyArray<unknown>>>(query)).at(-1) ?? []
  try {
    const lines = drivers(server.port, records)
    await ask(`DEFINE TABLE edged; DEFINE TABLE written; ${install("post", "edged", "written")}`)
    await plain.query("DEFINE TABLE written")
    const start = performance.now()
    const env = {
      STORE_ADDR: `127.0.0.1:${server.port}`,
      STORE_NS: "n",
      STORE_DB: "d",
      STORE_USER: "root",
      STORE_PASS: "root",
      SVC_LOG_LEVEL: "error"
    }
    let door = await Door.spawn({ env, dataDir: join(folder, "node") })
    try {
      await until(
        "the node is ready",
        async () =>
          (
            await client(door.url, secret)
              .get("/health")
              .catch(() => undefined)
          )?.status === 200,
        1_800_000
      )
      const seconds = (performance.now() - start) / 1000
      console.log(
        `    a whole node, from its start to ready               ${Math.round(records / seconds)
          .toString()
          .padStart(5)} records per second, ${seconds.toFixed(1)} s`
      )
      const first = await firstEdges(door, ask)
      console.log(
        `    ${first.name.padEnd(48)} ${median(first.figures).toFixed(2).padStart(8)} ms, ${Math.min(...first.figures).toFixed(2)} to ${Math.max(...first.figures).toFixed(2)}`
      )
      const changed = await changes(server, [db, listener, plain], door, env, records)
      door = changed.door
      lines.push(...changed.lines)
    } finally {
      await door.close()
    }
    for (const { against, goal, ratio, what } of lines)
      console.log(
        `| ${what} / ${against} | ${ratio.toFixed(2)} | ${goal === Infinity ? "no goal |  |" : `at most ${goal} | ${ratio <= goal ? "met" : "missed"} |`}`
      )
    return lines
  } finally {
    await db.close()
    await listener.close()
    await plain.close()
    await server.kill()
    rmSync(folder, { recursive: true, force: true })
  }
}
