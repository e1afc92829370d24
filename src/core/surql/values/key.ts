/**
 * Map keys: a primitive per value such that two values have the same key exactly when they are equal (`=`).
 *
 * Why so: every index, group and set of the engine is a JavaScript Map; strings, record ids and plain numbers are their
 * own keys, because nearly all keys are these. Any other value becomes a string that starts with U+0000; a user's
 * string that does is escaped.
 */

import { toDecimal, WideDecimal } from "./number.ts"
import { sortedKeys } from "./order.ts"
import * as Text from "./text.ts"
import type { Obj, Value } from "./value.ts"
import { Datetime, Decimal, Duration, Float, field, RecordId, SetValue, Special, Uuid } from "./value.ts"

const numberKey = (v: bigint | Decimal): number | string => {
  if (typeof v === "bigint") {
    const near = Number(v)
    return BigInt(near) === v ? near : `\u0000n${v}`
  }
  const exact = v.value,
    near = exact.toNumber()
  return toDecimal(near).eq(exact) ? near : "\u0000n" + new WideDecimal(exact).toFixed()
}

/** A key for one value (see above). NaN is equal to itself, as Map has it. */
export const indexKey = (v: Value): unknown => {
  switch (typeof v) {
    case "string":
      return v.charCodeAt(0) === 0 ? "\u0000s" + v : v
    case "number":
      return v === 0 ? 0 : v
    case "bigint":
      return numberKey(v)
    case "object":
      if (v instanceof RecordId) return v.text
      if (v instanceof Float) return v.value
      if (v instanceof Decimal) return numberKey(v)
      return v === null ? null : "\u0000" + complex(v)
    default:
      return v
  }
}

const part = (v: Value): string => {
  const key = indexKey(v)
  if (typeof key === "string") return "s" + key.length + ":" + key
  return key === undefined
    ? "N"
    : key === null
      ? "L"
      : typeof key === "boolean"
        ? key
          ? "T"
          : "F"
        : "n" + String(key) + ";"
}

const parts = (items: ReadonlyArray<Value>): string => {
  let out = ""
  for (const item of items) out += part(item)
  return out
}

const complex = (v: ReadonlyArray<Value> | Obj | Special): string => {
  if (Array.isArray(v)) return "[" + parts(v)
  if (v instanceof Datetime) return `t${v.seconds}.${v.nanos}`
  if (v instanceof Duration) return `u${v.seconds}.${v.nanos}`
  if (v instanceof Uuid) return "i" + v.text
  if (v instanceof SetValue) return "{" + parts(v.items)
  if (v instanceof Special) return "x" + v.type + Text.render(v)
  let out = "o"
  for (const key of sortedKeys(v as Obj)) out += part(key) + part(field(v as Obj, key))
  return out
}

/** One key for several values, in order. */
export const compositeKey = (values: ReadonlyArray<Value>): unknown =>
  values.length === 1 ? indexKey(values[0]) : "\u0000[" + parts(values)
