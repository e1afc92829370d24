/**
 * Views whose rows double their work at each step: a fill pauses, a change ends, and what it had no steps for comes with
 * later ones (D48).
 *
 * What is checked is counted: the steps that are taken between two pauses, and in one change.
 */
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import { Engine } from "../../src/core/ivm/engine.ts"
import type { View } from "../../src/core/ivm/view/view.ts"
import type { Slices } from "../../src/core/surql/evaluate/scope.ts"
import { parseSelect } from "../../src/core/surql/syntax/parse.ts"
import { toJson } from "../../src/core/surql/values/json.ts"
import * as RecordIds from "../../src/core/surql/values/recordId.ts"
import { field, type Obj, type RecordId } from "../../src/core/surql/values/value.ts"
import { doubling, layered } from "./attacks/doubling.ts"

const rowSteps = 20_000,
  changeSteps = 60_000
/** What a fill may take besides before it pauses, and rows that are light. */
const slice = 20_000,
  light = 1000

const layers = 24

const loaded = (steps: { readonly rowSteps: number; readonly changeSteps: number }): Engine => {
  const engine = new Engine({ ...steps, queryBytes: 8_000_000 })
  for (const doc of layered(layers)) engine.load(field(doc, "id") as RecordId, 1, doc)
  return engine
}

/** Runs to the end; the most steps between two pauses. */
const stepped = <A>(engine: Engine, slices: Slices<A>): { readonly value: A; readonly most: number } => {
  for (let most = 0, spent = engine.spent; ; spent = engine.spent) {
    const step = slices.next()
    most = Math.max(most, engine.spent - spent)
    if (step.done === true) return { value: step.value, most }
  }
}

const viewOf = (engine: Engine, query: string) => {
  const select = Either.getOrThrowWith(parseSelect(query), (error) => new Error(error.message))
  const { most, value } = stepped(engine, engine.acquireSliced(select, {}))
  return { most, view: Either.getOrThrowWith(value, ({ reason }) => new Error(reason)) }
}

const put = (engine: Engine, key: number, record: Obj): number => {
  const before = engine.spent
  const writes = engine.plan([{ op: "UPDATE", id: RecordIds.make("p", key), doc: record } as never])
  engine.applyAll(writes.filter((write) => write !== undefined))
  return engine.spent - before
}

const shown = (view: View) => ({
  rows: view.rows().map(({ key, value }) => [key, toJson(value())]),
  errors: view.errors()
})

describe("views that double", () => {
  it.each(doubling)("D48 %s: a fill pauses, and a change of a record that all rows read ends", (_, query) => {
    const engine = loaded({ rowSteps, changeSteps })
    const { most, view } = viewOf(engine, query)
    // A row of a subquery is filled in the middle of another row.
    expect(most).toBeLessThanOrEqual(rowSteps + slice + (query.includes("(SELECT") ? changeSteps : 0))
    const taken = put(engine, layers - 1, { n: 1000, l: [], t: "p:1" })
    expect(taken).toBeLessThanOrEqual(changeSteps + rowSteps + light * 2 * layers)
    for (const { failure } of view.errors()) expect(failure.reason).toMatch(/SVC_QUERY_(ROW_STEPS|CHANGE_STEPS|BYTES)/)
  })

  it("D48 rows that one change had no steps for are evaluated by later changes, of any table", () => {
    const query = "SELECT id, @.{..9}->k->p AS x FROM p"
    const [bounded, free] = [
      loaded({ rowSteps: 1_000_000, changeSteps: 200_000 }),
      loaded({ rowSteps: 1_000_000, changeSteps: 1e9 })
    ]
    const [few, all] = [viewOf(bounded, query).view, viewOf(free, query).view]
    expect(shown(few)).toEqual(shown(all))
    for (const engine of [bounded, free]) put(engine, layers - 1, { n: 1000, l: [], t: "p:1" })
    const edges = (engine: Engine) =>
      engine.applyAll(
        engine
          .plan(
            Array.from(
              { length: 2 },
              (_, k) => ({ op: "DELETE", id: RecordIds.make("k", 2 * (layers - 1) + k) }) as never
            )
          )
          .filter((write) => write !== undefined)
      )
    edges(bounded)
    edges(free)
    expect(few.errors()).not.toEqual([])
    expect(few.errors()[0]!.failure.reason).toMatch(
      /The rows of one change need more than 200000 steps; raise SVC_QUERY_CHANGE/
    )
    for (let i = 0; i < 20 && few.errors().length > 0; i++)
      for (const engine of [bounded, free])
        engine.applyAll(
          engine
            .plan([{ op: "CREATE", id: RecordIds.make("other", i), doc: {} } as never])
            .filter((write) => write !== undefined)
        )
    expect(shown(few)).toEqual(shown(all))
    expect(few.errors()).toEqual([])
    expect(few.hash()).toBe(all.hash())
  })
})
