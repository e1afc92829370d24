/**
 * Rows as a view shows them: sorted and projected only when they are read.
 */
import { Either } from "effect"
import { mergeSort } from "../../mergeSort.ts"
import { run } from "../../surql/evaluate/evaluate.ts"
import { drain, type Scope, type Slices } from "../../surql/evaluate/scope.ts"
import * as Ids from "../../surql/values/recordId.ts"
import type { Value } from "../../surql/values/value.ts"
import type { EngineContext } from "../context.ts"
import { fillPacer } from "../index/router.ts"
import { piecesOf } from "../operators/split.ts"
import type { ViewRow } from "../operators/viewRow.ts"
import type { Params } from "../query/lift.ts"
import { type Shape, sortValues } from "../query/shape.ts"
import type { RecordSlot } from "../store/recordSlot.ts"
import { type OutputRow, storedContentOf } from "./output.ts"
import type { Ranking, ResultRow } from "./view.ts"

/** The parts of a view that decide what rows show. */
export interface Showing {
  readonly plainShape: Shape
  readonly params: Params
  readonly context: EngineContext
}

const evaluated = (
  { context, params }: Showing,
  value: (scope: Scope) => Value,
  slot: RecordSlot,
  doc = slot.doc
): Value => {
  const result = run(value, context.source.scope(doc!, params, slot.id))
  return Either.isRight(result) ? result.right : undefined
}

/** The shown value of a row. */
export const contentOf = (owner: Showing, row: OutputRow): Value => {
  // The projection does not fail: it was checked when the row last changed.
  const made = storedContentOf(row)
  return made === undefined ? evaluated(owner, owner.plainShape.project, (row as ViewRow).slot) : made.value
}

/** A row with its sort values. */
interface Sortable extends Pick<ViewRow, "slot" | "sourceIndex" | "lead" | "sort"> {
  readonly row: ViewRow
}

/** Rows, other than groups, in the order of the view. `sorted`: the rows have their sort values. */
export const inOrder = (owner: Showing, rows: Iterable<ViewRow>, sorted: boolean): ReadonlyArray<ViewRow> => {
  const { sort, splitting } = owner.plainShape
  // Many subquery results have a single row.
  const isAlone = Array.isArray(rows) && rows.length < 2
  if (isAlone && splitting === undefined && (sorted || sort.length === 0)) return rows.slice()
  return drain(inOrderSliced(owner, rows, sorted))
}

/** As {@link inOrder}, with pauses; if rows change in a pause, the answer must be discarded. */
export function* inOrderSliced(
  owner: Showing,
  rows: Iterable<ViewRow>,
  sorted: boolean
): Slices<ReadonlyArray<ViewRow>> {
  const { plainShape: shape } = owner
  const viewRows = [...rows]
  if (shape.splitting !== undefined) return yield* mergeSort(viewRows.flatMap(piecesOf), shape.kind.compare)
  if (shape.sort.length === 0 || sorted) return yield* mergeSort(viewRows, shape.kind.compare)
  const isDue = fillPacer(owner.context.source),
    sortable: Array<Sortable> = []
  for (const row of viewRows) {
    const { slot, sourceIndex } = row
    if (slot.doc === undefined) continue
    const { lead, sort } = sortValues(shape, (value) => evaluated(owner, value, slot))
    sortable.push({ row, slot, sourceIndex, lead, sort })
    if (isDue()) yield
  }
  const compare = shape.kind.compare as unknown as (a: Sortable, b: Sortable) => number
  return (yield* mergeSort(sortable, compare)).map(({ row }) => row)
}

/** Rows in the form that readers get. */
export const shownRows = (owner: Showing, rows: ReadonlyArray<OutputRow>): ReadonlyArray<ResultRow> =>
  rows.map((row) => shownRow(owner, row))

/** As {@link shownRows}, each row made on demand. */
export function* shownRowsLazily(owner: Showing, rows: ReadonlyArray<OutputRow>): Generator<ResultRow, void, void> {
  for (const row of rows) yield shownRow(owner, row)
}

const shownRow = (owner: Showing, row: OutputRow): ResultRow => {
  const { key, version } = row,
    made = storedContentOf(row)
  if (made !== undefined) return { key, version, value: () => made.value }
  // Copies the slot now: when the value is asked for, the row object may show another record.
  const { slot } = row as ViewRow,
    { doc } = slot
  return { key, version, value: () => evaluated(owner, owner.plainShape.project, slot, doc) }
}

/** The order of a view that is sorted only when it is read. */
export const rankingOf = (owner: Showing, sourceIndexOf: (slot: RecordSlot) => number): Ranking => ({
  of: (key) => {
    const slot = owner.context.store.slotOf(Ids.parse(key)!)
    const { doc, version } = slot
    const { lead, sort } = sortValues(owner.plainShape, (value) => evaluated(owner, value, slot))
    const value = () => evaluated(owner, owner.plainShape.project, slot, doc)
    return { key, version, value, slot, sourceIndex: sourceIndexOf(slot), lead, sort }
  },
  compare: owner.plainShape.kind.compare as unknown as Ranking["compare"]
})
