/**
 * What a store remembers of its lease on a database (D44): the position that was written under it is found again, also
 * by a process whose predecessor was killed before the database's answer came.
 */
import { expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { ReaderLease } from "../../../src/node/database/readerLease.ts"
import type { UpstreamShape } from "../../../src/ports/Upstream.ts"

/** A database's lease row, and the text that a store keeps. */
const world = () => {
  const row: { token: string | undefined; position: number | undefined } = { token: undefined, position: undefined }
  let text: string | undefined
  let answers = true
  const upstream: Pick<UpstreamShape, "lease" | "remembered"> = {
    lease: {
      acquire: (token, { was }) =>
        Effect.suspend(() => {
          const position = row.token !== undefined && was.includes(row.token) ? row.position : undefined
          Object.assign(row, { token, position })
          return answers ? Effect.succeed({ held: true as const, position }) : Effect.never
        }),
      renew: (token, _ttlMs, position) =>
        Effect.sync(() => {
          row.position = position ?? row.position
          return row.token === token
        }),
      release: () => Effect.void
    },
    remembered: {
      load: Effect.sync(() => text),
      save: (saved) => Effect.sync(() => void (text = saved)),
      setAside: Effect.succeed("")
    }
  }
  const start = () => new ReaderLease(upstream, { name: "me", ttlMs: 15_000, meanwhile: "is not ready" })
  /** A start that ends after the database has given the lease, before it has said so. */
  const killed = Effect.gen(function* () {
    answers = false
    const starting = yield* Effect.fork(start().hold)
    yield* Effect.yieldNow()
    yield* Effect.yieldNow()
    yield* Fiber.interrupt(starting)
    answers = true
  })
  return { row, start, killed, tokens: () => text?.split("\n")[0]?.split(" ") }
}

it.effect("D44 a process killed before the answer about its lease came has not lost the position", () =>
  Effect.gen(function* () {
    const { killed, row, start } = world()
    const first = start()
    expect(yield* first.hold).toBe(undefined)
    yield* first.complete(7)
    const { token } = row
    yield* killed
    expect(row.token).not.toBe(token)
    yield* killed
    expect(yield* start().hold).toBe(7)
  })
)

it.effect("D44 another service that came between has taken other rows: the position is not known", () =>
  Effect.gen(function* () {
    const { killed, row, start } = world()
    const first = start()
    yield* first.hold
    yield* first.complete(7)
    yield* killed
    row.token = "another"
    expect(yield* start().hold).toBe(undefined)
  })
)

it.effect(
  "D44 starts that are killed one after the other leave a bounded number of tokens, one that is not leaves its own",
  () =>
    Effect.gen(function* () {
      const { killed, start, tokens } = world()
      for (let n = 0; n < 40; n++) yield* killed
      expect(tokens()).toHaveLength(16)
      yield* start().hold
      expect(tokens()).toHaveLength(1)
    })
)

it.effect("D76 a store knows the tables that it has noted, by their numbers, after a kill too, and no others", () =>
  Effect.gen(function* () {
    const { killed, start } = world()
    const first = start()
    yield* first.note([{ name: "early", id: 1 }])
    yield* first.hold
    expect(first.knows([{ name: "early", id: 1 }])).toBe(false)
    yield* first.note([{ name: "item", id: 3 }, { name: "plain" }])
    yield* killed
    const next = start()
    yield* next.hold
    expect(
      [[{ name: "item", id: 3 }], [{ name: "plain" }], [{ name: "item", id: 4 }], [{ name: "made", id: 3 }], []].map(
        next.knows
      )
    ).toEqual([true, true, false, false, true])
  })
)
