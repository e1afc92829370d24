/**
 * One step is visible whole or not at all (law L3): transfers between accounts while others read.
 *
 * Why a sum: it is the simplest thing that is only true between two steps and never inside one.
 */
import { afterAll, beforeAll, describe, expect } from "vitest"
import { send } from "../../kit/checks/contract.ts"
import { bodyOf } from "../../kit/checks/http.ts"
import { runs, seeded } from "../../kit/data/random.ts"
import { change, create, registration } from "../../kit/data/registration.ts"
import { Door } from "../../kit/processes/Door.ts"

const accounts = 8
const each = 100

let door: Door
beforeAll(async () => {
  door = await Door.start({ env: { STORE_ADDR: undefined } })
})
afterAll(() => door.close())

const balances = async (view: string): Promise<ReadonlyArray<number>> => {
  const answer = bodyOf(await send(door, { ask: `GET /view/${view}?format=tree` }))
  return (answer["result_data"] as ReadonlyArray<{ readonly balance: number }>).map((row) => row.balance)
}

describe("an array of changes", () => {
  const transfers = runs(120)
  seeded(
    `L3 D5 ${transfers} transfers as arrays of two changes: every read of every view sees the same sum`,
    "test/live/atomic.test.ts",
    async (random) => {
      const state = Array.from({ length: accounts }, () => each)
      await send(door, { ask: "POST /ingest", body: state.map((balance, n) => create(`account:${n}`, { balance })) })
      await send(door, { ask: "POST /view/register", body: registration("rows", "SELECT * FROM account") })
      await send(door, {
        ask: "POST /view/register",
        body: registration("sorted", "SELECT id, balance FROM account ORDER BY balance DESC LIMIT 100")
      })
      let writing = true
      let reads = 0
      const sums = new Set<number>()
      const reader = async (view: string): Promise<void> => {
        while (writing) {
          sums.add((await balances(view)).reduce((sum, balance) => sum + balance, 0))
          reads += 1
        }
      }
      const readers = ["rows", "sorted", "rows", "sorted"].map(reader)
      for (let n = 0; n < transfers; n++) {
        const [from, to] = [random.below(accounts), random.below(accounts)]
        if (from === to) continue
        const amount = 1 + random.below(50)
        state[from] = (state[from] ?? 0) - amount
        state[to] = (state[to] ?? 0) + amount
        const answer = await send(door, {
          ask: "POST /ingest",
          body: [from, to].map((key) => change("UPDATE", `account:${key}`, { balance: state[key] }))
        })
        expect(answer.status).toBe(200)
      }
      writing = false
      await Promise.all(readers)
      expect([...sums]).toEqual([accounts * each])
      expect(await balances("rows")).toEqual(state)
      expect(reads, "enough reads fell between the writes").toBeGreaterThan(transfers / 4)
    }
  )

  seeded(
    "L3 D5 an array of a thousand changes is one step too: no read falls inside it",
    "test/live/atomic.test.ts",
    async () => {
      const size = 1_001
      await send(door, {
        ask: "POST /ingest",
        body: Array.from({ length: size }, (_, n) => create(`tick:${n}`, { round: 0 }))
      })
      await send(door, { ask: "POST /view/register", body: registration("ticks", "SELECT * FROM tick") })
      let writing = true
      let reads = 0
      const torn = new Set<string>()
      const reader = async (): Promise<void> => {
        while (writing) {
          const rows = bodyOf(await send(door, { ask: "GET /view/ticks?format=tree" }))[
            "result_data"
          ] as ReadonlyArray<{ readonly round: number }>
          const rounds = [...new Set(rows.map((row) => row.round))]
          if (rounds.length !== 1) torn.add(rounds.join(" and "))
          reads += 1
        }
      }
      const readers = [reader(), reader(), reader()]
      for (let round = 1; round <= 20; round++) {
        expect(
          (
            await send(door, {
              ask: "POST /ingest",
              body: Array.from({ length: size }, (_, n) => change("UPDATE", `tick:${n}`, { round }))
            })
          ).status
        ).toBe(200)
      }
      writing = false
      await Promise.all(readers)
      expect(reads).toBeGreaterThan(20)
      expect([...torn]).toEqual([])
    }
  )
})
