/**
 * A source over plain tables in memory, with an index of edges.
 *
 * Why so: the plain evaluator needs records by id, tables in key order and edges by endpoint; this is the smallest
 * thing that gives all three. The engine has its own, over its shared store.
 */
import { compareKeys, compareRecords, compareStrings } from "../values/order.ts"
import type { Obj, Range, RecordKey } from "../values/value.ts"
import { field, RecordId } from "../values/value.ts"
import { recordOf } from "./paths.ts"
import type { Source } from "./scope.ts"

/** Builds a source of full documents (each with its `id`), in any order. Cost: a sort per table, once. */
export const fromRecords = (records: Iterable<Obj>): Source => {
  const byText = new Map<string, Obj>()
  const tables = new Map<string, Array<RecordId>>()
  const edges = new Map<string, Array<RecordId>>()
  const add = <K>(map: Map<K, Array<RecordId>>, key: K, id: RecordId): void => {
    const list = map.get(key)
    if (list === undefined) map.set(key, [id])
    else list.push(id)
  }
  for (const doc of records) {
    const id = field(doc, "id")
    if (!(id instanceof RecordId)) continue
    if (!byText.has(id.text)) add(tables, id.table, id)
    byText.set(id.text, doc)
  }
  for (const ids of tables.values()) ids.sort(compareRecords)
  for (const [table, ids] of [...tables].sort((a, b) => compareStrings(a[0], b[0]))) {
    for (const id of ids) {
      const doc = byText.get(id.text)!
      const from = recordOf(field(doc, "in")),
        to = recordOf(field(doc, "out"))
      if (from === undefined || to === undefined) continue
      for (const key of [`out ${from.text}`, `in ${to.text}`]) {
        add(edges, key, id)
        add(edges, `${key} ${table}`, id)
      }
    }
  }
  const docs = new Map([...tables].map(([table, ids]) => [table, ids.map((id) => byText.get(id.text)!)] as const))
  return {
    record: (id) => byText.get(id.text),
    rows: (table) => docs.get(table) ?? [],
    rowsBetween: (table, range) => between(tables.get(table) ?? [], docs.get(table) ?? [], range),
    edges: (of, direction, table) =>
      edges.get(table === undefined ? `${direction} ${of.text}` : `${direction} ${of.text} ${table}`) ?? [],
    tables: () => [...tables.keys()].sort(compareStrings)
  }
}

/** The first position whose key is not below a bound; with `past`, not at it either. */
const position = (ids: ReadonlyArray<RecordId>, key: RecordKey, past: boolean): number => {
  let low = 0,
    high = ids.length
  while (low < high) {
    const middle = (low + high) >> 1
    const c = compareKeys(ids[middle]!.key, key)
    if (c < 0 || (c === 0 && past)) low = middle + 1
    else high = middle
  }
  return low
}

function* between(ids: ReadonlyArray<RecordId>, docs: ReadonlyArray<Obj>, { from, to }: Range): Iterable<Obj> {
  const end = to === undefined ? ids.length : position(ids, to.value as RecordKey, to.inclusive)
  for (let i = from === undefined ? 0 : position(ids, from.value as RecordKey, !from.inclusive); i < end; i++)
    yield docs[i]!
}
