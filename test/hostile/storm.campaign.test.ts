/**
 * Hostile requests in any order at both built processes: no crash, no growth of the heap, no 5xx that is not declared.
 *
 * Every table of `attacks/` goes out, beside queries, heads and bodies that are random. 20,000 requests, times
 * `SVC_RUNS`: 50 make a million.
 */
import { readFileSync } from "node:fs"
import { connect } from "node:net"
import { join } from "node:path"
import { expect } from "vitest"
import { type Answer, client, request } from "../../kit/checks/http.ts"
import { malformed } from "../../kit/data/malformed.ts"
import { type Rng, runs, seed, seeded } from "../../kit/data/random.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { closing } from "../../kit/processes/closing.ts"
import { Door, removeFolder, secret, temporaryFolder, until } from "../../kit/processes/Door.ts"
import { forbiddenUrls, never, oddUrls } from "./attacks/addresses.ts"
import { unfinished, whole } from "./attacks/bodies.ts"
import { type Row as Caller, names, pages } from "./attacks/callers.ts"
import { held } from "./attacks/connections.ts"
import { bytesOf, framings } from "./attacks/framings.ts"
import { largest, queries, viewOf } from "./attacks/queries.ts"
import { query } from "./attacks/randomQueries.ts"

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

/** Bytes as they are, on a connection that is cut behind them. */
const thrown = (port: number, bytes: Buffer): Promise<undefined> =>
  new Promise((done) => {
    const socket = connect(port, "127.0.0.1", () => socket.end(bytes))
    socket.setTimeout(2_000, () => socket.destroy())
    socket.on("data", () => socket.destroy())
    socket.on("error", () => {})
    socket.on("close", () => done(undefined))
  })

/** A query of the table, of the largest, or any; the first two now and then, because each takes its time. */
const hostileQuery = (random: Rng): string =>
  random.chance(0.02) ? random.pick(queries)[1] : random.chance(0.002) ? random.pick(largest) : query(random)

/** A request of the table as it stands there, to a server that asks for a secret or for none. */
const askedBy = (random: Rng, { scheduler, ssp }: Doors, rows: ReadonlyArray<Caller>): Promise<Answer> => {
  const { ask, body, headers } = random.pick(rows)
  const [method = "", path = ""] = ask.split(" ")
  const [door, token] = random.chance(0.5) ? [scheduler, undefined] : [ssp, secret]
  return request(door.url, { method, path, headers, token, ...(body === undefined ? {} : { body }) })
}

/** Where hostile requests go, one for each table of `attacks/` that a request can carry. */
const rooms: { readonly [name: string]: Room } = {
  queries: (random, { scheduler }) =>
    client(scheduler.url, undefined).post("/proxy/query", { query: hostileQuery(random) }),
  views: (random, { ssp }) =>
    client(ssp.url, secret).post(
      "/view/register",
      registration(`incantation:v${random.below(20)}`, viewOf(hostileQuery(random)))
    ),
  records: (random, { ssp }) =>
    client(ssp.url, secret).post("/ingest", create(`t:${random.below(5)}`, { n: random.below(5) })),
  unregistered: (random, { ssp }) =>
    client(ssp.url, secret).post("/view/unregister", { id: `incantation:v${random.below(20)}` }),
  malformed: (random, { scheduler, ssp }) => thrown(random.pick([scheduler, ssp]).port, malformed(random).bytes),
  framings: (random, { scheduler, ssp }) =>
    thrown(
      random.pick([scheduler, ssp]).port,
      Buffer.from(bytesOf(random.pick(framings), random.pick(["/ingest", "/view/register", "/nowhere"]), secret))
    ),
  pages: (random, doors) => askedBy(random, doors, pages),
  names: (random, doors) => askedBy(random, doors, names),
  addresses: (random, { scheduler }) =>
    client(scheduler.url, undefined).post("/ssp/register", {
      ssp_id: `evil-${random.below(9)}`,
      url: random.chance(0.5) ? random.pick([...forbiddenUrls, ...oddUrls]) : `http://${random.pick(never)}`
    }),
  bodies: (random, { scheduler, ssp }) => {
    const [door, token] = random.chance(0.5) ? [scheduler, undefined] : [ssp, secret]
    return client(door.url, token).post(random.pick(["/ingest", "/view/register"]), random.pick(whole)[1])
  },
  unfinished: (random, { scheduler, ssp }) =>
    thrown(random.pick([scheduler, ssp]).port, Buffer.from(random.pick(unfinished)[1](secret))),
  connections: (random, { scheduler, ssp }) =>
    thrown(random.pick([scheduler, ssp]).port, Buffer.from(random.pick(held)[1])),
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
    const kinds = Object.keys(rooms),
      // A query takes as long as twenty other requests, so of those there are two for each.
      drawn = [...kinds, ...kinds.filter((kind) => kind !== "queries" && kind !== "views")],
      asked = new Map<string, number>(),
      total = runs(20_000),
      wrong = new Map<string, number>()
    const sizes: Array<number> = []
    let sent = 0
    const one = async (): Promise<void> => {
      while (sent < total && doors.scheduler.exit === undefined && doors.ssp.exit === undefined) {
        if (++sent % Math.ceil(total / 10) === 0) {
          sizes.push(resident(doors.scheduler) + resident(doors.ssp))
          // A run takes an hour or more; one that is given up has shown what it has said.
          process.stderr.write(`${JSON.stringify({ seed, sent, residentMib: Math.round(sizes.at(-1)!) })}\n`)
        }
        const room = random.pick(drawn),
          answer = await rooms[room]!(random, doors).catch(() => undefined)
        asked.set(room, (asked.get(room) ?? 0) + 1)
        const code = (answer?.json as { readonly code?: unknown } | null | undefined)?.code
        if (answer !== undefined && answer.status >= 500 && !declared.has(code))
          wrong.set(`${room}: ${answer.status} ${String(code)}`, (wrong.get(room) ?? 0) + 1)
      }
    }
    await Promise.all(Array.from({ length: 8 }, one))
    process.stderr.write(
      `${JSON.stringify({ sent, seed, residentMib: sizes.map(Math.round), rooms: Object.fromEntries(asked) })}\n`
    )
    expect(
      [doors.scheduler.exit, doors.ssp.exit],
      `${doors.scheduler.logs.slice(-1000)}\n${doors.ssp.logs.slice(-1000)}`
    ).toEqual([undefined, undefined])
    expect([...wrong]).toEqual([])
    for (const kind of kinds) expect(asked.get(kind) ?? 0, kind).toBeGreaterThan(total / drawn.length / 2)
    // Both are warm behind the first tenths; the heaps are bounded by the flag, the rest must not grow.
    expect(sizes.at(-1)).toBeLessThan(1.5 * Math.max(...sizes.slice(0, 4)))
    expect((await request(scheduler.url, { path: "/livez" })).status).toBe(200)
    expect((await request(doors.ssp.url, { path: "/health" })).status).toBe(200)
  },
  21_600_000
)
