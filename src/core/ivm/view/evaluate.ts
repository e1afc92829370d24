/**
 * One row against one view: does it match, where is it in the order, and what does it show besides its record?
 *
 * Nothing else is evaluated for a changed row; the view keeps the answer.
 */
import { Either } from "effect"
import { isSmall } from "../../surql/evaluate/charge.ts"
import { run } from "../../surql/evaluate/evaluate.ts"
import type { Failure } from "../../surql/evaluate/failure.ts"
import type { Scope } from "../../surql/evaluate/scope.ts"
import { isTruthy } from "../../surql/values/order.ts"
import { payWriting, writeOut } from "../../surql/written/paid.ts"
import type { EngineContext } from "../context.ts"
import { sameResults } from "../delta/delta.ts"
import { digestOf, type Hash64 } from "../delta/hash.ts"
import { bytesKeptBy, keptBytesOf, pieceBytes } from "../keptBytes.ts"
import type { Groups } from "../operators/groups.ts"
import { splitRow } from "../operators/split.ts"
import { FullRow, isCurrent, PlainRow, type ViewRow } from "../operators/viewRow.ts"
import { type Shape, sortValues, unsorted } from "../query/shape.ts"
import type { RecordSlot } from "../store/recordSlot.ts"
import { childrenOf } from "./children.ts"
import type { Presenter } from "./presenter.ts"

/** The parts of a view that decide about a row. */
export interface Matching {
  readonly plainShape: Shape
  readonly failsAsWhole: boolean
  readonly context: EngineContext
  readonly groups: Groups | undefined
  readonly presenter: Pick<Presenter<never>, "rowOf">
  readonly watchSlot: number
  /** Rows need their ORDER BY values. */
  readonly sortsRows: boolean
}

/** The row with its entry in its group. */
export const groupedRow = (
  { context: { kept }, groups, plainShape: shape }: Matching,
  slot: RecordSlot,
  scope: Scope,
  before: ViewRow | undefined,
  sourceIndex: number
): ViewRow => {
  const { budget } = scope,
    { bytes } = budget
  const contribution = shape.groups!.grouping.of(scope)
  const { key, values } = contribution
  const keeps = bytes === budget.bytes ? 0 : keptBytesOf(bytes - budget.bytes, [key, values])
  if (keeps > 0) kept.require(keeps - bytesKeptBy(before))
  // Pays for the text of the key, which finds the group.
  if (!key.every(isSmall)) payWriting(budget, key)
  return groups!.member(slot, sourceIndex, contribution, before, keeps)
}

/** The row with its pieces. */
export const pieceRow = (
  owner: Matching,
  slot: RecordSlot,
  scope: Scope,
  before: ViewRow | undefined,
  sourceIndex: number
): ViewRow => {
  const { kept, source } = owner.context,
    { budget } = scope,
    { bytes } = budget
  const split = owner.plainShape.splitting!(scope, slot.id, source, owner.failsAsWhole)
  const keeps = bytes - budget.bytes + pieceBytes * split.contents.length
  kept.require(keeps - bytesKeptBy(before))
  return splitRow(owner, slot, sourceIndex, split, before, keeps)
}

/**
 * The row of a record in the view; `before` if nothing of it changed, undefined if it does not match. `routed`: the
 * indexed conjuncts are known to hold.
 */
export const matchRow = (
  owner: Matching,
  slot: RecordSlot,
  scope: Scope,
  before: ViewRow | undefined,
  sourceIndex: number,
  routed: boolean
): ViewRow | undefined => {
  const {
    context: { evaluating, kept, source },
    plainShape: shape,
    failsAsWhole,
    presenter: { rowOf }
  } = owner
  evaluating.begin(owner.watchSlot)
  const filter = routed ? shape.residual : shape.filter
  if (filter !== undefined && !isTruthy(filter(scope))) return undefined
  if (rowOf !== undefined) return rowOf(owner, slot, scope, before, sourceIndex)
  const { budget } = scope
  let { bytes } = budget
  const filtered = source.count
  const { lead, sort } = owner.sortsRows ? sortValues(shape, (value) => value(scope)) : unsorted
  const sorted = source.count
  let keeps = bytes === budget.bytes ? 0 : keptBytesOf(bytes - budget.bytes, [lead, sort])
  let digest: string | undefined
  let children: ViewRow["children"]
  let failure: Failure | undefined
  let sums: ReadonlyArray<Hash64> | undefined
  if (shape.checksProjection) {
    bytes = budget.bytes
    const shown = failsAsWhole ? run(shape.own, scope) : Either.right(shape.own(scope))
    // The result of a subquery keeps the projected value.
    if (failsAsWhole && Either.isRight(shown)) keeps += keptBytesOf(bytes - budget.bytes, shown.right)
    const parts: Array<string> = []
    if (Either.isLeft(shown)) parts.push((failure = shown.left).reason)
    else if (source.count > sorted) parts.push(writeOut(scope.budget, shown.right))
    // A place that depends on another record goes into the digest, like content that does.
    if (sorted > filtered) parts.push(writeOut(scope.budget, [lead, sort]))
    if (shape.children.length > 0) {
      const made = childrenOf(shape, owner.context, failsAsWhole, scope, parts)
      children = made.children
      sums = made.sums
      failure ??= made.failure
    }
    if (parts.length > 0) digest = digestOf(parts)
  }
  const same = isCurrent(before, slot) && before.digest === digest && sameResults(before.children, children)
  if (same && children === undefined) return before
  if (keeps > 0) kept.require(keeps - bytesKeptBy(before))
  if (
    keeps === 0 &&
    sourceIndex === 0 &&
    sort.length === 0 &&
    digest === undefined &&
    children === undefined &&
    failure === undefined
  )
    return new PlainRow(owner, slot, lead, before)
  const after = new FullRow(
    owner,
    slot,
    {
      key: before === undefined ? slot.id.text : before.key,
      version: slot.version,
      digest,
      children,
      sourceIndex,
      sort,
      lead,
      failure,
      keeps,
      part: undefined
    },
    sums,
    owner.context.step()
  )
  return same && before.sumHigh === after.sumHigh && before.sumLow === after.sumLow ? before : after
}
