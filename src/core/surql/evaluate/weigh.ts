/**
 * How large a value is when it is written out, although its parts may be shared.
 *
 * Why so: `[$a, $a]` costs nothing to make, and forty times in a row the value is too large to print, compare or send.
 * Whatever can be repeated (a closure, LET, a patch) is therefore weighed when it is done; sizes are remembered by
 * part, so that only new parts are looked at.
 */

import type { Value } from "../values/value.ts"
import { SetValue } from "../values/value.ts"
import { ownText, raise } from "./failure.ts"

/** Most parts of a value, counted as often as they would be written; 64 characters of a text count as one part. */
export const maxParts = 1_000_000

/** Levels a value may nest. */
export const maxLevels = 256

interface Weight {
  readonly parts: number
  readonly levels: number
}

const weights = new WeakMap<object, Weight>()

const single: Weight = { parts: 1, levels: 1 }

const sum = (items: ReadonlyArray<Value>): Weight => {
  let parts = 1,
    levels = 0
  for (const item of items) {
    const w = weight(item)
    parts += w.parts
    if (w.levels > levels) levels = w.levels
  }
  return { parts, levels: levels + 1 }
}

const weight = (v: Value): Weight => {
  if (typeof v === "string") return v.length < 64 ? single : { parts: 1 + v.length / 64, levels: 1 }
  if (typeof v !== "object" || v === null) return single
  const found = weights.get(v)
  if (found !== undefined) return found
  const items = Array.isArray(v)
    ? (v as ReadonlyArray<Value>)
    : v instanceof SetValue
      ? v.items
      : Object.getPrototypeOf(v) === Object.prototype || Object.getPrototypeOf(v) === null
        ? Object.values(v)
        : undefined
  if (items === undefined) return single
  const made = sum(items)
  weights.set(v, made)
  return made
}

/** The value, if it is one that can be written out. Cost: its new parts. */
export const checkSize = (v: Value): Value => {
  if (typeof v !== "string" && (typeof v !== "object" || v === null)) return v
  const { parts, levels } = weight(v)
  if (parts > maxParts) return raise`The query makes a value of more than ${ownText(maxParts)} parts`
  return levels > maxLevels ? raise`The query makes a value that nests deeper than ${ownText(maxLevels)} levels` : v
}
