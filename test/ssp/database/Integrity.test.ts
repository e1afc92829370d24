/**
 * The integrity service over real views and a database the test controls (D41): what it names, and what it writes when.
 *
 * Why under a test clock: quiet times and second looks are seconds that no test has.
 */

import { describe, expect, it } from "@effect/vitest"
import { Clock, Context, Effect, Fiber, Layer, Logger, LogLevel, Option, type Scope, TestClock } from "effect"
import { ingest } from "../../../kit/checks/viewsAsked.ts"
import { empty } from "../../../src/core/integrity/merkle.ts"
import { Serving } from "../../../src/ports/Front.ts"
import { type IntegrityNode, Upstream, UpstreamError } from "../../../src/ports/Upstream.ts"
import { SspConfig } from "../../../src/ssp/Config.ts"
import { Integrity, type IntegrityShape } from "../../../src/ssp/database/Integrity.ts"
import { Assignments } from "../../../src/ssp/membership/Assignments.ts"
import { Lifecycle } from "../../../src/ssp/membership/Lifecycle.ts"
import { Views } from "../../../src/ssp/views/Views.ts"
import { FakeDatabase } from "../upstreamKit.ts"
import { change, withViews } from "../viewsKit.ts"

interface Node {
  readonly views: Views["Type"]
  readonly database: FakeDatabase
  readonly integrity: IntegrityShape
  /** Hashes in the database, by table, level and index, and every write of them. */
  readonly kept: Map<string, IntegrityNode>
  readonly writes: Array<ReadonlyArray<string>>
}

const place = ({ index, level, table }: IntegrityNode): string => `${table}/${level}/${index}`

const lifecycle: Lifecycle["Type"] = {
  phase: () => "ready",
  mode: "standalone",
  loaded: Effect.void,
  emptying: (work) => work,
  isMeant: () => true,
  writesHashes: () => true,
  lost: () => Effect.void,
  assignments: new Assignments()
}

const withNode = (
  name: string,
  body: (node: Node) => Effect.Effect<void, unknown, Scope.Scope>,
  env: { readonly [name: string]: string } = {},
  mode: Lifecycle["Type"]["mode"] = "standalone"
): void =>
  it.effect(name, () =>
    withViews(
      ({ views }) =>
        Effect.gen(function* () {
          const database = new FakeDatabase()
          const kept = new Map<string, IntegrityNode>()
          const writes: Array<ReadonlyArray<string>> = []
          const upstream = {
            ...database.upstream,
            putNodes: (nodes: ReadonlyArray<IntegrityNode>) =>
              Effect.suspend(() => {
                if (database.failure !== undefined) return Effect.fail(database.failure)
                for (const node of nodes) kept.set(place(node), node)
                writes.push(nodes.map(place))
                return Effect.void
              }),
            nodes: (table: string) => Effect.sync(() => [...kept.values()].filter((node) => node.table === table))
          }
          const context = yield* Layer.build(
            Layer.fresh(
              Integrity.layerOf(1_000).pipe(
                Layer.provide([
                  Layer.succeed(Views, views),
                  Layer.succeed(Upstream, upstream),
                  Layer.succeed(Lifecycle, { ...lifecycle, mode, writesHashes: () => mode === "standalone" }),
                  Serving.layer,
                  SspConfig.layerOf({ SSP_ID: "me", SVC_INTEGRITY_QUIET_SECS: "10", ...env })
                ])
              )
            )
          )
          yield* body({ views, database, integrity: Context.get(context, Integrity), kept, writes })
        }),
      Clock.make()
    ).pipe(Logger.withMinimumLogLevel(LogLevel.None))
  )

/** Turns of the event loop: commits and slices go on in turns, not in time. */
const turns = Effect.promise(async () => {
  for (let n = 0; n < 200; n++) await new Promise<void>((done) => void setImmediate(done))
})
/** Lets time pass, and what it starts come to an end. */
const pass = (seconds: number) => Effect.zipRight(TestClock.adjust(`${seconds} seconds`), turns)

const elapse = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.gen(function* () {
    const fiber = yield* Effect.fork(effect)
    for (let n = 0; n < 100; n++) {
      if (Option.isSome(yield* Fiber.poll(fiber))) return yield* Fiber.join(fiber)
      yield* pass(1)
    }
    return yield* Effect.die("not done after 100 seconds")
  })

const put = ({ views }: Node, id: string, n: number) => ingest(views, [change(id, { n })])

