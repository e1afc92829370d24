/**
 * A database in which every statement meets another transaction first: what a service and its commands send there is
 * repeated, a bounded number of times, and is applied whole.
 */
import { Effect, Layer, Redacted } from "effect"
import { afterAll, beforeAll, expect, test } from "vitest"
import { noOptions } from "../../kit/processes/setupCommand.ts"
import { RpcServer } from "../../kit/processes/surreal/RpcServer.ts"
import { rootAccess } from "../../kit/processes/surreal/rootAccess.ts"
import * as Address from "../../src/core/settings/address.ts"
import { make } from "../../src/drivers/surrealUpstream.ts"
import { layerServer } from "../../src/host/surreal/Surreal.ts"
import { SurrealClient, SurrealError, type SurrealShape } from "../../src/ports/SurrealClient.ts"
import { Upstream, type UpstreamShape } from "../../src/ports/Upstream.ts"
import { read } from "../../src/ssp/Config.ts"
import * as DatabaseSetup from "../../src/ssp/commands/DatabaseSetup.ts"

let server: RpcServer
beforeAll(async () => void (server = await RpcServer.start()))
afterAll(() => server.kill())

/** Each text meets another transaction `times` times before it is sent. */
const meeting = (
  client: SurrealShape,
  times: number
): { readonly client: SurrealShape; readonly met: () => number } => {
  const left = new Map<string, number>()
  let met = 0
  return {
    met: () => met,
    client: {
      ...client,
      query: (statements, bindings) =>
        Effect.suspend(() => {
          const rest = left.get(statements) ?? times
          left.set(statements, rest - 1)
          if (rest <= 0) return client.query(statements, bindings)
          met++
          const message = "Transaction conflict: Transaction write conflict. This transaction can be retried"
          return Effect.fail(new SurrealError({ reason: "conflict", message, uncertain: false }))
        })
    }
  }
}

const inside = <A, E>(
  database: string,
  times: number,
  work: (parts: {
    readonly client: SurrealShape
    readonly upstream: UpstreamShape
    readonly met: () => number
  }) => Effect.Effect<A, E>
): Promise<A> => {
  const address = Address.store(server.url)
  if (address?.kind !== "server") throw new Error(`${server.url} is no server`)
  return Effect.runPromise(
    Effect.flatMap(SurrealClient, (real) => {
      const { client, met } = meeting(real, times)
      return work({ client, upstream: make(client), met })
    }).pipe(Effect.provide(layerServer(address, { ...rootAccess, database })))
  )
}

const view = {
  key: "v",
  id: "incantation:v",
  surql: "SELECT * FROM item",
  clientId: "c",
  ttlMs: 60_000,
  params: "{}",
  format: "flat",
  lastActiveAtMs: 0
}

test("whatever the upstream writes is repeated when it meets another transaction", async () => {
  const done = await inside("upstream", 2, ({ met, upstream }) =>
    Effect.gen(function* () {
      const { changes, lease } = upstream
      if (changes === undefined || lease === undefined) return yield* Effect.dieMessage("no change table")
      const writes: { readonly [name: string]: Effect.Effect<unknown, unknown> } = {
        prepare: upstream.prepare,
        register: upstream.register(view, "me"),
        claim: upstream.claim(["v"], "you"),
        expire: upstream.expire(["v"], "you", 1),
        putNodes: upstream.putNodes([{ table: "item", level: 0, index: 0, hash: "h", count: 1, seq: null }]),
        acquire: lease.acquire("t", { was: [], name: "me", ttlMs: 1_000 }),
        see: changes.see(["item"]),
        renew: lease.renew("t", 1_000, 1),
        announce: Effect.zipRight(upstream.prepare, changes.announce(["item"])),
        refuse: changes.answer(
          { op: "register", view: "v", clientId: "c", surql: "", params: {}, ttl: "1s" },
          undefined
        ),
        release: lease.release("t"),
        unregister: upstream.unregister(["v"], "you")
      }
      const meetings = new Map<string, number>()
      for (const [name, write] of Object.entries(writes)) {
        const before = met()
        yield* write
        meetings.set(name, met() - before)
      }
      return Object.fromEntries(meetings)
    })
  )
  expect(Object.entries(done).filter(([, met]) => met < 2)).toEqual([])
})

const given = [
  ["install", {}],
  ["install", { leastPrivilege: true }],
  ["remove", {}]
] as const

/** Runs each command in a database of this name. */
const commands = async (database: string, times: number) => {
  const env = { STORE_SERVICE_PASS: "p" }
  const config = await Effect.runPromise(
    read({ env, file: undefined, readText: () => ({ fault: "" }), hostName: "h" }, "u")
  )
  const settings = { ...config, storeAddr: server.url, storeServicePass: Redacted.make("p") }
  const ends = await Promise.all(
    given.map(([command, more]) =>
      inside(database, times, ({ client, upstream }) =>
        Effect.either(DatabaseSetup.run(settings, command, { ...noOptions, ...more })).pipe(
          Effect.provide(Layer.succeed(SurrealClient, client)),
          Effect.provide(Layer.succeed(Upstream, upstream))
        )
      )
    )
  )
  const [tables] = await server.ask<[{ readonly tables: object }]>("n", database, "INFO FOR DB")
  return { ends, tables: Object.keys(tables.tables) }
}

test("commands are carried out behind a few such meetings, and give up behind many, having defined nothing", async () => {
  expect((await commands("few", 3)).ends.map(({ _tag }) => _tag)).toEqual(["Right", "Right", "Right"])
  const { ends, tables } = await commands("many", 1_000)
  for (const end of ends)
    expect(end).toMatchObject({
      _tag: "Left",
      left: { exitCode: 1, message: expect.stringMatching(/can be retried.*tried 9 times/) }
    })
  expect(tables).toEqual([])
}, 60_000)
