/**
 * Which store an address gives, tried by opening it.
 *
 * Faults are part of it: an operator must read what to set, and get the exit code that says what kind of fault it is.
 */

import { chmodSync, closeSync, existsSync, mkdirSync, openSync, statSync, writeFileSync, writeSync } from "node:fs"
import { join } from "node:path"
import { Cause, Effect, Either, Layer, Logger, Redacted, Stream } from "effect"
import { afterAll, expect, onTestFinished, test } from "vitest"
import { heapUsed } from "../../kit/checks/heap.ts"
import { removeFolder, temporaryFolder } from "../../kit/processes/Door.ts"
import { RpcServer } from "../../kit/processes/surreal/RpcServer.ts"
import * as Ids from "../../src/core/surql/values/recordId.ts"
import { layer as layerScheduler } from "../../src/host/schedulerStores.ts"
import { layer } from "../../src/host/stores.ts"
import { Database, startPosition } from "../../src/ports/Database.ts"
import { SavedState } from "../../src/ports/SavedState.ts"
import { Upstream } from "../../src/ports/Upstream.ts"
import { fromDatabase } from "../../src/ssp/membership/Lifecycle.ts"

const folder = temporaryFolder()
afterAll(() => removeFolder(folder))

type Given = Parameters<typeof layer>[0]

const settings = (storeAddr: string | undefined, more: Partial<Given> = {}): Given => ({
  mode: "standalone",
  storeAddr,
  dataDir: join(folder, "data"),
  storeNs: undefined,
  storeDb: undefined,
  storeUser: undefined,
  storePass: undefined,
  storeAuthLevel: undefined,
  ...more
})

interface Opened {
  readonly database: Database["Type"]
  readonly upstream: Upstream["Type"]
  readonly state: SavedState["Type"]
}

const open = <A>(given: Given, body: (opened: Opened) => Effect.Effect<A, unknown>) =>
  Effect.runPromise(
    Effect.all({ database: Database, upstream: Upstream, state: SavedState }).pipe(
      Effect.flatMap(body),
      Effect.provide(Layer.fresh(layer(given, fromDatabase))),
      Effect.either
    )
  )

const kinds = ({ database, upstream }: Opened) => Effect.succeed([database.kind, upstream.present])
const write = ({ database }: Opened) =>
  database.commit({ records: [], putViews: [], removeViews: [], position: { ...startPosition, writes: 5 } })
const read = ({ database }: Opened) => Effect.map(database.position, ({ writes }) => writes)
const faultOf = (result: Either.Either<unknown, unknown>) =>
  (Either.isLeft(result) ? result.left : "no fault") as { readonly exitCode?: number; readonly message?: string }

test("D22 the address gives the store, and with a server there is an upstream beside the node's own store", async () => {
  const ns = { storeNs: "n", storeDb: "d" }
  for (const [address, more, expected] of [
    [undefined, {}, ["sqlite", false]],
    ["memory://", {}, ["memory", false]],
    ["mem://", {}, ["surreal", false]],
    [`surrealkv://${join(folder, "kv")}`, {}, ["surreal", false]],
    ["127.0.0.1:1", ns, ["sqlite", true]],
    ["wss://127.0.0.1:1", ns, ["sqlite", true]]
  ] as const)
    expect(await open(settings(address, more), kinds), address).toEqual(Either.right(expected))
})

test("D22 D23 committed records are kept, in the process or beside a server", async () => {
  for (const address of [`surrealkv://${join(folder, "kept here")}`, "127.0.0.1:1"]) {
    const given = settings(address, { storeNs: "n", storeDb: "d" })
    await open(given, (opened) => Effect.zipRight(write(opened), opened.state.save("saved")))
    expect(await open(given, read), address).toEqual(Either.right(5))
    expect(existsSync(join(given.dataDir, "state.json"))).toBe(true)
  }
})

