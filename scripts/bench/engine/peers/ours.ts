/**
 * This engine: typed changes in, `plan` and `apply`, deltas and hashes out.
 *
 * Why nothing is left out: a change of the service runs through exactly these two calls, so versions, deltas and result
 * hashes are in the figure; only reading JSON is not, as no peer reads any.
 */
import { Either } from "effect"
import { Engine } from "../../../../src/core/ivm/engine.ts"
import type { View } from "../../../../src/core/ivm/view/view.ts"
import { decodeChange, type Change as EngineChange } from "../../../../src/core/record/change.ts"
import { parseSelect } from "../../../../src/core/surql/syntax/parse.ts"
import { make } from "../../../../src/core/surql/values/recordId.ts"
import { type Obj, RecordId, type Value } from "../../../../src/core/surql/values/value.ts"
import type { Answer, Change, Program, Row, Workload, WorkloadName } from "../program.ts"

const newestThreads =
  "SELECT *, (SELECT * FROM user WHERE id = $parent.author) AS writer, (SELECT * FROM comment WHERE thread = $parent.id ORDER BY created_at DESC LIMIT 10) AS comments FROM thread ORDER BY created_at DESC LIMIT 10"

export const queries: { readonly [name in WorkloadName]: string } = {
  W1: "SELECT * FROM post WHERE author = $author",
  W2: "SELECT * FROM post WHERE published = true AND likes >= 50",
  W3: "SELECT * FROM post WHERE published = true ORDER BY created_at DESC LIMIT 20",
  W4: "SELECT *, (SELECT * FROM user WHERE id = $parent.author) AS writer, (SELECT * FROM comment WHERE thread = $parent.id ORDER BY created_at DESC LIMIT 10) AS comments FROM thread",
  W6: "SELECT category, count() AS n, math::sum(amount) AS total FROM sale GROUP BY category",
  W7: "SELECT * FROM post WHERE author = $author ORDER BY created_at DESC LIMIT 10",
  W4b: newestThreads,
  W4c: newestThreads,
  W8: "SELECT * FROM story WHERE published = true ORDER BY score DESC, id LIMIT 50 START $start",
  W9: "SELECT * FROM story WHERE published = true AND score < $cursor ORDER BY score DESC LIMIT 50",
  W10: "SELECT * FROM story WHERE channel IN $channels ORDER BY at DESC LIMIT 50"
}

/**
 * Reads changes as the service reads them: out of JSON, where references are text, and what the database declares makes
 * them record ids. A text that was put together here instead would lie in pieces, and cost more whenever it is read.
 */
const reader = (work: Workload, keyOf: KeyOf) => {
  const declared = new Map(
    Object.entries(work.tables).map(([table, { refs }]) => [
      table,
      Object.fromEntries(Object.keys(refs).map((field) => [field, "record"]))
    ])
  )
  return (op: EngineChange["op"], table: string, row: Row): EngineChange => {
    const record: Record<string, unknown> = { ...row, id: `${table}:${keyOf(row.id)}` }
    for (const [field, to] of Object.entries(work.tables[table]!.refs))
      record[field] = `${to}:${keyOf(row[field] as number)}`
    const body = JSON.stringify({ table, op, id: record["id"], record: op === "DELETE" ? {} : record })
    return Either.getOrThrow(decodeChange(JSON.parse(body), (name) => declared.get(name)))
  }
}

const fromValue = (value: Value): unknown => {
  if (value instanceof RecordId) return value.key
  if (Array.isArray(value)) return value.map(fromValue)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value as Obj).map(([field, part]) => [field, fromValue(part)]))
}

/** The key of the record that has this number in the workload. */
export type KeyOf = (row: number) => number | string

export const ours = (work: Workload, keyOf: KeyOf = (row) => row): Program => {
  const engine = new Engine()
  const read = reader(work, keyOf)
  const instances: Array<View> = []
  const parsed = Either.getOrThrow(parseSelect(queries[work.name]))
  const told = { rows: 0, hashes: 0 }
  return {
    load: () => {
      for (const [table, rows] of Object.entries(work.rows))
        for (const row of rows) {
          const { doc, id } = read("CREATE", table, row)
          engine.load(id, 1, doc)
        }
    },
    register: () => {
      for (let view = 0; view < work.views; view++) {
        const instance = engine.acquire(parsed, { author: make("user", keyOf(view)), ...work.asks?.(view) })
        if (Either.isLeft(instance)) throw new Error(instance.left.reason)
        instances.push(instance.right)
      }
    },
    prepare: ({ table, before, after }: Change): ReadonlyArray<EngineChange> => {
      return [
        read(after === undefined ? "DELETE" : before === undefined ? "CREATE" : "UPDATE", table, (after ?? before)!)
      ]
    },
    apply: (changes) => {
      const write = engine.plan(changes as ReadonlyArray<EngineChange>)[0]
      if (write === undefined) return
      const touched = engine.apply(write)
      for (let i = 0; i < touched.length; i++) {
        const { delta, hash } = touched[i]!
        told.rows += delta.additions.length + delta.updates.length + delta.removals.length
        told.hashes += hash.length
      }
    },
    result: (view) => instances[view]!.rows().map((row) => fromValue(row.value())) as Answer,
    plan: () =>
      instances[0]!
        .plan()
        .map(({ operator, incremental, reason }) => (incremental ? operator : `${operator} (recomputed: ${reason})`))
        .join(", ")
  }
}
