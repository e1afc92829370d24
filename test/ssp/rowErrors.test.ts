/**
 * Two databases that differ only in values of rows that a view does not show (D72): a reader that may not see these
 * rows is told the same of both, byte for byte, in answers, snapshots and deltas.
 */

import { it } from "@effect/vitest"
import { Effect, HashMap, Logger, Option } from "effect"
import { describe, expect } from "vitest"
import { ingest } from "../../kit/checks/viewsAsked.ts"
import { bytesOf } from "../../src/node/streams/viewEvent.ts"
import * as RowErrorLog from "../../src/ssp/http/rowErrorLog.ts"
import { visibleDebugView } from "../../src/ssp/views/debug.ts"
import { Views } from "../../src/ssp/views/Views.ts"
import type { DebugView } from "../../src/ssp/viewTypes.ts"
import { change, registration, withViews } from "./viewsKit.ts"

const marks = ["qzxvkw", "wkvxzq"] as const

/** Each fails on a row that it does not show, or on a value of one. */
const queries = [
  "SELECT id, n FROM pay WHERE n + 1 > 0 AND string::lowercase(owner) = 'me'",
  "SELECT id, (SELECT VALUE math::sum(n + 1) FROM pay GROUP ALL) AS total FROM pay WHERE owner = 'me'",
  "SELECT owner, math::sum(n + 1) AS s FROM pay GROUP BY owner",
  "SELECT owner, math::sum(n) AS s FROM pay GROUP BY owner",
  "SELECT owner, array::group(n.map(|$x| $x)) AS s FROM pay GROUP BY owner",
  "SELECT id, <datetime> n AS at FROM pay",
  "SELECT id, n FROM pay WHERE string::lowercase(owner) = 'me' ORDER BY n",
  "SELECT id, n + 1 AS m FROM pay ORDER BY m LIMIT 2",
  "SELECT id, <int> n AS m FROM pay ORDER BY m",
  "SELECT id, n + 1 AS m, list FROM pay SPLIT list",
  "SELECT id FROM pay WHERE [n] + 1 = [2] OR owner.len() > 100",
  "SELECT id, pal.n + 1 AS m FROM pay WHERE owner = 'me'",
  "SELECT id, pal.* AS m FROM pay WHERE pal.n + 1 > 0",
  "SELECT id, { LET $x: int = n; RETURN $x } AS m FROM pay",
  "SELECT id, n.nothing() AS m FROM pay",
  "SELECT id FROM pay, pay WHERE n + 1 > 0",
  "SELECT VALUE n + 1 FROM ONLY pay:2"
]

const first = (mark: string) => [
  change("pay:1", { n: 1, owner: "me", list: [1, 2], pal: "pay:2" }),
  change("pay:2", { n: mark, owner: "boss", list: [mark], pal: "pay:1" }),
  change("pay:3", { n: 3, owner: "me", list: [], pal: "pay:3" })
]

/** Another row fails, one does no more, one fails in another way; each step differs in the mark alone. */
const later = (mark: string) => [
  [change("pay:4", { n: `${mark} again`, owner: "boss", list: [], pal: "pay:2" })],
  [change("pay:2", { n: { [mark]: mark }, owner: "boss", list: [mark] }, {}, "UPDATE")],
  [change("pay:1", { n: 2, owner: "me", list: [3], pal: "pay:4" }, {}, "UPDATE")],
  [change("pay:4", {}, {}, "DELETE")],
  [change("pay:2", { n: 2, owner: "boss", list: [], pal: "pay:1" }, {}, "UPDATE")]
]

const textOf = (pieces: ReadonlyArray<Uint8Array>): string =>
  pieces.map((piece) => new TextDecoder().decode(piece)).join("")

/** The event of a batch is made in the next turn. */
const settled = Effect.yieldNow().pipe(Effect.repeatN(5))

/** All that is told of a query over one of the databases: `whole`, what a reader with the scope admin is told. */
const told = (query: string, mark: string, format: "flat" | "rows" | "tree") =>
  withViews(({ views }) =>
    Effect.gen(function* () {
      yield* ingest(views, first(mark))
      yield* views.register(registration("v", query))
      const texts: Array<string> = [],
        whole: Array<string> = []
      const look = Effect.gen(function* () {
        const answer = yield* views.read("v", format === "rows" ? "tree" : format)
        texts.push(textOf(yield* views.written(answer, "kinds")))
        whole.push(textOf(yield* views.written(answer, "whole")))
      })
      const follow = (of: Views["Type"]) =>
        of.follow("v", format, undefined, {
          take: (events) => {
            texts.push(...events.map((event) => new TextDecoder().decode(bytesOf(event))))
            return true
          }
        })
      follow(views)?.resume()
      yield* settled
      yield* look
      for (const changes of later(mark)) {
        yield* ingest(views, changes)
        yield* settled
        yield* look
      }
      // Incarnations are random.
      const shown = texts.map((text) => text.replaceAll(/^id: [^.]*/gm, "id: "))
      return { shown, whole: whole.join("\n") }
    })
  )

describe("D72 rows that are left out", () => {
  for (const format of ["flat", "tree", "rows"] as const)
    it.effect(`are told by kind alone, in format ${format}`, () =>
      Effect.gen(function* () {
        let named = 0
        for (const query of queries) {
          const [one, other] = [yield* told(query, marks[0], format), yield* told(query, marks[1], format)]
          const own = /qzxvkw|wkvxzq/
          const showsIt = format !== "flat" && one.shown.some((text) => own.test(text.replace(/"errors":\[.*?\]/g, "")))
          if (!showsIt) expect(one.shown, query).toEqual(other.shown)
          for (const text of [...one.shown, ...other.shown])
            for (const errors of text.match(/"errors":\[.*?\](?=[,}])/g) ?? []) {
              expect(errors, query).not.toMatch(own)
              expect(errors, query).not.toMatch(/pay:\d/)
            }
          if (own.test(one.whole)) named++
        }
        // The same rows are named with their values where all of it may be seen.
        expect(named).toBeGreaterThan(8)
      })
    )
})

