/**
 * Clauses that reshape rows: SPLIT, ORDER BY and FETCH.
 *
 * Why so: each works on whole rows with paths, so they share the reading of a path in a projected row.
 */
import { mergeSort } from "../../../mergeSort.ts"
import type { Expr, Idiom, OrderTerm, Part, Select } from "../../syntax/ast.ts"
import { aliasNames } from "../../syntax/names.ts"
import { print } from "../../syntax/print.ts"
import { compare, compareRecords } from "../../values/order.ts"
import type { Value } from "../../values/value.ts"
import { field, isObj, RecordId, SetValue, setField } from "../../values/value.ts"
import { lengthOf } from "../charge.ts"
import { compile } from "../evaluate.ts"
import { chargedRecordOf, compileIdiom, compileParts, fetch } from "../paths.ts"
import type { Budget, Compiled, Scope, Slices } from "../scope.ts"
import { spendBytes, spendSteps } from "../scope.ts"
import { copyOf, mapFields, positionOf, replaceAt, setPath } from "./shape.ts"
import { compareTerm } from "./sorting.ts"
import { type Item, isId } from "./sources.ts"

/** Elements into which SPLIT splits a value; undefined if the value is no list. */
const elementsOf = (v: Value): ReadonlyArray<Value> | undefined =>
  Array.isArray(v) ? (v as ReadonlyArray<Value>) : v instanceof SetValue ? v.items : undefined

/** Each piece is a row with a copy of its fields. */
const payPieces = ({ scope: { budget } }: Item, pieces: number, width: number): void => {
  spendSteps(budget, pieces * (1 + (width >> 1)))
  spendBytes(budget, pieces * (160 + 48 * width))
}

/** SPLIT on a path of the document (SELECT VALUE): a row per element, which replaces the array or set. */
export const docSplitter = (idiom: Idiom) => {
  const read = compileParts(idiom.parts)
  return (item: Item): ReadonlyArray<Item> => {
    const found = elementsOf(read(item.scope.doc, item.scope))
    if (found === undefined) return [item]
    payPieces(item, found.length, lengthOf(item.scope.doc) + idiom.parts.length)
    return found.map((element) => ({
      ...item,
      scope: { ...item.scope, doc: replaceAt(item.scope.doc, idiom.parts, () => element) }
    }))
  }
}

/** SPLIT on a path of the projected row. */
export const rowSplitter = (idiom: Idiom) => {
  const names = aliasNames(idiom),
    read = atOutput(idiom),
    steps = compileParts(idiom.parts)
  return (item: Item): ReadonlyArray<Item> => {
    const plain = read(item)
    const found = elementsOf(plain === undefined ? steps(item.value, item.scope) : plain)
    if (found === undefined || !isObj(item.value)) return [item]
    const row = item.value
    payPieces(item, found.length, lengthOf(row) + names.length)
    return found.map((element) => {
      const copy = copyOf(row)
      setPath(copy, names, element)
      return { ...item, value: copy }
    })
  }
}

interface SortReader {
  /** Reads the value from the document; undefined if it is inside the projected row. */
  readonly fromDoc: Compiled | undefined
  /** The expression to evaluate on the document; undefined if the value is inside the projected row. */
  readonly expr: Expr | undefined
  readonly read: (item: Item) => Value
}

/** Reads a sort value: from the row if the path starts with an alias, else from the document. */
const sortReader = (select: Select, idiom: Idiom): SortReader => {
  const text = print(idiom)
  if (select.group !== undefined || (select.split.length > 0 && !select.value)) {
    return { fromDoc: undefined, expr: undefined, read: select.value ? (item) => item.value : atOutput(idiom) }
  }
  for (const f of select.fields) {
    if (f.kind !== "expr" || f.alias === undefined) continue
    const alias = print(f.alias)
    if (alias === text) return fromDoc(f.expr)
    if (text.startsWith(alias + ".") || text.startsWith(alias + "["))
      return { fromDoc: undefined, expr: undefined, read: atOutput(idiom) }
  }
  for (const f of select.fields) {
    if (
      f.kind === "expr" &&
      f.alias === undefined &&
      print(f.expr) !== text &&
      f.expr.kind !== "idiom" &&
      fieldNames(f.expr) === text
    )
      return fromDoc(f.expr)
  }
  const path: Idiom = { ...idiom, start: undefined }
  return fromDoc(path, compileIdiom(path))
}

