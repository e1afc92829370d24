/**
 * Values of every kind as constants of the language, edges first: what the scalar campaign hands to functions,
 * operators and casts.
 *
 * Why so: faults sit at edges (ties, limits of 64 bits, text beyond Latin, empty collections), so every pool is a list
 * of them with something random behind. Nothing here makes the database take gigabytes: counts are small, and large
 * numbers go where no count does.
 */
import type { Rng } from "../../../kit/data/random.ts"

/** Draws one constant. */
export type Pool = (random: Rng) => string

const of =
  (...texts: ReadonlyArray<string>): Pool =>
  (random) =>
    random.pick(texts)

const either =
  (...pools: ReadonlyArray<Pool>): Pool =>
  (random) =>
    random.pick(pools)(random)

const upTo =
  (most: number, pool: Pool): ((random: Rng) => ReadonlyArray<string>) =>
  (random) =>
    Array.from({ length: random.below(most + 1) }, () => pool(random))

const list =
  (pool: Pool, most = 5): Pool =>
  (random) =>
    `[${upTo(most, pool)(random).join(", ")}]`

export const small: Pool = of("0", "1", "-1", "2", "3", "5", "7", "10", "-2", "-3", "-10", "100")

/** Small enough to be a count, a place or a size. */
export const count: Pool = either(small, of("0", "1", "2", "3", "4", "6", "-1", "-4", "20", "1f", "2dec"))

const edgeInt: Pool = of(
  "9007199254740991",
  "9007199254740992",
  "9007199254740993",
  "-9007199254740993",
  "9223372036854775807",
  "9223372036854775806",
  "-9223372036854775808",
  "-9223372036854775807",
  "2147483648",
  "4294967295",
  "4294967296",
  "255",
  "1000000007"
)

export const int: Pool = either(small, small, edgeInt, (random) => String(random.below(2001) - 1000))

const tie: Pool = (random) =>
  `${random.chance(0.5) ? "-" : ""}${random.below(100)}.${random.pick(["5", "25", "125", "375", "05", "45", "75", "005"])}f`

export const float: Pool = either(
  of(
    "0f",
    "-0f",
    "1f",
    "-1f",
    "2f",
    "0.5f",
    "1.5f",
    "2.5f",
    "-0.5f",
    "-2.5f",
    "0.1f",
    "0.3f",
    "3.7f",
    "-3.7f",
    "90f",
    "180f",
    "360f",
    "0.30000000000000004f"
  ),
  of(
    "1e10f",
    "1e21f",
    "1e300f",
    "1.7976931348623157e308f",
    "5e-324f",
    "2.2250738585072014e-308f",
    "1e-7f",
    "9007199254740993f",
    "-1e18f",
    "9223372036854775807f",
    "123456.789f"
  ),
  of("NaN", "Infinity", "-Infinity"),
  tie,
  (random) => `${((random.next() - 0.5) * 20).toFixed(random.below(8))}f`
)

/** Small enough that no sum or product of some overflows: that ends the database's process. */
const safeDecimal: Pool = (random) =>
  random.pick([
    "0dec",
    "1dec",
    "-1dec",
    "2dec",
    "10dec",
    "0.1dec",
    "0.5dec",
    "2.5dec",
    "-2.5dec",
    "1.50dec",
    "3.14159265358979dec",
    "123456789.987654321dec"
  ])

export const decimal: Pool = either(
  safeDecimal,
  safeDecimal,
  of(
    "79228162514264337593543950335dec",
    "-79228162514264337593543950335dec",
    "0.0000000000000000000000000001dec",
    "9223372036854775808dec",
    "10000000000dec"
  )
)

export const number: Pool = either(int, int, float, float, decimal)

/** Numbers whose products and powers stay printable. */
export const modest: Pool = either(
  small,
  small,
  tie,
  of("0f", "1.5f", "2.5f", "-0.5f", "0.1f", "1dec", "2.5dec", "0.1dec")
)

