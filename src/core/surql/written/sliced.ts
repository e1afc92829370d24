/**
 * A value as text, piece by piece with pauses: the same text that {@link Encode.encode} or {@link Json.stringify} gives
 * in one go.
 *
 * Why so: a result may be one value of a million parts, shared or not, and writing it in one turn would hold up all
 * other work. Small parts are written at once, large ones in pieces, at any depth.
 */
import { partsOf } from "../evaluate/charge.ts"
import type { Slices } from "../evaluate/scope.ts"
import * as Encode from "../values/encode.ts"
import * as Json from "../values/json.ts"
import { compareStrings } from "../values/order.ts"
import type { Obj, Value } from "../values/value.ts"
import { field, Geometry, isObj, SetValue } from "../values/value.ts"

/** Most parts of a value that is written at once. */
export const smallParts = 2048

/** Parts written, and keys sorted, between two pauses: some milliseconds of work. */
const partsPerSlice = 4 * smallParts

/** Characters of a long text written at once. */
const charsAtOnce = 64 * smallParts

type Ends = readonly [before: string, after: string]

/** How values become text. */
export interface Notation {
  readonly text: (v: Value) => string
  readonly compare: (a: string, b: string) => number
  readonly shows: (v: Value) => boolean
  readonly object: (object: Obj) => Ends
  readonly set: Ends
  readonly geometry: Ends
}

/** As {@link Encode.encode}. */
export const exactNotation: Notation = {
  text: Encode.encode,
  compare: (a, b) => (a < b ? -1 : a > b ? 1 : 0),
  shows: () => true,
  object: (object) => (Object.hasOwn(object, "$") ? ['{"$":["o",{', "}]}"] : ["{", "}"]),
  set: ['{"$":["s",', "]}"],
  geometry: ['{"$":["g",', "]}"]
}

/** As {@link Json.stringify}. */
export const plainNotation: Notation = {
  text: Json.stringify,
  compare: compareStrings,
  shows: (v) => v !== undefined,
  object: () => ["{", "}"],
  set: ["[", "]"],
  geometry: ["", ""]
}

class Writer {
  private written = 0

  constructor(
    private readonly notation: Notation,
    private readonly add: (text: string) => void
  ) {}

  *value(v: Value): Slices<void> {
    const { add, notation } = this
    const parts = partsOf(v, smallParts)
    // The value itself counts as one part: a list of numbers costs its length.
    if (this.passes(1 + parts)) yield
    if (parts <= smallParts) add(notation.text(v))
    else if (typeof v === "string") yield* this.string(v)
    else if (Array.isArray(v)) yield* this.list(v as ReadonlyArray<Value>, ["[", "]"])
    else if (v instanceof SetValue) yield* this.list(v.items, notation.set)
    else if (v instanceof Geometry) {
      add(notation.geometry[0])
      yield* this.object(v.value)
      add(notation.geometry[1])
    } else if (isObj(v)) yield* this.object(v)
    // Other types are bounded when they are made: bytes, ranges and regular expressions contain no shared parts.
    else add(notation.text(v))
  }

  /** Counts the next piece of work; answers whether a pause is due before it. */
  private passes(parts: number): boolean {
    this.written += parts
    if (this.written <= partsPerSlice) return false
    this.written = parts
    return true
  }

  private *list(items: ReadonlyArray<Value>, [before, after]: Ends): Slices<void> {
    this.add(before)
    for (let i = 0; i < items.length; i++) {
      if (i > 0) this.add(",")
      const item = items[i],
        parts = partsOf(item, smallParts)
      // Most lists have small elements, and a generator for each costs more than its text.
      if (parts > smallParts) yield* this.value(item)
      else {
        if (this.passes(1 + parts)) yield
        this.add(this.notation.text(item))
      }
    }
    this.add(after)
  }

  private *object(object: Obj): Slices<void> {
    const { add, notation } = this
    const [before, after] = notation.object(object)
    add(before)
    let first = true
    for (const key of yield* this.sorted(Object.keys(object))) {
      const value = field(object, key)
      if (!notation.shows(value)) continue
      add(first ? "" : ",")
      first = false
      yield* this.string(key)
      add(":")
      yield* this.value(value)
    }
    add(after)
  }

  private *string(text: string): Slices<void> {
    if (text.length <= charsAtOnce) return this.add(JSON.stringify(text))
    this.add('"')
    for (let from = 0, to = 0; from < text.length; from = to) {
      to = from + charsAtOnce
      // A surrogate pair is one character: half of it would be escaped.
      const last = text.charCodeAt(to - 1)
      if (last >= 0xd800 && last < 0xdc00) to++
      if (this.passes(smallParts)) yield
      this.add(JSON.stringify(text.slice(from, to)).slice(1, -1))
    }
    this.add('"')
  }

  /** Sorts small runs, then merges them. */
  private *sorted(keys: ReadonlyArray<string>): Slices<ReadonlyArray<string>> {
    const { compare } = this.notation
    let runs: Array<ReadonlyArray<string>> = []
    for (let from = 0; from < keys.length; from += smallParts) {
      if (this.passes(smallParts)) yield
      runs.push(keys.slice(from, from + smallParts).sort(compare))
    }
    while (runs.length > 1) {
      const merged: Array<ReadonlyArray<string>> = []
      for (let i = 0; i < runs.length; i += 2) merged.push(yield* this.merged(runs[i]!, runs[i + 1] ?? []))
      runs = merged
    }
    return runs[0] ?? []
  }

  private *merged(a: ReadonlyArray<string>, b: ReadonlyArray<string>): Slices<ReadonlyArray<string>> {
    const out: Array<string> = []
    for (let i = 0, j = 0; i < a.length || j < b.length; ) {
      if (this.passes(1)) yield
      out.push(j >= b.length || (i < a.length && this.notation.compare(a[i]!, b[j]!) <= 0) ? a[i++]! : b[j++]!)
    }
    return out
  }
}

/** Writes values one after the other; pauses count over all of them. */
export const writerOf = (notation: Notation, add: (text: string) => void): ((v: Value) => Slices<void>) => {
  const writer = new Writer(notation, add)
  return (v) => writer.value(v)
}
