/**
 * The suite that every layer of `Wal` must pass.
 *
 * Tested are positions without gaps for every appender, reads of the records that were there when the read began, and
 * that no needed record is dropped.
 */
import { it } from "@effect/vitest"
import { Chunk, Effect, Either, Exit, type Layer, Stream } from "effect"
import { describe, expect } from "vitest"
import { Wal, type WalFailed } from "../ports/Wal.ts"

const json = (n: number): string => JSON.stringify({ n, text: "ü😀\n\u0000", pad: "p".repeat(n % 50) })
const from = (first: number, count: number): ReadonlyArray<string> =>
  Array.from({ length: count }, (_, i) => json(first + i))
const expected = (after: number, last: number) =>
  Array.from({ length: last - after }, (_, i) => ({ seq: after + 1 + i, json: json(after + 1 + i) }))

const readAll = (afterSeq: number) =>
  Effect.gen(function* () {
    const wal = yield* Wal
    return Chunk.toReadonlyArray(yield* Stream.runCollect(wal.read(afterSeq)))
  })

/** Registers the tests of one layer. `make` makes a fresh, empty layer each time. */
export const walSuite = (name: string, make: () => Layer.Layer<Wal, WalFailed>): void => {
  describe(`Wal conformance: ${name}`, () => {
    it.effect("starts empty, with an id of its own", () =>
      Effect.gen(function* () {
        const wal = yield* Wal
        expect(wal.logId.length).toBeGreaterThan(7)
        expect([yield* wal.lastSeq, yield* wal.keptAfter, yield* readAll(0), yield* readAll(5)]).toEqual([0, 0, [], []])
      }).pipe(Effect.provide(make()))
    )

    it.effect("D5 gives positions from 1 without gaps, and answers the last one of each call", () =>
      Effect.gen(function* () {
        const wal = yield* Wal
        expect(yield* wal.append(from(1, 3))).toBe(3)
        expect(yield* wal.append(from(4, 1))).toBe(4)
        expect(yield* wal.append([])).toBe(4)
        expect(yield* wal.append(from(5, 1_000))).toBe(1_004)
        expect(yield* wal.lastSeq).toBe(1_004)
        expect(yield* readAll(0)).toEqual(expected(0, 1_004))
      }).pipe(Effect.provide(make()))
    )

    it.effect("D5 gives each of many that append at once positions of its own, in the order they came", () =>
      Effect.gen(function* () {
        const wal = yield* Wal
        const answers = yield* Effect.forEach(
          Array.from({ length: 100 }, (_, i) => i),
          (i) => wal.append(from(1 + 3 * i, 3)),
          { concurrency: "unbounded" }
        )
        expect(answers).toEqual(Array.from({ length: 100 }, (_, i) => 3 * (i + 1)))
        expect(yield* readAll(0)).toEqual(expected(0, 300))
      }).pipe(Effect.provide(make()))
    )

    it.effect("reads from every position, for several readers at once, while records are added", () =>
      Effect.gen(function* () {
        const wal = yield* Wal
        yield* wal.append(from(1, 500))
        const adding = Effect.forEach(
          Array.from({ length: 50 }, (_, i) => i),
          (i) => wal.append(from(501 + i, 1)),
          { discard: true }
        )
        const starts = [0, 1, 250, 499, 500]
        const [, ...found] = yield* Effect.all([adding, ...starts.map(readAll)], { concurrency: "unbounded" })
        starts.forEach((start, i) => {
          const records = found[i]!
          expect(records.length).toBeGreaterThanOrEqual(500 - start)
          expect(records).toEqual(expected(start, start + records.length))
        })
        for (const start of [0, 137, 300, 549]) expect(yield* readAll(start)).toEqual(expected(start, 550))
      }).pipe(Effect.provide(make()))
    )

    it.effect("reads what was there when the reading began, and nothing that came since", () =>
      Effect.gen(function* () {
        const wal = yield* Wal
        yield* wal.append(from(1, 8_000))
        let added = 0
        const records = yield* Stream.runCollect(
          Stream.tap(wal.read(0), ({ seq }) =>
            Effect.gen(function* () {
              if (seq % 1_000 === 1) yield* wal.append(from(8_001 + added, 2))
              if (seq % 1_000 === 1) added += 2
            })
          )
        )
        expect(Chunk.toReadonlyArray(records)).toEqual(expected(0, 8_000))
        expect(yield* readAll(0)).toEqual(expected(0, 8_016))
      }).pipe(Effect.provide(make()))
    )

    it.effect("a reader can stop in the middle", () =>
      Effect.gen(function* () {
        const wal = yield* Wal
        yield* wal.append(from(1, 2_000))
        expect(Chunk.toReadonlyArray(yield* Stream.runCollect(Stream.take(wal.read(10), 3)))).toEqual(expected(10, 13))
      }).pipe(Effect.provide(make()))
    )

    it.effect("keeps records that are not dropped, refuses reads of dropped ones, and goes on counting", () =>
      Effect.gen(function* () {
        const wal = yield* Wal
        for (let i = 0; i < 50; i++) yield* wal.append(from(1 + 10 * i, 10))
        yield* wal.dropBefore(251)
        const kept = yield* wal.keptAfter
        expect(kept).toBeLessThanOrEqual(250)
        expect(yield* readAll(250)).toEqual(expected(250, 500))
        yield* wal.dropBefore(501)
        expect(yield* wal.keptAfter).toBe(500)
        expect(yield* wal.lastSeq).toBe(500)
        const gone = yield* Effect.either(readAll(499))
        expect(Either.isLeft(gone) && gone.left).toMatchObject({ reason: "dropped", seq: 500 })
        expect(yield* wal.append(from(501, 2))).toBe(502)
        expect(yield* readAll(500)).toEqual(expected(500, 502))
        yield* wal.dropBefore(1)
        expect(yield* readAll(500)).toEqual(expected(500, 502))
      }).pipe(Effect.provide(make()))
    )

    it.effect("a record of two lines is a defect, and nothing is added", () =>
      Effect.gen(function* () {
        const wal = yield* Wal
        expect(Exit.isFailure(yield* Effect.exit(Effect.sandbox(wal.append(["{}", "{\n}"]))))).toBe(true)
        expect(yield* wal.append(from(1, 1))).toBe(1)
        expect(yield* readAll(0)).toEqual(expected(0, 1))
      }).pipe(Effect.provide(make()))
    )
  })
}
