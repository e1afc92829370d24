/**
 * Changes that are posted to an SSP which follows some tables (D61): those of a table that it does not hold become the
 * scheduler's, whole bodies, and nothing of them is applied here.
 */
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { create } from "../../kit/data/registration.ts"
import { FakeScheduler } from "../../kit/processes/fakeScheduler.ts"
import type { Answer } from "../../src/ports/Front.ts"
import { SchedulerError } from "../../src/ports/SchedulerClient.ts"
import { inTime, startSsp } from "./clusterKit.ts"
import { registration } from "./viewsKit.ts"

const following = (pass: (ms: number) => Effect.Effect<void>, refusal?: SchedulerError) =>
  Effect.gen(function* () {
    const scheduler = new FakeScheduler()
    scheduler.rows = [{ id: "t:1" }]
    scheduler.onRegister = () =>
      Effect.succeed({ snapshot_seq: 10, registration: 1, log_id: "log", epoch: 1, feed: true })
    const handed: Array<string> = []
    const pieces = ['{"through":10,"log_id":"log","epoch":1}\n']
    scheduler.feed = {
      feed: () =>
        Effect.succeed(
          Effect.suspend(() => {
            const piece = pieces.pop()
            return piece === undefined ? Effect.never : Effect.succeed(piece)
          })
        ),
      applied: () => Effect.void,
      ingest: (body) => (refusal === undefined ? Effect.sync(() => void handed.push(body)) : Effect.fail(refusal))
    }
    const { ingest, views } = yield* startSsp(pass, scheduler, { SVC_CLUSTER_FEED: "pull" })
    yield* Effect.fork(views.register(registration("all", "SELECT id FROM t")))
    yield* pass(1000)
    const post = (body: unknown) =>
      Effect.async<Answer>((resume) => {
        const admitted = ingest.admit("Bearer s3cret", undefined)
        if (typeof admitted !== "function") return resume(Effect.succeed(admitted))
        admitted(JSON.stringify(body), (answer) => resume(Effect.succeed(answer)))
      })
    return { handed, post, holds: (id: string) => views.records.tableNames().includes(id) }
  })

it.scopedLive("a body that names such a table is handed on whole, and answered 200", () =>
  inTime((pass) =>
    Effect.gen(function* () {
      const { handed, holds, post } = yield* following(pass)
      const bodies = [create("other:1", { n: 1 }), [create("t:2"), create("other:2")], '{"not a": "change"}']
      const answers = []
      for (const body of bodies) answers.push(yield* post(body))
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 400])
      expect(answers[0]?.body).toBe('{"views_affected":0,"edges_updated":0}')
      expect(handed.map((text) => JSON.parse(text) as unknown)).toEqual(bodies.slice(0, 2))
      expect(holds("other")).toBe(false)
      expect((yield* post(create("t:3"))).body).toContain('"views_affected":1')
      expect((yield* post({ ...create("other:1"), seq: 11 })).status).toBe(409)
      expect(handed).toHaveLength(2)
    })
  )
)

it.scopedLive("what the scheduler does not take is refused by its reason, and nothing is lost behind a 200", () =>
  inTime((pass) =>
    Effect.gen(function* () {
      for (const [reason, status] of [
        ["unreachable", 503],
        ["notLeader", 503],
        ["cloning", 503],
        ["refused", 400]
      ] as const) {
        const { post } = yield* following(pass, new SchedulerError({ reason, message: `${reason} on purpose` }))
        const answer = yield* post(create("other:1"))
        expect([answer.status, answer.body]).toEqual([status, expect.stringContaining(`${reason} on purpose`)])
      }
    })
  )
)
