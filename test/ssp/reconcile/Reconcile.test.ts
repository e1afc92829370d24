/**
 * Memory and database brought together and kept so (D20, D4, D18, D1): over views that are real and a database the test
 * controls.
 *
 * Why under a test clock: second looks, backoff and long transactions take seconds to minutes that no test has.
 */
import { describe, expect, it } from "@effect/vitest"
import {
  Clock,
  Context,
  type Duration,
  Effect,
  Fiber,
  Layer,
  Logger,
  LogLevel,
  Option,
  type Scope,
  TestClock
} from "effect"
import { ingest } from "../../../kit/checks/viewsAsked.ts"
import { Datetime } from "../../../src/core/surql/values/value.ts"
import { DatabaseError } from "../../../src/ports/Database.ts"
import { Serving } from "../../../src/ports/Front.ts"
import { UpstreamError } from "../../../src/ports/Upstream.ts"
import { SspConfig } from "../../../src/ssp/Config.ts"
import { EdgeWriter, noEdges } from "../../../src/ssp/edges/EdgeWriter.ts"
import { DeclaredTypes } from "../../../src/ssp/reconcile/DeclaredTypes.ts"
import { Reconcile, type ReconcileShape } from "../../../src/ssp/reconcile/Reconcile.ts"
import { Views } from "../../../src/ssp/views/Views.ts"
import { FakeDatabase, fill, idOf } from "../upstreamKit.ts"
import { type Controlled, change, type Kit, registration, rows, withViews } from "../viewsKit.ts"

interface Node {
  readonly views: Views["Type"]
  readonly store: Controlled
  readonly database: FakeDatabase
  readonly reconcile: ReconcileShape
  readonly types: DeclaredTypes["Type"]
  /** The views of a new process on the same store, and what keeps them equal. */
  readonly restart: Effect.Effect<Node, never, Scope.Scope>
}

const nodeOf = (kit: Kit, views: Views["Type"], database: FakeDatabase): Effect.Effect<Node, never, Scope.Scope> =>
  Layer.build(
    Layer.fresh(
      Reconcile.layer.pipe(
        Layer.provideMerge(
          Layer.mergeAll(
            DeclaredTypes.layer,
            Layer.succeed(Views, views),
            database.layer,
            Serving.layer,
            Layer.succeed(EdgeWriter, noEdges),
            SspConfig.layerOf({ SSP_ID: "me" })
          )
        )
      )
    )
  ).pipe(
    Effect.orDie,
    Effect.map((context) => ({
      views,
      store: kit.store,
      database,
      reconcile: Context.get(context, Reconcile),
      types: Context.get(context, DeclaredTypes),
      restart: Effect.flatMap(Effect.orDie(kit.restart), (next) => nodeOf(kit, next, database))
    }))
  )

/** What the views save every 50 ms is not what these tests wait for. */
const realTime = Clock.make()

const withNode = (name: string, body: (node: Node) => Effect.Effect<void, unknown, Scope.Scope>): void =>
  it.effect(name, () =>
    withViews((kit) => Effect.flatMap(nodeOf(kit, kit.views, new FakeDatabase()), body), realTime).pipe(
      Logger.withMinimumLogLevel(LogLevel.None)
    )
  )

const never = Effect.die("not so many failures")

/** Goes on until the effect is done. A step of the clock costs real time, whatever its length. */
const elapse = <A, E>(effect: Effect.Effect<A, E>, step: Duration.DurationInput = "2 seconds"): Effect.Effect<A, E> =>
  Effect.gen(function* () {
    const fiber = yield* Effect.fork(effect)
    for (let n = 0; n < 200; n++) {
      if (Option.isSome(yield* Fiber.poll(fiber))) return yield* Fiber.join(fiber)
      yield* TestClock.adjust(step)
      yield* yieldOften
    }
    return yield* Effect.die("not done after 200 steps")
  })

/** Turns of the event loop: commits are made in turns, not in time. */
const yieldOften = Effect.promise(() => new Promise<void>((done) => setImmediate(() => setImmediate(done))))

const settled = (node: Node): Effect.Effect<unknown> => elapse(Effect.orDie(node.reconcile.bootstrap(never)))
const versionOf = ({ views }: Node, id: string): number | undefined => views.records.get(idOf(id))?.version
const contentOf = ({ views }: Node, id: string): unknown => views.records.get(idOf(id))?.doc["n"]
const writtenBy = ({ commits }: Controlled): number => commits.reduce((sum, { records }) => sum + records.length, 0)