describe("D41 compare", () => {
  withNode("D41 names records that are missing, extra or different, with both versions, and no equal record", (node) =>
    Effect.gen(function* () {
      const { database, integrity } = node
      for (const n of [1, 2, 3]) yield* put(node, `item:${n}`, n)
      yield* put(node, "only:here", 1)
      database.put("item:1", { n: 1 })
      database.put("item:2", { n: -2 }, 1)
      database.put("item:4", { n: 4 }, 9)
      expect(yield* elapse(integrity.compare(undefined))).toEqual({
        tables: ["item", "only"],
        compared: 3,
        different: 4,
        differences: [
          { id: "item:2", kind: "different", version: 1, database_version: 1 },
          { id: "item:4", kind: "missing", version: null, database_version: 9 },
          { id: "item:3", kind: "extra", version: 1, database_version: null },
          { id: "only:here", kind: "extra", version: 1, database_version: null }
        ]
      })
      expect((yield* elapse(integrity.compare("only"))).differences.map(({ id }) => id)).toEqual(["only:here"])
    })
  )

  withNode("D41 what arrives before the second look is no difference", (node) =>
    Effect.gen(function* () {
      const { database, integrity } = node
      database.put("item:1", { n: 1 })
      database.put("item:2", { n: 2 })
      const comparing = yield* Effect.fork(integrity.compare("item"))
      yield* turns
      yield* put(node, "item:1", 1)
      expect((yield* elapse(Fiber.join(comparing))).differences.map(({ id }) => id)).toEqual(["item:2"])
    })
  )

  withNode(
    "D41 all differences are counted where not all are named, and a database that does not answer is an error",
    (node) =>
      Effect.gen(function* () {
        const { database, integrity } = node
        for (let n = 0; n < 10_300; n++) database.put(`item:${n}`, { n })
        const { compared, different, differences } = yield* elapse(integrity.compare(undefined))
        expect([compared, different, differences.length]).toEqual([10_300, 10_300, 10_000])
        database.down()
        expect(yield* elapse(Effect.flip(integrity.compare(undefined)))).toBeInstanceOf(UpstreamError)
      })
  )
})

describe("D41 hashes in the database", () => {
  withNode(
    "D41 they are written once a table is quiet, then only those that have changed, and what is gone becomes empty",
    (node) =>
      Effect.gen(function* () {
        const { integrity, kept, views, writes } = node
        for (let n = 0; n < 5; n++) yield* put(node, `item:${n}`, n)
        yield* pass(10)
        expect(writes).toEqual([])
        yield* put(node, "item:5", 5)
        yield* pass(10)
        expect(writes).toEqual([])
        yield* pass(10)
        const root = yield* integrity.node("item", 0, 0)
        expect([...kept.values()].map(({ count, hash, index, level }) => ({ count, hash, index, level }))).toEqual([
          { count: 6, hash: root.hash, index: 0, level: 0 },
          ...(root.children ?? []).map((child) => ({ ...child, level: 1 }))
        ])
        yield* pass(100)
        expect(writes).toHaveLength(1)
        yield* put(node, "item:5", 55)
        yield* pass(20)
        expect(writes[1]?.map((text) => text.split("/")[1]).sort()).toEqual(["0", "1"])
        yield* ingest(views, [change("item:5", {}, {}, "DELETE")])
        yield* pass(20)
        expect([...kept.values()].filter(({ hash }) => hash === empty).map(({ count }) => count)).toEqual([0])
        expect(kept.get("item/0/0")?.hash).toBe((yield* integrity.node("item", 0, 0)).hash)
        yield* put(node, "item:4", 44)
        yield* pass(20)
        expect(
          writes
            .at(-1)
            ?.map((text) => text.split("/")[1])
            .sort(),
          "what is empty already is not emptied again"
        ).toEqual(["0", "1"])
        yield* views.reset
        yield* pass(20)
        expect(new Set([...kept.values()].map(({ hash }) => hash))).toEqual(new Set([empty]))
      })
  )

  withNode(
    "D41 a table that is never quiet is written every five minutes all the same; a write that fails is tried again",
    (node) =>
      Effect.gen(function* () {
        const { database, writes } = node
        for (let n = 0; n < 29; n++) {
          yield* put(node, "item:1", n)
          yield* pass(10)
        }
        expect(writes).toEqual([])
        database.down()
        for (let n = 0; n < 3; n++) {
          yield* put(node, "item:1", -n)
          yield* pass(10)
        }
        expect(writes).toEqual([])
        database.up()
        yield* put(node, "item:1", 7)
        yield* pass(10)
        expect(writes).toHaveLength(1)
      })
  )

  withNode(
    "D41 D4 an SSP of a cluster compares, but neither writes hashes nor repairs records: the scheduler decides versions",
    (node) =>
      Effect.gen(function* () {
        node.database.put("item:1", { n: 1 })
        yield* put(node, "item:2", 2)
        expect([
          node.integrity.hasDatabase,
          node.integrity.repairs,
          (yield* elapse(node.integrity.compare(undefined))).different
        ]).toEqual([true, false, 2])
        yield* pass(1_000)
        expect(node.writes).toEqual([])
      }),
    {},
    "scheduler"
  )

  withNode(
    "D41 nothing is written where that is turned off",
    (node) =>
      Effect.gen(function* () {
        yield* put(node, "item:1", 1)
        expect(node.integrity.repairs).toBe(true)
        yield* pass(1_000)
        expect(node.writes).toEqual([])
      }),
    { SVC_INTEGRITY_QUIET_SECS: "0" }
  )
})
