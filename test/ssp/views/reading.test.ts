/**
 * Results that are read and written in many turns of the event loop: others are served meanwhile, and what is answered
 * is one state of the view.
 */

import { it } from "@effect/vitest"
import { Chunk, Effect, Either, Exit, Fiber, Stream } from "effect"
import { describe, expect } from "vitest"
import { ingest, streamOf } from "../../../kit/checks/viewsAsked.ts"
import { decodeChanges } from "../../../src/core/record/change.ts"
import { drain } from "../../../src/core/surql/evaluate/scope.ts"
import { bytesOf, type ViewEvent } from "../../../src/node/streams/viewEvent.ts"
import { answerPieces } from "../../../src/ssp/views/answerBytes.ts"
import type { Views } from "../../../src/ssp/views/Views.ts"
import type { ViewAnswer } from "../../../src/ssp/viewTypes.ts"
import { change, type Kit, registration, ticking, withViews } from "../viewsKit.ts"

const size = 700
const text = "x".repeat(1_000)
/** The first and the last row, which are changed together. */
const ends = [0, size - 1]

const records = (n: number, of: ReadonlyArray<number>) => of.map((i) => change(`t:${i}`, { i, n, text }, {}, "UPDATE"))

/** A view whose result takes some 700 kB, read in three slices. */
const withLarge = (body: (kit: Kit) => Effect.Effect<unknown, unknown>) =>
  withViews(
    (kit) =>
      Effect.gen(function* () {
        yield* ingest(
          kit.views,
          records(
            0,
            Array.from({ length: size }, (_, i) => i)
          )
        )
        yield* kit.views.register(registration("large", "SELECT * FROM t ORDER BY i", { format: "tree" }))
        yield* body(kit)
      }),
    ticking()
  )

/** What the two rows hold that are changed together. */
const pair = ({ result_data }: Pick<ViewAnswer, "result_data">): ReadonlyArray<unknown> => {
  const rows = result_data as ReadonlyArray<{ readonly n: number }>
  expect(rows.length).toBe(size)
  return ends.map((i) => rows[i]?.n)
}

const numbered = (event: ViewEvent | undefined): number => Number(event?.id?.split(".")[1])

/** Changes the two rows while an effect runs, at most so often; how often it did, and what came of the effect. */
const amid = <A, E>(views: Views["Type"], most: number, effect: Effect.Effect<A, E>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.fork(effect)
    let turns = 0
    yield* Effect.yieldNow()
    while ((yield* Fiber.poll(fiber))._tag === "None") {
      if (++turns <= most) yield* ingest(views, records(turns, ends))
      yield* Effect.yieldNow()
    }
    return { turns, result: yield* Fiber.join(fiber) }
  })

/** A change of the scheduler's log; its step goes on or ends with it. */
const inStep = (
  seq: number,
  continues: boolean,
  record: { readonly i: number; readonly n: number; readonly text: string }
) =>
  Either.getOrThrow(
    decodeChanges({
      ...{ table: "t", op: "UPDATE", id: `t:${record.i}`, record, seq, log_id: "log", epoch: 1 },
      ...(continues ? { step_continues: true } : {})
    })
  )

