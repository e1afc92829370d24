/**
 * The drivers of `SurrealClient` against a real engine behind a real socket that misbehaves, and inside the process.
 *
 * What is proven is what the service relies on: answers are exact, a lost connection mends itself, nothing is sent
 * twice, and every failure says which of the few kinds it is.
 */

import { existsSync } from "node:fs"
import { type AddressInfo, createServer } from "node:net"
import { join } from "node:path"
import { Cause, Effect, Either, Exit, Fiber, Layer, Logger, LogLevel, Redacted } from "effect"
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest"
import { removeFolder, sleep, temporaryFolder, until } from "../../../kit/processes/Door.ts"
import { RpcServer, type ServerOptions } from "../../../kit/processes/surreal/RpcServer.ts"
import { rootAccess } from "../../../kit/processes/surreal/rootAccess.ts"
import * as Address from "../../../src/core/settings/address.ts"
import * as Ids from "../../../src/core/surql/values/recordId.ts"
import { Float } from "../../../src/core/surql/values/value.ts"
import { layerEmbedded, layerServer } from "../../../src/host/surreal/Surreal.ts"
import type { Access } from "../../../src/host/surreal/SurrealLink.ts"
import { StartFault } from "../../../src/ports/StartFault.ts"
import { SurrealClient, SurrealError } from "../../../src/ports/SurrealClient.ts"

const folder = temporaryFolder()
afterAll(() => removeFolder(folder))

const root: Access = rootAccess
/** For what is answered: signing in alone takes a busy machine seconds. */
const patience = { connectTimeoutMs: 20_000, requestTimeoutMs: 60_000, maxPauseMs: 300 }
/** For what is not answered and is waited for: long enough to connect. */
const shortPatience = { ...patience, requestTimeoutMs: 6_000 }

const serverAt = (text: string): Address.ServerStore => {
  const address = Address.store(text)
  if (address?.kind !== "server") throw new Error(`${text} is no server`)
  return address
}

const embeddedAt = (text: string): Address.EmbeddedStore => {
  const address = Address.store(text)
  if (address?.kind !== "embedded") throw new Error(`${text} is not embedded`)
  return address
}

/** For what leaves a server as it was; every test has its own database on it. */
let shared: RpcServer
let databases = 0
beforeAll(async () => void (shared = await RpcServer.start()))
afterAll(() => shared.kill())
const inOwn = (access = root): Access => ({ ...access, database: `d${databases++}` })

const serve = async (options: ServerOptions = {}): Promise<RpcServer> => {
  const server = await RpcServer.start(options)
  onTestFinished(() => server.kill())
  return server
}

type Use<A> = (client: SurrealClient["Type"]) => Effect.Effect<A, SurrealError>

const use = <A>(url: string, body: Use<A>, access = root, limits = patience): Promise<Either.Either<A, SurrealError>> =>
  Effect.runPromise(
    Effect.flatMap(SurrealClient, body).pipe(
      Effect.provide(layerServer(serverAt(url), access, limits)),
      Effect.either,
      Logger.withMinimumLogLevel(LogLevel.None)
    )
  )

const right = <A, E>(result: Either.Either<A, E>): A => Either.getOrThrowWith(result, (error) => error)

const reasonOf = (result: Either.Either<unknown, SurrealError>): string =>
  Either.isLeft(result) ? result.left.reason : `no failure: ${JSON.stringify(result.right)}`