const quoted = (text: string): string => `"${text.replace(/["\\]/g, "\\$&")}"`

const latin: Pool = of(
  "''",
  "' '",
  "'a'",
  "'A'",
  "'b'",
  "'ab'",
  "'abc'",
  "'ABC'",
  "'hello world'",
  "'a,b,c'",
  "'  trim me\\t'",
  "'snake_case'",
  "'kebab-case'",
  "'The Quick  brown fox'",
  "'aaaa'",
  "'banana'",
  "'O\\'Neil'",
  "'\"'",
  "'`'",
  "'\\\\'",
  "'%'",
  "'<b>&\\'\"</b>'",
  "'line\\nbreak'",
  "'a/b'"
)
const beyond: Pool = of(
  "'ß'",
  "'Straße'",
  "'ﬁ'",
  "'İ'",
  "'ı'",
  "'ǆ'",
  "'Σίσυφος'",
  "'ΣΑΣ'",
  "'é'",
  "'e\u0301'",
  "'Ünïcode'",
  "'李雷'",
  "'こんにちは'",
  "'안녕'",
  "'مرحبا'",
  "'שלום'",
  "'😀'",
  "'👨‍👩‍👧'",
  "'🇩🇪'",
  "'a😀b'",
  "'x\u200by'",
  "'\u00a0nb\u3000'",
  "'١٢٣'",
  "'Ⅷ'",
  "'½'",
  "'ñandú'",
  "'Ørsted'"
)
const formal: Pool = of(
  "'12'",
  "'-3'",
  "'+7'",
  "'1.5'",
  "'1e3'",
  "'0x1F'",
  "'007'",
  "'9223372036854775808'",
  "'true'",
  "'NULL'",
  "'NaN'",
  "'inf'",
  "'t:1'",
  "'1h'",
  "'1h30m'",
  "'2020-01-01T00:00:00Z'",
  "'2020-02-29'",
  "'018a6680-bef9-701b-9025-e1754f296a0f'",
  "'01J00000000000000000000000'",
  "'foo@bar.com'",
  "'a.b+c@ex-ample.co.uk'",
  "'http://user:pw@x.y:8080/p/q?a=b#c'",
  "'https://example.com'",
  "'127.0.0.1'",
  "'::1'",
  "'1.2.3'",
  "'1.0.0-alpha.1+b2'",
  "'example.com'",
  "'#abc'",
  "'deadBEEF'",
  "'51.5'",
  "'-180'",
  "'aGVsbG8'",
  "'aGVsbG8='"
)
const anyChars: Pool = (random) =>
  quoted(
    Array.from({ length: random.below(9) }, () =>
      String.fromCodePoint(
        random.pick([
          97, 98, 65, 90, 48, 57, 32, 45, 95, 46, 44, 47, 64, 0xe9, 0xdf, 0x130, 0x3c3, 0x3c2, 0x416, 0x5d0, 0x627,
          0x4e2d, 0xac00, 0x1f600, 0x301, 0x200d, 0x2028, 0xfb01
        ])
      )
    ).join("")
  )

export const string: Pool = either(latin, latin, beyond, formal, anyChars)

export const regex: Pool = of("/a/", "/[a-c]+/", "/^$/", "/./", "/\\d+/", "/(?i)ABC/", "/\\s/", "/b*/", "/a|é/", "/😀/")

/** What other kinds are read from, with something around it at times. */
export const readable: Pool = (random) => {
  const text = random
    .pick([number, duration, datetime, uuid, record, bool, int, decimal])(random)
    .replace(/^[du]?'(.*)'$/s, "$1")
  return quoted(random.chance(0.1) ? ` ${text}` : random.chance(0.1) ? `${text} ` : text)
}

/** What text is searched for. */
export const pattern: Pool = either(string, regex)