describe("a large result", () => {
  it.effect("D48 is read in turns, as one state, however often it changes meanwhile", () =>
    withLarge(({ views }) =>
      Effect.gen(function* () {
        const quiet = yield* amid(views, 0, views.read("large", undefined))
        expect([quiet.turns > 1, pair(quiet.result)]).toEqual([true, [0, 0]])
        for (const most of [1, 2, 1_000]) {
          const { result } = yield* amid(views, most, views.read("large", undefined))
          const [first, last] = pair(result)
          expect([first === last, Number(first) > 0]).toEqual([true, true])
        }
      })
    )
  )

  it.effect("D48 is answered as registered in turns, as one state, however often it changes meanwhile", () =>
    withLarge(({ views }) =>
      Effect.gen(function* () {
        for (const most of [0, 1, 1_000]) {
          yield* views.unregister("large")
          const { result, turns } = yield* amid(
            views,
            most,
            views.register(registration("large", "SELECT * FROM t ORDER BY i", { format: "tree" }))
          )
          const [first, last] = pair(result as ViewAnswer)
          expect([first === last, turns > 1]).toEqual([true, true])
        }
      })
    )
  )

  it.effect(
    "D44 shows a step that comes in two deliveries whole or not at all, though they come while it is filled",
    () =>
      withLarge(({ views }) =>
        Effect.gen(function* () {
          let seq = 0
          let n = 0
          /** One delivery for each row, so many turns between them. */
          const step = (turns: number) =>
            Effect.suspend(() => {
              n++
              const deliver = (i: number) => ingest(views, inStep(++seq, i === 0, { i, n, text }))
              return deliver(ends[0]!).pipe(
                Effect.zipRight(Effect.repeatN(Effect.yieldNow(), turns)),
                Effect.zipRight(Effect.suspend(() => deliver(ends[1]!)))
              )
            })
          const seen: Array<number> = []
          for (let round = 0; round < 20; round++) {
            yield* views.unregister("large")
            const fiber = yield* Effect.fork(
              views.register(registration("large", "SELECT * FROM t ORDER BY i", { format: "tree" }))
            )
            for (let turn = 0; turn < round; turn++) yield* Effect.yieldNow()
            const begun = n
            yield* step(2 * round)
            const [first, last] = pair((yield* Fiber.join(fiber)) as ViewAnswer)
            expect(first).toBe(last)
            seen.push(Number(first) - begun)
            expect(pair(yield* views.read("large", undefined))).toEqual([n, n])
          }
          // Either state was met, so some deliveries came while the view was filled.
          expect(new Set(seen)).toEqual(new Set([0, 1]))
        })
      )
  )

  it.effect("D48 D11 begins a stream in turns; the deltas that come meanwhile follow the snapshot", () =>
    withLarge(({ views }) =>
      Effect.gen(function* () {
        const generation = (yield* views.read("large", "flat")).content_generation
        // Two changes are in the buffer still when the snapshot is made; of a thousand, those in between are not.
        for (const [most, until] of [
          [2, generation + 2],
          [1_000, generation + 20]
        ] as const) {
          const { result, turns } = yield* amid(
            views,
            most,
            Effect.flatMap(streamOf(views, "large", undefined, undefined), (stream) =>
              Stream.runCollect(Stream.takeUntil(stream, (event) => numbered(event) >= until))
            )
          )
          const [snapshot, ...deltas] = Chunk.toReadonlyArray(result)
          expect([snapshot?.event, turns > 1]).toEqual(["snapshot", true])
          const [first, last] = pair(snapshot?.data as ViewAnswer)
          expect(first).toBe(last)
          expect(deltas.map(({ event }) => event)).toEqual(deltas.map(() => "delta"))
          expect(deltas.map(numbered)).toEqual(deltas.map((_, i) => numbered(snapshot) + 1 + i))
          expect(new TextDecoder().decode(bytesOf(snapshot!))).toBe(
            `event: snapshot\nid: ${snapshot?.id}\ndata: ${JSON.stringify(snapshot?.data)}\n\n`
          )
        }
      })
    )
  )

  it.effect("is not found when it is unregistered while it is read, and is the new one when it is replaced", () =>
    withLarge(({ views }) =>
      Effect.gen(function* () {
        const read = yield* Effect.fork(Effect.either(views.read("large", undefined)))
        yield* Effect.yieldNow()
        yield* views.register(registration("large", "SELECT VALUE i FROM t:1", { format: "tree" }))
        expect(yield* read).toMatchObject({ right: { result_data: [1] } })

        yield* views.register(registration("large", "SELECT * FROM t ORDER BY i", { format: "tree" }))
        const lost = yield* Effect.fork(Effect.either(views.read("large", undefined)))
        yield* Effect.yieldNow()
        yield* views.unregister("large")
        expect(yield* lost).toMatchObject({ left: { _tag: "ViewNotFound" } })
      })
    )
  )
})

describe("writing an answer", () => {
  const answer = (result_data: unknown): ViewAnswer => ({
    query_id: 'a "b"',
    format: "tree",
    result_hash: "h",
    content_generation: 3,
    result_data
  })
  const joined = (pieces: ReadonlyArray<Uint8Array>): string =>
    pieces.map((piece) => new TextDecoder().decode(piece)).join("")

  it.each([
    answer([]),
    answer(null),
    answer({ id: "t:1", list: [1, 2] }),
    answer([1, "two", null, [3], { four: "ä😀\u0000" }]),
    { query_id: "a", format: "flat" as const, result_hash: "h", content_generation: 1, tables: ["t", "u"] },
    answer(Array.from({ length: 20_000 }, (_, i) => ({ i, text })))
  ])("gives the text that JSON.stringify gives: %#", (value) =>
    expect(joined(drain(answerPieces(value, "whole")))).toBe(JSON.stringify(value))
  )

  it("D48 pauses before every piece but the first, and no piece is much longer than a slice", () => {
    const slices = answerPieces(answer(Array.from({ length: 20_000 }, (_, i) => ({ i, text }))), "whole")
    let pauses = 0
    let step = slices.next()
    for (; step.done !== true; step = slices.next()) pauses++
    expect(step.value.length).toBe(pauses + 1)
    expect(pauses).toBeGreaterThan(50)
    expect(Math.max(...step.value.map(({ length }) => length))).toBeLessThan(300_000)
  })
})

it.effect(
  "D8 a result read by callback is made in slices, and abandoned with the client that asked; a small one is there at once",
  () =>
    withLarge(({ views }) =>
      Effect.gen(function* () {
        yield* views.register(registration("small", "SELECT * FROM t WHERE i = 1"))
        const answered: Array<string> = []
        const look = (id: string) =>
          views.look(id, { format: undefined, ifNoneMatch: undefined, sees: "kinds" }, (looked) =>
            answered.push(`${id} ${Exit.isSuccess(looked) && looked.value.pieces !== undefined}`)
          )
        expect([look("small"), look("nothing"), answered.splice(0)]).toEqual([
          undefined,
          undefined,
          ["small true", "nothing false"]
        ])
        const abandon = look("large")
        expect([typeof abandon, answered]).toEqual(["function", []])
        if (typeof abandon === "function") abandon()
        look("large")
        yield* Effect.repeat(Effect.yieldNow(), { until: () => answered.length > 0 })
        yield* Effect.repeatN(Effect.yieldNow(), 100)
        expect(answered).toEqual(["large true"])
      })
    )
)
