/**
 * What SSPs left in the database of views that are gone: taken over, then removed, however long the database is away
 * (D14, D16, D21).
 *
 * Over a database in memory that a test breaks, in virtual time.
 */
import { it } from "@effect/vitest"
import { Effect, Logger, LogLevel, TestClock } from "effect"
import { expect } from "vitest"
import type { Command } from "../../../src/core/cluster/messages.ts"
import { make as memoryUpstream } from "../../../src/drivers/memoryUpstream.ts"
import { UpstreamError, type UpstreamShape } from "../../../src/ports/Upstream.ts"
import { ViewClearing } from "../../../src/scheduler/pool/ViewClearing.ts"

const stored = (key: string) => ({
  key,
  id: key,
  surql: "SELECT * FROM t",
  clientId: "c",
  ttlMs: 1000,
  params: "{}",
  format: "flat",
  lastActiveAtMs: 0
})

const scene = (upstream: UpstreamShape) =>
  Effect.gen(function* () {
    const told: Array<Command> = []
    const scope = yield* Effect.scope
    const runtime = yield* Effect.runtime<never>()
    const start = (effect: Effect.Effect<void>): void =>
      void Effect.runSync(Effect.provide(Effect.forkIn(effect, scope), runtime))
    return {
      told,
      clearing: new ViewClearing(upstream, "scheduler", (command) => Effect.sync(() => told.push(command)), start)
    }
  })

const unreachable = new UpstreamError({ reason: "unreachable", message: "no answer" })
const quiet = Logger.withMinimumLogLevel(LogLevel.None)

it.scoped(
  "D16 D21 rows of an SSP that is gone go, and so does its right to write them; what another view has stays",
  () =>
    Effect.gen(function* () {
      const upstream = memoryUpstream([])
      const assignment = yield* upstream.register(stored("v"), "dead")
      yield* upstream.register(stored("w"), "alive")
      const { clearing, told } = yield* scene(upstream)
      yield* clearing.ask("v", 7)
      yield* clearing.ask("never there", 8)
      yield* TestClock.adjust("1 second")
      expect(told).toEqual([
        { tag: "ViewCleared", view: "v", op: 7 },
        { tag: "ViewCleared", view: "never there", op: 8 }
      ])
      expect((yield* upstream.registrations).map(({ key }) => key)).toEqual(["w"])
      const late = yield* upstream.apply([
        { key: "v", clientId: "c", owner: "dead", assignment, puts: [], removals: [] }
      ])
      expect(late.lost).toEqual(["v"])
    })
)

it.scoped(
  "D14 a database that is away is asked until it answers; a view it refuses holds up no other, and one asked for again is answered once, for the last",
  () =>
    Effect.gen(function* () {
      const inner = memoryUpstream([])
      let away = true
      for (const key of ["a", "bad", "c"]) yield* inner.register(stored(key), "dead")
      const { clearing, told } = yield* scene({
        ...inner,
        unregister: (keys, owner) =>
          away
            ? Effect.fail(unreachable)
            : keys.includes("bad")
              ? Effect.fail(new UpstreamError({ reason: "refused", message: "no" }))
              : inner.unregister(keys, owner)
      })
      yield* clearing.ask("a", 1)
      yield* clearing.ask("bad", 2)
      yield* clearing.ask("c", 3)
      yield* TestClock.adjust("5 minutes")
      expect(told).toEqual([])
      yield* clearing.ask("a", 9)
      away = false
      yield* TestClock.adjust("10 minutes")
      expect(told).toEqual(
        expect.arrayContaining([
          { tag: "ViewCleared", view: "a", op: 9 },
          { tag: "ViewCleared", view: "c", op: 3 }
        ])
      )
      expect(told).toHaveLength(2)
      expect((yield* inner.registrations).map(({ key }) => key)).toEqual(["bad"])
    }).pipe(quiet)
)

it.scoped("without a database there is nothing to wait for", () =>
  Effect.gen(function* () {
    const { clearing, told } = yield* scene({ ...memoryUpstream([]), present: false })
    yield* clearing.ask("v", 1)
    expect(told).toEqual([{ tag: "ViewCleared", view: "v", op: 1 }])
  })
)
