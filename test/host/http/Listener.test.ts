/** One node after another on a listener: connections go on, and each request is answered by the node that it came to. */
import { createServer, type RequestListener, type ServerResponse } from "node:http"
import { type AddressInfo, connect, type Socket } from "node:net"
import { Deferred, Effect, Exit, Scope } from "effect"
import { afterEach, describe, expect, it } from "vitest"
import { Connections } from "../../../src/host/http/connections.ts"
import { Listener } from "../../../src/host/http/Listener.ts"

const ends: Array<() => Promise<unknown> | void> = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

const listenerOf = async (): Promise<Listener> => {
  const scope = Effect.runSync(Scope.make())
  ends.push(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  const options = { host: "127.0.0.1", port: 0, setting: "LISTEN_ADDR", maxConnections: 100 }
  return Effect.runPromise(Scope.extend(Listener.make(options), scope))
}

/** A node that says its name, and answers `/slow` when it is told to; what it was told, and how it is closed. */
const begin = async (listener: Listener, name: string) => {
  const slow: Array<ServerResponse> = []
  const bound = Effect.runSync(Deferred.make<number>())
  const told: Array<string> = []
  const answer: RequestListener = ({ url }, response) =>
    void (url === "/slow" ? slow.push(response) : response.end(name))
  const scope = Effect.runSync(Scope.make())
  const close = () => Effect.runPromise(Scope.close(scope, Exit.void))
  ends.push(close)
  const serving = {
    listening: (port: number) => Effect.asVoid(Deferred.succeed(bound, port)),
    stop: Effect.sync(() => void told.push("stop"))
  }
  const bodies = { end: () => void told.push("end bodies") }
  await Effect.runPromise(Scope.extend(listener.serve({ answer, bodies, serving }), scope))
  return { port: await Effect.runPromise(Deferred.await(bound)), slow, told, close }
}

/** A connection that is kept: what came on it, and whether it was closed. */
const keptOn = async (port: number) => {
  const got = { text: "", closed: false }
  const socket: Socket = connect(port, "127.0.0.1")
  ends.push(() => void socket.destroy())
  socket.on("data", (chunk) => void (got.text += chunk.toString("latin1")))
  socket.on("error", (error) => void (got.text += error.message))
  socket.on("close", () => void (got.closed = true))
  await new Promise((done) => socket.once("connect", done))
  const ask = (path: string, more = ""): void => void socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n${more}\r\n`)
  return { got, ask, bodies: () => [...got.text.matchAll(/\r\n\r\n([a-z]+)/g)].map(([, body]) => body) }
}

const soon = (what: () => unknown) => expect.poll(what, { timeout: 20_000 })

describe("a listener whose node is followed by another one", () => {
  it("D60 a connection that is kept is answered by the second node, and so is a new one", async () => {
    const listener = await listenerOf()
    const first = await begin(listener, "first")
    const kept = await keptOn(first.port)
    const unused = await keptOn(first.port)
    kept.ask("/")
    await soon(kept.bodies).toEqual(["first"])
    const second = await begin(listener, "second")
    expect(second.port).toBe(first.port)
    await first.close()
    expect(first.told).toEqual(["end bodies", "stop"])
    kept.ask("/")
    unused.ask("/")
    const late = await keptOn(first.port)
    late.ask("/")
    await soon(kept.bodies).toEqual(["first", "second"])
    await soon(() => [unused.bodies(), late.bodies()]).toEqual([["second"], ["second"]])
    expect([kept, unused, late].map(({ got }) => got.closed)).toEqual([false, false, false])
    expect(kept.got.text.toLowerCase()).not.toContain("connection: close")
    expect(second.told).toEqual([])
  })

  it("D60 the first node is waited for until its own requests are answered, and for no later one", async () => {
    const listener = await listenerOf()
    const first = await begin(listener, "first")
    const [kept, leaving] = [await keptOn(first.port), await keptOn(first.port)]
    for (const { ask } of [kept, leaving]) ask("/slow")
    await soon(() => first.slow.length).toBe(2)
    const second = await begin(listener, "second")
    const other = await keptOn(first.port)
    other.ask("/slow")
    await soon(() => second.slow.length).toBe(1)
    let isClosed = false
    const closing = first.close().then(() => void (isClosed = true))
    await soon(() => first.told).toEqual(["end bodies", "stop"])
    first.slow[0]!.end("slow")
    await soon(kept.bodies).toEqual(["slow"])
    expect(isClosed).toBe(false)
    // Its client leaves: there is nobody to answer.
    first.slow[1]!.req.destroy()
    await closing
    expect([kept.got.closed, other.got.closed]).toEqual([false, false])
    kept.ask("/")
    await soon(kept.bodies).toEqual(["slow", "second"])
    second.slow[0]!.end("late")
    await soon(other.bodies).toEqual(["late"])
  })

  it("the node that answers takes the listener down, whichever it is", async () => {
    const listener = await listenerOf()
    const first = await begin(listener, "first")
    const second = await begin(listener, "second")
    await first.close()
    const kept = await keptOn(first.port)
    kept.ask("/")
    await soon(kept.bodies).toEqual(["second"])
    expect(listener.isStopping()).toBe(false)
    await second.close()
    expect(listener.isStopping()).toBe(true)
    await soon(() => kept.got.closed).toBe(true)
    const refused = await new Promise((done) =>
      connect(first.port, "127.0.0.1")
        .once("error", done)
        .once("connect", () => done(undefined))
    )
    expect(refused).toMatchObject({ code: "ECONNREFUSED" })
  })

  it("a request that does not end is cut at the end of its time, and its connection alone", async () => {
    const server = createServer(({ url }, response) => void (url === "/" && response.end("answered")))
    const connections = new Connections(server)
    await new Promise<void>((done) => void server.listen(0, "127.0.0.1", done))
    ends.push(() => void server.close())
    const { port } = server.address() as AddressInfo
    const [hung, kept] = [await keptOn(port), await keptOn(port)]
    hung.ask("/hung")
    kept.ask("/")
    await soon(() => [kept.bodies(), connections.inFlight().length]).toEqual([["answered"], 1])
    const cut = await new Promise((done) => connections.finishing()(50, done))
    expect(cut).toBe(1)
    await soon(() => hung.got.closed).toBe(true)
    expect(kept.got.closed).toBe(false)
  })
})

describe("a request whose Expect names nothing that Node knows", () => {
  const expectation = "expect: patience\r\n"

  it("D60 is waited for where another node follows, as any other", async () => {
    const listener = await listenerOf()
    const first = await begin(listener, "first")
    const kept = await keptOn(first.port)
    kept.ask("/slow", expectation)
    await soon(() => first.slow.length).toBe(1)
    await begin(listener, "second")
    let isClosed = false
    const closing = first.close().then(() => void (isClosed = true))
    await soon(() => first.told).toEqual(["end bodies", "stop"])
    // Whatever the close would do without waiting is done by then.
    await keptOn(first.port)
    expect(isClosed).toBe(false)
    first.slow[0]!.end("slow")
    await closing
    await soon(kept.bodies).toEqual(["slow"])
  })

  it("is told that its connection closes where the process stops", async () => {
    const listener = await listenerOf()
    const only = await begin(listener, "only")
    const kept = await keptOn(only.port)
    kept.ask("/slow", expectation)
    await soon(() => only.slow.length).toBe(1)
    const closing = only.close()
    await soon(() => listener.isStopping() && only.slow[0]!.getHeader("connection")).toBe("close")
    only.slow[0]!.end("slow")
    await closing
    await soon(kept.bodies).toEqual(["slow"])
    await soon(() => kept.got.closed).toBe(true)
  })
})