test("data folders are made for this user alone; a folder that others may open is warned about and left as it is", async () => {
  const warnings: Array<string> = []
  const logger = Logger.make(
    ({ logLevel, message }) => void (logLevel._tag === "Warning" && warnings.push(String(message)))
  )
  const opened = (dataDir: string) =>
    Effect.runPromise(
      Database.pipe(
        Effect.flatMap((database) => write({ database } as Opened)),
        Effect.provide(Layer.fresh(layer(settings(undefined, { dataDir }), fromDatabase))),
        Effect.provide(Logger.replace(Logger.defaultLogger, logger)),
        Effect.scoped
      )
    )
  const made = join(folder, "made", "here"),
    open = join(folder, "open")
  await opened(made)
  expect([statSync(made).mode & 0o777, warnings]).toEqual([0o700, []])
  mkdirSync(open)
  chmodSync(open, 0o755)
  await opened(open)
  expect([statSync(open).mode & 0o777, warnings.length]).toEqual([0o755, 1])
  expect(warnings[0]).toMatch(/open to other users of this machine \(mode 0755\); chmod 700/)
})

test("D22 mem:// and memory:// keep nothing", async () => {
  for (const address of ["mem://", "memory://"]) {
    await open(settings(address), write)
    expect(await open(settings(address), read)).toEqual(Either.right(0))
  }
})

test("D22 a store that is never read holds nothing: memory://, and an SSP of a cluster, after a million deletes", async () => {
  const batch = 10_000
  for (const given of [
    settings("memory://"),
    settings(undefined, { mode: "scheduler", dataDir: join(folder, "in a cluster") })
  ]) {
    const left = await open(given, ({ database }) =>
      Effect.gen(function* () {
        const before = heapUsed()
        for (let at = 0; at < 1_000_000; at += batch) {
          const records = Array.from({ length: batch }, (_, n) => ({
            id: Ids.make("t", `key ${at + n}`),
            version: 2,
            doc: undefined
          }))
          yield* database.commit({
            records,
            putViews: [],
            removeViews: [],
            position: { ...startPosition, writes: at + batch }
          })
        }
        const held = yield* Stream.runFold(database.records, 0, (count, chunk) => count + chunk.length)
        return { held, grownMiB: Math.round((heapUsed() - before) / 2 ** 20) }
      })
    )
    expect(left).toEqual(Either.right({ held: 0, grownMiB: expect.toSatisfy((grown: number) => grown < 16) }))
  }
})

test("D22 the server is asked as it is told to: user, password, namespace, database", async () => {
  const server = await RpcServer.start({ user: "admin", pass: "secret" })
  onTestFinished(() => server.kill())
  await server.ask("n", "d", "CREATE item:1")
  const tables = ({ upstream }: Opened) => Effect.map(upstream.tables, (found) => found.map(({ name }) => name))
  const given = settings(`127.0.0.1:${server.port}`, {
    storeNs: "n",
    storeDb: "d",
    storeUser: "admin",
    storePass: Redacted.make("secret")
  })
  expect(await open(given, tables)).toEqual(Either.right(["item"]))
  expect(Either.isLeft(await open({ ...given, storePass: Redacted.make("wrong") }, tables))).toBe(true)
})

test("D22 faults name what to set, with the exit code of their kind", async () => {
  expect(faultOf(await open(settings("ws://db:8000"), kinds))).toMatchObject({
    exitCode: 2,
    message: expect.stringContaining("STORE_NS")
  })
  expect(faultOf(await open(settings("redis://db"), kinds))).toMatchObject({
    exitCode: 2,
    message: expect.stringContaining("STORE_ADDR=redis://db")
  })
  const url = `surrealkv://${join(folder, "held")}`
  const second = await open(settings(url), () => Effect.promise(() => open(settings(url), kinds)))
  expect(faultOf(Either.getOrThrow(second))).toMatchObject({
    exitCode: 1,
    message: expect.stringContaining("another process has it")
  })
})

