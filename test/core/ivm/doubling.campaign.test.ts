/**
 * Short queries whose work doubles at each step, drawn at random over small graphs: after each change a view equals a
 * fresh run, at the end what the real database answers, or it leaves rows out and says for want of which budget (D48).
 *
 * Why apart from the laws: these queries take most of a row's steps, so a history of hundreds of changes would take
 * minutes with a few of them.
 */
import { expect } from "vitest"
import { type Rng, runs, seeded } from "../../../kit/data/random.ts"
import { start } from "../../../kit/processes/surreal/engines.ts"
import type { View } from "../../../src/core/ivm/view/view.ts"
import { render } from "../../../src/core/surql/values/text.ts"
import { type Asked, compareWithDatabase } from "./database.ts"
import { change, Desk } from "./desk.ts"
import type { Model } from "./model.ts"
import { type Case, newTally, runCase } from "./runCase.ts"

/**
 * Edges and lists lead to later records, so that a way without a bound ends. `hasGaps`: some of these are not there.
 */
const graph = (random: Rng, hasGaps: boolean): ReadonlyArray<unknown> => {
  const size = 3 + random.below(6)
  const later = (i: number): string => `person:${i + 1 + random.below(size - i - (hasGaps ? 0 : 1))}`
  return Array.from({ length: size }, (_, i) => [
    {
      table: "person",
      op: "CREATE",
      id: `person:${i}`,
      record: { n: i, links: Array.from({ length: i < size - 1 ? random.below(4) : 0 }, () => later(i)) },
      types: { links: "array<record>" }
    },
    ...Array.from({ length: i < size - 1 ? random.below(3) : 0 }, (_edge, k) => ({
      table: "knows",
      op: "CREATE",
      id: `knows:${10 * i + k}`,
      record: { in: `person:${i}`, out: later(i) },
      types: { in: "record", out: "record" }
    }))
  ]).flat()
}

/**
 * A ladder: each record leads to the next one twice, so that ways double with each of its rungs. `rungs` above twenty
 * are more ways than one row has steps for.
 */
const ladder = (rungs: number): ReadonlyArray<unknown> =>
  Array.from({ length: rungs }, (_, i) => {
    const next = i + 1 < rungs ? [`person:${i + 1}`, `person:${i + 1}`] : []
    return [
      {
        table: "person",
        op: "CREATE",
        id: `person:${i}`,
        record: { n: i, links: next },
        types: { links: "array<record>" }
      },
      ...next.map((out, k) => ({
        table: "knows",
        op: "CREATE",
        id: `knows:${10 * i + k}`,
        record: { in: `person:${i}`, out },
        types: { in: "record", out: "record" }
      }))
    ]
  }).flat()

const query = (random: Rng): string => {
  const step = (): string => random.pick([".links", "->knows->person", "<-knows<-person"])
  const depth = random.pick(["..", "..", "..4", "2", "1..3", "..12"])
  const how = random.pick(["", "", "+path", "+path+inclusive", "+collect", "+collect+inclusive"])
  const trees = random.pick(["..", "..4", "..12", "2", "2..4", "3", "2.."])
  const turn = (): string => random.pick(["", "", ".?", "[0]", "[$]", "[WHERE n > 1]", ".{ id, links }.links", "..."])
  const way = random.pick<() => string>([
    () => `@.{${depth}${how}}${step()}`,
    () => `@${Array.from({ length: 2 + random.below(6) }, step).join("")}`,
    () => `@${Array.from({ length: 1 + random.below(5) }, () => step() + turn()).join("")}`,
    () => `@.{${trees}}.{id, links: links.@}`,
    () => `@.{${trees}}.{id, k: ->knows->person.@}`,
    () => `@.{${trees}}.{id, first: links[0].{ id, k: ->knows->person.@ }}`,
    () => `@.{${trees}}.{id, first: links[0].@}`
  ])()
  return random.pick([
    `SELECT id, ${way} AS x FROM person`,
    `SELECT id FROM person WHERE ${way}`,
    `SELECT id, ${way} AS x FROM person ORDER BY id DESC LIMIT 3`,
    `SELECT n, (SELECT VALUE ${way} FROM person) AS x FROM person`
  ])
}

