/**
 * What an instance shows: matching rows, pieces of rows that are split, or groups; all in one kind of result.
 *
 * Why one: order, window, ONLY, hash and delta are the same for all three. What moves differs: a row comes as it is, a row
 * that is split as its pieces, a group when the step that changed it ends.
 */
import type { Value } from "../surql/value.ts"
import { type GroupOwner, type GroupRow, Groups } from "./groups.ts"
import type { Member } from "./member.ts"
import { type Bounds, Result, type ResultSurroundings } from "./result.ts"
import type { Shape } from "./shape.ts"
import type { Piece } from "./splits.ts"

export type Output = Member | GroupRow

export type Shown = Pick<Result<Output>, "begin" | "finish" | "hash" | "high" | "known" | "knownAt" | "knownCount" | "low" | "ordered" | "several" | "size">

export interface Outlet {
  readonly shown: Shown
  readonly groups: Groups | undefined
  /** The result again, where it is of rows or pieces of rows. */
  readonly rows: Result<Member> | undefined
}

/** The outlet of one instance; `bounds` undefined where everything is shown. */
export const outlet = (shape: Shape, bounds: Bounds | undefined, around: ResultSurroundings, owner: GroupOwner): Outlet => {
  if (shape.groups === undefined) {
    const rows = new Result<Member>(shape.kind, bounds, shape.only, around, owner)
    return { shown: rows, groups: undefined, rows }
  }
  const shown = new Result<GroupRow>(shape.groups.kind, bounds, shape.only, around, owner)
  return { shown, groups: new Groups(shape.groups, shown, around.spy, owner, shape.reaches), rows: undefined }
}

/** A group or a piece of a row holds its value as it was made when a record changed. */
export const madeOf = (row: Output): { readonly value: Value } | undefined => ("group" in row ? row : (row.part as Piece | undefined))