/** Lines of the log while something runs, each with what it says of its view and record. */
const logged = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const lines: Array<string> = []
    const logger = Logger.make(({ annotations, message }) => {
      const about = ["view", "record"].map((name) => Option.getOrElse(HashMap.get(annotations, name), () => "-"))
      lines.push(`${about.join(" ")}: ${String(message)}`)
    })
    return Effect.as(work, lines).pipe(Effect.provide(Logger.replace(Logger.defaultLogger, logger)))
  })

describe("D79 the log", () => {
  it.effect("is asked to look at a view exactly while the view leaves something out", () =>
    Effect.gen(function* () {
      const seen = new Set<string>()
      const others = [
        "SELECT id FROM ONLY pay WHERE owner = 'boss'",
        "SELECT owner, IF count() < 2 { count() + 'x' } ELSE { 0 } AS c FROM pay GROUP BY owner",
        "SELECT id FROM pay"
      ]
      for (const query of [...queries, ...others])
        yield* withViews(({ views }) =>
          Effect.gen(function* () {
            yield* ingest(views, first(marks[0]))
            yield* views.register(registration("v", query))
            for (const changes of [[], ...later(marks[0]), [change("pay:3", {}, {}, "DELETE")]]) {
              yield* ingest(views, changes)
              const { errors = [] } = yield* views.read("v", undefined)
              const failing = Array.from(views.failing() ?? [], ([id]) => id)
              expect(failing, query).toEqual(errors.length > 0 ? ["v"] : [])
              seen.add(`${failing.length} ${query}`)
            }
            expect(views.failing(), "nothing has moved").toBeUndefined()
          })
        )
      expect([...seen].filter((text) => text.startsWith("1")).length).toBeGreaterThan(14)
      expect([...seen].filter((text) => text.startsWith("0")).length).toBeGreaterThan(6)
    })
  )

  const many = (count: number, from = 0) =>
    Array.from({ length: count }, (_, n) => change(`pay:${from + n}`, { n: "text", owner: n === 7 ? 1 : "me" }))
  const both = "SELECT id FROM pay WHERE n + 1 > 0 OR string::lowercase(owner) = 'x'"

  it.live("D79 a view of which every row fails is a line for each kind of failure, and others are counted", () =>
    withViews(({ views }) =>
      Effect.gen(function* () {
        const look = RowErrorLog.look(2)
        const lines = logged(Effect.provideService(look, Views, views))
        yield* views.register(registration("sum", "SELECT id FROM pay WHERE n + 1 > 0"))
        yield* views.register(registration("again", "SELECT id FROM pay WHERE n + 1 > 0"))
        yield* ingest(views, many(3_000))
        expect(yield* lines).toEqual([
          "sum pay:0: view sum leaves 3000 rows out: Cannot perform addition with 'text' and '1'"
        ])
        yield* ingest(views, many(10, 3_000))
        expect(yield* lines, "known").toEqual([])
        // Gone, and there again.
        yield* ingest(
          views,
          Array.from({ length: 3_010 }, (_, n) => change(`pay:${n}`, { n: 1 }, {}, "UPDATE"))
        )
        expect(yield* lines).toEqual([])
        yield* ingest(views, many(1))
        expect(yield* lines).toEqual([
          "sum pay:0: view sum leaves a row out: Cannot perform addition with 'text' and '1'"
        ])
        yield* views.register(registration("other", "SELECT id, n FROM pay WHERE n + 1 > 0"))
        expect(yield* lines, "two a minute").toEqual([])
        const minute = yield* Effect.forEach(Array.from({ length: 60 }), () => lines)
        expect(minute.flat()).toEqual([expect.stringMatching(/^- -: 1 more failures .*SVC_ROW_ERRORS_PER_MINUTE/)])
      })
    )
  )

  it.live("D79 a view that shows nothing, as several failing rows would have to be one, has a line of its own", () =>
    withViews(({ views }) =>
      Effect.gen(function* () {
        yield* ingest(views, many(20))
        yield* views.register(registration("both", both))
        yield* views.register(registration("sums", "SELECT owner, math::sum(n + 1) AS s FROM pay GROUP BY owner"))
        const lines = yield* logged(Effect.provideService(RowErrorLog.look(60), Views, views))
        expect(lines.map((line) => line.replace(/ leaves .*/, ""))).toEqual([
          "both pay:0: view both",
          "sums pay:0: view sums"
        ])
      })
    )
  )
})

it("D79 edges that the database refuses are told without its words, but to the scope admin", () => {
  const debug = (reason: string) =>
    ({ errors: [], edges_refused: { count: 2, edge: "pay:1", reason } }) as unknown as DebugView
  const [one, other] = marks.map((mark) => visibleDebugView(debug(`Found '${mark}' for field version`), "kinds"))
  expect(one).toEqual(other)
  expect(one).toMatchObject({ edges_refused: { count: 2, edge: "pay:1", reason: expect.not.stringContaining("qz") } })
  expect(visibleDebugView(debug(marks[0]), "whole")).toMatchObject({ edges_refused: { reason: marks[0] } })
})
