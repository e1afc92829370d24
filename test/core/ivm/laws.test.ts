/**
 * The laws of the engine over random queries and histories: after every change each view equals a fresh run of its
 * query by the plain evaluator, its deltas lead from one result to the next, and hash and size belong to the result.
 *
 * Histories have four phases (build up, tear down, edit, edit back), because most faults need a row that comes back.
 */
import { Either } from "effect"
import { expect } from "vitest"
import { decodeChange } from "../../../src/core/change.ts"
import { Engine } from "../../../src/core/ivm/engine.ts"
import type { Instance } from "../../../src/core/ivm/instance.ts"
import { fromJson, toJson } from "../../../src/core/surql/json.ts"
import { parseSelect } from "../../../src/core/surql/parse.ts"
import type { Select } from "../../../src/core/surql/ast.ts"
import type { Value } from "../../../src/core/surql/value.ts"
import { type Rng, runs, seeded } from "../../kit/random.ts"
import { body, edge, keys, params, query, type Swarm, swarm, tables } from "./generate.ts"
import { plainRows, type PlainResult } from "./plain.ts"

interface Watched {
  readonly text: string
  readonly select: Select
  readonly params: { readonly [name: string]: Value }
  readonly instance: Instance
  shown: Map<string, number>
  /** What was last seen, as text: nothing may change here without a delta. */
  seen: string
}

const file = "test/core/ivm/laws.test.ts"

const change = (rng: Rng, mask: Swarm, phase: number): unknown => {
  const remove = rng.chance([0.1, 0.7, 0.2, 0.2][phase] ?? 0.2)
  if (mask.graph && rng.chance(0.35)) return { table: "likes", id: `likes:${rng.below(8)}`, op: remove ? "DELETE" : "CREATE", record: remove ? {} : edge(rng) }
  const table = rng.pick(tables)
  const id = `${table}:${rng.pick(keys)}`
  return { table, id, op: remove ? "DELETE" : rng.pick(["CREATE", "UPDATE"]), record: remove ? {} : body(rng, mask) }
}

const apply = (engine: Engine, json: unknown) => {
  const decoded = decodeChange(json)
  if (Either.isLeft(decoded)) throw new Error(JSON.stringify(decoded.left))
  const write = engine.plan([decoded.right])[0]
  return write === undefined ? [] : engine.apply(write)
}

const watch = (engine: Engine, text: string, given: { readonly [name: string]: unknown }): Watched | undefined => {
  const parsed = parseSelect(text)
  if (Either.isLeft(parsed)) throw new Error(`${text}: ${parsed.left.message}`)
  const typed = fromJson(given) as { readonly [name: string]: Value }
  const instance = engine.acquire(parsed.right, typed)
  if (Either.isLeft(instance)) throw new Error(`${text}: ${instance.left.reason}`)
  return { text, select: parsed.right, params: typed, instance: instance.right, shown: new Map(instance.right.rows().map((row) => [row.key, row.version])), seen: visible(instance.right) }
}

const visible = (instance: Instance): string => JSON.stringify(instance.rows().map((row) => [row.key, row.version, toJson(row.value())]))

const checkView = (view: Watched, expected: PlainResult, announced: boolean): void => {
  const now = visible(view.instance)
  const { rows } = expected
  const wanted = JSON.stringify(rows.map(([key, version, row]) => [key, version ?? view.shown.get(key), row]))
  if (now !== wanted) expect(JSON.parse(now), view.text).toEqual(JSON.parse(wanted))
  if (!announced && now !== view.seen) expect(JSON.parse(now), `changed without a delta: ${view.text}`).toEqual(JSON.parse(view.seen))
  view.seen = now
  if (view.instance.size !== rows.length) expect(view.instance.size, `size of ${view.text}`).toBe(rows.length)
  if (view.shown.size !== rows.length || rows.some(([key, version]) => !view.shown.has(key) || (version !== undefined && view.shown.get(key) !== version))) {
    expect([...view.shown].sort(), `L2 deltas of ${view.text}`).toEqual(rows.map(([key, version]) => [key, version ?? view.shown.get(key)]).sort())
  }
  for (const error of view.instance.errors()) if (!expected.errors.has(error.id)) expect.fail(`D2a ${error.id} is listed as failing and does not fail: ${view.text}`)
}

