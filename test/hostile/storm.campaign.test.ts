/**
 * Hostile requests in any order at both built processes: no crash, no growth of the heap, no 5xx that is not declared.
 *
 * Queries are random and from the table of `attacks.ts`; beside them go out heads and bodies that are no HTTP or lie,
 * names and origins that are somebody else's, SSPs at addresses that are none, streams that nobody reads. 20,000
 * requests, times `SVC_RUNS`: 50 make a million.
 */
import { readFileSync } from "node:fs"
import { connect } from "node:net"
import { join } from "node:path"
import { expect } from "vitest"
import { closing } from "../kit/closing.ts"
import { Door, removeFolder, secret, temporaryFolder, until } from "../kit/Door.ts"
import { type Answer, client, request } from "../kit/http.ts"
import { malformed } from "../kit/malformed.ts"
import { type Rng, runs, seeded } from "../kit/random.ts"
import { create, registration } from "../kit/registration.ts"
import { queries, viewOf } from "./attacks.ts"
import { query } from "./hostileQueries.ts"

const afterwards = closing()

/** What a declared 5xx says; a fault of the service itself, `INTERNAL`, is none of them. */
const declared: ReadonlySet<unknown> = new Set([
  "SSP_NOT_READY",
  "SCHEDULER_CLONING",
  "NO_SSP_AVAILABLE",
  "OVERLOADED",
  "SSP_UNREACHABLE",
  "QUERY_FAILED"
])

const heap = ["--max-old-space-size=256"]

const served = async (
  command: string,
  env: { readonly [name: string]: string | undefined },
  dataDir: string,
  alive: string
): Promise<Door> => {
  const door = await Door.spawn({
    command: [process.execPath, ...heap, command],
    env: { SVC_LOG_LEVEL: "error", ...env },
    dataDir
  })
  afterwards(() => door.close())
  await until(
    `${command} serves`,
    async () => (await request(door.url, { path: alive }).catch(() => undefined))?.status === 200,
    60_000
  )
  return door
}

const folder = (): string => {
  const path = temporaryFolder()
  afterwards(() => removeFolder(path))
  return path
}

interface Doors {
  readonly scheduler: Door
  readonly ssp: Door
}

type Room = (random: Rng, doors: Doors) => Promise<Answer | undefined>

const addresses = [
  "http://169.254.169.254",
  "http://[::ffff:1.2.3.4]",
  "http://127.0.0.1:1",
  "http://2130706433",
  "file:///etc/passwd",
  "http://user:pw@10.0.0.1",
  "http://0.0.0.0:0",
  "https://rebound.example"
]

/** Bytes as they are, on a connection that is cut behind them. */
const thrown = (port: number, bytes: Buffer): Promise<undefined> =>
  new Promise((done) => {
    const socket = connect(port, "127.0.0.1", () => socket.end(bytes))
    socket.setTimeout(2_000, () => socket.destroy())
    socket.on("data", () => socket.destroy())
    socket.on("error", () => {})
    socket.on("close", () => done(undefined))
  })