export const duration: Pool = either(
  of(
    "0ns",
    "1ns",
    "1µs",
    "1ms",
    "999ms",
    "1s",
    "90s",
    "1m",
    "1h",
    "1h30m",
    "1d",
    "1w",
    "1w3d",
    "1y",
    "584y",
    "18446744073709551615s",
    "duration::max",
    "9007199254740993s",
    "1s1ns"
  ),
  (random) => `${random.below(1_000_000)}${random.pick(["ns", "us", "ms", "s", "m", "h", "d", "w"])}`
)

export const datetime: Pool = either(
  of(
    "d'1970-01-01T00:00:00Z'",
    "d'1969-12-31T23:59:59.999999999Z'",
    "d'2020-02-29T12:34:56.789Z'",
    "d'2021-12-31T23:59:59Z'",
    "d'0000-01-01T00:00:00Z'",
    "d'-0001-06-15T00:00:00Z'",
    "d'+262142-12-31T23:59:59.999999999Z'",
    "d'-262143-01-01T00:00:00Z'",
    "d'2262-04-11T23:47:16.854775807Z'",
    "d'2262-04-12T00:00:00Z'",
    "d'1677-09-21T00:12:43Z'",
    "d'2024-03-31T01:30:00+02:00'",
    "d'9999-12-31T23:59:59Z'",
    "time::epoch"
  ),
  (random) =>
    `d'${String(1900 + random.below(200))}-${String(1 + random.below(12)).padStart(2, "0")}-${String(1 + random.below(28)).padStart(2, "0")}T${String(random.below(24)).padStart(2, "0")}:${String(random.below(60)).padStart(2, "0")}:${String(random.below(60)).padStart(2, "0")}${random.pick(["", ".5", ".123456789"])}Z'`
)

export const uuid: Pool = of(
  "u'018a6680-bef9-701b-9025-e1754f296a0f'",
  "u'00000000-0000-0000-0000-000000000000'",
  "u'ffffffff-ffff-ffff-ffff-ffffffffffff'",
  "u'f81d4fae-7dec-11d0-a765-00a0c91e6bf6'",
  "u'550e8400-e29b-41d4-a716-446655440000'"
)

export const bytes: Pool = of(
  "<bytes>''",
  "<bytes>'a'",
  "<bytes>'é😀'",
  "b'00FF10'",
  "b'F6'",
  "b'0102030405060708090A'"
)

export const record: Pool = of(
  "t:1",
  "t:2",
  "t:9",
  "t:a",
  "t:`x y`",
  "t:[1, 'a']",
  "t:{ a: 1 }",
  "t:-5",
  "t:9223372036854775807",
  "t:1..3",
  "t:u'018a6680-bef9-701b-9025-e1754f296a0f'",
  "e:1",
  "⟨o d⟩:1"
)

const coordinate = (most: number): Pool =>
  either(of("0", `${most}`, `-${most}`, "1", "2.5", "-0.1", "10"), (random) =>
    ((random.next() - 0.5) * 2 * most).toFixed(random.below(6))
  )

export const point: Pool = (random) => `(${coordinate(180)(random)}, ${coordinate(90)(random)})`

const shape: Pool = of(
  "{ type: 'LineString', coordinates: [[0, 0], [1, 1], [2, 0]] }",
  "{ type: 'LineString', coordinates: [[-10.5, 40.25], [3, 4]] }",
  "{ type: 'Polygon', coordinates: [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]] }",
  "{ type: 'Polygon', coordinates: [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]], [[1, 1], [2, 1], [2, 2], [1, 1]]] }",
  "{ type: 'Polygon', coordinates: [[[1, 1], [3, 1], [2, 3], [1, 1]]] }",
  "{ type: 'MultiPoint', coordinates: [[0, 0], [1.5, 1], [9, 9]] }",
  "{ type: 'MultiLineString', coordinates: [[[0, 0], [1, 1]], [[2, 2], [3, 3.5]]] }",
  "{ type: 'MultiPolygon', coordinates: [[[[0, 0], [1, 0], [1, 1], [0, 0]]], [[[5, 5], [6, 5], [6, 6], [5, 5]]]] }",
  "{ type: 'GeometryCollection', geometries: [{ type: 'Point', coordinates: [1, 2] }, { type: 'LineString', coordinates: [[0, 0], [2, 2]] }] }"
)

