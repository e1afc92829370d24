/**
 * The test kit's database server, tried with the official SDK: it is to be as real as the tests need it.
 *
 * Everything else about the database is tested against this server, so what it promises is proven here first: sessions,
 * permissions, faults on demand, data that survives a kill.
 */
import { join } from "node:path"
import { RecordId, Surreal } from "surrealdb"
import { afterAll, expect, onTestFinished, test } from "vitest"
import { request } from "../../kit/checks/http.ts"
import { removeFolder, sleep, temporaryFolder, until } from "../../kit/processes/Door.ts"
import { RpcServer, type ServerOptions } from "../../kit/processes/surreal/RpcServer.ts"
import { ServerProcess } from "../../kit/processes/surreal/ServerProcess.ts"
import { newClient, persistently, rootClient } from "../../kit/processes/surreal/sdk.ts"

const folder = temporaryFolder()
afterAll(() => removeFolder(folder))

const serve = async (options: ServerOptions = {}): Promise<RpcServer> => {
  const server = await RpcServer.start(options)
  onTestFinished(() => server.kill())
  return server
}

const connect = async (...args: Parameters<typeof rootClient>): Promise<Surreal> => {
  const db = await rootClient(...args)
  onTestFinished(async () => void (await db.close()))
  return db
}

test("the SDK connects, signs in and queries; every connection has its own session", async () => {
  const server = await serve()
  const clients = await Promise.all(Array.from({ length: 8 }, (_, i) => connect(server, "n", `d${i}`)))
  for (const [i, db] of clients.entries()) await persistently(async () => db.query("CREATE t:1 SET i = $i", { i }))
  const found = await Promise.all(
    clients.map((db) => db.query<[ReadonlyArray<{ readonly i: number }>]>("SELECT i FROM t"))
  )
  expect(found.map(([rows]) => rows[0]?.i)).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
  expect(await clients[0]?.version()).toEqual({ version: "surrealdb-3.0.2" })
})

test("a client that has not signed in, or with a wrong password, is refused", async () => {
  const server = await serve()
  const db = newClient()
  onTestFinished(async () => void (await db.close()))
  await db.connect(server.url, { namespace: "n", database: "d" })
  await expect(db.query("RETURN 1")).rejects.toThrow("Anonymous access not allowed")
  await expect(db.signin({ username: "root", password: "wrong" })).rejects.toThrow("problem with authentication")
  await expect(db.query("RETURN 1")).rejects.toThrow("Anonymous access not allowed")
  await db.signin({ username: "root", password: "root" })
  expect(await db.query("RETURN 1")).toEqual([1])
})

test("clients that hang up while they sign in leave the server there; one that dies then answers none of them", async () => {
  const server = await serve()
  const hangUp = async (afterMs: number): Promise<void> => {
    const db = newClient()
    await db.connect(server.url)
    // Once the connection is closed the SDK settles it no more.
    void db.signin({ username: "root", password: "root" }).catch(() => undefined)
    await sleep(afterMs)
    await db.close()
  }
  await Promise.all(Array.from({ length: 40 }, (_, i) => hangUp(i * 5)))
  expect(await (await connect(server)).query("RETURN 1")).toEqual([1])
  await Promise.all(Array.from({ length: 20 }, () => hangUp(1)))
  await server.kill()
})

test("a record user sees what permissions allow, nothing else", async () => {
  const server = await serve()
  const root = await connect(server)
  await root.query(`
    DEFINE TABLE user PERMISSIONS NONE; DEFINE TABLE note PERMISSIONS FOR select WHERE owner = $auth.id;
    DEFINE ACCESS account ON DATABASE TYPE RECORD SIGNIN (SELECT * FROM user WHERE name = $name AND pass = $pass);
    CREATE user:ann SET name = 'ann', pass = 'a'; CREATE note:1 SET owner = user:ann; CREATE note:2 SET owner = user:bob`)
  const ann = newClient()
  onTestFinished(async () => void (await ann.close()))
  await ann.connect(server.url, { namespace: "n", database: "d" })
  await ann.signin({ namespace: "n", database: "d", access: "account", variables: { name: "ann", pass: "a" } })
  const [notes] = await ann.query<[ReadonlyArray<{ readonly id: RecordId }>]>("SELECT id FROM note")
  expect(notes.map((note) => String(note.id))).toEqual(["note:1"])
  await expect(
    ann.signin({ namespace: "n", database: "d", access: "account", variables: { name: "ann", pass: "b" } })
  ).rejects.toThrow()
})

