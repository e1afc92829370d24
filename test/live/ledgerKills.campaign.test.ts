/**
 * A hundred kills of the service and twenty of its database while transactions with a ledger are written (D44): nothing
 * that was committed is lost, no write fails because of the service, and no compare is needed for it.
 *
 * Each writer has lanes of its own, so none meets another: whatever fails while the database stands, fails because of
 * the service. That nothing is compared a record shows whose announcement was taken away: only a compare would find it.
 */
import { join } from "node:path"
import { afterAll, expect, onTestFinished, test } from "vitest"
import { client } from "../../kit/checks/http.ts"
import {
  heads,
  Journal,
  lanes,
  ledgerViews,
  planOf,
  type ShownRow,
  Sightings,
  tables
} from "../../kit/checks/ledger.ts"
import { askedOver, install, taken } from "../../kit/data/changeTable.ts"
import { type Rng, rng, runs, seed } from "../../kit/data/random.ts"
import { registration } from "../../kit/data/registration.ts"
import { Door, removeFolder, secret, sleep, temporaryFolder, until } from "../../kit/processes/Door.ts"
import { ServerProcess } from "../../kit/processes/surreal/ServerProcess.ts"
import { rootClient } from "../../kit/processes/surreal/sdk.ts"
import { changeTable } from "../../src/core/surreal/surrealSchema.ts"

const folder = temporaryFolder()
afterAll(() => removeFolder(folder))

const writers = 4

const signal = (): { readonly ring: () => void; readonly rung: Promise<void> } => {
  let ring = (): void => undefined
  const rung = new Promise<void>((done) => {
    ring = done
  })
  return { ring, rung }
}

/** A database that is killed and comes back, and those who write to it. */
class World {
  readonly journal = new Journal()
  /** Writes that failed while the database stood. */
  readonly failed: Array<string> = []
  repeated = 0
  server: ServerProcess
  writing = true
  /** Grows with every kill of the database; odd while it is away. */
  private turn = 0
  /** Ends when the database is killed the next time. */
  private killed = signal()

  constructor(server: ServerProcess) {
    this.server = server
  }

  async killDatabase(): Promise<void> {
    this.turn++
    const { killed } = this
    this.killed = signal()
    killed.ring()
    await this.server.kill()
    this.server = await this.server.restart()
    this.turn++
  }

  /** Writes in lanes that no other writes in, until told to stop; what a kill of the database ends is repeated. */
  async write(random: Rng, own: ReadonlyArray<number>): Promise<void> {
    while (this.writing) {
      const turn = await until("the database is there", () => this.turn % 2 === 0 && { turn: this.turn }, 600_000)
      // What is in flight when the database dies is never answered.
      const over = this.killed.rung.then(() => "killed")
      const db = await rootClient(this.server).catch(() => undefined)
      while (db !== undefined && this.writing && this.turn === turn.turn) {
        const failed = await Promise.race([this.journal.transact(db, planOf(random, own)), over])
        if (failed === undefined) await sleep(random.below(50))
        else if (this.turn === turn.turn) this.failed.push(failed)
        else this.repeated++
      }
      void db?.close().catch(() => undefined)
      if (db === undefined) await sleep(50)
    }
  }
}

const register = async (door: Door): Promise<void> => {
  const { post } = client(door.url, secret)
  for (const { id, surql } of [...ledgerViews, { id: "canaries", surql: "SELECT * FROM canary" }])
    expect((await post("/view/register", registration(id, surql, { format: "tree", ttl: "1d" }))).status).toBe(200)
}

/** After a kill more may wait than one read takes: it is taken in parts, which are no states, and that is said. */
const isBehind = async (door: Door): Promise<boolean> => {
  const answer = await client(door.url, secret)
    .get("/progress")
    .catch(() => undefined)
  return JSON.stringify(answer?.json ?? "catch-up").includes("catch-up")
}

