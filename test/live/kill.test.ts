/**
 * `kill -9` in the middle of 1,000 ingests on the embedded store: what was acknowledged is there, whole, as it was
 * (D22).
 *
 * Why several rounds on one folder: a restart that loses an operator's state or restarts versions shows in the next
 * one. A write that was sent but not acknowledged may be there or not, but never half.
 */
import { describe, expect } from "vitest"
import { send } from "../../kit/checks/contract.ts"
import { type Body, bodyOf } from "../../kit/checks/http.ts"
import { type Rng, runs, seeded } from "../../kit/data/random.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { Door, type DoorOptions, removeFolder, temporaryFolder } from "../../kit/processes/Door.ts"

/** Per record: the counter that was acknowledged last and the one that was sent last. */
interface Known {
  acknowledged: number
  sent: number
}

const owners = 7
const views: ReadonlyArray<readonly [string, string, (n: number, owner: number) => boolean]> = [
  ["all", "SELECT * FROM k", () => true],
  ["owned", "SELECT * FROM k WHERE owner = 3", (_, owner) => owner === 3],
  ["many", "SELECT * FROM k WHERE n > 2 AND owner != 1", (n, owner) => n > 2 && owner !== 1]
]
const window = "SELECT * FROM k ORDER BY n DESC, owner LIMIT 20"

const sqlite = (dataDir: string): DoorOptions => ({ dataDir, env: { STORE_ADDR: undefined } })
const ownerOf = (key: number): number => key % owners

const ingestUntilKilled = async (
  door: Door,
  random: Rng,
  known: Map<number, Known>,
  count: number
): Promise<number> => {
  const killAfter = Math.floor(count * (0.3 + 0.4 * random.next()))
  let started = 0
  let acknowledged = 0
  let dead = false
  const busy = new Set<number>()
  const lane = async (): Promise<void> => {
    while (!dead && started < count) {
      started += 1
      let key = random.below(300)
      while (busy.has(key)) key = random.below(300)
      busy.add(key)
      const state = known.get(key) ?? { acknowledged: 0, sent: 0 }
      known.set(key, state)
      state.sent += 1
      const n = state.sent
      const answer = await send(door, {
        ask: "POST /ingest",
        body: create(`k:${key}`, { n, owner: ownerOf(key), pad: `${n}-${"p".repeat(200)}` })
      }).catch(() => undefined)
      if (answer?.status === 200) {
        state.acknowledged = n
        acknowledged += 1
      }
      busy.delete(key)
      if (acknowledged >= killAfter && !dead) {
        dead = true
        door.signal("SIGKILL")
      }
    }
  }
  await Promise.all(Array.from({ length: 16 }, lane))
  expect((await door.exited).signal).toBe("SIGKILL")
  return acknowledged
}

const readView = async (door: Door, id: string, format: string): Promise<Body> =>
  bodyOf(await send(door, { ask: `GET /view/${id}?format=${format}` }))

/**
 * Everything acknowledged is there and nothing is half; answers what is there, so that views can be held against it.
 */
const checkRecords = async (door: Door, known: Map<number, Known>): Promise<Map<number, number>> => {
  const rows = (await readView(door, "all", "tree"))["result_data"] as ReadonlyArray<{
    id: string
    n: number
    owner: number
    pad: string
  }>
  const versions = new Map((await readView(door, "all", "flat"))["result_data"] as ReadonlyArray<[string, number]>)
  const found = new Map<number, number>()
  for (const row of rows) {
    const key = Number(row.id.slice(2))
    expect(row, row.id).toEqual({ id: row.id, n: row.n, owner: ownerOf(key), pad: `${row.n}-${"p".repeat(200)}` })
    found.set(key, row.n)
  }
  for (const [key, { acknowledged, sent }] of known) {
    const n = found.get(key) ?? 0
    expect(n, `k:${key} was acknowledged with n = ${acknowledged}`).toBeGreaterThanOrEqual(acknowledged)
    expect(n, `k:${key} was sent up to n = ${sent}`).toBeLessThanOrEqual(sent)
  }
  for (const key of found.keys()) expect(versions.get(`k:${key}`), `version of k:${key}`).toBeGreaterThan(0)
  return found
}

