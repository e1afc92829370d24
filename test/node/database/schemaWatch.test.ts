/**
 * Which tables get an event from a service that follows what its database defines (D57): those that no service before
 * it has seen.
 */
import { expect, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Logger, TestClock } from "effect"
import { SchemaWatch } from "../../../src/node/database/schemaWatch.ts"
import { UpstreamError } from "../../../src/ports/Upstream.ts"

const away = new UpstreamError({ reason: "unreachable", message: "no answer" })
/** `item`, or `item#2` for another table of that name; `item!` has its event. */
const tableOf = (text: string) => ({
  name: text.replace(/#\d+|!/g, ""),
  id: Number(/#(\d+)/.exec(text)?.[1] ?? 1),
  types: {},
  derived: false,
  view: undefined,
  announced: text.includes("!"),
  told: false,
  shape: ""
})

/** A database with these tables, and a service that looks at it each second; `row` is what services have seen. */
const world = (names: Array<string>, row: { tables: ReadonlyArray<string> | undefined }) => {
  const announced: Array<string> = []
  const said: Array<string> = []
  const compared: Array<string> = []
  const refreshed: Array<string> = []
  const faults = { see: false, seen: false }
  let last: { readonly mark: string; readonly schema: object } | undefined
  let mayDefine = true
  let noted = ""
  const run = (known: ReadonlyArray<string>) =>
    new SchemaWatch(
      {
        schema: () =>
          Effect.sync(() => {
            const mark = names.join()
            const schema = {
              mark,
              tables: names.map(tableOf),
              installed: true,
              definitions: { functions: new Map(), params: new Map() }
            }
            if (last?.mark !== mark) last = { mark, schema }
            return last.schema as typeof schema
          }),
        changes: {
          installed: Effect.succeed(true),
          take: () => Effect.succeed(undefined),
          listen: () => Effect.never,
          answer: () => Effect.void,
          whole: () => Effect.succeed(undefined),
          announce: (tables) => Effect.sync(() => void announced.push(...tables)),
          seen: Effect.suspend(() => (faults.seen ? Effect.fail(away) : Effect.succeed(row.tables))),
          see: (tables) => (faults.see ? Effect.fail(away) : Effect.sync(() => void (row.tables = tables)))
        }
      },
      {
        known: Effect.succeed(known.map(tableOf)),
        declare: () => Effect.void,
        compare: (tables) => Effect.sync(() => void compared.push([...tables].toSorted().join())),
        refresh: (tables) => Effect.sync(() => void refreshed.push([...tables].toSorted().join())),
        note: (tables) => Effect.sync(() => void (noted = tables.map(({ id, name }) => `${name}#${id}`).join())),
        open: () => true,
        mayDefine: () => mayDefine
      },
      { intervalMs: 1_000, defineEvents: true }
    ).run.pipe(
      Effect.provide(
        Logger.replace(
          Logger.defaultLogger,
          Logger.make(({ message }) => void said.push(String(message)))
        )
      )
    )
  return {
    announced,
    compared,
    faults,
    names,
    noted: () => noted,
    refreshed,
    row,
    run,
    said,
    hold: (yes: boolean) => void (mayDefine = yes)
  }
}

const second = TestClock.adjust("1 second")

it.effect(
  "D57 tables that were made while no service followed the database get their event, those that were left out do not",
  () =>
    Effect.gen(function* () {
      const row = { tables: undefined as ReadonlyArray<string> | undefined }
      const first = world(["item", "left"], row)
      const watching = yield* Effect.fork(first.run(["item", "left"]))
      yield* second
      expect([first.announced, row.tables]).toEqual([[], ["item", "left"]])
      first.names.push("made")
      yield* second
      expect([first.announced, row.tables]).toEqual([["made"], ["item", "left", "made"]])
      yield* Fiber.interrupt(watching)
      const next = world(["item", "left", "made", "meanwhile"], row)
      yield* Effect.fork(next.run(next.names))
      yield* second
      expect([next.announced, row.tables]).toEqual([["meanwhile"], next.names])
    })
)

it.effect("D57 a database that does not say what was seen is asked again; one that cannot note it is warned of", () =>
  Effect.gen(function* () {
    const row = { tables: ["item"] as ReadonlyArray<string> | undefined }
    const one = world(["item", "made"], row)
    one.faults.seen = true
    one.faults.see = true
    yield* Effect.fork(one.run(one.names))
    yield* second
    expect(one.announced).toEqual([])
    one.faults.seen = false
    yield* second
    expect([one.announced, row.tables]).toEqual([["made"], ["item"]])
    expect(one.said.filter((line) => line.includes("could not be noted in _svc_reader (no answer)")).length).toBe(1)
  })
)

it.effect(
  "D57 a service that stands by defines nothing, and looks when it takes over, though nothing has changed since",
  () =>
    Effect.gen(function* () {
      const row = { tables: ["item"] as ReadonlyArray<string> | undefined }
      const one = world(["item", "made"], row)
      one.hold(false)
      yield* Effect.fork(one.run(one.names))
      yield* second
      expect([one.announced, row.tables]).toEqual([[], ["item"]])
      one.hold(true)
      yield* second
      expect([one.announced, row.tables]).toEqual([["made"], ["item", "made"]])
    })
)

const passes = (seconds: number) => TestClock.adjust(Duration.seconds(seconds))

it.effect("D76 a new table is read once it has its event, and compared in pauses that double, for a while", () =>
  Effect.gen(function* () {
    const one = world(["item!"], { tables: ["item"] })
    yield* Effect.fork(one.run(["item!"]))
    yield* second
    expect([one.refreshed, one.compared]).toEqual([[], []])
    one.names.push("made")
    yield* second
    expect([one.announced, one.refreshed, one.compared]).toEqual([["made"], ["made"], []])
    // Whenever a transaction that began before the event commits, a compare comes within twice its age.
    for (let age = 1; age <= 256; age *= 2) {
      const before = one.compared.length
      yield* passes(age - 1)
      expect(one.compared.length - before).toBe(0)
      yield* second
      expect(one.compared.slice(before)).toEqual(["made"])
    }
    yield* passes(300)
    expect([one.compared.length, one.refreshed]).toEqual([9, ["made"]])
  })
)

it.effect("D76 a table that an operator gives its event is compared in the same pauses", () =>
  Effect.gen(function* () {
    const one = world(["item", "other"], { tables: ["item", "other"] })
    yield* Effect.fork(one.run(one.names))
    yield* second
    one.names[0] = "item!"
    yield* passes(8)
    expect([one.announced, one.compared]).toEqual([[], ["item", "item", "item"]])
  })
)

it.effect(
  "D76 a table that has come in the place of another gets its event and is read, though its name was seen",
  () =>
    Effect.gen(function* () {
      const one = world(["item!", "left"], { tables: ["item", "left"] })
      yield* Effect.fork(one.run(one.names))
      yield* second
      one.names[0] = "item#2"
      yield* second
      expect([one.announced, one.refreshed]).toEqual([["item"], ["item"]])
      one.names[0] = "item#2!"
      yield* passes(5)
      expect([one.announced, one.refreshed]).toEqual([["item"], ["item"]])
    })
)

it.effect("D76 where no change table is read, or another service reads it, new tables are compared", () =>
  Effect.gen(function* () {
    const one = world(["item"], { tables: ["item"] })
    one.hold(false)
    yield* Effect.fork(one.run(["item"]))
    one.names.push("made")
    yield* second
    yield* second
    expect([one.announced, one.refreshed, one.compared]).toEqual([[], [], ["made"]])
  })
)