describe("bootstrap", () => {
  withNode(
    "D20 everything in the database is in memory and durable, each record written once, and a compare ends it",
    (node) =>
      Effect.gen(function* () {
        const { database, reconcile, store, views } = node
        fill(database, "item", 2_300)
        fill(database, "other", 2)
        yield* elapse(reconcile.bootstrap(never))
        expect([
          views.records.tableNames(),
          writtenBy(store),
          versionOf(node, "item:2299"),
          contentOf(node, "item:7")
        ]).toEqual([["item", "other"], 2_302, 1, 7])
        // A hundred records first, to know how large they are.
        expect(database.calls.filter((call) => call.startsWith("chunk"))).toEqual(
          [...Array(2)].flatMap(() => [...Array<string>(4).fill("chunk item"), "chunk other"])
        )
      })
  )

  withNode("D20 what changes while it reads is found by the compare that ends it", (node) =>
    Effect.gen(function* () {
      const { database } = node
      fill(database, "item", 1_500)
      let reads = 0
      database.before = (call) =>
        Effect.sync(() => {
          if (call !== "chunk item" || ++reads !== 2) return
          database.put("item:1", { n: "changed behind the reader" })
          database.remove("item:2")
          database.put("item:1x", { n: "new behind the reader" })
        })
      yield* settled(node)
      expect([contentOf(node, "item:1"), contentOf(node, "item:2"), contentOf(node, "item:1x")]).toEqual([
        "changed behind the reader",
        undefined,
        "new behind the reader"
      ])
      expect(reads).toBe(9)
    })
  )

  withNode(
    "D44 what transactions wrote while tables were read one after the other is taken of the change table before it ends: memory is a state of the database",
    (node) =>
      Effect.gen(function* () {
        const { database, reconcile } = node
        database.keepChanges()
        fill(database, "a", 3)
        fill(database, "b", 3)
        let n = 0
        // A transaction that writes into both tables, between the reads of them, in every pass.
        database.before = (call) =>
          Effect.sync(() => {
            if (call !== "chunk b") return
            n++
            for (const table of ["a", "b"]) {
              database.put(`${table}:1`, { n: 100 + n })
              database.announce(`${table}:1`)
            }
          })
        yield* elapse(reconcile.bootstrap(never))
        expect(n).toBeGreaterThan(1)
        expect([contentOf(node, "a:1"), contentOf(node, "b:1")]).toEqual([100 + n, 100 + n])
      })
  )

  withNode("D20 a restart writes only what changed meanwhile, with versions that go on", (node) =>
    Effect.gen(function* () {
      const { database, store } = node
      fill(database, "item", 1_200)
      yield* settled(node)
      const before = writtenBy(store)
      database.put("item:3", { n: "changed" })
      database.remove("item:4")
      database.put("item:new", { n: 0 })
      database.put("item:5", { n: 5 }, 9)
      const after = yield* node.restart
      yield* settled(after)
      expect(writtenBy(store) - before).toBe(4)
      expect(["item:3", "item:4", "item:new", "item:5", "item:6"].map((id) => versionOf(after, id))).toEqual([
        2,
        undefined,
        1,
        9,
        1
      ])
    })
  )

  withNode("D20 a table that is gone takes its records with it", (node) =>
    Effect.gen(function* () {
      fill(node.database, "item", 3)
      fill(node.database, "gone", 3)
      yield* settled(node)
      for (let n = 0; n < 3; n++) node.database.remove(`gone:${n}`)
      yield* settled(node)
      expect(node.views.records.tableNames()).toEqual(["item"])
    })
  )

  withNode(
    "D4 versions that were lost go on above the highest a client may have seen, also after a restart; the database's own win",
    (node) =>
      Effect.gen(function* () {
        const { database } = node
        database.highestVersion = 50
        database.put("item:1", { n: 1 })
        database.put("item:2", { n: 2 }, 7)
        yield* settled(node)
        expect([versionOf(node, "item:1"), versionOf(node, "item:2")]).toEqual([51, 7])
        database.highestVersion = 0
        const after = yield* node.restart
        yield* settled(after)
        yield* ingest(after.views, [change("item:3", { n: 3 })])
        expect([versionOf(after, "item:1"), versionOf(after, "item:3")]).toEqual([51, 51])
        expect(after.views.records.tableNames()).toEqual(["item"])
      })
  )

  withNode("D1 what the tables declare is known before the records are", (node) =>
    Effect.gen(function* () {
      node.database.types = { item: { at: "datetime" } }
      node.database.put("item:1", { at: new Datetime(0, 0) })
      yield* settled(node)
      expect([node.types.of("item"), node.types.of("other")]).toEqual([{ at: "datetime" }, undefined])
    })
  )
})

