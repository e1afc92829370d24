/**
 * Audit lines as they are written (D53): the count of those left out comes at the end of the minute, and at the end of
 * the process.
 *
 * On a clock of the test's own, so that a minute takes no time and a wait that does not end is seen.
 */
import { expect, it } from "@effect/vitest"
import { Effect, Exit, Layer, Logger, Scope, TestClock } from "effect"
import { Audit } from "../../src/ports/Audit.ts"

const guess = { object: "POST /ingest", secret: "unknown", address: "10.0.0.1", outcome: "UNAUTHORIZED" }

/** `work` with an audit of two lines a minute; answers what the lines say of outcome and count. */
const lines = (work: (audit: Audit["Type"]) => Effect.Effect<void>) =>
  Effect.gen(function* () {
    const seen: Array<readonly [unknown, unknown]> = []
    const logger = Logger.replace(
      Logger.defaultLogger,
      Logger.make(({ annotations }) => {
        const of = Object.fromEntries(annotations)
        seen.push([of["outcome"], of["left_out"]])
      })
    )
    const scope = yield* Scope.make()
    yield* Effect.gen(function* () {
      const { unsafeMap } = yield* Layer.buildWithScope(Audit.layer(2), scope)
      yield* work(unsafeMap.get(Audit.key) as Audit["Type"])
      yield* Scope.close(scope, Exit.void)
    }).pipe(Effect.provide(logger))
    return seen
  })

it.effect("D53 beyond the limit they are counted, and each minute ends with the count", () =>
  Effect.gen(function* () {
    const seen = yield* lines(({ turnedAway }) =>
      Effect.gen(function* () {
        yield* Effect.replicateEffect(turnedAway(guess), 5)
        yield* TestClock.adjust("60 seconds")
        yield* turnedAway(guess)
        yield* TestClock.adjust("60 seconds")
      })
    )
    expect(seen).toEqual([
      ["UNAUTHORIZED", undefined],
      ["UNAUTHORIZED", undefined],
      ["left out", 3],
      ["UNAUTHORIZED", undefined]
    ])
  })
)

it.effect("D53 a process that stops says the count, and does not wait for the minute", () =>
  Effect.gen(function* () {
    const seen = yield* lines(({ turnedAway }) =>
      Effect.uninterruptible(Effect.replicateEffect(turnedAway(guess), 3)).pipe(Effect.asVoid)
    )
    expect(seen.at(-1)).toEqual(["left out", 1])
  })
)
