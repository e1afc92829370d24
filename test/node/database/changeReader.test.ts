/**
 * When the reader of the change table has a live query on it (D44): at rest, and not for some seconds after many rows
 * came at once, because each row that is written under one costs the database more than reads without it. And what the
 * reader says of a table that it has not read to its end for long.
 */
import { expect, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { VirtualTime } from "../../../kit/data/virtualTime.ts"
import * as Ids from "../../../src/core/surql/values/recordId.ts"
import { ChangeReader } from "../../../src/node/database/changeReader.ts"
import { type ChangeRow, UpstreamError } from "../../../src/ports/Upstream.ts"

/** A table into which `write` puts rows, and a reader of it in a time of its own. */
const world = Effect.gen(function* () {
  let waiting: ReadonlyArray<ChangeRow> = []
  let written = 0
  let heard: (() => "more" | "enough") | undefined
  const asked = { reads: 0, listens: 0, away: false, text: 0, sizes: [] as number[] }
  const scope = yield* Effect.scope
  const reader = new ChangeReader<Error>(
    {
      take: ({ rows: size }, done) =>
        Effect.suspend(() => {
          asked.reads++
          asked.sizes.push(size)
          const gone = new Set(done.map(({ text }) => text))
          waiting = waiting.filter(({ id }) => !gone.has(id.text))
          const rows = waiting.slice(0, size)
          if (asked.away) return Effect.fail(new UpstreamError({ reason: "unreachable", message: "away" }))
          const records =
            asked.text === 0
              ? []
              : rows.map(({ record: id }) => ({ id, doc: { text: "x".repeat(asked.text) }, version: undefined }))
          return Effect.succeed({ rows, records, unreadable: [], partial: rows.length === size })
        }),
      answer: () => Effect.void,
      whole: () => Effect.succeed(undefined),
      listen: (hear) =>
        Effect.async((resume) => {
          asked.listens++
          heard = () => {
            const more = hear()
            if (more === "enough") {
              heard = undefined
              resume(Effect.void)
            }
            return more
          }
        })
    },
    {
      apply: () => Effect.succeed(new Set()),
      held: () => Effect.succeed([]),
      refresh: () => Effect.void,
      open: () => true,
      room: () => 1_000_000,
      compare: () => Effect.void,
      call: () => Effect.succeed(undefined),
      fork: (later) => Effect.asVoid(Effect.forkIn(later, scope))
    },
    { size: 1_000, warnMs: 60_000 }
  )
  const time = new VirtualTime()
  yield* Effect.forkScoped(Effect.provide(reader.run, time.layer))
  const passes = (ms: number) => Effect.promise(() => time.advance(ms))
  const write = (count: number): void => {
    const rows = Array.from({ length: count }, () => ({
      id: Ids.make("_svc_change", ++written),
      record: Ids.make("item", written)
    }))
    waiting = [...waiting, ...rows]
    for (const _ of rows) heard?.()
  }
  return {
    asked,
    figures: reader.figures,
    left: () => waiting.length,
    listens: () => heard !== undefined,
    passes,
    write
  }
})

it.scopedLive("D44 a live query stands on the change table at rest, and reads are three a second", () =>
  Effect.gen(function* () {
    const { asked, left, listens, passes, write } = yield* world
    yield* passes(1_000)
    expect(listens()).toBe(true)
    const before = asked.reads
    yield* passes(3_000)
    expect(asked.reads - before).toBe(10)
    write(3)
    yield* passes(5)
    expect([left(), listens(), asked.listens]).toEqual([0, true, 1])
  })
)

it.scopedLive("D44 after many rows at once there is none for five seconds, and reads follow each other closely", () =>
  Effect.gen(function* () {
    const { asked, listens, passes, write } = yield* world
    write(500)
    yield* passes(1_000)
    expect(asked.reads).toBeGreaterThan(120)
    yield* passes(3_900)
    expect([listens(), asked.listens]).toEqual([false, 0])
    yield* passes(1_000)
    expect([listens(), asked.listens]).toEqual([true, 1])
    write(500)
    yield* passes(1_000)
    expect([listens(), asked.listens]).toEqual([false, 1])
  })
)

it.scopedLive(
  "D43 what waits is read in steps of as much text as there is room for, what comes then at once again",
  () =>
    Effect.gen(function* () {
      const { asked, left, passes, write } = yield* world
      yield* passes(1_000)
      asked.text = 10_000
      write(2_500)
      yield* passes(1_000)
      // A million bytes, for records of ten thousand each.
      expect(left()).toBe(0)
      expect(asked.sizes.filter((size) => size < 1_000)).not.toEqual([])
      expect(asked.sizes.filter((size) => size < 90)).toEqual([])
      expect(asked.sizes.at(-1)).toBe(1_000)
    })
)

it.scopedLive("D44 a table that is not read to its end for long is said once, and when it is again", () => {
  const lines: Array<string> = []
  const logger = Logger.replace(
    Logger.defaultLogger,
    Logger.make(({ message }) => void lines.push(String(message)))
  )
  return Effect.gen(function* () {
    const { asked, figures, passes } = yield* world
    yield* passes(10_000)
    asked.away = true
    yield* passes(59_000)
    expect(lines.filter((line) => line.includes("SVC_CHANGES_BEHIND_SECS"))).toEqual([])
    const { wholeAtMs } = figures()
    yield* passes(30_000)
    expect(lines.filter((line) => line.includes("SVC_CHANGES_BEHIND_SECS"))).toEqual([
      expect.stringMatching(
        /^_svc_change has not been read to its end for 6\d s .*: \d+ attempts in a row have failed$/
      )
    ])
    expect(figures().wholeAtMs).toBe(wholeAtMs)
    asked.away = false
    yield* passes(5_000)
    expect(lines.at(-1)).toMatch(/^_svc_change is read to its end again, after (89|9\d) s$/)
    expect(figures().wholeAtMs).toBeGreaterThan(99_000)
  }).pipe(Effect.provide(logger))
})