seeded(
  "L1 D48 drawn queries that double answer as a fresh run and the database do, or name the budget",
  "test/core/ivm/doubling.campaign.test.ts",
  async (random) => {
    const engines = await start()
    const tally = newTally()
    let compared = 0,
      refused = 0
    for (let round = 0; round < runs(40); round++) {
      const hasGaps = random.below(3) === 0
      const queries = Array.from({ length: 8 }, () => query(random))
      const steps: Case = [
        { batch: graph(random, hasGaps) },
        ...queries.map((text, i) => ({ watch: `v${i}`, query: text })),
        { write: graph(random, hasGaps) },
        { write: [{ table: "knows", op: "DELETE", id: `knows:${10 * random.below(4)}`, record: {} }] }
      ]
      let end: { readonly model: Model; readonly views: ReadonlyArray<Asked> } | undefined
      const after = (model: Model, held: ReadonlyMap<string, { readonly instance: Asked["view"] }>): void => {
        end = {
          model,
          views: queries.map((text, i) => ({ query: text, params: {}, view: held.get(`v${i}`)!.instance }))
        }
      }
      expect(runCase(steps, tally, { after }), queries.join("\n")).toBeUndefined()
      const { model, views } = end!
      for (const { query: text, view } of views)
        for (const { failure } of view.errors()) {
          refused++
          expect(failure.reason, text).toMatch(/SVC_QUERY_(ROW_STEPS|CHANGE_STEPS|BYTES)/)
        }
      const judged = await compareWithDatabase(engines, model, views)
      expect([...judged.wrong, ...judged.disputed].join("\n")).toBe("")
      compared += judged.compared
    }
    await engines.close()
    expect(compared + refused).toBeGreaterThan(runs(40) * 2)
  },
  600_000
)

/** Rows of a view by key, and why others are left out. */
const seenIn = (view: View) => ({
  shown: new Map(Array.from(view.each(), ({ key, value }) => [key, render(value())])),
  refused: new Map(Array.from(view.errors(), ({ failure, id }) => [id, failure.reason]))
})

seeded(
  "D48 drawn queries over ladders show a row as a fresh view does, or name the budget that it lacks",
  "test/core/ivm/doubling.campaign.test.ts",
  (random) => {
    let refused = 0
    for (let round = 0; round < runs(8); round++) {
      const records = [...ladder(22 + random.below(6)), change("person:99", { n: 99, links: ["person:3"] })]
      const desk = new Desk().sendAll(records.slice(0, -1))
      const texts = Array.from({ length: 6 }, () => query(random))
      const views = texts.map((text) => desk.watch(text).view)
      desk.send(records.at(-1))
      const fresh = new Desk().sendAll(records)
      for (const [i, text] of texts.entries()) {
        const held = seenIn(views[i]!),
          anew = seenIn(fresh.watch(text).view)
        for (const [id, row] of held.shown) if (anew.shown.has(id)) expect(anew.shown.get(id), text).toBe(row)
        for (const reason of [...held.refused.values(), ...anew.refused.values()])
          expect(reason, text).toMatch(/SVC_QUERY_(ROW_STEPS|CHANGE_STEPS|BYTES)/)
        // Every row of a query without a filter and a LIMIT is shown or named.
        if (!/WHERE|LIMIT/.test(text))
          expect(held.shown.size + held.refused.size, text).toBe(records.length - edges(records))
        refused += held.refused.size
      }
    }
    // More ways than a row has steps for: a run without a refusal has looked at no bound.
    expect(refused).toBeGreaterThan(0)
  },
  600_000
)

const edges = (records: ReadonlyArray<unknown>): number =>
  records.filter((record) => (record as { readonly table: string }).table === "knows").length
