/**
 * Thousands of malformed requests (fifteen thousand in a campaign) against one process: no 5xx, no crash, no memory
 * gained, every answer JSON with a code.
 *
 * Why one process for all of them: a leak or a poisoned state shows only after many. Before and after, the process does
 * its real work and must do it right.
 */
import { readFileSync } from "node:fs"
import { connect } from "node:net"
import { afterAll, beforeAll, describe, expect } from "vitest"
import { send } from "../../kit/checks/contract.ts"
import { bodyOf } from "../../kit/checks/http.ts"
import { kinds, type Malformed, malformed } from "../../kit/data/malformed.ts"
import { type Rng, runs, seeded } from "../../kit/data/random.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { Door } from "../../kit/processes/Door.ts"

let door: Door
beforeAll(async () => {
  door = await Door.start()
})
afterAll(() => door.close())

/** Sends the bytes, says that no more will come, and reads what the server has to say until it closes. */
const exchange = (bytes: Buffer): Promise<string> =>
  new Promise((done) => {
    const chunks: Array<Buffer> = []
    const socket = connect({ port: door.port, host: "127.0.0.1", allowHalfOpen: true }, () => socket.end(bytes))
    const finish = (): void => {
      socket.destroy()
      done(Buffer.concat(chunks).toString("utf8"))
    }
    socket.setTimeout(30_000, () => {
      chunks.push(Buffer.from("TIMED OUT"))
      finish()
    })
    socket.on("data", (chunk) => chunks.push(chunk))
    socket.on("end", finish)
    socket.on("error", finish)
  })

interface Verdict {
  /** Status of the first answer, 0 when the server only closed the connection. */
  readonly status: number
  readonly fault: string | undefined
}

const judge = (answer: string): Verdict => {
  if (answer === "") return { status: 0, fault: undefined }
  const status = Number(/^HTTP\/1\.1 (?:100 Continue\r\n\r\nHTTP\/1\.1 )?(\d{3})/.exec(answer)?.[1] ?? -1)
  if (status < 0) return { status, fault: "no HTTP answer" }
  if (status >= 500) return { status, fault: "5xx" }
  if (status < 400) return { status, fault: undefined }
  const body = answer.slice(answer.indexOf("\r\n\r\n") + 4)
  const json = /\{[\s\S]*?"code"\s*:\s*"[A-Z_]+"[\s\S]*\}/.exec(body)
  return { status, fault: json === null ? "no JSON with a code" : undefined }
}

const residentMb = (): number =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${door.pid}/status`, "utf8"))?.[1] ?? 0) / 1024

interface Tally {
  readonly kinds: Map<string, number>
  readonly faults: Array<string>
  silent: number
  accepted: number
}

const shown = (request: Malformed): string =>
  `${request.kind}: ${JSON.stringify(request.bytes.subarray(0, 160).toString("latin1"))}`

const attack = async (random: Rng, count: number, tally: Tally): Promise<void> => {
  let left = count
  const lane = async (): Promise<void> => {
    while (left-- > 0) {
      const request = malformed(random)
      const { status, fault } = judge(await exchange(request.bytes))
      tally.kinds.set(request.kind, (tally.kinds.get(request.kind) ?? 0) + 1)
      if (status === 0 && request.kind !== "cut short" && request.kind !== "random bytes") tally.silent += 1
      if (status >= 200 && status < 300) tally.accepted += 1
      if (fault !== undefined) tally.faults.push(`${status} ${fault} to ${shown(request)}`)
      if (door.exit !== undefined)
        throw new Error(`the process died after ${shown(request)}\n${door.logs.slice(-2000)}`)
    }
  }
  await Promise.all(Array.from({ length: 8 }, lane))
}

const works = async (round: string): Promise<void> => {
  await send(door, { ask: "POST /view/register", body: registration("real", "SELECT * FROM real", { format: "tree" }) })
  await send(door, { ask: "POST /ingest", body: create("real:1", { round }) })
  expect(bodyOf(await send(door, { ask: "GET /view/real" }))["result_data"]).toEqual([{ id: "real:1", round }])
}

describe("malformed requests", () => {
  const total = runs(600)
  seeded(
    `D6 D17 ${total} malformed requests: no 5xx, no crash, memory flat, every answer JSON with a code`,
    "test/live/malformed.test.ts",
    async (random) => {
      const tally: Tally = { kinds: new Map(), faults: [], silent: 0, accepted: 0 }
      await works("before")
      const resident: Array<number> = []
      for (let quarter = 0; quarter < 4; quarter++) {
        await attack(random, total / 4, tally)
        resident.push(residentMb())
      }
      expect([...new Set(tally.faults.map((fault) => fault.slice(0, 240)))].slice(0, 20)).toEqual([])
      await works("after")
      expect(door.exit).toBeUndefined()
      for (const kind of kinds) expect(tally.kinds.get(kind), kind).toBeGreaterThan(total / kinds.length / 2)
      expect(tally.accepted, "hardly any of them is good by accident").toBeLessThan(total * 0.05)
      expect(tally.silent, "an answer is owed to what was sent in full").toBeLessThan(total * 0.02)
      expect(
        (resident[3] ?? 0) - (resident[1] ?? 0),
        `resident MB after each quarter: ${resident.map(Math.round).join(", ")}`
      ).toBeLessThan(100)
    },
    300_000
  )
})
