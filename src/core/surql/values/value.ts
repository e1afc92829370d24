/**
 * The value model: every value a record, a parameter or an expression can hold, as plain JavaScript where JavaScript
 * has the type and as one small immutable class per type where it has not.
 *
 * Why so: records arrive as JSON and leave as JSON, so objects, arrays, strings, booleans, null and nearly all numbers
 * stay exactly what `JSON.parse` made (no wrapping on the hot path). The rest extends {@link Special}, so one
 * `instanceof` separates a typed value from a user's object that happens to have the same keys.
 *
 * | database type | here |
 * |---|---|
 * | NONE | `undefined` |
 * | NULL | `null` |
 * | int (64-bit) | `number` when it is a safe integer (and not -0), else `bigint` |
 * | float | `number` when it is not a safe integer (1.5, 1e300, NaN, -0), else {@link Float} (`1.0`, `2f`) |
 * | decimal | {@link Decimal} |
 * | string, bool, array | `string`, `boolean`, `ReadonlyArray<Value>` |
 * | object | an object with prototype `Object.prototype` or `null`; only its own keys count |
 * | the others | the classes below |
 *
 * A value is never mutated once it is made.
 */
import type { Decimal as DecimalNumber } from "decimal.js"
import { idPrefix, keyIn } from "./names.ts"

export type Value = undefined | null | boolean | number | bigint | string | ReadonlyArray<Value> | Obj | Special

/** An object value. Keys such as `__proto__` or `constructor` are plain data: read with {@link field}. */
export type Obj = { readonly [key: string]: Value }

/** Base of every value that JSON has no type for. */
export abstract class Special {
  abstract readonly type: SpecialType
}

export type SpecialType =
  | "float"
  | "decimal"
  | "duration"
  | "datetime"
  | "uuid"
  | "bytes"
  | "set"
  | "regex"
  | "record"
  | "range"
  | "geometry"
  | "table"
  | "closure"

/** A float whose value is a safe integer: the one case a JavaScript number cannot tell from an int. */
export class Float extends Special {
  readonly type = "float"
  constructor(readonly value: number) {
    super()
  }
}

export class Decimal extends Special {
  readonly type = "decimal"
  constructor(readonly value: DecimalNumber) {
    super()
  }
}

/** A point in time: whole seconds since the Unix epoch (may be negative) and nanoseconds 0..999_999_999 after them. */
export class Datetime extends Special {
  readonly type = "datetime"
  constructor(
    readonly seconds: number,
    readonly nanos: number
  ) {
    super()
  }
}

/** A length of time, never negative: whole seconds (64 bits; a bigint beyond 2^53) and nanoseconds 0..999_999_999. */
export class Duration extends Special {
  readonly type = "duration"
  constructor(
    readonly seconds: number | bigint,
    readonly nanos: number
  ) {
    super()
  }
}

/** A uuid as 36 lower-case characters. */
export class Uuid extends Special {
  readonly type = "uuid"
  constructor(readonly text: string) {
    super()
  }
}

export class Bytes extends Special {
  readonly type = "bytes"
  constructor(readonly value: Uint8Array) {
    super()
  }
}

/** A set: `items` sorted by the total order, without equal neighbours. */
export class SetValue extends Special {
  readonly type = "set"
  constructor(readonly items: ReadonlyArray<Value>) {
    super()
  }
}

/** A regular expression by its source; compiled where it is matched. */
export class Regex extends Special {
  readonly type = "regex"
  constructor(readonly source: string) {
    super()
  }
}

/** The key part of a record id, after the colon. */
export type RecordKey = number | bigint | string | Uuid | ReadonlyArray<Value> | Obj

/** A key that is neither a number nor text, with the text of its id. */
interface OtherKey {
  readonly key: RecordKey
  readonly text: string
}

/**
 * A record id. `text` is the database's own rendering (``person:`a b` ``) and is canonical: two ids are equal exactly
 * when their texts are. Make one with `RecordId.make` or `RecordId.parse` (recordId.ts).
 *
 * Every record has an id, so an id stores only what identifies it: a number as the key, or the id's text, from which a
 * text key is read. Other parts are made on each access: a loop that needs no text should not read it.
 */
