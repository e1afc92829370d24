/**
 * What a change costs its sender while the database behind a node is gone, hangs, is slow or ends sessions; and how
 * long the edges need once it is well.
 *
 * Edges wait in memory then, so `/ingest` should answer as ever: judged is the p99 in each fault against that of the
 * calm before and after it in the same run. Everything waited for is compared at the end: edges in the database against
 * the views in memory, row by row. The hang lasts 30 seconds, or 5 with `--quick`.
 */
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Surreal } from "surrealdb"
import { type Client, client } from "../../kit/checks/http.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { Door, secret, sleep } from "../../kit/processes/Door.ts"
import { ServerProcess } from "../../kit/processes/surreal/ServerProcess.ts"
import { rootClient } from "../../kit/processes/surreal/sdk.ts"
import { type Line, median, print } from "./load.ts"

const views = 50
const perSecond = 100

const p99 = (figures: ReadonlyArray<number>): number =>
  [...figures].sort((a, b) => a - b)[Math.floor(figures.length * 0.99)] ?? Number.NaN

/** Changes at an even rate, whether or not those before are answered; milliseconds of each from when it was due. */
class Sender {
  readonly #post: Client["post"]
  #sent = 0
  constructor(post: Client["post"]) {
    this.#post = post
  }

  async for(seconds: number): Promise<ReadonlyArray<number>> {
    const start = performance.now()
    const answers: Array<Promise<number>> = []
    for (let n = 0; n < seconds * perSecond; n++) {
      const due = start + (n * 1000) / perSecond
      if (due > performance.now()) await sleep(due - performance.now())
      answers.push(this.#one(Math.max(due, performance.now() - 1)))
    }
    return Promise.all(answers)
  }

  async #one(due: number): Promise<number> {
    const n = this.#sent++
    const { status, text } = await this.#post(
      "/ingest",
      create(`post:${n % 2_000}`, { author: `user:${(n * 7) % views}`, n })
    )
    if (status !== 200) throw new Error(`a change was answered ${status} ${text}`)
    return performance.now() - due
  }
}

const wrong = async (db: Surreal, { get }: Client): Promise<number> => {
  let count = 0
  for (let n = 0; n < views; n++) {
    const { result_data: rows } = (await get(`/view/fault-${n}`)).json as {
      readonly result_data: ReadonlyArray<readonly [string, number]>
    }
    const [edges] = await db.query<[ReadonlyArray<{ readonly out: unknown; readonly version: number }>]>(
      `SELECT out, version FROM _svc_list_ref WHERE in = _svc_query:\`fault-${n}\``
    )
    const texts = [
      rows.map(([id, version]) => `${id} ${version}`),
      edges.map(({ out, version }) => `${String(out)} ${version}`)
    ].map((list) => list.toSorted().join())
    if (texts[0] !== texts[1]) count++
  }
  return count
}

/** Seconds until edges and views are one. */
const healing = async (server: ServerProcess, asking: Client): Promise<number> => {
  const start = performance.now()
  const db = await rootClient(server)
  try {
    while ((await wrong(db, asking)) > 0)
      if (performance.now() - start > 120_000) throw new Error("edges differ from views two minutes after the fault")
    return (performance.now() - start) / 1000
  } finally {
    await db.close()
  }
}

export const faults = async (): Promise<ReadonlyArray<Line>> => {
  const long = process.argv.includes("--quick") ? 5 : 30
  const folder = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "svc-bench-"))
  let server = await ServerProcess.start({ path: `surrealkv://${folder}` })
  // Selects the database, which creates it.
  await (await rootClient(server)).close()
  const env = {
    STORE_ADDR: `127.0.0.1:${server.port}`,
    STORE_NS: "n",
    STORE_DB: "d",
    STORE_USER: "root",
    STORE_PASS: "root",
    SVC_LOG_LEVEL: "error"
  }
  const door = await Door.start({ env })
  const asking = client(door.url, secret)
  const sender = new Sender(asking.post)
  const restart = async (): Promise<void> => void (server = await server.restart())
  const kinds: ReadonlyArray<readonly [string, number, () => unknown, () => unknown]> = [
    ["killed", long / 2, () => server.kill(), restart],
    ["hanging", long, () => server.pause(), () => server.resume()],
    ["slowed to 1 s a request", long / 2, () => server.slow(1_000), () => server.slow(0)],
    ["ending sessions", long / 4, () => server.expireSessions(), () => undefined]
  ]
  try {
    for (let n = 0; n < views; n++)
      await asking.post("/view/register", registration(`fault-${n}`, `SELECT * FROM post WHERE author = user:${n}`))
    await sender.for(10)
    const lines: Array<Line> = []
    for (const [name, seconds, begin, end] of kinds) {
      const before = await sender.for(long / 2)
      await begin()
      const during = await sender.for(seconds)
      await end()
      const after = await sender.for(long / 4)
      const heal = await healing(server, asking)
      const calm = p99([...before, ...after])
      console.log(
        `  ${name.padEnd(26)} ${String(during.length).padStart(5)} changes, median ${median(during).toFixed(2)} ms, p99 ${p99(during).toFixed(2)} ms; calm p99 ${calm.toFixed(2)} ms; edges equal views ${heal.toFixed(1)} s after the load stops`
      )
      lines.push(
        { what: `p99 of an ingest, database ${name}`, against: "calm", ratio: p99(during) / calm, goal: 2 },
        { what: `seconds to heal, database ${name}`, against: "30 s", ratio: heal / 30, goal: 1 }
      )
    }
    for (const line of lines) print(line)
    return lines
  } finally {
    await door.close()
    await server.kill()
    rmSync(folder, { recursive: true, force: true })
  }
}
