/**
 * All functions of the language by name.
 *
 * Why so: one table, so that the parser can refuse unknown names with the closest known ones, the analysis knows what
 * is pure, and the list in `docs/language.md` is generated. It is filled on first use, because the families import
 * parts of the evaluator that import this table.
 */
import { address } from "../functions/address.ts"
import { array } from "../functions/array.ts"
import { base } from "../functions/base.ts"
import { costOf } from "../functions/costs.ts"
import { crypto } from "../functions/crypto.ts"
import type { Fn } from "../functions/define.ts"
import { geo } from "../functions/geo.ts"
import { higher } from "../functions/higher.ts"
import { math } from "../functions/math.ts"
import { object } from "../functions/object.ts"
import { record } from "../functions/record.ts"
import { set } from "../functions/set.ts"
import { statistics } from "../functions/statistics.ts"
import { encoding } from "../functions/strings/encoding.ts"
import { similarity } from "../functions/strings/similarity.ts"
import { string } from "../functions/strings/string.ts"
import { stringTests } from "../functions/strings/stringTests.ts"
import { duration } from "../functions/times/duration.ts"
import { time } from "../functions/times/time.ts"
import { type } from "../functions/type.ts"
import { value } from "../functions/value.ts"
import { vector } from "../functions/vector.ts"
import { volatile } from "../functions/volatile.ts"

/** A function that charges its cost before each call. */
const charged = (name: string, fn: Fn): Fn => {
  const cost = costOf(name)
  return fn.constant !== undefined
    ? fn
    : {
        ...fn,
        call: (args, scope, path) => {
          cost(scope.budget, args)
          return fn.call(args, scope, path)
        }
      }
}

let table: ReadonlyMap<string, Fn> | undefined

const all = (): ReadonlyMap<string, Fn> =>
  (table ??= new Map(
    [
      address,
      array,
      base,
      crypto,
      duration,
      encoding,
      geo,
      higher,
      math,
      object,
      record,
      set,
      similarity,
      statistics,
      string,
      stringTests,
      time,
      type,
      value,
      vector,
      volatile
    ]
      .flatMap((family) => Object.entries(family))
      .map(([name, fn]) => [name, charged(name, fn)])
  ))

/** Name (lower case, full path) to function. */
export const functions = {
  get: (name: string): Fn | undefined => all().get(name),
  has: (name: string): boolean => all().has(name),
  keys: (): IterableIterator<string> => all().keys() as IterableIterator<string>
}
