/**
 * A retry policy that a deployment brings: the runner asks it and nothing else, and the one that `docs/compose.md`
 * shows does what it says.
 *
 * In virtual time, over a whole runner: a policy is only as good as what is made of its answers.
 */
import { it } from "@effect/vitest"
import { Effect, Layer, TestClock } from "effect"
import { expect } from "vitest"
import { RetryPolicy } from "../../../src/ports/RetryPolicy.ts"
import { answer, pending, start } from "./kit.ts"

/** As in `docs/compose.md`; loaded by name, because it names the package as somebody else's program does. */
const example = "../../package/example/retries.ts"
const shown = Effect.promise(
  async () =>
    ((await import(/* @vite-ignore */ example)) as { readonly patientWith404: Layer.Layer<never> }).patientWith404
)

/** Lets time pass in small steps, so that what follows from one begins before the next. */
const pass = (seconds: number) => Effect.repeatN(TestClock.adjust("1 second"), seconds - 1)

const run = Effect.gen(function* () {
  const kit = yield* start(
    [pending("late"), pending("never"), pending("busy", { max_retries: 1 })],
    ({ headers }, n) => {
      const key = headers["idempotency-key"]
      return key === "job:late" ? answer(n < 4 ? 404 : 200) : answer(key === "job:busy" ? 503 : 404)
    }
  )
  yield* pass(120)
  const of = (key: string) =>
    Effect.map(kit.job(key), ({ errors, status }) => ({
      status,
      errors: errors.length,
      at: kit.keyOf(key).map(({ at }) => Math.round(at / 1000))
    }))
  return { late: yield* of("late"), never: yield* of("never"), busy: yield* of("busy") }
}).pipe(Effect.scoped)

it.effect(
  "D38 a policy given as a service decides: the one in docs/compose.md asks again where the default gives up, and leaves the rest to it",
  () =>
    Effect.gen(function* () {
      const { busy, late, never } = yield* Effect.provide(run, yield* shown)
      expect([late.status, late.errors, late.at]).toEqual(["success", 3, [0, 5, 10, 15]])
      expect([never.status, never.errors, never.at.length, never.at.at(-1)]).toEqual(["failed", 13, 13, 60])
      expect([busy.status, busy.errors]).toEqual(["failed", 2])
    })
)

it.effect("D38 without one the default decides: a 404 is final, a 503 is tried as often as the job says", () =>
  Effect.gen(function* () {
    const { busy, late, never } = yield* run
    expect([late.status, late.errors, never.status, never.errors, busy.status, busy.errors]).toEqual([
      "failed",
      1,
      "failed",
      1,
      "failed",
      2
    ])
  })
)

it("a policy is asked with the whole job, the settings, time and chance", async () => {
  const asked: Array<unknown> = []
  const asking = Layer.effect(
    RetryPolicy,
    Effect.map(
      RetryPolicy,
      ({ decide }) =>
        ({
          decide: (job, outcome, settings, draw) => {
            asked.push([job.id, job.path, outcome.kind, settings, draw.jitter >= -1 && draw.jitter <= 1])
            return decide(job, outcome, settings, draw)
          }
        }) satisfies typeof RetryPolicy.Service
    )
  )
  await Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const kit = yield* start([pending("a")], () => answer(200))
        while ((yield* kit.job("a")).status !== "success") yield* Effect.yieldNow()
      })
    ).pipe(Effect.provide(asking))
  )
  expect(asked).toEqual([["job:a", "/send", "success", { baseMs: 1000, maxRetries: 100 }, true]])
})