for (const scheme of ["ws", "http"] as const) {
  const urlOf = (server = shared): string => (scheme === "ws" ? server.url : server.httpUrl)

  test(`D22 ${scheme}: values are bound and answered exactly, each statement has its own answer`, async () => {
    const id = Ids.make("t", "'; REMOVE TABLE t; --")
    const asked = await use(
      urlOf(),
      (client) =>
        Effect.zip(
          client.query("DEFINE TABLE t; CREATE $id SET one = $one; SELECT * FROM t", { id, one: new Float(1) }),
          client.ask("RETURN 1; CREATE $id; RETURN 2; SELECT * FROM nowhere", { id })
        ),
      inOwn()
    )
    const [values, answers] = right(asked)
    expect(values[2]).toEqual([{ id, one: new Float(1) }])
    expect(answers.map((answer) => (Either.isRight(answer) ? answer.right : answer.left.reason))).toEqual([
      1,
      "refused",
      2,
      "missing"
    ])
  })

  test(`D22 ${scheme}: a transaction that fails says why, not what followed from it`, async () => {
    const result = await use(
      urlOf(),
      (client) => client.query("BEGIN; CREATE t:1; CREATE t:2; THROW 'the reason'; CREATE t:3; COMMIT"),
      inOwn()
    )
    expect(Either.isLeft(result) && result.left.message).toContain("the reason")
  })

  test(`D22 ${scheme}: a session that has expired is renewed unnoticed`, async () => {
    const server = scheme === "ws" ? shared : await serve({ tokenFor: "1s" })
    const outcome = await use(
      urlOf(server),
      (client) =>
        Effect.gen(function* () {
          yield* client.query("DEFINE TABLE t")
          if (scheme === "ws") server.expireSessions()
          else yield* Effect.sleep("1100 millis")
          yield* client.query("CREATE t:1")
          return yield* client.query("SELECT VALUE id FROM t")
        }),
      inOwn()
    )
    expect(outcome).toEqual(Either.right([[Ids.make("t", 1)]]))
  })

  test(`D22 D75 ${scheme}: a wrong password is told apart, at once and without being shown`, async () => {
    const said: Array<string> = []
    const client = layerServer(serverAt(urlOf()), { ...root, pass: Redacted.make("wr0ng") }, patience)
    const logger = Logger.replace(
      Logger.defaultLogger,
      Logger.make(({ message }) => void said.push(String(message)))
    )
    const result = await Effect.runPromise(
      Effect.flatMap(SurrealClient, ({ query }) => query("RETURN 1")).pipe(
        Effect.provide(client),
        Effect.either,
        Effect.provide(logger)
      )
    )
    expect(reasonOf(result)).toBe("unauthorized")
    expect(JSON.stringify([result, said])).not.toContain("wr0ng")
    expect(said[0]).toMatch(/^the database at .* does not take the credentials: .*; trying again$/)
  })

  test(`D22 ${scheme}: users of every level are found, or taken as told`, async () => {
    await shared.ask(
      "n",
      "d",
      "DEFINE USER OVERWRITE low ON DATABASE PASSWORD 'p' ROLES EDITOR; DEFINE USER OVERWRITE mid ON NAMESPACE PASSWORD 'p' ROLES EDITOR; DEFINE TABLE OVERWRITE t"
    )
    for (const [user, authLevel] of [
      ["low", undefined],
      ["mid", undefined],
      ["low", "database"],
      ["mid", "namespace"]
    ] as const) {
      const result = await use(urlOf(), (client) => client.query("SELECT * FROM t"), {
        ...root,
        user,
        authLevel,
        pass: Redacted.make("p")
      })
      expect(result, user).toEqual(Either.right([[]]))
    }
    expect(
      reasonOf(
        await use(urlOf(), (client) => client.query("RETURN 1"), {
          ...root,
          user: "low",
          authLevel: "root",
          pass: Redacted.make("p")
        })
      )
    ).toBe("unauthorized")
  })

  test(`D22 ${scheme}: a namespace or database that does not exist is a fault that names its setting, and is not created`, async () => {
    const given: Access = {
      ...root,
      namespace: `ab \`sent${scheme}`,
      database: "missing",
      absent: { namespace: "THE_NS", database: "THE_DB" }
    }
    const faultOf = (access: Access) =>
      use(urlOf(), (client) => client.query("RETURN 1"), access).then(
        (result) => reasonOf(result),
        (error: unknown) => String(error)
      )
    const names = async (what: "namespaces" | "databases", namespace = "n") =>
      (
        await shared.ask<[{ readonly [what: string]: object }]>(
          namespace,
          "d",
          `INFO FOR ${what === "databases" ? "NS" : "ROOT"}`
        )
      ).flatMap((info) => Object.keys(info[what] ?? {}))
    await shared.ask("n", "d", "DEFINE USER OVERWRITE mid ON NAMESPACE PASSWORD 'root' ROLES OWNER")
    const [before, databases] = [await names("namespaces"), await names("databases")]
    expect(await faultOf(given)).toMatch(/no namespace ab `sent.*correct THE_NS/)
    for (const user of ["root", "mid"])
      expect(await faultOf({ ...given, user, namespace: "n" })).toMatch(/no database missing in .* n: correct THE_DB/)
    expect([await names("namespaces"), await names("databases")]).toEqual([before, databases])
    expect(await use(urlOf(), (client) => client.query("RETURN 1"), { ...given, absent: "create" })).toEqual(
      Either.right([1])
    )
    expect(await use(urlOf(), (client) => client.query("RETURN 1"), given)).toEqual(Either.right([1]))
    expect(await names("databases", given.namespace)).toContain("missing")
  })

  test(`D75 ${scheme}: a server of another version is a fault that names it and those that do`, async () => {
    onTestFinished(() => void (shared.version = undefined))
    const faultOf = async (version: string) => {
      shared.version = version
      const asked = await Effect.runPromiseExit(
        Effect.flatMap(SurrealClient, (client) => client.query("RETURN 1")).pipe(
          Effect.provide(layerServer(serverAt(urlOf()), inOwn(), patience)),
          Logger.withMinimumLogLevel(LogLevel.None)
        )
      )
      return Exit.match(asked, { onSuccess: String, onFailure: Cause.squash })
    }
    for (const version of ["4.0.0", "4.0.0-beta.1", "2.6.1", "1.5.6", "30.1.0"])
      expect(await faultOf(version)).toMatchObject({
        _tag: "StartFault",
        exitCode: 1,
        message: expect.stringContaining(`is SurrealDB ${version}; this service works with versions >=3.0.0 <4`)
      })
    for (const version of ["3.0.0", "3.3.0-beta.3"]) expect(await faultOf(version)).toBe("1")
  })

  test(`D22 ${scheme}: no answer in time is a time-out, and the next request is served`, async () => {
    const outcome = await use(
      urlOf(),
      (client) =>
        Effect.gen(function* () {
          yield* client.query("RETURN 1")
          shared.pause()
          const late = yield* Effect.either(client.query("RETURN 2"))
          shared.resume()
          return [late, yield* client.query("RETURN 3")] as const
        }),
      inOwn(),
      shortPatience
    )
    const [late, next] = right(outcome)
    expect(reasonOf(late)).toBe("timeout")
    expect(Either.isLeft(late) && late.left.uncertain).toBe(true)
    expect(next).toEqual([3])
  })
}

test("D22 a connection that breaks fails what was in flight as uncertain, sends nothing twice, and is replaced", async () => {
  const outcome = await use(
    shared.url,
    (client) =>
      Effect.gen(function* () {
        yield* client.query("DEFINE TABLE t")
        const writing = yield* Effect.fork(Effect.either(client.query("CREATE t SET n = 1; RETURN sleep(400ms)")))
        yield* Effect.sleep("200 millis")
        shared.cut()
        const broken = yield* Fiber.join(writing)
        yield* client.query("RETURN 1")
        yield* Effect.sleep("300 millis")
        return [broken, yield* client.query("SELECT VALUE n FROM t")] as const
      }),
    inOwn()
  )
  const [broken, rows] = right(outcome)
  expect(Either.isLeft(broken) && [broken.left.reason, broken.left.uncertain]).toEqual(["unreachable", true])
  expect(rows).toEqual([[1]])
})

test("D22 a ping that a server which hangs never answers ends with its connection, and not with the process", async () => {
  const every = globalThis.setInterval
  // The SDK pings every 30 s.
  globalThis.setInterval = ((body: () => void, ms: number) =>
    every(body, ms === 30_000 ? 20 : ms)) as typeof setInterval
  onTestFinished(() => void (globalThis.setInterval = every))
  const unheard: Array<unknown> = []
  const hear = (reason: unknown): void => void unheard.push(reason)
  process.on("unhandledRejection", hear)
  onTestFinished(() => void process.off("unhandledRejection", hear))
  const server = await serve()
  const outcome = await use(server.url, (client) =>
    Effect.gen(function* () {
      yield* client.query("RETURN 1")
      yield* Effect.promise(() => until("a ping", () => (server.calls.get("ping") ?? 0) > 0))
      server.pause()
      yield* Effect.sleep("200 millis")
      server.cut()
      server.resume()
      yield* Effect.sleep("100 millis")
      return yield* client.query("RETURN 2")
    })
  )
  expect([outcome, unheard]).toEqual([Either.right([2]), []])
})

test("D22 a server that is killed and started again is found again; many waiting requests make one connection", async () => {
  const path = `surrealkv://${join(folder, "again")}`
  const first = await serve({ path })
  let second: RpcServer | undefined
  const again = <A>(asked: Effect.Effect<A, SurrealError>) => Effect.retry(asked, { while: (error) => error.transient })
  const outcome = await use(first.url, (client) =>
    Effect.gen(function* () {
      yield* client.query("CREATE t:1")
      yield* Effect.promise(() => first.kill())
      const waiting = yield* Effect.fork(
        Effect.all(
          Array.from({ length: 20 }, () => again(client.query("SELECT VALUE id FROM t"))),
          { concurrency: "unbounded" }
        )
      )
      yield* Effect.sleep("200 millis")
      second = yield* Effect.promise(() => serve({ path, port: first.port }))
      return yield* Fiber.join(waiting)
    })
  )
  expect(right(outcome)).toEqual(Array.from({ length: 20 }, () => [[Ids.make("t", 1)]]))
  expect(second?.calls.get("signin")).toBe(1)
})

test("D22 a database that is gone behind a lost connection is waited for, and not created", async () => {
  const server = await serve()
  await server.ask("n", "d", "DEFINE TABLE t")
  await server.ask("n", "other", "RETURN 1")
  const outcome = await use(
    server.url,
    (client) =>
      Effect.gen(function* () {
        yield* client.query("RETURN 1")
        yield* Effect.promise(() => server.ask("n", "other", "REMOVE DATABASE d"))
        server.cut()
        yield* Effect.sleep("50 millis")
        const gone = yield* Effect.either(client.query("RETURN 2"))
        yield* Effect.promise(() => server.ask("n", "other", "DEFINE DATABASE d"))
        return [gone, yield* client.query("RETURN 3")] as const
      }),
    { ...root, absent: { namespace: "THE_NS", database: "THE_DB" } },
    shortPatience
  )
  const [gone, back] = right(outcome)
  expect(Either.isLeft(gone) && [gone.left.reason, gone.left.message]).toEqual([
    "unreachable",
    expect.stringMatching(/no database d in/)
  ])
  expect(back).toEqual([3])
})

test("D22 an address without a server is unreachable when the time is up, and says why", async () => {
  const result = await use("ws://127.0.0.1:1", (client) => client.query("RETURN 1"), root, {
    connectTimeoutMs: 200,
    requestTimeoutMs: 300,
    maxPauseMs: 300
  })
  expect(Either.isLeft(result) && [result.left.reason, result.left.uncertain]).toEqual(["unreachable", false])
  expect(Either.isLeft(result) && result.left.message).toContain("ECONNREFUSED")
})

test("D22 a handshake that is not answered is given up, and tried again", async () => {
  shared.pause()
  const outcome = use(shared.url, (client) => client.query("RETURN 1"), root, {
    connectTimeoutMs: 1_000,
    requestTimeoutMs: 30_000,
    maxPauseMs: 300
  })
  await new Promise((done) => setTimeout(done, 1_200))
  shared.resume()
  expect(await outcome).toEqual(Either.right([1]))
})

test("D22 an attempt to connect goes on when the requests that wait for it have given up, or a slow server would never be reached", async () => {
  const server = await serve()
  server.slow(200)
  const outcome = await use(
    server.url,
    (client) =>
      Effect.gen(function* () {
        const early = yield* Effect.either(client.query("RETURN 1"))
        const asked = yield* Effect.retry(client.query("RETURN 2"), { while: (error) => error.transient })
        return [early, asked] as const
      }),
    root,
    { connectTimeoutMs: 20_000, requestTimeoutMs: 300, maxPauseMs: 300 }
  )
  const [early, asked] = right(outcome)
  // An attempt that ended with each request would never get as far as an answer: three calls take twice as long.
  expect([reasonOf(early), asked]).toEqual(["unreachable", [2]])
})

test("D22 wss and https speak TLS to any server, never plain text", async () => {
  for (const scheme of ["wss", "https"]) {
    const heard: Array<number> = []
    const plain = createServer((socket) =>
      socket.once("data", (bytes) => {
        heard.push(bytes[0] ?? -1)
        socket.destroy()
      })
    )
    await new Promise<void>((listening) => plain.listen(0, "127.0.0.1", listening))
    onTestFinished(() => void plain.close())
    const { port } = plain.address() as AddressInfo
    const result = await use(`${scheme}://127.0.0.1:${port}`, (client) => client.query("RETURN 1"), root, {
      connectTimeoutMs: 200,
      requestTimeoutMs: 300,
      maxPauseMs: 300
    })
    expect(reasonOf(result)).toBe("unreachable")
    expect(new Set(heard)).toEqual(new Set([0x16]))
  }
})

test("D22 a token that is good for months does not keep the client busy", async () => {
  const server = await serve({ tokenFor: "60d", sessionFor: "60d" })
  await use(server.url, (client) => Effect.zipRight(client.query("RETURN 1"), Effect.sleep("100 millis")))
  expect(Object.fromEntries(server.calls)).toEqual({ version: 1, use: 1, signin: 1, query: 1 })
})

test("D22 transactions that collide are conflicts, and worth another try", async () => {
  const outcome = await use(
    shared.url,
    (client) =>
      Effect.gen(function* () {
        yield* client.query("CREATE t:1 SET n = 0")
        // Each leaves a row behind: of two that write t:1 at once, the engine in memory now and then loses one's n.
        const add = client.query("BEGIN; UPDATE t:1 SET n += 1; CREATE added; RETURN sleep(5ms); COMMIT")
        const first = yield* Effect.all(
          Array.from({ length: 40 }, () => Effect.either(add)),
          { concurrency: "unbounded" }
        )
        const lost = first.flatMap((one) => (Either.isLeft(one) ? [one.left] : []))
        yield* Effect.forEach(lost, () => add)
        return [lost, yield* client.query("SELECT VALUE count() FROM added WHERE true GROUP ALL")] as const
      }),
    inOwn()
  )
  const [lost, rows] = right(outcome)
  expect(lost.length).toBeGreaterThan(0)
  expect(lost.every((error) => error.reason === "conflict" && error.transient)).toBe(true)
  expect(rows).toEqual([[40]])
})

const inProcess = <A>(url: string, body: Use<A>) =>
  Effect.runPromise(
    Effect.flatMap(SurrealClient, body).pipe(
      Effect.provide(Layer.fresh(layerEmbedded(embeddedAt(url), { ...root, user: undefined }))),
      Effect.either
    )
  )

test("D22 in the process: in memory, or in a folder under the name it was given, opened again", async () => {
  const round = (url: string) =>
    inProcess(url, (client) => client.query("UPSERT t:1 SET n += 1; SELECT VALUE n FROM t"))
  expect(right(await round("mem://"))[1]).toEqual([1])
  expect(right(await round("mem://"))[1]).toEqual([1])
  const kept = join(folder, "with a blank")
  expect(right(await round(`surrealkv://${kept}`))[1]).toEqual([1])
  expect(right(await round(`surrealkv://${kept}`))[1]).toEqual([2])
  expect(existsSync(kept)).toBe(true)
})

test("D22 in the process: a folder that is in use is locked, not waited for", async () => {
  const url = `surrealkv://${join(folder, "locked")}`
  const outcome = await inProcess(url, (client) =>
    Effect.zipRight(
      client.query("RETURN 1"),
      Effect.promise(() => inProcess(url, (other) => other.query("RETURN 1")))
    )
  )
  const inner = right(outcome)
  expect(Either.isLeft(inner) && inner.left instanceof SurrealError && inner.left.reason).toBe("locked")
})

test("D22 in the process: what the engine cannot answer is refused, and it goes on", async () => {
  const outcome = await inProcess("mem://", (client) =>
    Effect.zip(Effect.either(client.query("RETURN /a+/")), client.query("RETURN $x", { x: 1 }))
  )
  const [refused, next] = right(outcome)
  expect(reasonOf(refused)).toBe("refused")
  expect(next).toEqual([1])
})

test("D22 in the process: closing waits for what was asked; an engine freed before it has begun with it ends the process", async () => {
  let answered = 0
  const ask = (client: SurrealClient["Type"]) =>
    Effect.forkDaemon(Effect.tap(client.query("RETURN sleep(400ms)"), () => Effect.sync(() => answered++)))
  await inProcess("mem://", (client) => Effect.zipRight(Effect.all([ask(client), ask(client)]), Effect.yieldNow()))
  await sleep(5)
  expect(answered).toBe(2)
  expect(right(await inProcess("mem://", (client) => client.query("RETURN 1")))).toEqual([1])
})

test("D22 without the optional package the fault names what to install", async () => {
  const name = "@surrealdb/not-installed"
  const layer = layerEmbedded(embeddedAt("mem://"), root, () => import(name) as never)
  const fault = await Effect.runPromise(Effect.flip(Effect.provide(SurrealClient, layer)))
  expect(fault).toBeInstanceOf(StartFault)
  expect(fault instanceof StartFault && [fault.exitCode, fault.message]).toEqual([
    2,
    expect.stringContaining("npm install @surrealdb/node")
  ])
})

test("D22 the client leaves no connection behind", async () => {
  await use(shared.url, (client) => client.query("RETURN 1"))
  await until("the server sees it go", () => shared.connections === 0)
  expect(shared.connections).toBe(0)
})