describe("a database that fails", () => {
  withNode("D18 ten failures in a row are told once, it keeps trying, and succeeds in the end", (node) =>
    Effect.gen(function* () {
      fill(node.database, "item", 3)
      node.database.down()
      const told: Array<number> = []
      const fiber = yield* Effect.fork(
        node.reconcile.bootstrap(Effect.sync(() => void told.push(node.database.calls.length)))
      )
      yield* TestClock.adjust("10 minutes")
      expect([told, node.database.calls.length > 20]).toEqual([[10], true])
      node.database.up()
      yield* elapse(Fiber.join(fiber), "30 seconds")
      expect(contentOf(node, "item:2")).toBe(2)
    })
  )

  withNode("D20 D18 a database that dies half-way is read on from there, and a success begins the count anew", (node) =>
    Effect.gen(function* () {
      const { database, store } = node
      fill(database, "item", 3_500)
      let reads = 0
      database.before = (call) =>
        Effect.sync(() => {
          if (call !== "chunk item") return
          reads++
          // Nine failures at the second stretch, nine at the third.
          if ((reads >= 2 && reads <= 10) || (reads >= 12 && reads <= 20)) database.down()
          else database.up()
        })
      yield* elapse(node.reconcile.bootstrap(never), "5 minutes")
      expect([reads, writtenBy(store), node.views.records.get(idOf("item:3499"))?.version]).toEqual([
        5 + 18 + 5,
        3_500,
        1
      ])
    })
  )

  withNode("D18 a store of ours that refuses a write is tried again", (node) =>
    Effect.gen(function* () {
      fill(node.database, "item", 5)
      let failures = 3
      node.store.before = Effect.suspend(() =>
        failures-- > 0 ? Effect.fail(new DatabaseError({ reason: "failed", message: "disk full" })) : Effect.void
      )
      yield* settled(node)
      expect(contentOf(node, "item:4")).toBe(4)
    })
  )

  withNode("a database user without a right to our tables makes the SSP wait until it has the right", (node) =>
    Effect.gen(function* () {
      fill(node.database, "item", 2)
      let lacking = 3
      node.database.before = (call) =>
        Effect.sync(
          () =>
            void (node.database.failure =
              call === "prepare" && lacking-- > 0
                ? new UpstreamError({
                    reason: "refused",
                    message: "the database user lacks the right to create in _svc_query"
                  })
                : undefined)
        )
      yield* settled(node)
      expect([lacking < 0, contentOf(node, "item:1")]).toEqual([true, 1])
    })
  )

  withNode("a compare that meets a dead database fails, and touches nothing", (node) =>
    Effect.gen(function* () {
      fill(node.database, "item", 5)
      yield* settled(node)
      node.database.remove("item:1")
      node.database.before = (call) => Effect.sync(() => (call.startsWith("find") ? node.database.down() : undefined))
      const failure = yield* Effect.flip(elapse(node.reconcile.now))
      expect([failure instanceof UpstreamError, contentOf(node, "item:1")]).toEqual([true, 1])
      node.database.up()
      node.database.before = () => Effect.void
      expect(yield* elapse(node.reconcile.now)).toEqual({ compared: 4, repaired: ["item:1"] })
    })
  )
})