const checkViews = async (door: Door, found: Map<number, number>): Promise<void> => {
  for (const [id, , matches] of views) {
    const ids = ((await readView(door, id, "tree"))["result_data"] as ReadonlyArray<{ id: string }>).map((row) =>
      Number(row.id.slice(2))
    )
    const expected = [...found]
      .filter(([key, n]) => matches(n, ownerOf(key)))
      .map(([key]) => key)
      .sort((a, b) => a - b)
    expect(ids, `view ${id}`).toEqual(expected)
  }
  const top = ((await readView(door, "window", "tree"))["result_data"] as ReadonlyArray<{ id: string }>).map((row) =>
    Number(row.id.slice(2))
  )
  const order = [...found].sort(([a, n], [b, m]) => m - n || ownerOf(a) - ownerOf(b) || a - b).map(([key]) => key)
  expect(top, "view window").toEqual(order.slice(0, 20))
}

const versionsOf = async (door: Door): Promise<ReadonlyMap<string, number>> =>
  new Map((await readView(door, "all", "flat"))["result_data"] as ReadonlyArray<[string, number]>)

describe.concurrent("kill -9", () => {
  const rounds = runs(1)
  seeded(
    `D4 D22 kill -9 in the middle of 1,000 ingests, ${rounds} times over: every acknowledged record, every version, every view as before`,
    "test/live/kill.test.ts",
    async (random) => {
      const dataDir = temporaryFolder()
      const known = new Map<number, Known>()
      let total = 0
      let door = await Door.start(sqlite(dataDir))
      try {
        for (const [id, surql] of [...views, ["window", window]] as const) {
          expect(
            (await send(door, { ask: "POST /view/register", body: registration(id, surql, { ttl: "1d" }) })).status
          ).toBe(200)
        }
        for (let round = 0; round < rounds; round++) {
          const before = await versionsOf(door)
          const generation = Number((await readView(door, "all", "flat"))["content_generation"])
          total += await ingestUntilKilled(door, random, known, 1_000)
          door = await Door.start(sqlite(dataDir))
          await checkViews(door, await checkRecords(door, known))
          const after = await versionsOf(door)
          for (const [id, version] of before)
            expect(after.get(id), `version of ${id} never falls`).toBeGreaterThanOrEqual(version)
          expect(
            Number((await readView(door, "all", "flat"))["content_generation"]),
            "generation grew with the acknowledged changes"
          ).toBeGreaterThan(generation)
          const found = await checkRecords(door, known)
          for (const [key, state] of known)
            Object.assign(state, { acknowledged: found.get(key) ?? 0, sent: found.get(key) ?? 0 })
          for (const [key, n] of found) expect(after.get(`k:${key}`), `k:${key} changed ${n} times`).toBe(n)
        }
        expect(total, "enough was acknowledged to mean something").toBeGreaterThan(250 * rounds)
      } finally {
        await door.close()
        removeFolder(dataDir)
      }
    },
    300_000
  )

  seeded(
    "D9 D22 kill -9 right after a registration and an unregistration were answered: both hold",
    "test/live/kill.test.ts",
    async (random) => {
      const dataDir = temporaryFolder()
      let door = await Door.start(sqlite(dataDir))
      const registered = new Set<string>()
      try {
        for (let round = 0; round < 3; round++) {
          for (let i = 0; i < 20; i++) {
            const id = `v${random.below(12)}`
            if (registered.has(id) && random.chance(0.5)) {
              await send(door, { ask: "POST /view/unregister", body: { id } })
              registered.delete(id)
            } else {
              await send(door, {
                ask: "POST /view/register",
                body: registration(id, `SELECT * FROM k WHERE n = ${random.below(3)}`, { ttl: "1d" })
              })
              registered.add(id)
            }
          }
          await door.kill()
          door = await Door.start(sqlite(dataDir))
          const deps = bodyOf(await send(door, { ask: "GET /debug/deps" }))
          expect([...((deps["dependency_map"] as { k?: ReadonlyArray<string> }).k ?? [])].sort()).toEqual(
            [...registered].sort()
          )
        }
        expect(registered.size, "some views were left to be found").toBeGreaterThan(2)
      } finally {
        await door.close()
        removeFolder(dataDir)
      }
    },
    120_000
  )
})
