/** A record that goes as JSON with its types is the record that comes out (D1). */
import { expect, test } from "vitest"
import * as JsonText from "../../../../src/core/jsonText.ts"
import { fromJsonTyped, toJson } from "../../../../src/core/surql/values/json.ts"
import { asSent, jsonWithTypes } from "../../../../src/core/surql/values/jsonTypes.ts"
import { identical } from "../../../../src/core/surql/values/order.ts"
import type { Obj } from "../../../../src/core/surql/values/value.ts"
import { constant } from "../engine.ts"

const records = [
  "{ id: t:1, n: 9007199254740993, f: 9007199254740994f, e: [1e16f, 9007199254740992f], zero: -0.0f, m: -9223372036854775808, small: 3, float: 2.0f, half: 0.5, dec: 1.10dec, nan: 0 / 0, inf: 1.0f / 0 }",
  "{ id: t:1, at: d'2024-01-01T00:00:00.000000001Z', text: '2024-01-01T00:00:00Z', link: t:2, for: 1h30m, u: u'018f0000-0000-7000-8000-000000000000' }",
  "{ id: t:1, list: [1, 2.0f, 'x', t:2, NONE, NULL, [t:3], { a: t:4 }], links: [t:1, t:2], deep: [[9007199254740993], [2]] }",
  "{ id: t:1, bytes: <bytes> 'ab', point: (1.5, 2.5), empty: [], nothing: {} }",
  "{ id: t:1, `a.b`: t:2, `with \\`tick`: t:3, `*`: 1h, `back\\\\slash`: 1h, `1`: 2.0f, in: { `x y`: { z: [1h] } } }"
]

test("D1 a record that goes as JSON with its types comes out as it was: exact numbers, bytes, mixed lists, odd names", () => {
  for (const text of records) {
    const doc = constant(text) as Obj
    const sent = jsonWithTypes(doc)
    expect(JsonText.write(JsonText.parse(JsonText.write(sent))), text).toBe(JsonText.write(sent))
    expect(identical(asSent(doc), doc), `${text}\n${JsonText.write(sent)}`).toBe(true)
  }
})

test("D66 the types of a change go before the digits of its JSON, which a sender may have rounded", () => {
  const json = JsonText.parse(
    '{"int":987654321987654300,"most":9223372036854776000,"float":9007199254740993,"decimal":987654321987654321,"whole":987654321987654321,"either":[987654321987654321]}'
  )
  const types = {
    int: "int 987654321987654321",
    most: "int 9223372036854775807",
    float: "float",
    decimal: "decimal",
    whole: "int",
    "either.*": "string | float"
  }
  const typed = fromJsonTyped(json, types, "plain")
  const is =
    "{ int: 987654321987654321, most: 9223372036854775807, float: 9007199254740992f, decimal: 987654321987654321dec, whole: 987654321987654321, either: [987654321987654300f] }"
  expect(identical(typed, constant(is)), JsonText.write(toJson(typed))).toBe(true)
})
