/**
 * Relations between runs of the engine that hold whatever the right answer is: no oracle is asked.
 *
 * Why besides the oracle: it shares the meaning of expressions with the engine; a fault in that meaning shows here, and
 * so does everything that depends on the way data came in. Queries and data are generated as for the laws.
 */
import { setImmediate as breathe } from "node:timers/promises"
import { expect } from "vitest"
import { type Rng, rounds, seeded } from "../../../kit/data/random.ts"
import type { View } from "../../../src/core/ivm/view/view.ts"
import * as JsonText from "../../../src/core/jsonText.ts"
import { encode } from "../../../src/core/surql/values/encode.ts"
import { Desk, type Watching } from "./desk.ts"
import { body, history, type Json, keys, type Mask, swarm, tables } from "./generateData.ts"
import { comparisons, type Query, queries } from "./generateQuery.ts"

const file = "test/core/ivm/metamorphic.test.ts"

interface Setting {
  readonly mask: Mask
  readonly changes: ReadonlyArray<Json>
  readonly asked: ReadonlyArray<Query>
}

/** `stretch` 4 shows only the building up of a history, 1 all its phases. */
const setting = (
  random: Rng,
  changes: number,
  views: number,
  stretch: number,
  without: ReadonlyArray<string> = []
): Setting => {
  const mask = new Set(
    [...swarm(random)].filter((feature) => !["batch", "restart", "late", ...without].includes(feature))
  )
  const asked = queries(random, mask, views)
  return {
    mask,
    asked,
    changes: history(random, mask, changes * stretch, [])
      .flatMap((step) => ("write" in step ? (step.write as ReadonlyArray<Json>) : []))
      .slice(0, changes)
  }
}

const rowsOf = (view: View): ReadonlyArray<string> => view.rows().map((row) => encode(row.value()))

const resultOf = (view: View) => ({
  hash: view.hash(),
  rows: rowsOf(view),
  failing: view
    .errors()
    .map(({ id }) => id)
    .sort()
})

const results = (watched: ReadonlyArray<Watching>) => watched.map(({ view }) => resultOf(view))

const watchAll = (desk: Desk, asked: ReadonlyArray<Query>): ReadonlyArray<Watching> =>
  asked.map(({ params, text }) => desk.watch(text, params))

const sendAll = (desk: Desk, changes: Iterable<unknown>): Desk => {
  for (const json of changes) desk.send(json)
  return desk
}

const expectSame = (
  asked: ReadonlyArray<Query>,
  got: ReadonlyArray<unknown>,
  wanted: ReadonlyArray<unknown>,
  what: string
): void =>
  got.forEach((one, i) =>
    expect(one, `${what}: ${asked[i]?.text} ${JsonText.write(asked[i]?.params)}`).toEqual(wanted[i])
  )

/** The last state of each record, with a version of its own. */
const finals = (changes: ReadonlyArray<Json>): ReadonlyArray<Json> => {
  const last = new Map<unknown, Json>()
  changes.forEach((change, i) =>
    last.set(
      change["id"],
      change["op"] === "DELETE" ? change : { ...change, record: { ...(change["record"] as Json), _svc_rv: i + 1 } }
    )
  )
  return [...last.values()].filter(({ op }) => op !== "DELETE")
}

const shuffled = <A>(random: Rng, items: ReadonlyArray<A>): ReadonlyArray<A> =>
  items
    .map((item) => [random.next(), item] as const)
    .sort((a, b) => a[0] - b[0])
    .map(([, item]) => item)

seeded(
  "L5 order of arrival does not matter, nor whether a view is registered before, amid or after the data",
  file,
  async (random) => {
    let rows = 0
    for (let round = 0; round < rounds(12); round++) {
      await breathe()
      const { asked, changes } = setting(random, 60, 8, 4)
      const records = finals(changes)
      const wanted = (() => {
        const desk = sendAll(new Desk(), records)
        return results(watchAll(desk, asked))
      })()
      rows += wanted.reduce((sum, one) => sum + one.rows.length, 0)
      const early = new Desk(),
        first = watchAll(early, asked)
      sendAll(early, shuffled(random, records))
      expectSame(asked, results(first), wanted, "registered before the data")
      const amid = new Desk(),
        order = shuffled(random, records)
      sendAll(amid, order.slice(0, order.length / 2))
      const some = watchAll(amid, asked)
      sendAll(amid, order.slice(order.length / 2))
      expectSame(asked, results(some), wanted, "registered amid the data")
    }
    expect(rows).toBeGreaterThan(11 * rounds(12))
  }
)

