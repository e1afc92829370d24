/**
 * What an instance shows: matching rows, pieces of rows that are split, or groups; all in one kind of result.
 *
 * Why one: order, window, ONLY, hash and delta are the same for all three. What moves differs: a row comes as it is, a row
 * that is split as its pieces, a group when the step that changed it ends.
 */
import type { Value } from "../surql/value.ts"
import { type GroupOwner, type GroupRow, Groups } from "./groups.ts"
import { type Bounds, Result } from "./result.ts"
import type { Member, Shape } from "./shape.ts"
import { movePieces, type Piece, piecesOf } from "./splits.ts"
import type { Spy } from "./spy.ts"

export type Output = Member | GroupRow

export type Shown = Pick<Result<Output>, "begin" | "finish" | "hash" | "hashNow" | "known" | "knownAt" | "knownCount" | "ordered" | "several" | "size">

export interface Outlet {
  readonly shown: Shown
  readonly groups: Groups | undefined
  /** Puts the new state of a matching row in place of its old one. */
  readonly move: (before: Member | undefined, after: Member | undefined) => void
}

const moveRow = (result: Result<Member>) => (before: Member | undefined, after: Member | undefined): void => {
  if (before === undefined) result.insert(after!)
  else if (after === undefined) result.remove(before)
  else result.replace(before, after)
}

/** The outlet of one instance; `bounds` undefined where everything is shown. */
export const outlet = (shape: Shape, bounds: Bounds | undefined, spy: Spy, owner: GroupOwner): Outlet => {
  const changed = (): void => owner.changed()
  if (shape.groups === undefined) {
    const shown = new Result<Member>(shape.kind, bounds, shape.only, spy, changed)
    return { shown, groups: undefined, move: shape.splitting === undefined ? moveRow(shown) : (before, after) => movePieces(shown, piecesOf(before), piecesOf(after)) }
  }
  const shown = new Result<GroupRow>(shape.groups.kind, bounds, shape.only, spy, changed)
  const groups = new Groups(shape.groups, shown, spy, owner, shape.reaches)
  return { shown, groups, move: (before, after) => groups.move(before, after) }
}

/** A group or a piece of a row holds its value as it was made when a record changed. */
export const madeOf = (row: Output): { readonly value: Value } | undefined => ("group" in row ? row : (row.part as Piece | undefined))