describe("the compare while changes flow", () => {
  withNode("D20 repairs what was lost and what was announced and rolled back, and names it", (node) =>
    Effect.gen(function* () {
      const { database, reconcile, views } = node
      fill(database, "item", 1_100)
      yield* settled(node)
      database.register("v", "SELECT * FROM item WHERE n < 3", { owner: "me" })
      yield* views.register(registration("v", "SELECT * FROM item WHERE n < 3"))
      database.put("item:1", { n: -1 })
      database.remove("item:2")
      database.put("item:lost", { n: 0 })
      yield* ingest(views, [change("item:0", { n: 100 }, {}, "UPDATE"), change("item:never", { n: 2 })])
      const { compared, repaired } = yield* elapse(reconcile.now)
      expect([compared, [...repaired].sort()]).toEqual([
        1_100,
        ["item:0", "item:1", "item:2", "item:lost", "item:never"]
      ])
      expect(yield* rows(views, "v")).toEqual([
        ["item:0", 3],
        ["item:1", 2],
        ["item:lost", 1]
      ])
      expect(yield* elapse(reconcile.now)).toEqual({ compared: 1_100, repaired: [] })
    })
  )

  withNode("D76 what one compare finds is shown as one step, whatever it was read in", (node) =>
    Effect.gen(function* () {
      const { database, reconcile, views } = node
      fill(database, "item", 3)
      yield* settled(node)
      database.register("v", "SELECT * FROM item", { owner: "me" })
      yield* views.register(registration("v", "SELECT * FROM item"))
      fill(database, "item", 1_300)
      expect((yield* elapse(reconcile.now)).repaired.length).toBe(1_297)
      expect(yield* views.read("v", undefined)).toMatchObject({
        content_generation: 2,
        result_data: { length: 1_300 }
      })
    })
  )

  withNode("D20 a difference that is gone at the second look is none", (node) =>
    Effect.gen(function* () {
      const { database, reconcile, store, views } = node
      fill(database, "item", 3)
      yield* settled(node)
      const before = writtenBy(store)
      yield* ingest(views, [change("item:1", { n: "announced" }, {}, "UPDATE")])
      database.before = (call) =>
        Effect.sync(() => (call.startsWith("find") ? database.put("item:1", { n: "announced" }) : undefined))
      expect((yield* elapse(reconcile.now)).repaired).toEqual([])
      expect([
        database.calls.filter((call) => call.startsWith("find")).length,
        writtenBy(store) - before,
        versionOf(node, "item:1")
      ]).toEqual([1, 1, 2])
    })
  )

  withNode(
    "D20 a change that arrives while the database is asked is not overwritten with what was read before it",
    (node) =>
      Effect.gen(function* () {
        const { database, reconcile, views } = node
        fill(database, "item", 3)
        yield* settled(node)
        database.put("item:1", { n: "lost" })
        database.before = (call) =>
          Effect.sync(() => {
            if (call.startsWith("find")) views.ingest([change("item:1", { n: "newer" }, {}, "UPDATE")], () => {})
          })
        expect((yield* elapse(reconcile.now)).repaired).toEqual([])
        expect(contentOf(node, "item:1")).toBe("newer")
      })
  )

  withNode("D20 what moves between the two looks is being told of, and left alone", (node) =>
    Effect.gen(function* () {
      const { database, reconcile, views } = node
      fill(database, "item", 3)
      yield* settled(node)
      database.put("item:1", { n: "lost" })
      const fiber = yield* Effect.fork(reconcile.now)
      yield* TestClock.adjust("500 millis")
      expect(database.calls.at(-1)).toBe("chunk item")
      yield* ingest(views, [change("item:1", { n: "announced, not committed yet" }, {}, "UPDATE")])
      expect((yield* elapse(Fiber.join(fiber))).repaired).toEqual([])
      expect(contentOf(node, "item:1")).toBe("announced, not committed yet")
    })
  )

  withNode("D20 what a long transaction commits after its announcement was taken back is put right again", (node) =>
    Effect.gen(function* () {
      const { database, reconcile, views } = node
      fill(database, "item", 3)
      yield* settled(node)
      yield* ingest(views, [change("item:1", { n: "announced" }, {}, "UPDATE")])
      expect((yield* elapse(reconcile.now)).repaired).toEqual(["item:1"])
      expect(contentOf(node, "item:1")).toBe(1)
      yield* TestClock.adjust("10 seconds")
      yield* yieldOften
      database.put("item:1", { n: "announced" })
      for (let n = 0; n < 3; n++) yield* Effect.zipRight(TestClock.adjust("20 seconds"), yieldOften)
      expect(contentOf(node, "item:1")).toBe("announced")
    })
  )
})

describe("registrations", () => {
  withNode("D20 registrations in the database become views, views without a registration go, of any owner", (node) =>
    Effect.gen(function* () {
      const { database, reconcile, views } = node
      fill(database, "item", 3)
      yield* views.register(registration("gone", "SELECT * FROM item"))
      database.register("mine", "SELECT * FROM item WHERE n > $n", { params: '{"n":1}', owner: "me" })
      database.register("theirs", "SELECT * FROM item", { owner: "another, long dead" })
      database.register("bad", "SELECT * FROM")
      database.register("odd", "SELECT * FROM item", { params: "[" })
      yield* elapse(reconcile.bootstrap(never))
      expect((yield* views.registrations).map(({ id }) => id).sort()).toEqual([
        "incantation:mine",
        "incantation:theirs"
      ])
      expect(yield* rows(views, "mine")).toEqual([["item:2", 1]])
    })
  )

  withNode(
    "D21 later, those that come and go are followed; one that another owns is left to it, one on its way is left alone",
    (node) =>
      Effect.gen(function* () {
        const { database, reconcile, views } = node
        fill(database, "item", 3)
        for (const key of ["a", "b"]) database.register(key, "SELECT * FROM item", { owner: "me" })
        yield* settled(node)
        database.registrations.delete("a")
        database.register("c", "SELECT * FROM item")
        database.register("theirs", "SELECT * FROM item", { owner: "another" })
        yield* elapse(reconcile.now)
        expect((yield* views.registrations).map(({ key }) => key).sort()).toEqual(["b", "c"])
        database.registrations.delete("b")
        let looks = 0
        database.before = (call) =>
          Effect.sync(() => {
            if (call === "registrations" && ++looks === 2) database.register("b", "SELECT * FROM item", { owner: "me" })
          })
        yield* elapse(reconcile.now)
        expect([looks, (yield* views.registrations).map(({ key }) => key).sort()]).toEqual([2, ["b", "c"]])
      })
  )
})