export const geometry: Pool = either(point, shape)

export const bool: Pool = of("true", "false")

export const range: Pool = of(
  "1..3",
  "1..=3",
  "0..",
  "..2",
  "..",
  "-2..5",
  "3..1",
  "1>..4",
  "'a'..'c'",
  "1.5f..3",
  "NONE..1"
)

const scalar: Pool = either(of("NONE", "NULL"), bool, number, number, string, string, duration, datetime, uuid, record)

const plain: Pool = either(
  small,
  of("NONE", "NULL", "true", "false", "'a'", "'b'", "''", "1f", "1.5f", "2dec", "1h", "t:1", "[]", "{}")
)

export const object: Pool = (random) => {
  const keys = ["a", "b", "c", "'x y'", "'é'", "type", "id", "'1'"].filter(() => random.chance(0.3))
  return keys.length === 0
    ? "{}"
    : `{ ${keys.map((k) => `${k}: ${random.chance(0.2) ? array(random) : scalar(random)}`).join(", ")} }`
}

export const set: Pool = either(
  (random) => `<set>${list(plain)(random)}`,
  (random) => `<set>${list(scalar)(random)}`
)

export const array: Pool = either(list(plain, 6), list(plain, 6), list(int), list(string), list(scalar), (random) =>
  list(random.pick([list(plain, 3), object, set]), 3)(random)
)

/** Of every kind. */
export const any: Pool = either(scalar, scalar, scalar, array, array, object, set, geometry, bytes, range, regex)

export const numbers: Pool = either(
  list(small, 7),
  list(either(int, float, safeDecimal)),
  list(float),
  list(modest, 7),
  list(safeDecimal, 3)
)

export const modests: Pool = list(modest, 7)

/** Vectors of one length, so that two drawn one after the other mostly fit. */
export const vector: Pool = (random) => {
  const one = random.pick([small, small, modest, float])
  return `[${Array.from({ length: random.chance(0.9) ? 3 : random.below(5) }, () => one(random)).join(", ")}]`
}

export const strings: Pool = list(string)

export const sameKind: Pool = (random) =>
  list(random.pick([small, number, string, duration, datetime, bool, record, plain]), 7)(random)

export const datetimes: Pool = list(datetime, 4)

export const arrays: Pool = either(list(list(plain, 3), 4), list(plain))

export const entries: Pool = (random) =>
  `[${upTo(3, (r) => `[${r.pick(["'a'", "'b'", "'é'", string(r)])}, ${scalar(r)}]`)(random).join(", ")}]`

export const keys: Pool = either(of("'a'", "'b'", "'nope'", "['a', 'b']", "[]", "['a', 1]"), string)

export const key: Pool = either(
  of("'a'", "1", "-5", "'x y'", "''", "[1, 'a']", "{ a: 1 }", "1.5f", "2dec", "1..3"),
  int,
  uuid,
  string,
  record
)

export const test: Pool = of(
  "|$v| $v",
  "|$v| $v = 1",
  "|$v| $v > 1",
  "|$v, $i| $i > 0",
  "|$v| type::is_string($v)",
  "|$v| true",
  "|$v| NONE",
  "|$v: int| $v > 0",
  "|$v| $v + 1",
  "1",
  "'a'",
  "NONE",
  "2dec",
  "[]"
)

export const mapper: Pool = of(
  "|$v| $v",
  "|$v| [$v]",
  "|$v, $i| $i",
  "|$v| <string> $v",
  "|$v| $v = 1",
  "|$v| NONE",
  "|$v: int| $v",
  "|$v| $v + 1",
  "|$v: any| -> string { <string> $v }"
)

