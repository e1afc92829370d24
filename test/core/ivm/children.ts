/**
 * The rows of subqueries as a client that follows deltas holds them: which child stands under which parent and alias.
 *
 * Why occurrences: the same child may stand in several places, and in one place several times, so what is held is
 * counted. What must be there is read off the plain result; queries whose children do not show their ids are not
 * followed.
 */

import type { Delta } from "../../../src/core/ivm/delta/delta.ts"
import type { Select } from "../../../src/core/surql/syntax/ast.ts"
import { print } from "../../../src/core/surql/syntax/print.ts"
import { encode } from "../../../src/core/surql/values/encode.ts"
import { field, isObj, RecordId, type Value } from "../../../src/core/surql/values/value.ts"

export interface Occurrence {
  readonly version: number
  readonly text: string
}

/** By `alias, parent, child`. */
export type Places = Map<string, ReadonlyArray<Occurrence>>

export const placeOf = (alias: string, parent: string, child: string): string => `${alias} of ${parent}: ${child}`

const childSelects = (select: Select): ReadonlyArray<readonly [alias: string, select: Select]> =>
  select.fields.flatMap((one) =>
    one.kind === "expr" && one.expr.kind === "subquery" && one.expr.query.kind === "select" && one.alias !== undefined
      ? [[print(one.alias), one.expr.query] as const]
      : []
  )

/** Subqueries inside an expression are no children of their own. */
const followable = (select: Select): boolean =>
  select.group === undefined &&
  !select.only &&
  select.split.length === 0 &&
  select.fetch.length === 0 &&
  select.omit.length === 0 &&
  (!select.value || (select.fields[0]?.kind === "expr" && print(select.fields[0].expr) === "id")) &&
  new Set(select.fields.map((one) => (one.kind === "all" ? "*" : print(one.alias ?? one.expr)))).size ===
    select.fields.length &&
  (select.value || select.fields.some((one) => one.kind === "all" || print(one.expr) === "id")) &&
  childSelects(select).every(
    ([, inner]) => followable(inner) && inner.from.length === 1 && inner.from[0]?.kind === "table"
  )

/** The reader of a query's children, undefined where they cannot be told from its rows. */
export const childrenOf = (
  select: Select,
  versionOf: (id: string) => number
): ((rows: Iterable<readonly [key: string, value: Value]>) => Places) | undefined => {
  if (
    select.value ||
    select.group !== undefined ||
    childSelects(select).length === 0 ||
    !followable({ ...select, fields: [{ kind: "all", at: 0 }, ...select.fields.filter((one) => one.kind === "expr")] })
  )
    return undefined
  const read = (places: Places, own: Select, key: string, row: Value): void => {
    if (!isObj(row)) return
    for (const [alias, inner] of childSelects(own)) {
      const shown = field(row, alias)
      for (const child of Array.isArray(shown) ? (shown as ReadonlyArray<Value>) : []) {
        const id = inner.value ? child : isObj(child) ? field(child, "id") : undefined
        if (!(id instanceof RecordId)) throw new Error(`a child without an id: ${encode(child)}`)
        const place = placeOf(alias, key, id.text)
        places.set(place, [...(places.get(place) ?? []), { version: versionOf(id.text), text: encode(child) }])
        read(places, inner, id.text, child)
      }
    }
  }
  return (rows) => {
    const places: Places = new Map()
    for (const [key, value] of rows) read(places, select, key, value)
    return places
  }
}

const versions = (list: ReadonlyArray<Occurrence> | undefined): string =>
  (list ?? [])
    .map(({ version }) => version)
    .sort((a, b) => a - b)
    .join(" ")

/**
 * What is wrong with the children a delta speaks of; undefined when it leads from one state to the next. `moved` names
 * changed records.
 */
export const childrenFault = (
  before: Places,
  now: Places,
  entries: Delta["subqueries"],
  moved: ReadonlySet<string>
): string | undefined => {
  const held = new Map([...before].map(([place, list]) => [place, list.map(({ version }) => version)]))
  const updated = new Set<string>()
  for (const { alias, id, op, parent, version } of entries) {
    const place = placeOf(alias, parent, id)
    const list = held.get(place) ?? []
    if (op !== "add" && list.length === 0) return `${op} of ${place}, which was not there`
    if (op === "add") list.push(version)
    else if (op === "remove") list.pop()
    else {
      list.sort((a, b) => a - b)[0] = version
      updated.add(place)
    }
    held.set(place, list)
  }
  for (const place of new Set([...held.keys(), ...now.keys()])) {
    const got = (held.get(place) ?? [])
        .slice()
        .sort((a, b) => a - b)
        .join(" "),
      wanted = versions(now.get(place))
    if (got !== wanted) return `${place}: the deltas lead to versions [${got}], the result has [${wanted}]`
    const texts = (list: ReadonlyArray<Occurrence> | undefined): string =>
      (list ?? [])
        .map(({ text }) => text)
        .sort()
        .join("\n")
    const same = versions(before.get(place)) === wanted && texts(before.get(place)) === texts(now.get(place))
    // A row whose children have changed is told with its own version, shown content or not (D11); so is one that stays
    // while the parent changed and with it the whole result it stood in.
    const byChild =
      entries.some((entry) => place.endsWith(`: ${entry.parent}`)) ||
      [...moved].some((id) => place.includes(` of ${id}: `))
    if (same && updated.has(place) && !byChild)
      return `an update of ${place} is announced and nothing of it has changed`
    if (
      !updated.has(place) &&
      before.get(place)?.length === now.get(place)?.length &&
      !same &&
      !entries.some((entry) => placeOf(entry.alias, entry.parent, entry.id) === place)
    )
      return `${place} has changed without a word`
  }
  return undefined
}
