/**
 * A client and a server, breaking in every way: what is shown is always a state that the server had, and in the end the
 * one that it has.
 */
import { describe, expect } from "vitest"
import { campaign, type Rng, runs, seeded } from "../../kit/data/random.ts"
import { jsonWithBigints } from "../../src/client/json.ts"
import { Followed, LiveClient } from "../../src/client/live.ts"
import { canonical, type Json, row, step } from "./diff.ts"
import { FakeServer, refusal } from "./fakeServer.ts"
import { VirtualWorld } from "./virtualWorld.ts"

const here = "test/client/follow.test.ts"

/** Looks at each state that a view shows. */
class Checker {
  seen = 0
  statuses = new Set<string>()
  readonly view: Followed<Json>
  private readonly server: FakeServer
  private before: ReadonlyArray<Json> = []
  readonly id: string

  constructor(server: FakeServer, client: LiveClient, id: string) {
    this.server = server
    this.id = id
    this.view = new Followed<Json>(client.view(id))
    this.before = this.view.rows
    this.view.subscribe(() => this.look())
  }

  look(): void {
    const { error, rows, status } = this.view.state
    this.statuses.add(status)
    if (status === "error") throw new Error(`${this.id} has the status error: ${error?.message}`)
    const place = this.view.shared.after
    if (place === undefined) return void expect(rows).toBe(this.before)
    expect(this.server.states.get(`${this.id} ${place}`), `${this.id} at ${place}`).toBe(canonical(rows))
    if (rows === this.before) return
    this.seen++
    // By id where it is the only one of it: equal rows are the same object.
    const before = new Map(this.before.map((each) => [idOf(each), each]))
    for (const each of rows) {
      const old = before.get(idOf(each))
      if (old !== undefined && idOf(each) !== undefined && canonical(old) === canonical(each)) expect(each).toBe(old)
    }
    this.before = rows
  }
}

const idOf = (each: Json): string | undefined => (each as { readonly id?: string } | null)?.id

/** Ends after which a client comes back by itself. */
const reasons = ["behind", "moved", "shutdown", "rebootstrap", "replaced", "reset", "failed", "unheard-of"]

/** One thing that happens, to the data or to the network. Answers how many events it made. */
const happen = async (random: Rng, server: FakeServer, world: VirtualWorld, ids: () => string): Promise<number> => {
  const views = [...server.views.values()]
  const view = random.pick(views)
  const kind = random.below(100)
  if (kind < 80) {
    const times = random.chance(0.2) ? 1 + random.below(30) : 1
    for (let n = 0; n < times; n++) server.change(view, step(random, view.rows, ids))
    return times
  }
  if (kind < 86) server.cut()
  else if (kind < 90) server.end(view, random.pick(reasons))
  else if (kind < 92) server.restart(view), server.end(view, "replaced")
  else if (kind < 94) {
    for (const each of views) server.restart(each)
    server.cut()
  } else if (kind < 96) server.refuse = () => refusal(503, "OVERLOADED", "not now", { "retry-after": "1" })
  else server.refuse = () => undefined
  if (random.chance(0.3)) await world.pass(random.below(20_000))
  return 0
}

/** Follows views of a server that misbehaves, until so many events are over. */
const run = async (random: Rng, events: number): Promise<{ seen: number; statuses: Set<string> }> => {
  const world = new VirtualWorld(random)
  const server = new FakeServer(world, random)
  const client = new LiveClient(
    {
      url: "http://server/",
      token: async () => server.token(),
      graceMs: 3000,
      viewsPerStream: 2,
      json: jsonWithBigints
    },
    world
  )
  let last = 0
  const ids = () => `p:${last++}`
  for (const id of ["a", "b", "c"])
    server.add(
      id,
      Array.from({ length: random.below(9) }, () => row(random, ids()))
    )
  // Cuts what is sent in two, and sometimes the connection breaks there.
  server.pieces = (bytes) => {
    if (bytes.length < 2 || random.chance(0.5)) return [bytes]
    const at = 1 + random.below(bytes.length - 1)
    return [bytes.slice(0, at), random.chance(0.03) ? undefined : bytes.slice(at)]
  }
  const checkers = new Map(["a", "b", "c"].map((id) => [id, new Checker(server, client, id)]))
  let seen = 0
  const statuses = new Set<string>()
  for (let done = 0; done < events; ) {
    done += await happen(random, server, world, ids)
    if (random.chance(0.03)) {
      const id = random.pick(["a", "b", "c"])
      const checker = checkers.get(id)
      if (checker === undefined) checkers.set(id, new Checker(server, client, id))
      else {
        checker.view.dispose()
        checkers.delete(id)
        seen += checker.seen
        for (const status of checker.statuses) statuses.add(status)
      }
    }
    if (random.chance(0.8)) await world.settle()
    if (random.chance(0.1)) await world.pass(random.below(2000))
    server.expire()
  }
  server.refuse = () => undefined
  server.pieces = (bytes) => [bytes]
  server.cut()
  await world.pass(120_000)
  for (const checker of checkers.values()) {
    checker.look()
    expect(checker.view.status).toBe("live")
    expect(canonical(checker.view.rows)).toBe(canonical(server.views.get(checker.id)!.rows))
    seen += checker.seen
  }
  client.close()
  await world.pass(20_000)
  // The server's heartbeat alone.
  expect(world.pending).toBe(1)
  expect(world.said).toEqual([])
  return { seen, statuses }
}

describe("a client", () => {
  const events = campaign ? 5000 : 300
  seeded(
    "shows only states that the server had, whatever breaks, ends or expires, and in the end the one it has",
    here,
    async (random) => {
      let seen = 0
      const statuses = new Set<string>()
      const rounds = runs(campaign ? 20 : 10)
      for (let n = 0; n < rounds; n++) {
        const round = await run(random, events)
        seen += round.seen
        for (const status of round.statuses) statuses.add(status)
      }
      console.log(`${rounds * events} events at the server, ${seen} states shown and checked`)
      expect(seen).toBeGreaterThan((rounds * events) / 10)
      expect([...statuses].sort()).toEqual(["live", "loading", "stale"])
    }
  )
})