test("D23 a damaged store beside a server is set aside and begun anew; without a server it is refused", async () => {
  const server = settings("127.0.0.1:1", { storeNs: "n", storeDb: "d", dataDir: join(folder, "damaged") })
  const file = join(server.dataDir, "upstream.db")
  await open(server, write)
  writeFileSync(file, "this is no database, it only has the right name ".repeat(100))
  expect(await open(server, read)).toEqual(Either.right(0))
  expect([statSync(`${file}.damaged`).size, existsSync(file)]).toEqual([4_800, true])
  // Again, and by pages this time: what was set aside before makes room.
  const many = Array.from({ length: 500 }, (_, i) => ({
    id: Ids.make("t", i),
    version: 1,
    doc: { text: "x".repeat(100), id: Ids.make("t", i) }
  }))
  await open(server, ({ database }) =>
    database.commit({ records: many, putViews: [], removeViews: [], position: startPosition })
  )
  const handle = openSync(file, "r+")
  for (let at = 8192; at < statSync(file).size; at += 4096) writeSync(handle, Buffer.alloc(512, 0xa5), 0, 512, at)
  closeSync(handle)
  expect(await open(server, read)).toEqual(Either.right(0))
  expect(statSync(`${file}.damaged`).size).toBeGreaterThan(50_000)
  const alone = settings(undefined, { dataDir: join(folder, "damaged alone") })
  await open(alone, write)
  writeFileSync(join(alone.dataDir, "store.db"), "no database ".repeat(1000))
  expect(faultOf(await open(alone, read))).toMatchObject({ exitCode: 3, message: expect.stringContaining("store.db") })
})

test("D23 damage that shows only on reading can be set aside too, under the same service", async () => {
  const server = settings("127.0.0.1:1", { storeNs: "n", storeDb: "d", dataDir: join(folder, "damaged later") })
  const outcome = await open(server, (opened) =>
    Effect.gen(function* () {
      yield* write(opened)
      const where = yield* opened.database.setAside ?? Effect.die("it cannot")
      const after = yield* read(opened)
      yield* write(opened)
      return [where, after, yield* read(opened)] as const
    })
  )
  expect(outcome).toEqual(Either.right([join(server.dataDir, "upstream.db.damaged"), 0, 5]))
  expect(await open(server, read)).toEqual(Either.right(5))
})

test("D22 in a cluster no records are kept here, a server is there for the edges, and the folder is one process's", async () => {
  const given = settings("127.0.0.1:1", {
    mode: "scheduler",
    storeNs: "n",
    storeDb: "d",
    dataDir: join(folder, "member")
  })
  expect(await open(given, kinds)).toEqual(Either.right(["memory", true]))
  expect(await open(settings(undefined, { mode: "scheduler", dataDir: given.dataDir }), kinds)).toEqual(
    Either.right(["memory", false])
  )
  expect(await open(given, ({ state }) => state.save("saved"))).toEqual(Either.right(undefined))
  expect(await open(given, ({ state }) => state.load)).toEqual(Either.right("saved"))
  const second = await open(given, () => Effect.promise(() => open(given, kinds)))
  expect(faultOf(Either.getOrThrow(second))).toMatchObject({
    exitCode: 1,
    message: expect.stringContaining("another process has it")
  })
})

test("D22 a scheduler beside a database that does not exist is told which of its settings to correct", async () => {
  const server = await RpcServer.start()
  onTestFinished(() => server.kill())
  await server.ask("n", "d", "RETURN 1")
  const tables = (namespace: string, name: string) => {
    const login = { username: "root", password: Redacted.make("root"), authLevel: undefined }
    const stores = layerScheduler({
      replicaDbPath: join(folder, `replica-${namespace}-${name}`),
      walPath: join(folder, `wal-${namespace}-${name}`, "log"),
      database: { url: server.url, namespace, name, ...login }
    })
    const asked = Effect.provide(
      Effect.flatMap(Upstream, (upstream) => upstream.tables),
      Layer.fresh(stores)
    )
    return Effect.runPromise(asked.pipe(Effect.sandbox, Effect.flip, Effect.map(Cause.squash), Effect.either))
  }
  for (const [namespace, database, setting] of [
    ["nowhere", "d", "SVC_SCHEDULER_DB_NAMESPACE"],
    ["n", "nowhere", "SVC_SCHEDULER_DB_DATABASE"]
  ] as const)
    expect(await tables(namespace, database)).toMatchObject(
      Either.right({ exitCode: 2, message: expect.stringContaining(`correct ${setting}`) })
    )
})
