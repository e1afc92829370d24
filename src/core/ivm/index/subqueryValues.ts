/**
 * The values of an uncorrelated subquery behind IN (`author IN (SELECT VALUE out FROM follows WHERE in = $me)`), as an
 * argument that changes: views are filed under its values like under those of a list.
 *
 * State: the value of each row of the subquery, and each value with its number of rows. Rule: when the subquery
 * changes, only values that appear or disappear matter; a follower is refiled under these, and the rows that have one
 * of them are looked at again. Cost: O(changed rows of the subquery), then per follower and value the rows filed under
 * it.
 */
import { encode } from "../../surql/values/encode.ts"
import type { Value } from "../../surql/values/value.ts"
import type { ValueSetDelta } from "../delta/stepLog.ts"
import type { ListArgument, Params } from "../query/lift.ts"
import { plainKey } from "../store/denseMap.ts"
import { keyOfValues, unindexable } from "../store/indexKey.ts"
import type { RoutedView } from "./routedView.ts"

interface Held {
  readonly value: Value
  /** All values have exact keys; otherwise the followers are shown every change. */
  readonly exact: boolean
  count: number
}

export class SubqueryValues {
  /** Views that are filed by the values. */
  readonly followers = new Set<RoutedView>()
  /** Value of each row, by the row's slot. */
  private readonly given = new Map<unknown, Value>()
  private readonly held = new Map<unknown, Held>()
  private inexact = 0
  private cached: ReadonlyArray<Value> | undefined = undefined

  /** `rows`: slot and value of each row. */
  constructor(rows: ReadonlyArray<readonly [slot: unknown, value: Value]>) {
    this.update(rows.map(([slot, value]) => [slot, { value }]))
    this.renew()
  }

  renew(): void {
    this.cached = undefined
  }

  /** Each distinct value once. */
  values(): ReadonlyArray<Value> {
    return (this.cached ??= Array.from(this.held.values(), ({ value }) => value))
  }

  /**
   * Takes over the new values of changed rows; `now` undefined: the row is removed. {@link values} stay the old ones
   * until {@link renew}, so that followers can still be found by them.
   */
  update(rows: ReadonlyArray<readonly [slot: unknown, now: { readonly value: Value } | undefined]>): ValueSetDelta {
    const before = rows.flatMap(([slot]) => (this.given.has(slot) ? [this.given.get(slot)] : []))
    const after = rows.flatMap(([, now]) => (now === undefined ? [] : [now.value]))
    for (const [slot, now] of rows) {
      if (now === undefined) this.given.delete(slot)
      else this.given.set(slot, now.value)
    }
    const wasExact = this.inexact === 0
    if (!wasExact || after.some((value) => keyOfValues([value]) === unindexable)) this.values()
    const moved = new Map<unknown, { readonly held: Held; readonly was: boolean }>()
    const count = (value: Value, by: 1 | -1): void => {
      const exactKey = keyOfValues([value])
      const exact = exactKey !== unindexable
      const key = exact ? plainKey(exactKey) : `\u0004${encode(value)}`
      let held = this.held.get(key)
      if (held === undefined) this.held.set(key, (held = { value, exact, count: 0 }))
      if (!moved.has(key)) moved.set(key, { held, was: held.count > 0 })
      held.count += by
    }
    for (const value of after) count(value, 1)
    for (const value of before) count(value, -1)
    const gained: Array<Value> = [],
      lost: Array<Value> = []
    for (const [key, { held, was }] of moved) {
      if (held.count === 0) this.held.delete(key)
      if (was === held.count > 0) continue
      if (!held.exact) this.inexact += was ? -1 : 1
      if (was) lost.push(held.value)
      else gained.push(held.value)
    }
    return { gained, lost, exact: wasExact && this.inexact === 0 }
  }
}

/** The list that a query is filed by: its argument, and the maintained subquery with the values. */
export interface InList<Result extends ListResult = ListResult> {
  readonly argument: ListArgument
  readonly result: Result
}

/** A maintained result whose values are used as a list. */
interface ListResult {
  /** Shape and arguments as text: equal keys are the same result. */
  readonly key: string
  subqueryValues(): SubqueryValues
}

/** The parameters, including the list; a getter reads the list's current values. */
export const withList = (params: Params, { argument, result }: InList): Params => {
  const list = result.subqueryValues()
  return Object.defineProperty({ ...params }, argument.name, { enumerable: true, get: () => list.values() })
}
