/**
 * `type::*`: conversions, tests and record ids from parts.
 *
 * Why so: conversions are the casts under another name; `type::field` reads the document and is treated by the
 * projection too, which names the output by its argument.
 */
import { cast } from "../evaluate/cast.ts"
import { raise } from "../evaluate/failure.ts"
import { exactKind } from "../evaluate/methods.ts"
import { compileParts } from "../evaluate/paths.ts"
import type { Scope } from "../evaluate/scope.ts"
import { isNumber, toFloat } from "../values/number.ts"
import * as RecordIds from "../values/recordId.ts"
import { positionalText, rawText, render, toText } from "../values/text.ts"
import type { RecordKey, Value } from "../values/value.ts"
import {
  Bytes,
  Datetime,
  Decimal,
  Duration,
  field,
  Geometry,
  isInt,
  isObj,
  isRecordValue,
  Range,
  RecordId,
  RecordRange,
  SetValue,
  Table as TableName,
  Uuid
} from "../values/value.ts"
import type { Fn, Table } from "./define.ts"
import { define } from "./define.ts"

const conversion = (type: string): Fn => define<[Value]>(["any"], ([v]) => cast(type, v))

/** Bytes that are no UTF-8 become the replacement character. */
const lossy = new TextDecoder("utf-8", { ignoreBOM: true })

const is = (test: (v: Value) => boolean): Fn => define<[Value]>(["any"], ([v]) => test(v))

const geometry = (type: string): Fn => is((v) => v instanceof Geometry && field(v.value, "type") === type)

const table = (v: Value): Value =>
  v instanceof TableName
    ? v
    : isRecordValue(v)
      ? new TableName(v.table)
      : typeof v === "string"
        ? new TableName(v)
        : raise`Found ${toText(v)} for the table, which is not valid`

const isKey = (v: Value): v is RecordKey => isInt(v) || Array.isArray(v) || isObj(v) || v instanceof Uuid

const key = (v: Value): RecordKey => {
  if (v instanceof RecordId) return v.key
  if (isKey(v)) return v
  if (isNumber(v)) return v instanceof Decimal ? v.value.toFixed() : floatKey(toFloat(v))
  const text = rawText(v)
  return text === "" ? raise`Found '' for the Record ID but this is not a valid id` : text
}

const floatKey = (n: number): string => (Number.isFinite(n) ? positionalText(n) : String(n).replace("Infinity", "inf"))

const keyRange = (range: Range): Range => {
  for (const bound of [range.from, range.to])
    if (bound !== undefined && typeof bound.value !== "string" && !isKey(bound.value))
      return raise`Found ${render(range)} for the Record ID but this is not a valid id`
  return range
}

const record = (args: ReadonlyArray<Value>): Value => {
  const [a, b] = args
  if (args.length === 1) return cast("record", a)
  const name = rawText(a)
  if (name === "") return raise`Found '' for the table, which is not valid`
  if (b instanceof RecordRange) return new RecordRange(name, b.range)
  if (b instanceof Range) return new RecordRange(name, keyRange(b))
  return RecordIds.make(name, key(b))
}

const isRecord = (v: Value, name: Value): boolean =>
  isRecordValue(v) && (name === undefined || v.table === toText(name))

/** Reads a dotted path of the document. */
const path = (v: Value, scope: Scope): Value =>
  typeof v === "string"
    ? compileParts(v.split(".").map((name) => ({ kind: "field", name }) as const))(scope.doc, scope)
    : raise`Incorrect arguments for function type::field(). Argument 1 was the wrong type. Expected \`string\` but found \`${render(v)}\``

const convertible = [
  "array",
  "bool",
  "bytes",
  "datetime",
  "decimal",
  "duration",
  "float",
  "geometry",
  "int",
  "number",
  "point",
  "range",
  "set",
  "string",
  "uuid"
]

export const type: Table = {
  ...Object.fromEntries(convertible.map((t) => [`type::${t}`, conversion(t)])),
  "type::set": define<[Value]>(["any"], ([v]) =>
    v instanceof Range || v instanceof Bytes
      ? raise`Could not cast into \`set\` using input \`${render(v)}\``
      : cast("set", v)
  ),
  "type::string_lossy": define<[Value]>(["any"], ([v]) =>
    v instanceof Bytes ? lossy.decode(v.value) : cast("string", v)
  ),
  "type::table": define<[Value]>(["any"], ([v]) => table(v)),
  "type::record": define<ReadonlyArray<Value>>(["any", "?any"], record),
  "type::field": define<[Value]>(["any"], ([v], scope) => path(v, scope), { reads: true }),
  "type::fields": define<[ReadonlyArray<Value>]>(["array"], ([a], scope) => a.map((v) => path(v, scope)), {
    reads: true
  }),
  "type::of": define<[Value]>(["any"], ([v]) => exactKind(v)),
  "type::is_array": is(Array.isArray),
  "type::is_bool": is((v) => typeof v === "boolean"),
  "type::is_bytes": is((v) => v instanceof Bytes),
  "type::is_collection": geometry("GeometryCollection"),
  "type::is_datetime": is((v) => v instanceof Datetime),
  "type::is_decimal": is((v) => v instanceof Decimal),
  "type::is_duration": is((v) => v instanceof Duration),
  "type::is_float": is((v) => isNumber(v) && !isInt(v) && !(v instanceof Decimal)),
  "type::is_geometry": is((v) => v instanceof Geometry),
  "type::is_int": is(isInt),
  "type::is_line": geometry("LineString"),
  "type::is_multiline": geometry("MultiLineString"),
  "type::is_multipoint": geometry("MultiPoint"),
  "type::is_multipolygon": geometry("MultiPolygon"),
  "type::is_none": is((v) => v === undefined),
  "type::is_null": is((v) => v === null),
  "type::is_number": is(isNumber),
  "type::is_object": is(isObj),
  "type::is_point": geometry("Point"),
  "type::is_polygon": geometry("Polygon"),
  "type::is_range": is((v) => v instanceof Range),
  "type::is_record": define<[Value, Value?]>(["any", "?string"], ([v, name]) => isRecord(v, name)),
  "type::is_set": is((v) => v instanceof SetValue),
  "type::is_string": is((v) => typeof v === "string"),
  "type::is_uuid": is((v) => v instanceof Uuid)
}
