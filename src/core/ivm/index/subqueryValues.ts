/**
 * The values of an uncorrelated subquery behind IN (`author IN (SELECT VALUE out FROM follows WHERE in = $me)`), as an
 * argument that changes: views are filed under its values like under those of a list.
 *
 * State: what each row of the subquery gives, and each value with how many rows give it. Rule: when the subquery moves,
 * only the values that come or go concern anybody; a follower is refiled under those, and the rows that have one of
 * them are looked at again. Cost: O(rows of the subquery that moved), then per follower and value the rows filed under
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
  /** It can be filed under; else its followers are shown every change. */
  readonly exact: boolean
  count: number
}

export class SubqueryValues {
  /** The views filed by it. */
  readonly followers = new Set<RoutedView>()
  /** What each row gives, by its slot. */
  private readonly given = new Map<unknown, Value>()
  private readonly held = new Map<unknown, Held>()
  private inexact = 0
  private cached: ReadonlyArray<Value> | undefined = undefined

  /** Slots of rows, and the value that each gives. */
  constructor(rows: ReadonlyArray<readonly [slot: unknown, value: Value]>) {
    this.turn(rows.map(([slot, value]) => [slot, { value }]))
    this.renew()
  }

  renew(): void {
    this.cached = undefined
  }

  /** Each value once. */
  values(): ReadonlyArray<Value> {
    return (this.cached ??= Array.from(this.held.values(), ({ value }) => value))
  }

  /**
   * Takes over what rows that moved give now; undefined: nothing any more. {@link values} stay as they were until
   * {@link renew}, so that followers can be found.
   */
  turn(rows: ReadonlyArray<readonly [slot: unknown, now: { readonly value: Value } | undefined]>): ValueSetDelta {
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

/** The list a query is filed by, and the maintained subquery that gives it. */
export interface List<Result extends ListResult = ListResult> {
  readonly argument: ListArgument
  readonly result: Result
}

/** A maintained result whose values are a list. */
interface ListResult {
  /** Shape and arguments as text. */
  readonly key: string
  subqueryValues(): SubqueryValues
}

/** The parameters with the list among them, always as it is now. */
export const withList = (params: Params, { argument, result }: List): Params => {
  const list = result.subqueryValues()
  return Object.defineProperty({ ...params }, argument.name, { enumerable: true, get: () => list.values() })
}