seeded(
  "L5 replaying a history gives the same deltas, hashes, versions and generations, alone or among other views",
  file,
  async (random) => {
    let deltas = 0
    for (let round = 0; round < rounds(6); round++) {
      await breathe()
      const { asked, changes } = setting(random, 120, 8, 1)
      const together = new Desk(),
        held = watchAll(together, asked)
      const told = held.map((): Array<unknown> => [])
      for (const json of changes) {
        together.send(json)
        held.forEach((view, i) => told[i]!.push([view.delta(), view.hash(), view.view.generation]))
      }
      asked.forEach(({ params, text }, i) => {
        const alone = new Desk(),
          view = alone.watch(text, params)
        const heard = changes.map((json) => (alone.send(json), [view.delta(), view.hash(), view.view.generation]))
        deltas += heard.filter(([delta]) => delta !== undefined).length
        expect(heard, `alone: ${text} ${JsonText.write(params)}`).toEqual(told[i])
      })
    }
    expect(deltas).toBeGreaterThan(53 * rounds(6))
  }
)

seeded(
  "L2 inserting a record and deleting it again leaves every result and hash as it was, and the deltas cancel",
  file,
  async (random) => {
    let moved = 0
    for (let round = 0; round < rounds(10); round++) {
      await breathe()
      const { asked, changes, mask } = setting(random, 80, 8, 2)
      const desk = new Desk(),
        held = watchAll(desk, asked)
      sendAll(desk, changes)
      for (let n = 0; n < 12; n++) {
        const before = results(held)
        const id = `${random.pick(tables)}:${random.pick(["new", "5", "B"])}`
        desk.put(id, body(random, mask))
        const went = held.map((view) => view.delta())
        desk.remove(id)
        const came = held.map((view) => view.delta())
        moved += went.filter((delta) => delta !== undefined).length
        went.forEach((delta, i) => {
          if (asked[i]!.tags.has("group") || asked[i]!.tags.has("split")) return
          expect(came[i]?.removals.slice().sort(), asked[i]!.text).toEqual(delta?.additions.map(([key]) => key).sort())
          expect(came[i]?.additions.map(([key]) => key).sort(), asked[i]!.text).toEqual(delta?.removals.slice().sort())
        })
        expectSame(asked, results(held), before, `after ${id} came and went`)
      }
    }
    expect(moved).toBeGreaterThan(7 * rounds(10))
  }
)

seeded(
  "L3 batches of any size lead to the same result as one change at a time, with one delta per view",
  file,
  async (random) => {
    let batches = 0
    for (let round = 0; round < rounds(7); round++) {
      await breathe()
      const { asked, changes } = setting(random, 120, 8, 1)
      const one = new Desk(),
        single = watchAll(one, asked)
      const many = new Desk(),
        batched = watchAll(many, asked)
      const whole = new Desk(),
        atOnce = watchAll(whole, asked)
      for (let at = 0; at < changes.length; ) {
        const size = 1 + random.below(20)
        const part = changes.slice(at, at + size)
        const before = batched.map((view) => view.view.generation)
        sendAll(one, part)
        many.sendAll(part)
        batches++
        batched.forEach((view, i) =>
          expect(view.view.generation - before[i]!, asked[i]!.text).toBe(view.delta() === undefined ? 0 : 1)
        )
        expectSame(asked, results(batched), results(single), `a batch of ${part.length}`)
        at += size
      }
      whole.sendAll(changes)
      expectSame(asked, results(atOnce), results(single), "all at once")
    }
    expect(batches).toBeGreaterThan(5 * rounds(7))
  }
)

/** Other keys in the same order, as keys and as text. */
const renamed: { readonly [key: string]: string } = {
  "1": "3",
  "2": "5",
  "10": "30",
  a: "b",
  Z: "Y",
  "`x y`": "`w y`",
  "`9`": "`8`",
  "[1, 'a']": "[1, 'b']"
}