test("live queries arrive, also many at once", async () => {
  const server = await serve()
  const db = await connect(server)
  await db.query("DEFINE TABLE t")
  const [id] = await db.query<[never]>("LIVE SELECT * FROM t")
  const live = await db.liveOf(id)
  let seen = 0
  live.subscribe(() => seen++)
  await db.query("FOR $i IN 0..300 { CREATE t SET i = $i }")
  await until("300 notifications", () => seen === 300)
  expect(seen).toBe(300)
})

test("answers over HTTP: health, version, sql, and the SDK's own transport", async () => {
  const server = await serve()
  expect((await request(server.httpUrl, { path: "/health" })).status).toBe(200)
  expect((await request(server.httpUrl, { path: "/version" })).text).toBe("surrealdb-3.0.2")
  const basic = `Basic ${Buffer.from("root:root").toString("base64")}`
  const headers = { authorization: basic, "surreal-ns": "n", "surreal-db": "d" }
  const answer = await request(server.httpUrl, {
    method: "POST",
    path: "/sql",
    headers,
    body: "RETURN 1 + 1; RETURN d'2020-01-01T00:00:00Z'"
  })
  expect(answer.json).toMatchObject([
    { status: "OK", result: 2 },
    { status: "OK", result: "2020-01-01T00:00:00.000Z" }
  ])
  expect(
    (
      await request(server.httpUrl, {
        method: "POST",
        path: "/sql",
        headers: { ...headers, authorization: "Basic cm9vdDp4" },
        body: "RETURN 1"
      })
    ).status
  ).toBe(401)
  const db = new Surreal()
  await db.connect(server.httpUrl, {
    namespace: "n",
    database: "d",
    authentication: { username: "root", password: "root" }
  })
  onTestFinished(async () => void (await db.close()))
  expect(await db.query("RETURN 1.5")).toEqual([1.5])
})

test("paused it answers nothing until it is resumed, slowed it takes its time", async () => {
  const server = await serve()
  const db = await connect(server)
  server.pause()
  let answered = false
  const asked = db.query("RETURN 1").then(() => (answered = true))
  await sleep(60)
  expect(answered).toBe(false)
  server.resume()
  await asked
  server.slow(80)
  const start = performance.now()
  await db.query("RETURN 1")
  expect(performance.now() - start).toBeGreaterThan(75)
})

test("a session ends on demand, and when its time has passed", async () => {
  const server = await serve()
  const db = newClient()
  onTestFinished(async () => void (await db.close()))
  await db.connect(server.url, { namespace: "n", database: "d" })
  await db.signin({ username: "root", password: "root" })
  expect(await db.query("RETURN 1")).toEqual([1])
  server.expireSessions()
  await expect(db.query("RETURN 1")).rejects.toThrow("The session has expired")
  await db.signin({ username: "root", password: "root" })
  expect(await db.query("RETURN 1")).toEqual([1])
  await db.query("DEFINE USER brief ON ROOT PASSWORD 'b' ROLES OWNER DURATION FOR SESSION 1s")
  await db.signin({ username: "brief", password: "b" })
  const ended = async (): Promise<boolean> => {
    const error = await db.query("RETURN 1").then(
      () => undefined,
      (reason: unknown) => reason
    )
    return String(error).includes("The session has expired")
  }
  expect(await until("the session's end", ended)).toBe(true)
})

test("killed and started again on its data: the SDK reconnects, what was acknowledged is there", async () => {
  const first = await ServerProcess.start({ path: `surrealkv://${join(folder, "killed")}` })
  onTestFinished(() => first.kill())
  const db = newClient()
  await db.connect(first.url, {
    namespace: "n",
    database: "d",
    authentication: { username: "root", password: "root" },
    reconnect: { retryDelay: 20, retryDelayMax: 50, attempts: -1 }
  })
  await db.query("DEFINE TABLE t")
  await Promise.all(Array.from({ length: 50 }, (_, i) => db.query("CREATE $id", { id: new RecordId("t", i) })))
  await first.kill()
  const second = await first.restart()
  onTestFinished(async () => {
    await db.close()
    await second.kill()
  })
  const [count] = await db.query<[ReadonlyArray<unknown>]>("SELECT * FROM t")
  expect(count.length).toBe(50)
})

test("a stopped process keeps its connections and answers when it goes on", async () => {
  const server = await ServerProcess.start()
  onTestFinished(() => server.kill())
  const db = await connect(server)
  server.pause()
  let answered = false
  const asked = db.query("RETURN 1").then(() => (answered = true))
  await sleep(60)
  expect(answered).toBe(false)
  server.resume()
  await asked
  await server.slow(1)
  await server.expireSessions()
  await expect(db.query("RETURN 1")).rejects.toThrow("expired")
})
