/**
 * The life of a standalone SSP beside a database: not ready until its memory is the database's, not ready again when it
 * was emptied, compared again and again while it is (D16, D18, D20).
 *
 * Why a reconcile that does as it is told: what it does is shown elsewhere; here it is when.
 */
import { describe, expect, it } from "@effect/vitest"
import { Context, Deferred, Effect, Layer, Logger, LogLevel, Queue, TestClock } from "effect"
import type { Phase } from "../../../src/core/cluster/phase.ts"
import { Serving } from "../../../src/ports/Front.ts"
import { IngestTimes } from "../../../src/ports/IngestTimes.ts"
import { SchedulerClient } from "../../../src/ports/SchedulerClient.ts"
import { Upstream, UpstreamError } from "../../../src/ports/Upstream.ts"
import { SspConfig } from "../../../src/ssp/Config.ts"
import * as Reconciling from "../../../src/ssp/database/reconciling.ts"
import { Lease } from "../../../src/ssp/membership/Lease.ts"
import { Lifecycle } from "../../../src/ssp/membership/Lifecycle.ts"
import { DeclaredTypes } from "../../../src/ssp/reconcile/DeclaredTypes.ts"
import { Reconcile, type ReconcileShape } from "../../../src/ssp/reconcile/Reconcile.ts"
import { fakeViews } from "../fakeViews.ts"
import { FakeDatabase } from "../upstreamKit.ts"

const build = (
  reconcile: Omit<ReconcileShape, "take" | "tables" | "refresh" | "note">,
  { env = {}, present = true }: { readonly env?: { readonly [name: string]: string }; readonly present?: boolean } = {}
) =>
  Effect.map(
    Layer.build(
      Layer.fresh(
        Reconciling.layer.pipe(
          Layer.provideMerge(Lifecycle.layer),
          Layer.provideMerge(
            Layer.mergeAll(
              Layer.succeed(Reconcile, {
                ...reconcile,
                take: () => Effect.succeed(undefined),
                tables: () => reconcile.now,
                refresh: () => Effect.void,
                note: () => Effect.void
              }),
              present ? new FakeDatabase().layer : Upstream.layerNone,
              IngestTimes.layer,
              fakeViews(),
              DeclaredTypes.layer,
              Lease.layer,
              SchedulerClient.layerNone
            )
          ),
          Layer.provideMerge(Serving.layer),
          Layer.provideMerge(SspConfig.layerOf({ SSP_ID: "me", ...env })),
          Layer.provideMerge(Logger.minimumLogLevel(LogLevel.None))
        )
      )
    ),
    (context) => Context.get(context, Lifecycle)
  )

const nothing = Effect.succeed({ compared: 0, repaired: [] })

describe("the life of a standalone SSP beside a database", () => {
  it.scoped(
    "D18 D20 it is bootstrapping until the database is in memory, failed when that fails too often, and ready in the end",
    () =>
      Effect.gen(function* () {
        const orders = yield* Queue.unbounded<"exhausted" | "done">()
        const obey = (exhausted: Effect.Effect<void>): Effect.Effect<void> =>
          Effect.flatMap(Queue.take(orders), (order) =>
            order === "done" ? Effect.void : Effect.zipRight(exhausted, obey(exhausted))
          )
        const { loaded, phase } = yield* build({ bootstrap: obey, registrations: Effect.void, now: nothing })
        const seen: Array<Phase> = []
        yield* loaded
        for (const order of ["exhausted", "done"] as const) {
          seen.push(phase())
          yield* Queue.offer(orders, order)
          yield* TestClock.adjust(0)
        }
        expect([...seen, phase()]).toEqual(["bootstrapping", "failed", "ready"])
      })
  )

  it.scoped(
    "D16 what empties memory takes readiness away until the database is in it again, also in the middle of a bootstrap",
    () =>
      Effect.gen(function* () {
        let bootstraps = 0
        let gate = yield* Deferred.make<void>()
        const { emptying, phase } = yield* build({
          bootstrap: () =>
            Effect.suspend(() =>
              Effect.zipRight(
                Effect.sync(() => bootstraps++),
                Deferred.await(gate)
              )
            ),
          registrations: Effect.void,
          now: nothing
        })
        yield* TestClock.adjust(0)
        // In the middle of the first one: it begins anew, behind the emptying.
        expect(yield* emptying(Effect.sync(() => bootstraps))).toBe(1)
        yield* TestClock.adjust(0)
        expect([bootstraps, phase()]).toEqual([2, "bootstrapping"])
        yield* Deferred.succeed(gate, undefined)
        yield* TestClock.adjust(0)
        expect(phase()).toBe("ready")
        gate = yield* Deferred.make<void>()
        expect(yield* emptying(Effect.sync(phase))).toBe("bootstrapping")
        yield* TestClock.adjust(0)
        expect([bootstraps, phase()]).toEqual([3, "bootstrapping"])
        // Refused or not, memory may be empty.
        yield* Effect.flip(emptying(Effect.fail("no")))
        yield* TestClock.adjust(0)
        yield* Deferred.succeed(gate, undefined)
        yield* TestClock.adjust(0)
        expect([bootstraps, phase()]).toEqual([4, "ready"])
      })
  )

  it.scoped("D16 without a database it stays ready, and nothing is compared", () =>
    Effect.gen(function* () {
      const { emptying, phase } = yield* build(
        {
          bootstrap: () => Effect.die("there is no database"),
          registrations: Effect.void,
          now: Effect.die("there is no database")
        },
        { present: false }
      )
      yield* TestClock.adjust("1 hour")
      expect([phase(), yield* emptying(Effect.sync(phase))]).toEqual(["ready", "ready"])
    })
  )

  it.scoped(
    "the compare comes soon after the start, then at its interval; one that fails comes again soon; none before the SSP is ready",
    () =>
      Effect.gen(function* () {
        const at: Array<number> = []
        const gate = yield* Deferred.make<void>()
        const now = Effect.flatMap(
          Effect.clockWith((clock) => clock.currentTimeMillis),
          (ms) => {
            at.push(ms / 1000)
            return at.length === 3
              ? Effect.fail(new UpstreamError({ reason: "unreachable", message: "nobody there" }))
              : nothing
          }
        )
        yield* build(
          { registrations: Effect.void, bootstrap: () => Deferred.await(gate), now },
          { env: { SVC_RECONCILE_INTERVAL_SECS: "100" } }
        )
        yield* TestClock.adjust("45 seconds")
        expect(at).toEqual([])
        yield* Deferred.succeed(gate, undefined)
        yield* TestClock.adjust("355 seconds")
        expect(at).toEqual([60, 160, 260, 290, 390])
      })
  )

  it.scoped("SVC_RECONCILE_INTERVAL_SECS=0 turns the compare off", () =>
    Effect.gen(function* () {
      const { phase } = yield* build(
        { bootstrap: () => Effect.void, registrations: Effect.void, now: Effect.die("it is off") },
        { env: { SVC_RECONCILE_INTERVAL_SECS: "0" } }
      )
      yield* TestClock.adjust("10 hours")
      expect(phase()).toBe("ready")
    })
  )
})
