/**
 * What SELECT does to rows besides filtering and projecting: SPLIT, ORDER BY and FETCH.
 *
 * Why so: each works on whole rows with paths, so they share the reading of a path in a projected row.
 */
import type { Expr, Idiom, OrderTerm, Select } from "./ast.ts"
import { compile } from "./evaluate.ts"
import { aliasNames } from "./names.ts"
import { compareRecords } from "./order.ts"
import { compileIdiom, compileParts, recordOf } from "./paths.ts"
import { print } from "./print.ts"
import type { Compiled, Scope, Slices } from "./scope.ts"
import { spend } from "./scope.ts"
import { copyOf, replaceAt, setPath } from "./shape.ts"
import { compareTerm } from "./sorting.ts"
import type { Item } from "./sources.ts"
import { field, isObj } from "./value.ts"
import type { Value } from "./value.ts"

/** SPLIT on a path of the document (SELECT VALUE): a row per element, which takes the array's place. */
export const docSplitter = (idiom: Idiom) => {
  const read = compileParts(idiom.parts)
  return (item: Item): ReadonlyArray<Item> => {
    const found = read(item.scope.doc, item.scope)
    if (!Array.isArray(found)) return [item]
    return (found as ReadonlyArray<Value>).map((element) => ({ ...item, scope: { ...item.scope, doc: replaceAt(item.scope.doc, idiom.parts, () => element) } }))
  }
}

/** SPLIT on a path of the projected row. */
export const rowSplitter = (idiom: Idiom) => {
  const names = aliasNames(idiom), read = atOutput(idiom), steps = compileParts(idiom.parts)
  return (item: Item): ReadonlyArray<Item> => {
    const plain = read(item)
    const found = plain === undefined ? steps(item.value, item.scope) : plain
    if (!Array.isArray(found) || !isObj(item.value)) return [item]
    const row = item.value
    return (found as ReadonlyArray<Value>).map((element) => {
      const copy = copyOf(row)
      setPath(copy, names, element)
      return { ...item, value: copy }
    })
  }
}

export interface SortReader {
  /** The value from the document; undefined where it is inside the projected row. */
  readonly fromDoc: Compiled | undefined
  readonly read: (item: Item) => Value
}

/** Reads a sort value: inside the row where the path starts with an alias, else from the document. */
export const sortReader = (select: Select, idiom: Idiom): SortReader => {
  const text = print(idiom)
  if (select.group !== undefined || (select.split.length > 0 && !select.value)) {
    return { fromDoc: undefined, read: select.value ? (item) => item.value : atOutput(idiom) }
  }
  for (const f of select.fields) {
    if (f.kind !== "expr" || f.alias === undefined) continue
    const alias = print(f.alias)
    if (alias === text) return fromDoc(compile(f.expr))
    if (text.startsWith(alias + ".") || text.startsWith(alias + "[")) return { fromDoc: undefined, read: atOutput(idiom) }
  }
  for (const f of select.fields) {
    if (f.kind === "expr" && f.alias === undefined && print(f.expr) !== text && f.expr.kind !== "idiom" && fieldNames(f.expr) === text) return fromDoc(compile(f.expr))
  }
  return fromDoc(compileIdiom({ ...idiom, start: undefined }))
}

const fromDoc = (value: Compiled): SortReader => ({ fromDoc: value, read: (item) => value(item.scope) })

const fieldNames = (e: Expr): string => (e.kind === "call" ? e.name : "")

/** Output rows nest by the names of a path. */
const atOutput = (idiom: Idiom): ((item: Item) => Value) => {
  const names = aliasNames(idiom)
  return (item) => names.reduce<Value>((v, name) => (isObj(v) ? field(v, name) : undefined), item.value)
}

/** One ORDER BY term, compiled. */
export interface Sort extends SortReader {
  readonly compare: (a: Value, b: Value) => number
}

export const compileSort = (select: Select, term: OrderTerm): Sort => ({ ...sortReader(select, term.idiom), compare: compareTerm(term) })

/** Rows sorted, or merged, between two pauses. */
const sortSlice = 2048

/** Rows with their sort values, sorted; equal ones by record id, else as they came. Runs are sorted, then merged by twos, with pauses. */
export function* sorted(items: Array<Item>, order: ReadonlyArray<Sort>): Slices<Array<Item>> {
  const compare = (a: Item, b: Item): number => {
    for (let i = 0; i < order.length; i++) {
      const c = order[i]!.compare(a.sort[i], b.sort[i])
      if (c !== 0) return c
    }
    return a.record !== undefined && b.record !== undefined ? compareRecords(a.record, b.record) : 0
  }
  if (items.length <= sortSlice) return items.sort(compare)
  let from: Array<Item> = []
  for (let at = 0; at < items.length; at += sortSlice) {
    for (const item of items.slice(at, at + sortSlice).sort(compare)) from.push(item)
    yield
  }
  for (let width = sortSlice; width < items.length; width *= 2) {
    const to: Array<Item> = []
    for (let at = 0; at < items.length; at += 2 * width) {
      const middle = Math.min(at + width, items.length), end = Math.min(middle + width, items.length)
      for (let i = at, j = middle; i < middle || j < end;) {
        to.push(j >= end || (i < middle && compare(from[i]!, from[j]!) <= 0) ? from[i++]! : from[j++]!)
        if (to.length % sortSlice === 0) yield
      }
    }
    from = to
  }
  return from
}

/** FETCH: record ids at the named paths become documents. */
export const fetching = (select: Pick<Select, "fetch">) => {
  const load = (scope: Scope) => (v: Value): Value => {
    if (Array.isArray(v)) return (v as ReadonlyArray<Value>).map(load(scope))
    const id = recordOf(v)
    if (id === undefined) return v
    spend(scope.budget, 1)
    return scope.source.record(id)
  }
  return (value: Value, scope: Scope): Value => select.fetch.reduce<Value>((row, idiom) => {
    let out = row
    for (let n = 1; n <= idiom.parts.length; n++) if (idiom.parts[n - 1]!.kind === "field" || n === idiom.parts.length) out = replaceAt(out, idiom.parts.slice(0, n), load(scope))
    return out
  }, value)
}
