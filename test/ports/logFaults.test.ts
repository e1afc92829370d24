/**
 * A log that a scheduler cannot use: what the process says, and with which code it ends, before anything is served
 * (D60, D62). Every row names the setting and what is wrong; none shows the password.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Either, Layer, Redacted } from "effect"
import { afterAll, describe, expect, onTestFinished, test } from "vitest"
import { campaign } from "../../kit/data/random.ts"
import * as Nats from "../../kit/processes/nats.ts"
import * as Postgres from "../../kit/processes/postgres.ts"
import * as Stores from "../../src/host/schedulerStores.ts"
import type { StartFault } from "../../src/ports/StartFault.ts"

const built = <A>(layer: Layer.Layer<A, StartFault>): Promise<Either.Either<void, StartFault>> =>
  Layer.build(Layer.fresh(layer)).pipe(Effect.scoped, Effect.asVoid, Effect.either, Effect.runPromise)

/** Opens what a scheduler keeps its state in, with its log there; undefined: in a file. */
const opening = () => {
  const folder = mkdtempSync(join(tmpdir(), "svc-log-faults-"))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const paths = { replicaDbPath: join(folder, "replica"), database: undefined }
  return (url: string | undefined) =>
    url === undefined
      ? built(Stores.layer({ ...paths, walPath: join(folder, "log") }))
      : built(
          Stores.layerShared({
            ...paths,
            logUrl: Redacted.make(url),
            logDurability: undefined,
            logReplicas: 1,
            leaseMs: 1_000
          })
        )
}

/** A server that greets so, and answers every PING: what a client of NATS asks for before it is connected. */
const greeting = async (greeting: string): Promise<string> => {
  const server = createServer((socket) => {
    socket.on("error", () => {})
    socket.write(greeting)
    socket.on("data", (bytes) => {
      if (bytes.includes("PING")) socket.write("PONG\r\n")
    })
    onTestFinished(() => void socket.destroy())
  })
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done))
  onTestFinished(() => void server.close())
  const address = server.address()
  return `127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`
}

const natsOf = (more: object): Promise<string> =>
  greeting(
    `INFO ${JSON.stringify({ server_id: "a", version: "2.9.25", proto: 1, max_payload: 1_048_576, headers: true, jetstream: true, ...more })}\r\n`
  )

interface Row {
  readonly name: string
  readonly url: () => Promise<string>
  readonly says: RegExp
  readonly exitCode?: number
  readonly needs?: boolean
}

/** In an address whose password must not be shown. */
const postgres = (host: string, database = "db"): string => `postgres://u:hidden@${host}/${database}`
const nats = (host: string): string => `nats://u:hidden@${host}/log`

const away = (why: string): RegExp =>
  new RegExp(`SVC_LOG_URL.*cannot be reached: .*${why}.*Start its server, or set SVC_LOG_URL to where it is`)

const rows: ReadonlyArray<Row> = [
  { name: "a PostgreSQL that is not there", url: async () => postgres("127.0.0.1:1"), says: away("ECONNREFUSED") },
  // The client waits for its time-out.
  {
    name: "a NATS in place of PostgreSQL",
    url: async () => postgres(await natsOf({})),
    says: away("t"),
    needs: campaign
  },
  {
    name: "a database that PostgreSQL does not have",
    url: async () => Postgres.address.replace(/\/[^/]*$/, "/nowhere"),
    says: away('database "nowhere" does not exist'),
    needs: Postgres.isReachable
  },
  { name: "a NATS that is not there", url: async () => nats("127.0.0.1:1"), says: away("refused") },
  {
    name: "another server in place of NATS",
    url: async () => nats(await greeting("SSH-2.0-x\r\n")),
    says: away("unexpected")
  },
  {
    name: "a NATS that is too old",
    url: async () => nats(await natsOf({ version: "2.8.4" })),
    says: /SVC_LOG_URL.*is NATS 2\.8\.4; it must be 2\.9 or later/
  },
  {
    name: "a NATS whose messages are too short",
    url: async () => nats(await natsOf({ max_payload: 1024 })),
    says: /SVC_LOG_URL.*max_payload is 1024 bytes; set it to 65536 at least/
  }
]

describe("a log that cannot be used", () => {
  for (const { exitCode = 1, name, needs = true, says, url } of rows)
    test.skipIf(!needs)(
      `${name} ends the start with ${exitCode}`,
      async () => {
        const answer = await opening()(await url())
        expect(answer).toMatchObject(Either.left({ exitCode, message: expect.stringMatching(says) }))
        expect(JSON.stringify(answer)).not.toContain("hidden")
      },
      30_000
    )
})

const engines = [
  { engine: "PostgreSQL", isThere: Postgres.isReachable, freshLog: Postgres.freshLog, forget: Postgres.forget },
  { engine: "NATS", isThere: Nats.isReachable, freshLog: Nats.freshLog, forget: Nats.forget }
] as const

for (const { engine, forget, freshLog, isThere } of engines)
  describe.skipIf(!isThere)(`a replica and a log on ${engine}`, () => {
    afterAll(forget)
    test("a replica stays with its log: another cluster's, or none, is refused with 3, and which are meant is said", async () => {
      const [ours, theirs] = [opening(), opening()]
      const [one, other] = [freshLog(), freshLog()]
      expect(Either.isRight(await ours(undefined))).toBe(true)
      for (let n = 0; n < 2; n++) expect(Either.isRight(await ours(one))).toBe(true)
      expect(Either.isRight(await theirs(other))).toBe(true)
      for (const [open, url, named] of [
        [ours, undefined, /is of the log [-0-9a-f]+, and SVC_LOG_URL is not set.*SVC_SCHEDULER_REPLICA_DB_PATH/],
        [
          ours,
          other,
          /is of the log [-0-9a-f]+, and SVC_LOG_URL names the log [-0-9a-f]+.*SVC_SCHEDULER_REPLICA_DB_PATH/
        ],
        [theirs, one, /SVC_LOG_URL names the log/]
      ] as const)
        expect(await open(url)).toMatchObject(Either.left({ exitCode: 3, message: expect.stringMatching(named) }))
      // Nothing has changed hands.
      expect([await ours(one), await theirs(other)].map(Either.isRight)).toEqual([true, true])
    })
  })