const fromDoc = (expr: Expr, value = compile(expr)): SortReader => ({
  fromDoc: value,
  expr,
  read: (item) => value(item.scope)
})

const fieldNames = (e: Expr): string => (e.kind === "call" ? e.name : "")

/** Reads the row, whose fields nest by the names of a path. */
const atOutput = (idiom: Idiom): ((item: Item) => Value) => {
  const names = aliasNames(idiom)
  return (item) => names.reduce<Value>((v, name) => (isObj(v) ? field(v, name) : undefined), item.value)
}

/** One ORDER BY term, compiled. */
export interface Sort extends SortReader {
  readonly compare: (a: Value, b: Value) => number
}

/** Orders ids of rows as their tables do, like the database's planner. */
const inTableOrder = (a: Value, b: Value): number =>
  a instanceof RecordId && b instanceof RecordId ? compareRecords(a, b) : compare(a, b)

export const compileSort = (select: Select, term: OrderTerm): Sort => {
  const { collate, descending, idiom, numeric } = term
  const reader = sortReader(select, idiom)
  const byId = reader.expr !== undefined && isId(reader.expr) && isId(idiom) && !collate && !numeric
  if (!byId) return { ...reader, compare: compareTerm(term) }
  return { ...reader, compare: descending ? (a, b) => inTableOrder(b, a) : inTableOrder }
}

/**
 * Sorts rows with their sort values; equal ones by record id, without ids in their former order. Runs are sorted, then
 * merged by twos, with pauses.
 */
export function* sorted(items: Array<Item>, order: ReadonlyArray<Sort>, budget: Budget): Slices<Array<Item>> {
  const compare = (a: Item, b: Item): number => {
    for (let i = 0; i < order.length; i++) {
      const c = order[i]!.compare(a.sort[i], b.sort[i])
      if (c !== 0) return c
    }
    return a.record !== undefined && b.record !== undefined ? compareRecords(a.record, b.record) : 0
  }
  return yield* mergeSort(items, compare, (comparisons) => spendSteps(budget, (order.length * comparisons) >> 2))
}

/**
 * Fetches along a path from part `at` on: every link on it becomes its document, and lists are mapped. A link before
 * the first part, or after an index, ends the path: `SELECT VALUE author .. FETCH author` gives authors. Parts other
 * than fields, `.*`, `[$]` and indexes end it too.
 */
const fetchAt = (v: Value, parts: ReadonlyArray<Part>, at: number, scope: Scope): Value => {
  const part = parts[at]
  if (Array.isArray(v)) {
    const items = v as ReadonlyArray<Value>
    spendSteps(scope.budget, items.length)
    spendBytes(scope.budget, 8 * items.length)
    if (part === undefined || part.kind === "field") return items.map((item) => fetchAt(item, parts, at, scope))
    if (part.kind === "all") return items.map((item) => fetchAt(item, parts, at + 1, scope))
    const only = positionOf(part, items)
    return items.map((item, n) => (n === only ? fetchAt(item, parts, at + 1, scope) : item))
  }
  const id = part !== undefined && isNumbered(part) ? undefined : chargedRecordOf(v, scope)
  if (id !== undefined) {
    const doc = fetch(id, scope)
    const ends = at === 0 || parts.some((before, n) => n < at && before.kind === "index")
    return ends ? doc : fetchAt(doc, parts, at, scope)
  }
  if (!isObj(v)) return v
  if (part?.kind === "all") return mapFields(v, (item) => fetchAt(item, parts, at + 1, scope))
  if (part?.kind !== "field" || !Object.hasOwn(v, part.name)) return v
  spendSteps(scope.budget, 4 * lengthOf(v))
  spendBytes(scope.budget, 32 * lengthOf(v))
  const copy = copyOf(v)
  setField(copy, part.name, fetchAt(v[part.name], parts, at + 1, scope))
  return copy
}

/** A numeric index selects an element of a list, and nothing of a link. */
const isNumbered = (part: Part): boolean =>
  part.kind === "index" && part.index.kind === "literal" && typeof part.index.value === "number"

/** FETCH: links at the named paths become documents, path by path in the order of their texts. */
export const compileFetch = ({ fetch }: Pick<Select, "fetch">) => {
  const paths = new Map(fetch.map((idiom) => [print(idiom), idiom.parts]))
  const sorted = [...paths.keys()].sort().map((text) => paths.get(text)!)
  return (value: Value, scope: Scope): Value => sorted.reduce((row, parts) => fetchAt(row, parts, 0, scope), value)
}
