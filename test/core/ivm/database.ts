/**
 * The real database as the judge of a finished history: its records are loaded, its views' queries are run there.
 *
 * Why the answers as the database's own text: it tells types apart which JSON does not. Where the database's two
 * evaluators differ, the engine has to answer like one of them, at each place at least; where a row fails, the database
 * fails the whole statement and a view leaves the row out (D2a), so such views are not compared.
 */

import type { Engines } from "../../../kit/processes/surreal/engines.ts"
import type { View } from "../../../src/core/ivm/view/view.ts"
import { fromJson } from "../../../src/core/surql/values/json.ts"
import { render } from "../../../src/core/surql/values/text.ts"
import { field, isObj, type Obj, RecordId, type Value } from "../../../src/core/surql/values/value.ts"
import { agree, constant } from "../surql/engine.ts"
import { edgeTables, type Json, tables } from "./generateData.ts"
import type { Model } from "./model.ts"
import { mayMissFailing } from "./queryTraits.ts"

/** A record as the loader takes it: what begins with `in` is an edge. */
const line = (id: RecordId, doc: Obj): string => {
  const from = field(doc, "in"),
    to = field(doc, "out")
  const isEdge = from instanceof RecordId && to instanceof RecordId
  const names = Object.keys(doc)
    .filter((name) => name !== "id")
    .sort((a, b) => (isEdge ? 1 : -1) * (Number(b === "in") - Number(a === "in")))
  return `${id.text} { ${names.map((name) => `${name}: ${render(doc[name])}`).join(", ")} }`
}

const load = (engines: Engines, model: Model): Promise<void> =>
  engines.load(
    [...model.records.values()].map(({ doc, id }) => line(id, doc)),
    [...tables, ...edgeTables]
  )

const literal = (given: Json, path: ReadonlyArray<string>): string =>
  render(fromJson(path.reduce<unknown>((value, name) => (value as Json)[name], given)))

/** A query with its parameters written out. */
const spelled = (query: string, params: Json): string =>
  query.replace(/\$(p|o\.x|o\.y\.z|k|ids)\b/g, (_, path: string) => literal(params, path.split(".")))

/**
 * Decimals without the zeros at their end, which the database computes along; objects without fields that are NONE
 * (D2).
 */
const trimmed = (answer: string): string =>
  answer
    .replace(/(\d\.\d*?)0+dec\b/g, "$1dec")
    .replace(/\.dec\b/g, "dec")
    .replace(/\w+: NONE, /g, "")
    .replace(/(, )?\w+: NONE/g, "")

export interface Asked {
  readonly query: string
  readonly params: Json
  readonly view: View
}

const answerOf = (view: View): string => {
  const rows = view.rows().map((row) => row.value())
  return trimmed(render([view.only ? rows[0] : (rows as Value)]))
}

const rowsOf = (answer: string): ReadonlyArray<Obj> | undefined => {
  if (!answer.startsWith("[[{")) return undefined
  const [rows] = constant(answer) as ReadonlyArray<Value>
  return Array.isArray(rows) && rows.every(isObj) ? rows : undefined
}

/** The rows of an answer in the order of these ids; undefined where they are not the rows of these. */
const inOrderOf = (rows: ReadonlyArray<Obj>, ids: ReadonlyArray<string>): ReadonlyArray<Obj> | undefined => {
  const byId = new Map(rows.map((row) => [render(field(row, "id")), row]))
  const found = ids.map((id) => byId.get(id)).filter((row) => row !== undefined)
  return byId.size === rows.length && found.length === rows.length ? found : undefined
}

/**
 * Where each evaluator goes wrong at a place of its own: row by row, each field is as one of them has it. Where rows
 * have ids, these stand in the order of one of them, and a row is compared with those of its id.
 */
export const agreeInParts = (planner: string, older: string, mine: string): boolean => {
  const [a, b, own] = [rowsOf(planner), rowsOf(older), rowsOf(mine)]
  if (a === undefined || b === undefined || own === undefined || a.length !== own.length || b.length !== own.length)
    return false
  const idsOf = (rows: ReadonlyArray<Obj>) => rows.map((row) => render(field(row, "id")))
  const ids = idsOf(own)
  const isOrdered = [a, b].some((rows) => idsOf(rows).join() === ids.join())
  const [first, second] = [a, b].map((rows) => (isOrdered && inOrderOf(rows, ids)) || rows) as [typeof a, typeof b]
  return own.every((row, i) => {
    const both = [first[i]!, second[i]!]
    const names = new Set([row, ...both].flatMap((one) => Object.keys(one)))
    return [...names].every((name) => both.some((one) => render(field(one, name)) === render(field(row, name))))
  })
}

/**
 * A query of a list of records without those that are not there: of these the planner makes empty rows, which the older
 * evaluator and we leave out.
 */
const withoutMissing = (text: string, { records }: Model): string =>
  text.replace(/\bFROM \[([\w:, ]*)\]/g, (_, ids: string) => {
    const present = ids.split(", ").filter((id) => records.has(id))
    return `FROM [${present.join(", ")}]`
  })

export interface Comparison {
  readonly compared: number
  /** Views whose rows are not what both evaluators of the database answer. */
  readonly wrong: ReadonlyArray<string>
  /**
   * Views where the evaluators differ from each other and from us: one of them is wrong at least, and none is a judge.
   */
  readonly disputed: ReadonlyArray<string>
}

export const compareWithDatabase = async (
  engines: Engines,
  model: Model,
  views: Iterable<Asked>
): Promise<Comparison> => {
  await load(engines, model)
  const wrong: Array<string> = []
  const disputed: Array<string> = []
  let compared = 0
  for (const { view, params, query } of views) {
    if (view.errors().length > 0) continue
    const mine = answerOf(view)
    if (view.only && view.size === 0) continue
    const text = spelled(query, params)
    const [planner, older] = (await engines.ask(text)).map(trimmed) as [string, string]
    // A row that fails is not always found by a view (see runCase.ts), but always by the database.
    if (planner.startsWith("ERR") && mayMissFailing(query)) continue
    compared++
    if (agree(planner, mine) || agree(older, mine) || (planner !== older && agreeInParts(planner, older, mine)))
      continue
    if (planner !== older && agree(trimmed((await engines.ask(withoutMissing(text, model)))[0]), mine)) continue
    const into = planner === older ? wrong : disputed
    into.push(
      `${text}\n  planner  ${planner}\n  older    ${older}\n  engine   ${mine}\n  records\n${[...model.records.values()].map(({ doc, id }) => `    ${line(id, doc)}`).join("\n")}`
    )
  }
  return { compared, wrong, disputed }
}