test("L3 D44 a hundred kills of the service and twenty of the database lose nothing, fail no write and need no compare", async () => {
  const world = new World(await ServerProcess.start({ path: `rocksdb://${join(folder, "database")}` }))
  onTestFinished(() => world.server.kill())
  const first = await rootClient(world.server)
  await first.query(`${tables}; DEFINE TABLE canary; ${heads}; ${install("account", "head", "ledger", "canary")}`)
  const options = {
    dataDir: join(folder, "node"),
    env: {
      SSP_ID: "me",
      STORE_ADDR: `127.0.0.1:${world.server.port}`,
      STORE_NS: "n",
      STORE_DB: "d",
      STORE_USER: "root",
      STORE_PASS: "root",
      SVC_RECONCILE_INTERVAL_SECS: "0",
      SVC_LOG_LEVEL: "warn"
    }
  }
  let door = await Door.start(options)
  onTestFinished(() => door.close())
  const ask = (path: string) => client(door.url, secret).get(path)
  await register(door)
  // The compare that the setup asks for.
  await taken(askedOver(first))
  await first.query(`BEGIN; CREATE canary:1 SET n = 1; DELETE ${changeTable}; COMMIT`)
  await first.close()

  const random = rng(seed)
  const writing = Array.from({ length: writers }, (_, writer) =>
    world.write(
      rng(random.below(2 ** 32)),
      Array.from({ length: lanes / writers }, (_, i) => writer + i * writers)
    )
  )
  const kills = { service: 0, early: 0, database: 0 }
  let readySince = performance.now()
  const sightings = ledgerViews.map((view) => new Sightings(view))
  const look = async (): Promise<void> => {
    for (const [i, { id }] of ledgerViews.entries()) {
      if (await isBehind(door)) continue
      const answer = await ask(`/view/${id}`).catch(() => undefined)
      if (answer?.status === 200 && !(await isBehind(door)))
        sightings[i]!.saw(
          (answer.json as { readonly result_data: ReadonlyArray<ShownRow> }).result_data,
          `after ${JSON.stringify(kills)} and ${Math.round(performance.now() - readySince)} ms`
        )
    }
  }
  for (let round = 1; kills.service < runs(100); round++) {
    if (round % 5 === 0 && kills.database < runs(20)) {
      const killed = world.killDatabase()
      await sleep(random.below(500))
      await look()
      await killed
      kills.database++
    }
    const end = performance.now() + random.below(800)
    while (performance.now() < end) {
      await look()
      await sleep(20)
    }
    await door.kill()
    kills.service++
    if (random.chance(0.3)) {
      door = await Door.spawn(options)
      await sleep(random.below(1_500))
      kills.early++
    } else door = await Door.start(options)
    readySince = performance.now()
  }
  if (door.exit !== undefined) throw new Error(`the service ended by itself: ${door.logs.slice(-2_000)}`)
  world.writing = false
  await Promise.all(writing)
  await until("the service is ready", async () => (await ask("/health").catch(() => undefined))?.status === 200, 60_000)
  const db = await rootClient(world.server)
  await taken(askedOver(db), 600_000)
  await look()
  const ledger = await world.journal.ledger(db)
  const { json } = await ask("/view/canaries")
  await db.close()
  console.log(
    `${JSON.stringify(kills)}, ${ledger.size} transactions, ${world.repeated} ended by kills of the database, ${world.failed.length} failed beside; states seen: ${sightings.map(({ size }) => size).join(", ")}`
  )
  expect(world.failed.slice(0, 5)).toEqual([])
  expect([...ledger.faults, ...sightings.flatMap((seen) => seen.faults(ledger))].slice(0, 5)).toEqual([])
  expect((json as { readonly result_data: unknown }).result_data, "no compare has run").toEqual([])
  expect(Math.min(ledger.size, ...sightings.map(({ size }) => size)), "enough was seen").toBeGreaterThan(runs(10))
})