const follow = (view: Watched, delta: { readonly additions: ReadonlyArray<readonly [string, number]>; readonly updates: ReadonlyArray<readonly [string, number]>; readonly removals: ReadonlyArray<string> }): void => {
  for (const [key, version] of delta.additions) {
    expect(view.shown.has(key), `L2 ${key} added twice in ${view.text}`).toBe(false)
    view.shown.set(key, version)
  }
  for (const [key, version] of delta.updates) {
    expect(view.shown.has(key), `L2 ${key} updated without being in ${view.text}`).toBe(true)
    view.shown.set(key, version)
  }
  for (const key of delta.removals) expect(view.shown.delete(key), `L2 ${key} removed without being in ${view.text}`).toBe(true)
}

seeded("L1 L2 L3 every view equals a fresh run of its query after every change", file, (random) => {
  let touched = 0
  let windows = 0
  for (let round = 0; round < runs(25); round++) {
    const mask = swarm(random)
    const engine = new Engine()
    const views: Array<Watched> = []
    for (let step = 0; step < 240; step++) {
      if (step % 10 === 0) {
        const text = query(random, mask)
        if (text.includes("LIMIT")) windows++
        const view = watch(engine, text, params(random))
        if (view !== undefined) views.push(view)
      }
      const hashes = new Map(views.map((view) => [view, `${view.instance.hash()} ${view.instance.generation}`]))
      const json = change(random, mask, Math.floor(step / 60))
      const deltas = new Map(apply(engine, json).map((one) => [one.instance, one.delta]))
      touched += deltas.size
      for (const view of views) {
        const delta = deltas.get(view.instance)
        if (delta === undefined) expect(`${view.instance.hash()} ${view.instance.generation}`, `untouched ${view.text}`).toBe(hashes.get(view))
        else {
          expect(view.instance.hash(), `hash of ${view.text} after ${JSON.stringify(delta)}`).not.toBe(hashes.get(view)?.split(" ")[0])
          follow(view, delta)
        }
        checkView(view, plainRows(engine.store, view.select, view.params), delta !== undefined)
      }
    }
    for (const view of views) engine.release(view.instance)
    expect(engine.shapes()).toEqual([])
  }
  expect(touched).toBeGreaterThan(2_000)
  expect(windows).toBeGreaterThan(50)
})

seeded("L5 any order of arrival gives the same result, and the same history the same hash", file, (random) => {
  let checked = 0
  for (let round = 0; round < runs(15); round++) {
    const mask = swarm(random)
    const finals = new Map<string, unknown>()
    for (let i = 0; i < 25; i++) {
      const table = random.pick(tables)
      const id = `${table}:${random.pick(keys)}`
      finals.set(id, { table, id, op: "CREATE", record: { ...body(random, mask), _svc_rv: i + 1 } })
    }
    const texts = Array.from({ length: 8 }, () => query(random, mask))
    const given = params(random)
    const results = [0, 1, 2].map((order) => {
      const engine = new Engine()
      const changes = [...finals.values()]
      if (order > 0) changes.sort(() => random.next() - 0.5)
      const early = order === 2 ? texts.map((text) => watch(engine, text, given)) : []
      for (const json of changes) apply(engine, json)
      const views = order === 2 ? early : texts.map((text) => watch(engine, text, given))
      return views.map((view) => ({ hash: view?.instance.hash(), rows: view?.instance.rows().map((row) => [row.key, toJson(row.value())]) }))
    })
    for (const result of results) {
      checked += result.length
      expect(result).toEqual(results[0])
    }
  }
  expect(checked).toBeGreaterThan(200)
})
