/**
 * Record ids and values made to break quoting, typing and storage, drawn from a seed.
 *
 * Why generated: a list of odd names shows what somebody thought of; here quotes, fragments of the query language,
 * control characters and whole values meet in every order. What the database itself cannot hold or read back is not
 * drawn, and each such thing is named here.
 */

import { makeSet } from "../../src/core/surql/values/makeSet.ts"
import { WideDecimal } from "../../src/core/surql/values/number.ts"
import * as Ids from "../../src/core/surql/values/recordId.ts"
import {
  Bytes,
  Datetime,
  Decimal,
  Duration,
  Float,
  Geometry,
  int,
  type Obj,
  type RecordKey,
  setField,
  Uuid,
  type Value
} from "../../src/core/surql/values/value.ts"
import type { Rng } from "./random.ts"

const pieces: ReadonlyArray<string> = [
  "'",
  '"',
  "`",
  "⟨",
  "⟩",
  "\\",
  "\\'",
  "\\`",
  "\\u0027",
  "/",
  "//",
  "--",
  "#",
  ";",
  ":",
  "::",
  ".",
  "..",
  "*",
  "$",
  "$record",
  "${x}",
  "%",
  "%27",
  "{",
  "}",
  "[",
  "]",
  "(",
  ")",
  "<",
  ">",
  "|",
  "&",
  "=",
  "~",
  "?",
  "@",
  "\u0000",
  "\u0001",
  "\b",
  "\t",
  "\n",
  "\r",
  "\u001b[31m",
  "\u007f",
  "\u0085",
  "\u2028",
  "\ufeff",
  "\ufffd",
  "\u202e",
  "ä",
  "ﬀ",
  "İ",
  "😀",
  "e\u0301",
  "\u{10ffff}",
  " ",
  "a",
  "A",
  "0",
  "01",
  "-1",
  "1e3",
  "9223372036854775807",
  "9223372036854775808",
  "NaN",
  "Infinity",
  "true",
  "NONE",
  "NULL",
  "null",
  "none",
  "item",
  "item:1",
  "r'item:1'",
  "u'018f4e2a-0000-7000-8000-000000000000'",
  "d'2020-01-01T00:00:00Z'",
  "2020-01-01T00:00:00Z",
  "1h",
  "1.5dec",
  "rand()",
  "uuid()",
  "ulid()",
  "__proto__",
  "constructor",
  "toString",
  "$",
  "id",
  "_svc_rv",
  "_svc_query",
  "'; REMOVE TABLE canary; --",
  "`; REMOVE TABLE canary; --",
  "⟩; DELETE canary; --",
  '"; DELETE canary RETURN BEFORE; "',
  "') RETURN (DELETE canary",
  "}; REMOVE DATABASE d; {",
  "item:1; THROW 'x'",
  "</script><script>alert(1)</script>",
  "\r\nx-injected: 1\r\n\r\n"
]

/** A lone surrogate is no text to a database that keeps UTF-8, so none is drawn. */
const text = (random: Rng): string => Array.from({ length: random.below(5) }, () => random.pick(pieces)).join("")

const uuid = (random: Rng): Uuid =>
  new Uuid(
    `${Array.from({ length: 8 }, () => random.below(16).toString(16)).join("")}-0000-7000-8000-${random
      .below(2 ** 32)
      .toString(16)
      .padStart(12, "0")}`
  )

const integer = (random: Rng): Value =>
  random.pick([
    0,
    1,
    -1,
    42,
    2 ** 53 - 1,
    1 - 2 ** 53,
    int(-9007199254740992n),
    int(9223372036854775807n),
    int(-9223372036854775808n),
    int(9007199254740993n)
  ])

/** The database cannot read back an id that holds an object with an empty field name (3.0.2). */
const keyPart = (random: Rng, depth: number): Value => {
  if (depth === 0 || random.chance(0.6))
    return random.pick<() => Value>([
      () => text(random),
      () => integer(random),
      () => uuid(random),
      () => random.chance(0.5),
      () => null
    ])()
  if (random.chance(0.5)) return Array.from({ length: random.below(4) }, () => keyPart(random, depth - 1))
  return object(
    random,
    () => keyPart(random, depth - 1),
    () => `k${text(random)}`
  )
}

const object = (random: Rng, part: () => Value, name: () => string): Obj => {
  const fields: Record<string, Value> = {}
  for (let i = random.below(4); i > 0; i--) setField(fields, name(), part())
  return fields
}

export const key = (random: Rng): RecordKey => {
  const kind = random.below(10)
  if (kind < 6) return text(random)
  if (kind === 6) return integer(random) as RecordKey
  if (kind === 7) return uuid(random)
  const part = keyPart(random, 2)
  return kind === 8 ? [text(random), part] : { [`k${text(random)}`]: part }
}

const scalar = (random: Rng): Value =>
  random.pick<() => Value>([
    () => text(random),
    () => text(random),
    () => integer(random),
    () => random.chance(0.5),
    () => null,
    () => new Float(random.below(5)),
    () => random.next() * 1e6,
    () =>
      new Decimal(
        new WideDecimal(
          random.pick(["1.5", "0", "-0.1", "79228162514264337593543950335", "0.1234567890123456789012345678"])
        )
      ),
    () => random.pick([NaN, Infinity, -Infinity, 5e-324, 1.7976931348623157e308, 1e21]),
    () => new Bytes(Uint8Array.from({ length: random.below(5) }, () => random.below(256))),
    () => new Datetime(random.below(2 ** 31), random.below(1e9)),
    () => new Duration(random.below(1e6), random.below(1e9)),
    () => uuid(random),
    () => Ids.make("item", key(random)),
    () => new Geometry({ type: "Point", coordinates: [new Float(random.below(90)), random.below(90) + 0.5] })
  ])()

const value = (random: Rng, depth: number): Value => {
  const kind = depth === 0 ? 0 : random.below(8)
  if (kind < 4) return scalar(random)
  const items = (): Array<Value> => Array.from({ length: random.below(4) }, () => value(random, depth - 1))
  return kind < 6
    ? object(
        random,
        () => value(random, depth - 1),
        () => text(random)
      )
    : kind === 6
      ? items()
      : makeSet(items())
}

/** Fields of their own names: the reserved one (D4) is not content. */
export const content = (random: Rng): Obj => {
  const fields = object(
    random,
    () => value(random, 2),
    () => text(random)
  )
  const { id: _id, _svc_rv: _version, ...rest } = fields
  return rest
}

export const viewKey = (random: Rng): string => `v${text(random)}`
