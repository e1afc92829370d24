/**
 * Records that a query of `/proxy/query` holds while it sorts, groups or follows links count among its bytes (D48); those
 * it lets go again do not.
 */
import { it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { describe, expect } from "vitest"
import * as MemoryReplica from "../../src/drivers/memoryReplica.ts"
import { Replica } from "../../src/ports/Replica.ts"
import { Turn } from "../../src/ports/Turn.ts"
import { ProxyQuery } from "../../src/scheduler/replica/ProxyQuery.ts"
import { id, record } from "../../src/testing/Replica.suite.ts"

const limits = { queryRows: 10_000, querySteps: 50_000_000, queryBytesTotal: 0, rowSteps: 1_000_000 }

const long = "x".repeat(1000)
const rows = 2000

/** 2,000 records of `t` of 1,000 characters, each with a link to one of `o` that is as long. */
const records = Array.from({ length: rows }, (_, i) => [
  record(`t:${i}`, 1, { n: (i * 7919) % rows, kind: i % 3, text: long, link: id(`o:${i}`) }),
  record(`o:${i}`, 1, { n: i, text: long })
]).flat()

/** The answer, or why there is none; what may be made is a twentieth of what all records take. */
const ask = (query: string) =>
  Effect.gen(function* () {
    const { run } = yield* ProxyQuery
    const { body } = yield* run({ query, params: undefined, accept: undefined })
    return JSON.parse(Buffer.concat(body).toString("utf8")) as unknown
  }).pipe(
    Effect.scoped,
    Effect.catchTag("QueryFailed", ({ message }) => Effect.succeed(message)),
    Effect.provide(
      ProxyQuery.layer({ ...limits, queryBytes: 400_000 }).pipe(
        Layer.provide(Turn.layerYield),
        Layer.provideMerge(
          Layer.tap(MemoryReplica.layer, (context) =>
            Effect.flatMap(Effect.provide(Replica, context), (replica) => replica.commit({ records, through: 1 }))
          )
        )
      )
    )
  )

const refused = "The query makes more than 400000 bytes; raise SVC_QUERY_BYTES to allow it"

describe("records that a query holds", () => {
  for (const query of [
    "SELECT n FROM t ORDER BY n",
    "SELECT n FROM t ORDER BY n LIMIT 600",
    "SELECT n FROM t ORDER BY n LIMIT 300",
    "SELECT kind, array::group(text) AS all FROM t GROUP BY kind",
    "SELECT text, n, count() FROM t GROUP BY text, n",
    "SELECT VALUE count() FROM (SELECT * FROM t) GROUP ALL",
    "SELECT VALUE link FROM t FETCH link"
  ])
    it.effect(`D48 are refused by the name of the setting: ${query}`, () =>
      Effect.map(ask(query), (answer) => expect(answer).toBe(refused))
    )

  const groups = [0, 1, 2].map((kind) => ({ kind, count: Math.ceil((rows - kind) / 3) }))
  for (const [query, expected] of [
    ["SELECT VALUE n FROM t ORDER BY n LIMIT 5 START 20", [20, 21, 22, 23, 24]],
    ["SELECT VALUE n FROM t ORDER BY n DESC LIMIT 3", [rows - 1, rows - 2, rows - 3]],
    [
      "SELECT link.text AS text, link.n AS m, 1 AS one FROM t ORDER BY text, m LIMIT 2",
      [0, 1].map((m) => ({ text: long, m, one: 1 }))
    ],
    ["SELECT kind, count() FROM t GROUP BY kind", groups],
    ["SELECT VALUE math::max(link.n) FROM t GROUP ALL", [rows - 1]],
    ["SELECT VALUE math::sum(string::len(link.text)) FROM t GROUP ALL", [1000 * rows]],
    ["SELECT VALUE count() FROM t WHERE link.text = 'y' GROUP ALL", [0]],
    ["SELECT VALUE n FROM t WHERE n > 1990 ORDER BY n LIMIT 2", [1991, 1992]]
  ] as const)
    it.effect(`are let go as soon as nothing asks for them: ${query}`, () =>
      Effect.map(ask(query), (answer) => expect(answer).toEqual(expected))
    )
})