export class RecordId extends Special {
  declare readonly type: "record"
  constructor(
    readonly table: string,
    /** The key where that is a number; the text of the id where the key is text; both where it is anything else. */
    readonly raw: number | string | OtherKey
  ) {
    super()
  }

  get key(): RecordKey {
    const { raw, table } = this
    return typeof raw === "number" ? raw : typeof raw === "string" ? keyIn(raw, idPrefix(table)) : raw.key
  }

  get text(): string {
    const { raw, table } = this
    return typeof raw === "string" ? raw : typeof raw === "number" ? idPrefix(table) + raw : raw.text
  }
}

/** Whether two ids are of the same record. */
export const sameRecord = (a: RecordId, b: RecordId): boolean =>
  a === b ||
  (a.table === b.table &&
    (a.raw === b.raw || (typeof a.raw === "object" && typeof b.raw === "object" && a.raw.text === b.raw.text)))

// A process holds more record ids than any other objects, so the field that is alike in all of them is in the
// prototype.
Object.defineProperty(RecordId.prototype, "type", { value: "record" })

/** One end of a range; a missing bound is `undefined` in {@link Range}. */
export interface Bound {
  readonly value: Value
  readonly inclusive: boolean
}

export class Range extends Special {
  readonly type = "range"
  constructor(
    readonly from: Bound | undefined,
    readonly to: Bound | undefined
  ) {
    super()
  }
}

/**
 * A record range `table:from..to`, as a source or a value: the table and the range of its keys. As a value it is a
 * record whose key is a range.
 */
export class RecordRange extends Special {
  readonly type = "record"
  constructor(
    readonly table: string,
    readonly range: Range
  ) {
    super()
  }
}

/** A record id, or a range of them. */
export type RecordValue = RecordId | RecordRange

export const isRecordValue = (v: Value): v is RecordValue => v instanceof RecordId || v instanceof RecordRange

/** A geometry kept as the GeoJSON object it came as. */
export class Geometry extends Special {
  readonly type = "geometry"
  constructor(readonly value: Obj) {
    super()
  }
}

/** A table name as a value (`type::table('person')`). */
export class Table extends Special {
  readonly type = "table"
  constructor(readonly name: string) {
    super()
  }
}

/** A closure `|$a, $b| a + b` as a value; lives only while a query is evaluated. `text` as written. */
export class Closure extends Special {
  readonly type = "closure"
  constructor(
    readonly arity: number,
    /** Calls it; `directly` by a call of the language, and not by a function that got it. */
    readonly call: (args: ReadonlyArray<Value>, directly?: boolean) => Value,
    readonly text: string
  ) {
    super()
  }
}

/**
 * The own field `key` of an object, NONE when it is missing; never something inherited: that is a function, which no
 * value is, or the prototype. The name is not looked up anywhere, since filters and orders read fields all the time.
 */
export const field = (object: Obj, key: string): Value => {
  const value: unknown = object[key]
  return typeof value === "function" || (key === "__proto__" && !Object.hasOwn(object, key))
    ? undefined
    : (value as Value)
}

/** True for an object value (not null, array or {@link Special}). */
export const isObj = (value: Value): value is Obj =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Special)

/** Sets an own data property whatever its name (`__proto__` included). For objects under construction only. */
export const setField = (target: Record<string, Value>, key: string, value: Value): void => {
  if (key === "__proto__")
    Object.defineProperty(target, key, { value, enumerable: true, writable: true, configurable: true })
  else target[key] = value
}

/** A JavaScript number that is a database int. */
export const isInt = (value: Value): value is number | bigint =>
  typeof value === "bigint" || (typeof value === "number" && Number.isSafeInteger(value) && !Object.is(value, -0))

/** A float value from a JavaScript number. */
export const float = (value: number): Value =>
  Number.isSafeInteger(value) && !Object.is(value, -0) ? new Float(value) : value

/** An int value from a bigint: a plain number where it is safe. */
export const int = (value: bigint): number | bigint =>
  value >= -9007199254740991n && value <= 9007199254740991n ? Number(value) : value