const key = String.raw`(?:\[1, 'a'\]|${"`[^`]*`"}|\d+|[A-Za-z]+)`
const record = new RegExp(String.raw`\b(person|post|comment):(${key})?((?:\.\.=?)?)(${key})?`, "g")

const rename = (text: string): string =>
  text.replace(
    record,
    (_, table: string, from: string | undefined, dots: string, to: string | undefined) =>
      `${table}:${from === undefined ? "" : (renamed[from] ?? from)}${dots}${to === undefined ? "" : dots === "" ? to : (renamed[to] ?? to)}`
  )

const renameJson = <A>(json: A): A => JsonText.parse(rename(JsonText.write(json))) as A

seeded("L5 records with other ids in the same order give the same result with those ids", file, async (random) => {
  expect(Object.keys(renamed).sort()).toEqual([...keys].sort())
  let rows = 0
  for (let round = 0; round < rounds(10); round++) {
    await breathe()
    const { asked, changes } = setting(random, 100, 8, 2)
    const desk = new Desk(),
      views = watchAll(desk, asked)
    const other = new Desk(),
      theirs = watchAll(
        other,
        asked.map((query) => ({ ...query, text: rename(query.text), params: renameJson(query.params) }))
      )
    for (let at = 0; at < changes.length; at += 20) {
      sendAll(desk, changes.slice(at, at + 20))
      sendAll(other, changes.slice(at, at + 20).map(renameJson))
      views.forEach((view, i) => {
        rows += view.view.size
        expect(theirs[i]!.rows(), `${asked[i]!.text} against ${rename(asked[i]!.text)}`).toEqual(
          renameJson(view.rows())
        )
      })
    }
  }
  expect(rows).toBeGreaterThan(24 * rounds(10))
})

seeded("L1 LIMIT n is a prefix of LIMIT n+1, and START cuts off its beginning", file, async (random) => {
  let full = 0
  for (let round = 0; round < rounds(10); round++) {
    await breathe()
    const { asked, changes } = setting(random, 60, 6, 3, ["windows", "only"])
    const desk = new Desk()
    const bases = asked.filter(({ tags, text }) => !tags.has("fetch") && !tags.has("only") && !/ LIMIT \d+$/.test(text))
    const limited = bases.map(({ params, text }) =>
      [0, 1, 2, 3, 4, 5].map((n) => desk.watch(`${text} LIMIT ${n}`, params))
    )
    const whole = watchAll(desk, bases)
    const started = bases.map(({ params, text }) => desk.watch(`${text} LIMIT 3 START 2`, params))
    for (const json of changes) {
      desk.send(json)
      limited.forEach((windows, i) => {
        const rows = rowsOf(whole[i]!.view)
        full += rows.length > 5 ? 1 : 0
        windows.forEach((window, n) =>
          expect(rowsOf(window.view), `${bases[i]!.text} LIMIT ${n}`).toEqual(rows.slice(0, n))
        )
        expect(rowsOf(started[i]!.view), `${bases[i]!.text} LIMIT 3 START 2`).toEqual(rows.slice(2, 5))
      })
    }
  }
  expect(full).toBeGreaterThan(14 * rounds(10))
})

seeded(
  "L1 a filter and its negation share no row and together show all, whatever is NONE, NULL or missing",
  file,
  async (random) => {
    let split = 0
    for (let round = 0; round < rounds(12); round++) {
      await breathe()
      const { asked, changes, mask } = setting(random, 100, 1, 2, ["group", "split", "sources", "only", "value"])
      const desk = new Desk()
      const pairs = comparisons(random, mask, 6).map(({ params, text }) => {
        const of = random.pick(tables)
        return {
          text,
          of,
          yes: desk.watch(`SELECT id FROM ${of} WHERE ${text}`, params),
          no: desk.watch(`SELECT id FROM ${of} WHERE !(${text})`, params)
        }
      })
      watchAll(desk, asked)
      const all = new Map(tables.map((table) => [table, desk.watch(`SELECT id FROM ${table}`)] as const))
      for (const json of changes) {
        desk.send(json)
        for (const { no, of, text, yes } of pairs) {
          // An index may rule a row out before it is found to fail.
          const failing = new Set([...yes.view.errors(), ...no.view.errors()].map(({ id }) => id))
          if (yes.view.size > 0 && no.view.size > 0) split++
          expect([...yes.keys(), ...no.keys(), ...failing].sort(), text).toEqual([...all.get(of)!.keys()].sort())
        }
      }
    }
    expect(split).toBeGreaterThan(33 * rounds(12))
  }
)
