/**
 * An SSP in scheduler mode, from its first registration to its goodbye (D18, D19, D20, D21, D31).
 *
 * Why in virtual time: backoff, time-outs and heartbeats take minutes and hours that no test has.
 */

import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope, Stream } from "effect"
import { ingest, streamOf } from "../../../kit/checks/viewsAsked.ts"
import { FakeScheduler, refusing } from "../../../kit/processes/fakeScheduler.ts"
import * as Ids from "../../../src/core/surql/values/recordId.ts"
import { inTime, startSsp } from "../clusterKit.ts"
import { change, registration, rows } from "../viewsKit.ts"

const fast = { HEARTBEAT_INTERVAL_MS: "1000" }

const many = (count: number) => Array.from({ length: count }, (_, n) => ({ id: `t:${n}`, n, _svc_rv: n + 1 }))

describe("D20 bootstrap", () => {
  it.scopedLive(
    "registers under its address, pulls every table but ours in key order, page by page, and is ready with the scheduler's versions and types",
    () =>
      inTime((pass) =>
        Effect.gen(function* () {
          const scheduler = new FakeScheduler()
          scheduler.rows = [
            ...many(2500),
            { id: "p:⟨a b⟩", at: "not-a-date", u: "018f2f7a-5a0c-7a2b-8a3b-000000000001", _svc_rv: 7 },
            { id: "_svc_query:x", surql: "" }
          ]
          scheduler.fields = { p: { u: "option<uuid>", at: "datetime" }, empty: {} }
          const { phase, views } = yield* startSsp(pass, scheduler)
          expect(phase()).toBe("ready")
          expect(scheduler.asked.slice(0, 3)).toEqual([
            {
              at: 0,
              what: "register",
              body: {
                ssp_id: "me",
                url: "http://ssp-1:8667",
                batch: true,
                job_tables: [],
                incarnation: expect.stringMatching(/^[0-9a-f]{16}$/)
              }
            },
            { at: 0, what: "signin" },
            { at: 0, what: "use" }
          ])
          expect(scheduler.queries.filter((query) => query.includes("FROM t "))).toHaveLength(3)
          expect(scheduler.queries.some((query) => query.includes("_svc_"))).toBe(false)
          yield* views.register(registration("all", "SELECT id FROM t WHERE n >= 1000"))
          expect(yield* rows(views, "all")).toEqual(Array.from({ length: 1500 }, (_, i) => [`t:${i + 1000}`, i + 1001]))
          expect(
            yield* views.register(registration("typed", "SELECT type::of(u) AS u, at FROM p", { format: "tree" }))
          ).toMatchObject({ result_data: [{ u: "uuid", at: "not-a-date" }] })
          yield* views.register(registration("versions", "SELECT id FROM p"))
          expect(yield* rows(views, "versions")).toEqual([["p:`a b`", 7]])
        })
      )
  )
  it.scopedLive(
    "asks for as many records at once as the scheduler says, and goes on where it says something else than it can mean",
    () =>
      inTime((pass) =>
        Effect.gen(function* () {
          for (const [bootstrap_chunk_size, pages] of [
            [7, 3],
            [20, 2],
            [0, 21]
          ] as const) {
            const scheduler = new FakeScheduler()
            scheduler.rows = many(20)
            scheduler.onRegister = () => Effect.succeed({ snapshot_seq: scheduler.seq, bootstrap_chunk_size })
            const { phase } = yield* startSsp(pass, scheduler)
            expect([phase(), scheduler.queries.filter((query) => query.includes("FROM t ")).length]).toEqual([
              "ready",
              pages
            ])
          }
        })
      )
  )
  it.scopedLive("a snapshot that moves on the way means starting over, and rows of two snapshots are never mixed", () =>
    inTime((pass) =>
      Effect.gen(function* () {
        const scheduler = new FakeScheduler()
        scheduler.rows = many(1500)
        let pages = 0
        scheduler.onQuery = (query) => {
          if (query.startsWith("SELECT") && ++pages === 2) {
            scheduler.seq = 20
            scheduler.rows = many(3)
          }
          return undefined
        }
        const { loud, phase, views } = yield* startSsp(pass, scheduler)
        expect([phase(), scheduler.count("register")]).toEqual(["bootstrapping", 1])
        expect(loud("WARN")).toEqual([expect.stringMatching(/snapshot is at 20 and no longer at 10/)])
        yield* pass(1000)
        expect([phase(), scheduler.count("register")]).toEqual(["ready", 2])
        yield* views.register(registration("all", "SELECT id FROM t"))
        expect(yield* rows(views, "all")).toHaveLength(3)
        expect(yield* Effect.flip(ingest(views, [change("t:1", {}, { seq: 22 })]))).toMatchObject({ expected: 21 })
      })
    )
  )
  it.scopedLive("a page that does not arrive is asked for again, without a new registration", () =>
    inTime((pass) =>
      Effect.gen(function* () {
        const scheduler = new FakeScheduler()
        scheduler.rows = many(10)
        let fails = 3
        scheduler.onQuery = (query) => (query.startsWith("SELECT") && fails-- > 0 ? refusing("unreachable") : undefined)
        const { phase } = yield* startSsp(pass, scheduler)
        yield* pass(5000)
        expect([phase(), scheduler.count("register"), fails]).toEqual(["ready", 1, -1])
      })
    )
  )
  it.scopedLive("a scheduler that knows only the specification will do: no header, no numbers, no versions", () =>
    inTime((pass) =>
      Effect.gen(function* () {
        const scheduler = new FakeScheduler()
        scheduler.rows = [
          { id: "t:1", n: 1 },
          ...Array.from({ length: 2400 }, (_, n) => ({ id: Ids.make("u", `${n % 2 === 0 ? "é⟩" : "\\`"} ${n}`).text })),
          { id: "typed:1", at: "2024-01-01T00:00:00Z", u: "018f2f7a-5a0c-7a2b-8a3b-000000000001" }
        ]
        scheduler.fields = { typed: { u: "option<uuid>" } }
        scheduler.onRegister = () => Effect.succeed({ snapshot_seq: 3 })
        scheduler.says = { header: false, exact: false }
        const { lifecycle, phase, views } = yield* startSsp(pass, scheduler, fast)
        expect([phase(), lifecycle.isMeant(undefined), lifecycle.isMeant(5)]).toEqual(["ready", true, true])
        yield* views.register(registration("all", "SELECT id FROM t"))
        expect(yield* rows(views, "all")).toEqual([["t:1", 1]])
        yield* ingest(views, [change("t:2", { n: 2 })])
        expect(yield* rows(views, "all")).toHaveLength(2)
        expect(
          yield* views.register(
            registration("typed", "SELECT type::of(u) AS u, type::of(at) AS at FROM typed", { format: "tree" })
          )
        ).toMatchObject({ result_data: [{ u: "uuid", at: "datetime" }] })
        expect(
          yield* views.register(registration("odd", "SELECT count() FROM u GROUP ALL", { format: "tree" }))
        ).toMatchObject({ result_data: [{ count: 2400 }] })
        yield* pass(3000)
        expect(scheduler.heartbeats.at(-1)).not.toHaveProperty("registration")
      })
    )
  )
})

describe("D61 a scheduler without a feed", () => {
  it.scopedLive("is said once, and sends what it has: every table is pulled, and changes are taken", () =>
    inTime((pass) =>
      Effect.gen(function* () {
        const scheduler = new FakeScheduler()
        scheduler.rows = many(3)
        const never = Effect.die("it has no feed")
        scheduler.feed = { feed: () => never, applied: () => never }
        const follows = { ...fast, SVC_CLUSTER_FEED: "pull" }
        const { lifecycle, phase, lines, views } = yield* startSsp(pass, scheduler, follows)
        const said = () => lines.filter(({ message }) => message.includes("has no feed of tables"))
        expect([phase(), said()]).toEqual([
          "ready",
          [{ level: "INFO", message: expect.stringMatching(/GET \/feed.*SVC_CLUSTER_FEED=push/) }]
        ])
        expect(scheduler.asked[0]).toMatchObject({ what: "register", body: { tables: [] } })
        yield* views.register(registration("all", "SELECT id FROM t"))
        expect(yield* rows(views, "all")).toHaveLength(3)
        yield* ingest(views, [change("t:9", {}, { seq: 11 })])
        expect(yield* rows(views, "all")).toHaveLength(4)
        yield* lifecycle.lost("for this test")
        yield* pass(2000)
        expect([phase(), scheduler.count("register"), said().length]).toEqual(["ready", 2, 1])
      })
    )
  )
})

describe("D18 failing", () => {
  it.scopedLive("ten failures in a row make failed, it keeps trying, and success makes it ready", () =>
    inTime((pass) =>
      Effect.gen(function* () {
        const scheduler = new FakeScheduler()
        scheduler.onRegister = () => refusing("unreachable")
        const { loud, phase } = yield* startSsp(pass, scheduler)
        for (let i = 0; i < 3000 && scheduler.count("register") < 10; i++) {
          expect(phase()).toBe("bootstrapping")
          yield* pass(100)
        }
        expect([scheduler.count("register"), phase()]).toEqual([10, "failed"])
        expect(loud("ERROR")).toEqual([expect.stringMatching(/failed 10 times in a row.*SCHEDULER_URL/)])
        const [first, ...rest] = scheduler.asked.map(({ at }, i, all) => at - (all[i - 1]?.at ?? at)).slice(1)
        expect(first).toBeLessThanOrEqual(600)
        expect(Math.max(...rest)).toBeGreaterThan(2000)
        yield* pass(60_000)
        expect([phase(), scheduler.count("register") > 11]).toEqual(["failed", true])
        scheduler.onRegister = () => undefined
        yield* pass(31_000)
        expect(phase()).toBe("ready")
      })
    )
  )
  it.scopedLive("a bootstrap that fails counts like a registration that does", () =>
    inTime((pass) =>
      Effect.gen(function* () {
        const scheduler = new FakeScheduler()
        scheduler.onQuery = () => refusing("refused")
        const { phase } = yield* startSsp(pass, scheduler)
        yield* pass(240_000)
        expect([phase(), scheduler.count("register") >= 10]).toEqual(["failed", true])
      })
    )
  )
  it.scopedLive("a scheduler that is cloning, or asks to come back, does not count, and is not pressed", () =>
    inTime((pass) =>
      Effect.gen(function* () {
        for (const reason of ["cloning", "overloaded"] as const) {
          const scheduler = new FakeScheduler()
          scheduler.onRegister = () => refusing(reason, { retryAfterMs: 4000 })
          const { phase } = yield* startSsp(pass, scheduler)
          const from = scheduler.asked[0]!.at
          yield* pass(300_000)
          expect([phase(), scheduler.count("register") > 8, scheduler.count("register") < 75]).toEqual([
            "bootstrapping",
            true,
            true
          ])
          expect(scheduler.asked[1]!.at - from).toBeGreaterThanOrEqual(4000)
        }
      })
    )
  )
})

describe("D19 heartbeats", () => {
  it.scopedLive("go out from registration on, in every state, with the registration once it has its data", () =>
    inTime((pass) =>
      Effect.gen(function* () {
        const scheduler = new FakeScheduler()
        scheduler.onQuery = (query) =>
          query.startsWith("INFO FOR DB")
            ? Effect.delay(Effect.succeed({ seq: 10, exact: false, text: '{"tables":{}}' }), "5500 millis")
            : undefined
        const { phase } = yield* startSsp(pass, scheduler, fast)
        yield* pass(5000)
        expect([phase(), scheduler.count("heartbeat")]).toEqual(["bootstrapping", 6])
        yield* pass(5000)
        expect([phase(), scheduler.count("heartbeat")]).toEqual(["ready", 11])
        expect(scheduler.heartbeats[2]).toEqual({
          ssp_id: "me",
          incarnation: expect.any(String),
          timestamp: 2,
          views: 0
        })
        expect(scheduler.heartbeats.at(-1)).toMatchObject({ timestamp: 10, registration: 1 })
      })
    )
  )
  for (const [reason, status] of [
    ["unknown", 404],
    ["conflict", 409]
  ] as const) {
    it.scopedLive(
      `${status}: registers and bootstraps again; it is bootstrapping meanwhile, streams end with rebootstrap, views registered here stay`,
      () =>
        inTime((pass) =>
          Effect.gen(function* () {
            const scheduler = new FakeScheduler()
            scheduler.rows = many(5)
            const { loud, phase, views } = yield* startSsp(pass, scheduler, fast)
            yield* views.register(registration("all", "SELECT id FROM t"))
            const stream = yield* Effect.fork(
              Effect.flatMap(streamOf(views, "all", undefined, undefined), Stream.runCollect)
            )
            yield* pass(0)
            scheduler.rows = many(8)
            scheduler.seq = 30
            scheduler.onHeartbeat = () => refusing(reason)
            scheduler.onRegister = () => refusing("unreachable")
            yield* pass(1000)
            expect(phase()).toBe("bootstrapping")
            scheduler.onHeartbeat = () => undefined
            scheduler.onRegister = () => undefined
            yield* pass(3000)
            expect(phase()).toBe("ready")
            expect(yield* rows(views, "all")).toHaveLength(8)
            expect([...(yield* Fiber.join(stream))].at(-1)).toMatchObject({
              event: "end",
              data: { reason: "rebootstrap" }
            })
            expect(loud("WARN")[0]).toMatch(new RegExp(`${status} to a heartbeat`))
            expect(scheduler.heartbeats.at(-1)).toMatchObject({ registration: 2, views: 1 })
          })
        )
    )
  }
  it.scopedLive("any other answer, or none: a warning, and it goes on as it is", () =>
    inTime((pass) =>
      Effect.gen(function* () {
        const scheduler = new FakeScheduler()
        const { loud, phase } = yield* startSsp(pass, scheduler, fast)
        for (const answer of [refusing("unreachable"), refusing("refused"), Effect.never]) {
          scheduler.onHeartbeat = () => answer
          yield* pass(4000)
          expect(phase()).toBe("ready")
        }
        scheduler.onHeartbeat = () => undefined
        yield* pass(3000)
        expect([phase(), scheduler.count("register"), loud("WARN").length >= 9]).toEqual(["ready", 1, true])
      })
    )
  )
  it.scopedLive(
    "a 409 to every heartbeat is no loop: few registrations in twenty minutes, and loud from the fourth within ten minutes",
    () =>
      inTime((pass) =>
        Effect.gen(function* () {
          const scheduler = new FakeScheduler()
          const { loud } = yield* startSsp(pass, scheduler, fast)
          scheduler.onHeartbeat = ({ registration }) => (registration === undefined ? undefined : refusing("conflict"))
          yield* pass(1_200_000)
          expect(scheduler.count("register")).toBeLessThan(150)
          expect(scheduler.count("register")).toBeGreaterThan(15)
          const again = scheduler.asked.filter(({ what }) => what === "register").slice(1)
          expect(again.length - loud("ERROR").length).toBeLessThanOrEqual(3)
          expect(loud("ERROR")[0]).toMatch(/for the 4th time in 10 minutes/)
        })
      )
  )
  it.scopedLive("404 while it pulls: the registration it pulls for is gone, so it makes another", () =>
    inTime((pass) =>
      Effect.gen(function* () {
        const scheduler = new FakeScheduler()
        let hangs = true
        scheduler.onQuery = () => (hangs ? Effect.never : undefined)
        const { phase } = yield* startSsp(pass, scheduler, fast)
        yield* pass(3000)
        expect(scheduler.count("register")).toBe(1)
        scheduler.onHeartbeat = () => refusing("unknown")
        yield* pass(1000)
        hangs = false
        scheduler.onHeartbeat = () => undefined
        yield* pass(2000)
        expect([phase(), scheduler.count("register") >= 2]).toEqual(["ready", true])
      })
    )
  )
})

describe("D31 processes with one id", () => {
  for (const where of ["heartbeat", "registration"] as const) {
    it.scopedLive(`the older is told by its ${where}, and ends with 1 and the reason, without a goodbye`, () =>
      inTime((pass) =>
        Effect.gen(function* () {
          const scheduler = new FakeScheduler()
          if (where === "registration") scheduler.onRegister = () => refusing("fenced")
          else scheduler.onHeartbeat = () => refusing("fenced")
          const scope = yield* Scope.make()
          const { serving } = yield* Scope.extend(startSsp(pass, scheduler, fast), scope)
          const crashed = yield* Effect.fork(Effect.flip(serving.crashed))
          yield* pass(2000)
          expect(yield* Fiber.join(crashed)).toMatchObject({
            exitCode: 1,
            message: expect.stringMatching(/another process.*SSP_ID.*fenced on purpose/)
          })
          yield* Scope.close(scope, Exit.void)
          expect(scheduler.count("deregister")).toBe(0)
        })
      )
    )
  }
  it.scopedLive("a stop says goodbye once, and sends no heartbeat after it", () =>
    inTime((pass) =>
      Effect.gen(function* () {
        const scheduler = new FakeScheduler()
        const scope = yield* Scope.make()
        const { serving } = yield* Scope.extend(startSsp(pass, scheduler, fast), scope)
        yield* pass(1500)
        yield* serving.stop
        yield* pass(0)
        expect(scheduler.asked.at(-1)).toMatchObject({
          what: "deregister",
          body: { ssp_id: "me", incarnation: scheduler.heartbeats[0]!.incarnation }
        })
        yield* pass(5000)
        yield* Scope.close(scope, Exit.void)
        expect([scheduler.count("deregister"), scheduler.asked.at(-1)!.what]).toEqual([1, "deregister"])
      })
    )
  )
  it.scopedLive("a goodbye that is under way is heard, whatever closes meanwhile", () =>
    inTime((pass) =>
      Effect.gen(function* () {
        const scheduler = new FakeScheduler()
        let heard = 0
        scheduler.onDeregister = () =>
          Effect.delay(
            Effect.sync(() => void heard++),
            "500 millis"
          )
        const scope = yield* Scope.make()
        const { serving } = yield* Scope.extend(startSsp(pass, scheduler, fast), scope)
        yield* pass(1500)
        yield* serving.stop
        yield* pass(100)
        const closing = yield* Effect.fork(Scope.close(scope, Exit.void))
        yield* pass(1000)
        yield* Fiber.join(closing)
        expect([scheduler.count("deregister"), heard]).toEqual([1, 1])
      })
    )
  )
  it.scopedLive("a stop before the registration is answered says goodbye too, since it may have been taken", () =>
    inTime((pass) =>
      Effect.gen(function* () {
        const scheduler = new FakeScheduler()
        scheduler.onRegister = () => Effect.never
        const scope = yield* Scope.make()
        yield* Scope.extend(startSsp(pass, scheduler, fast), scope)
        yield* pass(100)
        yield* Scope.close(scope, Exit.void)
        expect(scheduler.asked.map(({ what }) => what)).toEqual(["register", "deregister"])
      })
    )
  )
  it.scopedLive("who never was registered says no goodbye", () =>
    inTime((pass) =>
      Effect.gen(function* () {
        const scheduler = new FakeScheduler()
        scheduler.onRegister = () => refusing("unreachable")
        const scope = yield* Scope.make()
        yield* Scope.extend(startSsp(pass, scheduler, fast), scope)
        yield* pass(2000)
        yield* Scope.close(scope, Exit.void)
        expect(scheduler.count("deregister")).toBe(0)
      })
    )
  )
})

describe("D21 the lease", () => {
  it.scopedLive(
    "is held while heartbeats are answered, ends by this SSP's own clock when they are not, and comes back",
    () =>
      inTime((pass) =>
        Effect.gen(function* () {
          const scheduler = new FakeScheduler()
          const { lease, phase } = yield* startSsp(pass, scheduler, fast)
          yield* pass(1100)
          expect(lease.held()).toBe(true)
          scheduler.onHeartbeat = () => refusing("unreachable")
          yield* pass(2800)
          expect(lease.held()).toBe(true)
          yield* pass(300)
          expect([lease.held(), phase()]).toEqual([false, "ready"])
          scheduler.onHeartbeat = () => undefined
          yield* pass(1000)
          expect(lease.held()).toBe(true)
        })
      )
  )
  it.scopedLive("lasts as long as the scheduler says, counted from when the heartbeat was sent", () =>
    inTime((pass) =>
      Effect.gen(function* () {
        const scheduler = new FakeScheduler()
        scheduler.onRegister = () => Effect.succeed({ snapshot_seq: 10, registration: 1, heartbeat_timeout_ms: 9000 })
        const { lease } = yield* startSsp(pass, scheduler, { HEARTBEAT_INTERVAL_MS: "4000" })
        scheduler.onHeartbeat = () => Effect.delay(Effect.void, "3000 millis")
        yield* pass(7100)
        scheduler.onHeartbeat = () => Effect.never
        yield* pass(5800)
        expect(lease.held()).toBe(true)
        yield* pass(200)
        expect(lease.held()).toBe(false)
      })
    )
  )
  it.scopedLive("is given up at once when the data is lost, and not before it is there", () =>
    inTime((pass) =>
      Effect.gen(function* () {
        const scheduler = new FakeScheduler()
        let hangs = true
        scheduler.onQuery = () => (hangs ? Effect.never : undefined)
        const { lease, lifecycle, phase } = yield* startSsp(pass, scheduler, fast)
        yield* pass(3000)
        expect([scheduler.count("heartbeat") > 2, lease.held()]).toEqual([true, false])
        hangs = false
        scheduler.onHeartbeat = () => refusing("unknown")
        yield* pass(1000)
        scheduler.onHeartbeat = () => undefined
        yield* pass(3000)
        expect([phase(), lease.held()]).toEqual(["ready", true])
        yield* lifecycle.lost("on purpose")
        expect([phase(), lease.held()]).toEqual(["bootstrapping", false])
      })
    )
  )
})

describe("what the scheduler's calls name", () => {
  it.scopedLive(
    "POST /ingest 503 where its header names another registration than the one this SSP is in; without the header it is taken",
    () =>
      inTime((pass) =>
        Effect.gen(function* () {
          const scheduler = new FakeScheduler()
          const { phase, post } = yield* startSsp(pass, scheduler, fast)
          const named = (registration: string | undefined, token?: string) => post("/ingest", {}, registration, token)
          expect(yield* named("0", "wrong")).toMatchObject({ status: 401 })
          expect(yield* named("0")).toMatchObject({ status: 503, body: expect.stringContaining("SSP_NOT_READY") })
          // Taken, and found to be no change.
          for (const taken of ["1", undefined, "no number"])
            expect([(yield* named(taken)).status, phase()]).toEqual([400, "ready"])
          expect(yield* named("7")).toMatchObject({ status: 503 })
          expect(phase()).toBe("bootstrapping")
          expect(yield* named("1")).toMatchObject({ status: 503 })
        })
      )
  )
  it.scopedLive(
    "D5 an event of another log is 409 STALE_EPOCH, and this SSP registers again; an older epoch is refused, and it stays",
    () =>
      inTime((pass) =>
        Effect.gen(function* () {
          const scheduler = new FakeScheduler()
          scheduler.epoch = 4
          const { phase, post: ask } = yield* startSsp(pass, scheduler, fast)
          const post = (extra: { readonly [key: string]: unknown }) =>
            ask("/ingest", { table: "t", op: "CREATE", id: "t:1", record: {}, seq: 11, ...extra })
          expect(yield* post({ log_id: "log", epoch: 3 })).toMatchObject({
            status: 409,
            body: expect.stringContaining("STALE_EPOCH")
          })
          yield* pass(0)
          expect(phase()).toBe("ready")
          expect(yield* post({ log_id: "another", epoch: 5 })).toMatchObject({
            status: 409,
            body: expect.stringContaining("STALE_EPOCH")
          })
          yield* pass(0)
          expect(phase()).toBe("bootstrapping")
          scheduler.logId = "another"
          yield* pass(1000)
          expect([phase(), scheduler.count("register")]).toEqual(["ready", 2])
          expect(yield* post({ log_id: "another", epoch: 5 })).toMatchObject({ status: 200 })
        })
      )
  )
  it.scopedLive(
    "an older registration is not meant; a newer one means that this SSP's data may be too old, so it starts over",
    () =>
      inTime((pass) =>
        Effect.gen(function* () {
          const scheduler = new FakeScheduler()
          const { lifecycle, phase } = yield* startSsp(pass, scheduler, fast)
          expect([lifecycle.isMeant(undefined), lifecycle.isMeant(1), lifecycle.isMeant(0)]).toEqual([
            true,
            true,
            false
          ])
          expect(phase()).toBe("ready")
          scheduler.registrations = 4
          expect(lifecycle.isMeant(4)).toBe(false)
          yield* pass(1000)
          expect([phase(), scheduler.count("register"), lifecycle.isMeant(5)]).toEqual(["ready", 2, true])
        })
      )
  )
})
