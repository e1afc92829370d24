/**
 * Changes that are posted to an SSP of a cluster and become the scheduler's, whole bodies, so that nothing of them is
 * applied here: those of a table that an SSP which follows some tables does not hold (D61), and those of jobs (D35).
 */
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { create } from "../../kit/data/registration.ts"
import { FakeScheduler } from "../../kit/processes/fakeScheduler.ts"
import { SchedulerError } from "../../src/ports/SchedulerClient.ts"
import { inTime, startSsp } from "./clusterKit.ts"
import { registration } from "./viewsKit.ts"

const jobs = { job_tables: { mail_job: { name: "mail", base_url: "http://backend" } } }

/** As schedulers answer a registration. */
const ours = { snapshot_seq: 10, registration: 1, log_id: "log", epoch: 1 }
const answers = { pull: { ...ours, feed: true }, push: ours, plain: { snapshot_seq: 10 } }

const following = (
  pass: (ms: number) => Effect.Effect<void>,
  refusal?: SchedulerError,
  how: keyof typeof answers = "pull"
) =>
  Effect.gen(function* () {
    const scheduler = new FakeScheduler()
    scheduler.rows = [{ id: "t:1" }]
    scheduler.onRegister = () => Effect.succeed(answers[how])
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
    const { post: ask, views } = yield* startSsp(
      pass,
      scheduler,
      { SVC_CLUSTER_FEED: how === "pull" ? "pull" : "push" },
      jobs
    )
    yield* Effect.fork(views.register(registration("all", "SELECT id FROM t")))
    yield* pass(1000)
    const post = (body: unknown) => ask("/ingest", body)
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

it.scopedLive.each(["pull", "push"] as const)(
  "D35 jobs that a client posts to an SSP are the scheduler's, whatever way the SSP gets its changes: %s",
  (how) =>
    inTime((pass) =>
      Effect.gen(function* () {
        const { handed, holds, post } = yield* following(pass, undefined, how)
        const bodies = [create("mail_job:1", { status: "pending" }), [create("t:2"), create("mail_job:2")]]
        for (const body of bodies) expect((yield* post(body)).status).toBe(200)
        expect(handed.map((text) => JSON.parse(text) as unknown)).toEqual(bodies)
        expect(holds("mail_job")).toBe(false)
        const refused = yield* following(pass, new SchedulerError({ reason: "refused", message: "not today" }), how)
        const answer = yield* refused.post(bodies[0])
        expect([answer.status, answer.body]).toEqual([400, expect.stringContaining("holds jobs, which all SSPs")])
      })
    )
)

it.scopedLive("D77 jobs that a scheduler sends which knows the specification alone are taken here", () =>
  inTime((pass) =>
    Effect.gen(function* () {
      const { handed, holds, post } = yield* following(pass, undefined, "plain")
      expect((yield* post(create("mail_job:1", { status: "pending" }))).status).toBe(200)
      expect([handed, holds("mail_job")]).toEqual([[], true])
    })
  )
)