/** Where hostile requests go: add one for every room that somebody finds. */
const rooms: { readonly [name: string]: Room } = {
  queries: (random, { scheduler }) =>
    client(scheduler.url, undefined).post("/proxy/query", {
      query: random.chance(0.02) ? random.pick(queries)[1] : query(random)
    }),
  views: (random, { ssp }) =>
    client(ssp.url, secret).post(
      "/view/register",
      registration(
        `incantation:v${random.below(20)}`,
        viewOf(random.chance(0.02) ? random.pick(queries)[1] : query(random))
      )
    ),
  records: (random, { ssp }) =>
    client(ssp.url, secret).post("/ingest", create(`t:${random.below(5)}`, { n: random.below(5) })),
  unregistered: (random, { ssp }) =>
    client(ssp.url, secret).post("/view/unregister", { id: `incantation:v${random.below(20)}` }),
  framing: (random, { scheduler, ssp }) => thrown(random.pick([scheduler, ssp]).port, malformed(random).bytes),
  origins: (random, { scheduler }) =>
    request(scheduler.url, {
      method: "POST",
      path: random.pick(["/ingest", "/ssp/register", "/proxy/query"]),
      headers: { origin: random.pick(["http://evil.example", "null", "http://127.0.0.1.evil.example"]) },
      body: {}
    }),
  hosts: (random, { scheduler }) =>
    request(scheduler.url, {
      path: "/overview",
      headers: { host: random.pick(["rebound.example", "127.0.0.1.nip.io", "[::1", "a b", "x".repeat(300)]) }
    }),
  addresses: (random, { scheduler }) =>
    client(scheduler.url, undefined).post("/ssp/register", {
      ssp_id: `evil-${random.below(9)}`,
      url: random.pick(addresses)
    }),
  bodies: (random, { scheduler }) =>
    client(scheduler.url, undefined).post(
      "/ingest",
      random.pick([
        "[".repeat(100_000),
        `{"table":"t","op":"CREATE","id":"t:1","record":${"[".repeat(5_000)}${"]".repeat(5_000)}}`,
        '"'.repeat(1_000),
        `[${"{},".repeat(50_000)}{}]`
      ])
    ),
  followers: (random, { ssp }) =>
    thrown(
      ssp.port,
      Buffer.from(
        `GET /view/v${random.below(20)}/stream HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${secret}\r\n\r\n`
      )
    )
}

/** Memory that the process has resident, in MiB: the kernel's figure, which costs the process no request. */
const resident = ({ pid }: Door): number =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024

seeded(
  "D48 hostile requests in any order leave both processes there, no larger, with declared answers",
  "test/hostile/storm.campaign.test.ts",
  async (random) => {
    const path = folder()
    const scheduler = await served(
      "dist/scheduler.js",
      {
        SVC_SCHEDULER_REPLICA_DB_PATH: join(path, "replica"),
        SVC_SCHEDULER_WAL_PATH: join(path, "wal.log"),
        SVC_SCHEDULER_INGEST_HOST: "127.0.0.1",
        SVC_SCHEDULER_INGEST_PORT: "{port}",
        LISTEN_ADDR: undefined,
        STORE_ADDR: undefined,
        SVC_DATA_DIR: undefined
      },
      path,
      "/livez"
    )
    const doors = { scheduler, ssp: await served("dist/ssp.js", {}, folder(), "/health") }
    for (let n = 0; n < 5; n++) await client(scheduler.url, undefined).post("/ingest", create(`t:${n}`, { n }))
    const names = Object.keys(rooms),
      total = runs(20_000),
      wrong = new Map<string, number>()
    const sizes: Array<number> = []
    let sent = 0
    const one = async (): Promise<void> => {
      while (sent < total && doors.scheduler.exit === undefined && doors.ssp.exit === undefined) {
        if (++sent % Math.ceil(total / 10) === 0) sizes.push(resident(doors.scheduler) + resident(doors.ssp))
        const room = random.pick(names),
          answer = await rooms[room]!(random, doors).catch(() => undefined)
        const code = (answer?.json as { readonly code?: unknown } | null | undefined)?.code
        if (answer !== undefined && answer.status >= 500 && !declared.has(code))
          wrong.set(`${room}: ${answer.status} ${String(code)}`, (wrong.get(room) ?? 0) + 1)
      }
    }
    await Promise.all(Array.from({ length: 8 }, one))
    process.stderr.write(`${JSON.stringify({ sent, residentMib: sizes.map(Math.round) })}\n`)
    expect(
      [doors.scheduler.exit, doors.ssp.exit],
      `${doors.scheduler.logs.slice(-1000)}\n${doors.ssp.logs.slice(-1000)}`
    ).toEqual([undefined, undefined])
    expect([...wrong]).toEqual([])
    // Both are warm behind the first tenths; the heaps are bounded by the flag, the rest must not grow.
    expect(sizes.at(-1)).toBeLessThan(1.5 * Math.max(...sizes.slice(0, 4)))
    expect((await request(scheduler.url, { path: "/livez" })).status).toBe(200)
    expect((await request(doors.ssp.url, { path: "/health" })).status).toBe(200)
  },
  7_200_000
)
