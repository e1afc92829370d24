/**
 * SPLIT, row by row: the pieces of a matching row, and how the pieces of its new state replace the old ones.
 *
 * Rule: a piece is named by its record and its position among the record's pieces, before ORDER BY or LIMIT (`t:1`,
 * `t:1#2`, ..), so a position keeps its name. Cost per changed row: its pieces, O(log n) each in a window. In a view a
 * failing piece is left out alone (D2a); in the result of a subquery it fails when it is shown, as in the plain
 * evaluator, which projects `SELECT VALUE` after the window and rows before they are split.
 */
import { Either } from "effect"
import { run } from "../../surql/evaluate/evaluate.ts"
import { type Failure, isSame } from "../../surql/evaluate/failure.ts"
import type { Scope } from "../../surql/evaluate/scope.ts"
import { compileProjection } from "../../surql/evaluate/select/project.ts"
import { compileFetch, compileSort, docSplitter, rowSplitter } from "../../surql/evaluate/select/reshape.ts"
import type { Item } from "../../surql/evaluate/select/sources.ts"
import type { Select } from "../../surql/syntax/ast.ts"
import { identical } from "../../surql/values/order.ts"
import type { RecordId, Value } from "../../surql/values/value.ts"
import { writeOut } from "../../surql/written/paid.ts"
import { digestOf, rowHash } from "../delta/hash.ts"
import type { RecordSlot } from "../store/recordSlot.ts"
import type { RowKind, TakesRows } from "./resultSet.ts"
import { FullRow, isCurrent, type Piece, type ViewRow } from "./viewRow.ts"

interface Content extends Piece {
  readonly sort: ReadonlyArray<Value>
  readonly digest: string | undefined
  readonly failure: Failure | undefined
}

interface Pieces {
  readonly contents: ReadonlyArray<Content>
  /** Why the piece is left out; undefined if it is shown. */
  readonly left: Failure | undefined
}

/** Splits the row in scope. */
export type Splitting = (scope: Scope, record: RecordId, source: CountsReads, failsAsWhole: boolean) => Pieces

/** The source that an evaluation reads from; counts reads of other records. */
interface CountsReads {
  readonly count: number
}

export const compileSplitting = (select: Select): Splitting => {
  const { project } = compileProjection(select)
  const order = select.order.map((term) => compileSort(select, term))
  const splitters = select.split.map(select.value ? docSplitter : rowSplitter)
  const fetch = select.fetch.length === 0 ? undefined : compileFetch(select)
  const projected = (item: Item): Item => ({ ...item, value: project(item.scope) })
  return (scope, record, source, failsAsWhole) => {
    const whole: Item = { scope, record, value: undefined, sort: [] }
    const filtered = source.count
    const items = splitters.reduce<ReadonlyArray<Item>>(
      (some, split) => some.flatMap(split),
      [select.value ? whole : projected(whole)]
    )
    const splitReads = source.count > filtered
    const contents: Array<Content> = []
    let left: Failure | undefined
    /** Content of one piece. The database reads sort values of all rows, so a failing one fails the whole result. */
    const content = (item: Item, position: number): Content => {
      const before = source.count
      let shown = item,
        failure: Failure | undefined
      if (select.value) {
        const value = run(project, item.scope)
        if (Either.isRight(value)) shown = { ...item, value: value.right }
        else failure = value.left
      }
      const sortFrom = source.count
      const sort = order.map((term) => term.read(shown))
      const sorted = source.count
      const value = fetch === undefined ? shown.value : fetch(shown.value, scope)
      const reads = splitReads || sortFrom > before || source.count > sorted
      const parts = [
        ...(failure === undefined ? (reads ? [writeOut(scope.budget, value)] : []) : [failure.reason]),
        ...(sorted > sortFrom ? [writeOut(scope.budget, sort)] : [])
      ]
      return { position, value, sort, digest: parts.length === 0 ? undefined : digestOf(parts), failure }
    }
    items.forEach((item, position) => {
      if (failsAsWhole) return contents.push(content(item, position))
      let made: Content | undefined
      const outcome = run(() => void (made = content(item, position)), item.scope)
      const failed = Either.isLeft(outcome) ? outcome.left : made?.failure
      if (failed === undefined) contents.push(made!)
      else left ??= failed
    })
    return { contents, left }
  }
}

const samePieces = (a: ReadonlyArray<ViewRow>, b: ReadonlyArray<ViewRow>): boolean =>
  a.length === b.length &&
  a.every(
    (piece, i) =>
      piece.key === b[i]!.key &&
      piece.digest === b[i]!.digest &&
      isSame(piece.failure, b[i]!.failure) &&
      identical(contentOf(piece).value, contentOf(b[i]!).value)
  )

/** The split row; `before` if nothing of it changed. */
export const splitRow = (
  owner: object,
  slot: RecordSlot,
  sourceIndex: number,
  { contents, left }: Pieces,
  before: ViewRow | undefined,
  keeps: number
): ViewRow => {
  const member = (
    key: string,
    part: ViewRow["part"],
    { digest, failure, sort }: Pick<Content, "digest" | "failure" | "sort">,
    keeps = 0
  ): ViewRow =>
    new FullRow(owner, slot, {
      key,
      version,
      digest,
      children: undefined,
      sourceIndex,
      sort,
      lead: undefined,
      failure,
      keeps,
      part
    })
  const {
    id: { text },
    version
  } = slot
  const pieces = contents.map((content) =>
    member(
      content.position === 0 ? text : `${text}#${content.position + 1}`,
      { position: content.position, value: content.value },
      content
    )
  )
  if (isCurrent(before, slot) && isSame(before.failure, left) && samePieces(piecesOf(before), pieces)) return before
  return member(text, pieces, { digest: undefined, failure: left, sort: [] }, keeps)
}

const none: ReadonlyArray<ViewRow> = []

/** The pieces of a split row. */
export const piecesOf = (row: ViewRow | undefined): ReadonlyArray<ViewRow> =>
  (row?.part as ReadonlyArray<ViewRow> | undefined) ?? none

const contentOf = (piece: ViewRow): Piece => piece.part as Piece

/** Replaces the pieces of a row's old state by those of its new one. */
export const movePieces = (
  result: TakesRows<ViewRow>,
  before: ReadonlyArray<ViewRow>,
  after: ReadonlyArray<ViewRow>
): void => {
  for (let i = 0, j = 0; i < before.length || j < after.length; ) {
    const old = before[i],
      now = after[j]
    const order = old === undefined ? 1 : now === undefined ? -1 : contentOf(old).position - contentOf(now).position
    if (order === 0) result.replace(old!, now!)
    else if (order < 0) result.remove(old!)
    else result.insert(now!)
    if (order <= 0) i++
    if (order >= 0) j++
  }
}

/** Pieces in the order of their rows, each with a hash of its own. */
export const piecesKind = (compare: RowKind<ViewRow>["compare"]): RowKind<ViewRow> => ({
  compare: (a, b) => compare(a, b) || contentOf(a).position - contentOf(b).position,
  hash: (piece) => rowHash(piece.key, piece.version, piece.digest)
})
