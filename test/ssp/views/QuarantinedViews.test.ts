/**
 * Views that are set aside: what is refused, what goes on, and how one is freed, on the service itself.
 *
 * The watchdog is one that the test speaks for: it says what the process before was evaluating, and keeps what it is
 * given.
 */

import { it } from "@effect/vitest"
import { Chunk, Effect, Either, Stream } from "effect"
import { describe, expect } from "vitest"
import { ingest, streamOf } from "../../../kit/checks/viewsAsked.ts"
import { EvaluationNote } from "../../../src/core/ivm/evaluating.ts"
import { noSlot } from "../../../src/core/view/watch.ts"
import type { ViewEvent } from "../../../src/node/streams/viewEvent.ts"
import { Watchdog, type WatchdogShape } from "../../../src/ports/Watchdog.ts"
import type { Views } from "../../../src/ssp/views/Views.ts"
import { change, type Kit, registration, rows, withViews } from "../viewsKit.ts"

const bad = "SELECT id, n FROM t WHERE n > $least"
const params = { least: 1 }
const queryOf: WatchdogShape["queryOf"] = ({ params: given, surql }) => `${given} ${surql}`
const unfinished = {
  id: "incantation:bad",
  query: queryOf({ surql: bad, params: JSON.stringify(params) }),
  since: 1000
}

/** `die`: starts anew, as if the process had ended in the middle of the query. */
const withWatchdog = (
  body: (
    kit: Kit & { readonly die: Effect.Effect<Views["Type"]>; readonly kept: () => string | undefined }
  ) => Effect.Effect<unknown, unknown>,
  first?: Partial<WatchdogShape>
) => {
  const state: { unfinished: WatchdogShape["unfinished"]; kept: string | undefined } = {
    unfinished: undefined,
    kept: undefined
  }
  const watchdog: WatchdogShape = {
    evaluating: new EvaluationNote(),
    open: () => noSlot,
    queryOf,
    get unfinished() {
      return state.unfinished
    },
    get kept() {
      return state.kept
    },
    keep: (text) => Effect.sync(() => void Object.assign(state, { kept: text, unfinished: undefined })),
    ...first
  }
  const run = (kit: Kit) =>
    body({
      ...kit,
      die: Effect.suspend(() =>
        Effect.zipRight(
          Effect.sync(() => void (state.unfinished = unfinished)),
          kit.restart
        )
      ),
      kept: () => state.kept
    })
  return withViews(run).pipe(Effect.provideService(Watchdog, watchdog))
}

const quarantined = (views: Views["Type"]) => views.figures().quarantined
const register = (views: Views["Type"], id: string, surql = bad, given: typeof params | null = params) =>
  Effect.either(views.register(registration(id, surql, { params: given })))
const events = (views: Views["Type"], id: string) =>
  Effect.map(
    Effect.flatMap(streamOf(views, id, undefined, undefined), (stream) => Stream.runCollect(Stream.take(stream, 1))),
    (all) => Chunk.toReadonlyArray(all) as ReadonlyArray<ViewEvent>
  )

describe("D48 a view in which the process ended", () => {
  it.effect("is neither filled nor maintained from the next start on; all others are", () =>
    withWatchdog(({ die, restart, views }) =>
      Effect.gen(function* () {
        yield* ingest(views, [change("t:1", { n: 1 }), change("t:2", { n: 2 })])
        yield* register(views, "bad")
        yield* register(views, "good", "SELECT id FROM t", null)
        for (const again of [yield* die, yield* restart]) {
          expect(yield* Effect.flip(again.read("incantation:bad", undefined))).toMatchObject({
            _tag: "ViewQuarantined",
            id: "incantation:bad",
            ends: 1,
            last: 1000
          })
          expect(yield* rows(again, "good")).toEqual([
            ["t:1", 1],
            ["t:2", 1]
          ])
          expect(quarantined(again)).toEqual([{ id: "bad", query: bad, ends: 1, last: "1970-01-01T00:00:01.000Z" }])
          expect(yield* again.debugView("bad")).toMatchObject({
            view_id: "bad",
            format: "flat",
            quarantined: { ends: 1, last: "1970-01-01T00:00:01.000Z" }
          })
          expect(yield* events(again, "bad")).toEqual([
            { event: "end", id: undefined, data: { reason: "quarantined" } }
          ])
          expect(yield* again.count).toBe(1)
        }
      })
    )
  )

  it.effect("is refused under every id; the same query with other parameters is another", () =>
    withWatchdog(({ die, views }) =>
      Effect.gen(function* () {
        yield* register(views, "bad")
        const again = yield* die
        expect(yield* register(again, "another")).toEqual(
          Either.left(expect.objectContaining({ _tag: "ViewQuarantined", id: "another" }))
        )
        expect(Either.isRight(yield* register(again, "another", bad, { least: 2 }))).toBe(true)
        expect(Either.isRight(yield* register(again, "bad", "SELECT id FROM u", null))).toBe(true)
        expect(yield* rows(again, "bad")).toEqual([])
        expect(quarantined(again)).toEqual([{ id: "incantation:bad", query: null, ends: 1, last: expect.any(String) }])
        expect(yield* again.registrations).toHaveLength(2)
      })
    )
  )

  it.effect("comes back when it is freed, with what has changed meanwhile, and stays so", () =>
    withWatchdog(({ die, restart, views }) =>
      Effect.gen(function* () {
        yield* register(views, "bad")
        yield* register(views, "twin")
        const again = yield* die
        yield* ingest(again, [change("t:2", { n: 2 })])
        expect(yield* Effect.flip(again.free("good"))).toMatchObject({ _tag: "ViewNotFound" })
        yield* again.free("_svc_query:twin")
        for (const now of [again, yield* restart]) {
          expect(quarantined(now)).toEqual([])
          expect([yield* rows(now, "bad"), yield* rows(now, "twin")]).toEqual([[["t:2", 1]], [["t:2", 1]]])
        }
        expect(yield* Effect.flip(again.free("twin"))).toMatchObject({ _tag: "ViewNotFound" })
      })
    )
  )

  it.effect(
    "is gone when it is unregistered, expires, or all is cleared; its query stays refused until it is freed, by the id it had",
    () =>
      withWatchdog(({ die, restart, views }) =>
        Effect.gen(function* () {
          for (const id of ["bad", "one", "two"]) yield* register(views, id)
          const again = yield* die
          yield* again.unregister("one")
          expect(quarantined(again).map(({ id }) => id)).toEqual(["bad", "two"])
          yield* again.expire(1e9)
          expect([quarantined(again), yield* again.registrations]).toEqual([
            [expect.objectContaining({ query: null })],
            []
          ])
          yield* again.reset
          const after = yield* restart
          expect(Either.isLeft(yield* register(after, "three"))).toBe(true)
          yield* after.free("bad")
          expect(Either.isRight(yield* register(after, "three"))).toBe(true)
        })
      )
  )

  it.effect(
    "is counted before anything is evaluated; what cannot be read or written is said and does not stop the start",
    () =>
      Effect.gen(function* () {
        yield* withWatchdog(({ die, kept }) =>
          Effect.map(die, () =>
            expect(JSON.parse(kept() ?? "")).toEqual({
              format: 1,
              entries: [{ query: unfinished.query, id: unfinished.id, ends: 1, last: 1000 }]
            })
          )
        )
        yield* withWatchdog(
          ({ views }) => Effect.map(register(views, "bad"), (made) => expect(Either.isLeft(made)).toBe(true)),
          { kept: '{"format":9}', unfinished, keep: () => Effect.fail("disk full") }
        )
      })
  )
})