export const folder: Pool = of(
  "|$a, $b| $a",
  "|$a, $b| $b",
  "|$a, $b| [$a, $b]",
  "|$a, $b, $i| $i",
  "|$a, $b| <string> $a + <string> $b",
  "|$a: int, $b: int| $a + $b",
  "|$a, $b| NONE",
  "|$a| $a"
)

export const unit: Pool = of("'year'", "'month'", "'day'", "'hour'", "'minute'", "'second'", "'week'", "'YEAR'", "''")

export const format: Pool = either(
  of(
    "'%Y-%m-%d'",
    "'%H:%M:%S%.f'",
    "'%A %a %B %b %h'",
    "'%j %U %W %u %w %G %g %V'",
    "'%e %k %l %I %p %P'",
    "'%s %f %.3f %.6f %.9f %3f'",
    "'%Z %z %:z'",
    "'%D %F %T %R %r %c %x %X %v'",
    "'%%'",
    "'%t%n'",
    "'plain é'",
    "''",
    "'%C %y'",
    "'%+'"
  ),
  (random) =>
    `'${Array.from({ length: 1 + random.below(3) }, () => `%${random.pick(["Y", "m", "d", "H", "M", "S", "-d", "_d", "0e", "-H", "y", "C", "j", "q"])}`).join(" ")}'`
)

export const direction: Pool = of("'asc'", "'desc'", "true", "false", "'DESC'", "1", "NONE")

export const semver: Pool = of(
  "'1.2.3'",
  "'0.0.0'",
  "'10.20.30'",
  "'1.2.3-alpha'",
  "'1.2.3-alpha.1+build.5'",
  "'1.2'",
  "'01.2.3'",
  "'1.2.3-'",
  "'18446744073709551615.0.0'",
  "'v1.2.3'",
  "''",
  "'1.0.0-rc.1'",
  "'1.0.0-rc.11'"
)

export const patch: Pool = of(
  "[]",
  "[{ op: 'add', path: '/a', value: 1 }]",
  "[{ op: 'remove', path: '/a' }]",
  "[{ op: 'replace', path: '/b', value: [1] }]",
  "[{ op: 'copy', from: '/a', path: '/z' }]",
  "[{ op: 'move', from: '/a', path: '/y/z' }]",
  "[{ op: 'test', path: '/a', value: 1 }]",
  "[{ op: 'add', path: '/0', value: 'x' }]",
  "[{ op: 'add', path: '', value: 1 }]",
  "[{ op: 'nope', path: '/a' }]",
  "[{ path: '/a' }]",
  "{}"
)

export const encoded: Pool = of(
  "encoding::cbor::encode(1)",
  "encoding::cbor::encode({ a: [1, 'é', NONE, 1.5f, 2dec, 1h] })",
  "encoding::cbor::encode(t:1)",
  "b'F6'",
  "b''",
  "b'83010203'",
  "b'FF'",
  "b'A1616101'",
  "b'C6F6'",
  "encoding::cbor::encode(d'2020-01-01T00:00:00Z')"
)

export const ulid: Pool = of(
  "'01ARZ3NDEKTSV4RRFFQ69G5FAV'",
  "'01arz3ndektsv4rrffq69g5fav'",
  "'00000000000000000000000000'",
  "'7ZZZZZZZZZZZZZZZZZZZZZZZZZ'",
  "'8ZZZZZZZZZZZZZZZZZZZZZZZZZ'",
  "'01ARZ3NDEKTSV4RRFFQ69G5FAI'"
)

export const base64: Pool = of(
  "'aGVsbG8'",
  "'aGVsbG8='",
  "''",
  "'bananA=='",
  "'bananw'",
  "'AAAA'",
  "'/+/+'",
  "'aGVsbG9='",
  "'====' "
)

export const sameLength: Pool = of("'abc'", "'abd'", "'äbc'", "'李雷x'", "'😀ab'", "'xyz'")

export const table: Pool = of("'t'", "'e'", "'nope'", "'x y'", "''", "type::table('t')")
