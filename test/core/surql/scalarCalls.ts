/**
 * What the scalar campaign asks: calls of every function, every operator, every cast, with arguments from
 * scalarValues.ts.
 *
 * Why so: a function without a signature here would not be tried, and one whose arguments never fit would be tried in
 * vain, so the test asks for a signature of each and counts for each what succeeds and what fails.
 */

import type { Rng } from "../../../kit/data/random.ts"
import { functions } from "../../../src/core/surql/evaluate/functions.ts"
import { isFunctionName } from "../../../src/core/surql/syntax/functionNames.ts"
import type { Pool } from "./scalarValues.ts"
import * as Values from "./scalarValues.ts"

/** Names behind the kinds they take; `?` in front of one that may be left out, `..` of one that may be repeated. */
const signatures: ReadonlyArray<readonly [kinds: string, names: string]> = [
  [
    "array any",
    "array::add array::append array::prepend array::push array::matches array::insert set::add set::contains set::remove"
  ],
  ["array ?test", "array::all array::any array::every array::some array::includes"],
  ["array test", "array::filter array::filter_index array::find array::find_index array::index_of"],
  ["array mapper", "array::map"],
  ["array folder", "array::reduce"],
  ["array any folder", "array::fold"],
  ["array count", "array::at array::clump array::windows array::remove"],
  ["array count count", "array::swap"],
  ["array any count", "array::insert"],
  [
    "array array",
    "array::boolean_and array::boolean_or array::boolean_xor array::combine array::complement array::difference array::intersect array::logical_and array::logical_or array::logical_xor array::union"
  ],
  [
    "array",
    "array::boolean_not array::distinct array::first array::flatten array::group array::is_empty array::last array::len array::max array::min array::pop array::reverse array::sort::asc array::sort::desc"
  ],
  ["..array", "array::concat"],
  ["array any ?count ?count", "array::fill"],
  ["array string", "array::join"],
  ["count count", "array::range"],
  ["range", "array::range"],
  ["any count", "array::repeat"],
  ["count ?count", "array::sequence"],
  ["array ?count ?count", "array::slice"],
  ["array range", "array::slice"],
  ["sameKind ?direction", "array::sort array::sort_lexical array::sort_natural array::sort_natural_lexical"],
  ["arrays", "array::transpose array::flatten array::group"],
  ["bytes", "bytes::len crypto::blake3"],
  ["?any", "count"],
  ["any", "not"],
  ["string", "crypto::blake3 crypto::joaat crypto::md5 crypto::sha1 crypto::sha256 crypto::sha512"],
  [
    "duration",
    "duration::days duration::hours duration::micros duration::millis duration::mins duration::nanos duration::secs duration::weeks duration::years"
  ],
  [
    "int",
    "duration::from_days duration::from_hours duration::from_micros duration::from_millis duration::from_mins duration::from_nanos duration::from_secs duration::from_weeks"
  ],
  ["string", "encoding::base64::decode"],
  ["bytes ?bool", "encoding::base64::encode"],
  ["encoded", "encoding::cbor::decode"],
  ["any", "encoding::cbor::encode"],
  ["geometry", "geo::area geo::centroid geo::is_valid"],
  ["point point", "geo::bearing geo::distance"],
  ["geometry ?count", "geo::hash::encode"],
  ["string", "geo::hash::decode"],
  [
    "number",
    "math::abs math::acos math::acot math::asin math::atan math::ceil math::cos math::cot math::deg2rad math::floor math::ln math::log10 math::log2 math::rad2deg math::round math::sign math::sin math::sqrt math::tan"
  ],
  ["numbers count", "math::bottom math::top"],
  ["modest modest modest", "math::lerp math::lerpangle"],
  ["number number number", "math::clamp"],
  ["small small small", "math::clamp"],
  ["modest small count", "math::clamp"],
  ["number count", "math::fixed"],
  ["number modest", "math::log math::pow"],
  ["number number", "math::log math::pow"],
  [
    "numbers",
    "math::interquartile math::max math::mean math::median math::midhinge math::min math::mode math::spread math::sum math::trimean"
  ],
  ["modests", "math::stddev math::variance math::product math::sum math::mean"],
  ["numbers modest", "math::nearestrank math::percentile"],
  ["record", "meta::id meta::tb record::exists record::id record::is_edge record::table record::tb"],
  ["object", "object::entries object::is_empty object::keys object::len object::values"],
  ["object object", "object::extend"],
  ["entries", "object::from_entries"],
  ["object keys", "object::remove"],
  [
    "string",
    "parse::email::host parse::email::user parse::url::domain parse::url::fragment parse::url::host parse::url::path parse::url::port parse::url::query parse::url::scheme"
  ],
  ["set ?test", "set::all set::any"],
  ["set test", "set::filter set::find"],
  ["set mapper", "set::map"],
  ["set folder", "set::reduce"],
  ["set any folder", "set::fold"],
  ["set count", "set::at"],
  ["set any", "set::add set::contains set::remove"],
  ["set set", "set::complement set::difference set::intersect set::union"],
  ["set", "set::first set::flatten set::is_empty set::last set::len set::max set::min"],
  ["set string", "set::join"],
  ["set ?count ?count", "set::slice"],
  ["set range", "set::slice"],
  [
    "string",
    "string::capitalize string::html::encode string::len string::lowercase string::reverse string::slug string::trim string::uppercase string::words string::is_alpha string::is_alphanum string::is_ascii string::is_domain string::is_email string::is_hexadecimal string::is_ip string::is_ipv4 string::is_ipv6 string::is_latitude string::is_longitude string::is_numeric string::is_semver string::is_ulid string::is_url string::is_uuid"
  ],
  ["..any", "string::concat"],
  ["any ..any", "string::join"],
  ["sameLength sameLength", "string::distance::hamming"],
  [
    "string string",
    "string::contains string::ends_with string::split string::starts_with string::distance::damerau_levenshtein string::distance::hamming string::distance::levenshtein string::distance::normalized_damerau_levenshtein string::distance::normalized_levenshtein string::distance::osa string::similarity::fuzzy string::similarity::jaro string::similarity::jaro_winkler string::similarity::smithwaterman string::similarity::sorensen_dice"
  ],
  ["string", "string::is_datetime"],
  ["string ?table", "string::is_record"],
  ["string pattern", "string::matches"],
  ["string count", "string::repeat"],
  ["string pattern string", "string::replace"],
  ["string ?count ?count", "string::slice"],
  ["string range", "string::slice"],
  ["semver semver", "string::semver::compare"],
  [
    "semver",
    "string::semver::inc::major string::semver::inc::minor string::semver::inc::patch string::semver::major string::semver::minor string::semver::patch"
  ],
  ["semver count", "string::semver::set::major string::semver::set::minor string::semver::set::patch"],
  ["datetime duration", "time::ceil time::floor time::round"],
  [
    "datetime",
    "time::day time::hour time::is_leap_year time::micros time::millis time::minute time::month time::nano time::second time::unix time::wday time::week time::yday time::year"
  ],
  ["datetime format", "time::format"],
  ["datetime unit", "time::group"],
  ["int", "time::from_micros time::from_millis time::from_nanos time::from_secs time::from_unix"],
  ["ulid", "time::from_ulid string::is_ulid"],
  ["base64", "encoding::base64::decode"],
  ["uuid", "time::from_uuid"],
  ["datetimes", "time::max time::min"],
  [
    "datetime count",
    "time::set_day time::set_hour time::set_minute time::set_month time::set_nanosecond time::set_second time::set_year"
  ],
  [
    "any",
    "type::array type::bool type::bytes type::datetime type::decimal type::duration type::float type::geometry type::int type::number type::point type::range type::set type::string type::string_lossy type::uuid type::table type::of"
  ],
  [
    "string",
    "type::bool type::datetime type::decimal type::duration type::float type::int type::number type::uuid type::record"
  ],
  [
    "readable",
    "type::bool type::datetime type::decimal type::duration type::float type::int type::number type::uuid type::record string::is_datetime string::is_record string::is_uuid"
  ],
  ["datetime", "type::datetime"],
  ["duration", "type::duration"],
  ["uuid", "type::uuid"],
  ["bool", "type::bool"],
  ["number", "type::float type::int type::decimal type::number"],
  ["range", "type::range type::array"],
  ["table", "type::table"],
  ["array", "type::set type::bytes type::point type::range"],
  ["bytes", "type::string type::string_lossy"],
  ["geometry", "type::geometry type::point"],
  ["record", "type::record"],
  ["table key", "type::record"],
  [
    "any",
    "type::is_array type::is_bool type::is_bytes type::is_collection type::is_datetime type::is_decimal type::is_duration type::is_float type::is_geometry type::is_int type::is_line type::is_multiline type::is_multipoint type::is_multipolygon type::is_none type::is_null type::is_number type::is_object type::is_point type::is_polygon type::is_range type::is_set type::is_string type::is_uuid"
  ],
  [
    "geometry",
    "type::is_collection type::is_line type::is_multiline type::is_multipoint type::is_multipolygon type::is_point type::is_polygon"
  ],
  ["record ?table", "type::is_record"],
  ["any any", "value::diff"],
  ["object object", "value::diff"],
  ["array array", "value::diff"],
  ["object patch", "value::patch"],
  ["array patch", "value::patch"],
  [
    "vector vector",
    "vector::add vector::subtract vector::multiply vector::divide vector::angle vector::cross vector::dot vector::project vector::distance::chebyshev vector::distance::euclidean vector::distance::hamming vector::distance::manhattan vector::similarity::cosine vector::similarity::jaccard vector::similarity::pearson"
  ],
  ["vector vector modest", "vector::distance::minkowski"],
  ["vector", "vector::magnitude vector::normalize"],
  ["vector modest", "vector::scale"]
]

/** Functions that read the row they stand in; queries have them (`oracle.test.ts`), calls alone cannot. */
const ofRows: ReadonlySet<string> = new Set(["type::field", "type::fields"])

/** Functions that are called. */
export const names: ReadonlyArray<string> = [...functions.keys()].filter(
  (name) => isFunctionName(name) && functions.get(name)!.pure && !ofRows.has(name)
)

const kinds: { readonly [kind: string]: Pool } = { ...Values }

/** Kinds of a function, as many lists as it has signatures. */
export const signaturesOf = (name: string): ReadonlyArray<ReadonlyArray<string>> =>
  signatures
    .filter(([, of]) => of.split(" ").includes(name))
    .map(([params]) => params.split(" ").filter((p) => p !== ""))

const drawn = (random: Rng, params: ReadonlyArray<string>): Array<string> =>
  params.flatMap((param) => {
    const pool = kinds[param.replace(/^(\?|\.\.)/, "")]!
    if (param.startsWith("?") && random.chance(0.4)) return []
    return param.startsWith("..") ? Array.from({ length: random.below(4) }, () => pool(random)) : [pool(random)]
  })

/**
 * A call whose arguments mostly fit; in a third of them, or in all that are to be `ill`, one does not, or there is one
 * too many or too few.
 */
export const call = (random: Rng, name: string, ill = false): string => {
  const args = drawn(random, random.pick(signaturesOf(name)))
  const spoil = random.next() * (ill ? 0.3 : 1)
  if (spoil < 0.2 && args.length > 0) args[random.below(args.length)] = Values.any(random)
  else if (spoil < 0.25) args.push(Values.any(random))
  else if (spoil < 0.3 && (args.length > 1 || functions.get(name)!.pureWithArguments === undefined)) args.pop()
  return `${name}(${args.join(", ")})`
}

/** What ends the engine's process: overflow of decimals and bounds that are no numbers where it does not look. */
const deadly: ReadonlyArray<RegExp> = [
  /(?:angle|cosine|project|normalize|pearson|divide)\(.*dec|dec.*\.\w*(?:angle|cosine|project|normalize|pearson|divide)\(/,
  /clamp\(.*(?:dec|NaN|Infinity)/,
  /^<(?:array<)?(?:option<int>|int \|).*dec/,
  /lerp\w*\(.*dec/,
  /(?:spread|sum|product|mean|variance|stddev|lerp|lerpangle|scale|cross|dot|add|subtract|multiply|manhattan|euclidean)\(.*\d{18,}dec/
]

/** True for what both evaluators live to answer. */
export const bearable = (expression: string): boolean => !deadly.some((pattern) => pattern.test(expression))

/** Operators between two values. */
export const operators = [
  "+",
  "-",
  "*",
  "/",
  "%",
  "**",
  "=",
  "!=",
  "==",
  "?=",
  "*=",
  "<",
  "<=",
  ">",
  ">=",
  "AND",
  "OR",
  "??",
  "?:",
  "IN",
  "NOT IN",
  "CONTAINS",
  "CONTAINSNOT",
  "CONTAINSALL",
  "CONTAINSANY",
  "CONTAINSNONE",
  "INSIDE",
  "NOTINSIDE",
  "ALLINSIDE",
  "ANYINSIDE",
  "NONEINSIDE",
  "OUTSIDE",
  "INTERSECTS",
  "IS",
  "IS NOT"
] as const

/** Operands that are more than compared: what an operator computes with. */
const operands: ReadonlyArray<readonly [Pool, Pool]> = [
  [Values.number, Values.number],
  [Values.int, Values.int],
  [Values.count, Values.count],
  [Values.duration, Values.duration],
  [Values.datetime, Values.duration],
  [Values.duration, Values.datetime],
  [Values.datetime, Values.datetime],
  [Values.duration, Values.number],
  [Values.string, Values.string],
  [Values.array, Values.array],
  [Values.set, Values.set],
  [Values.object, Values.object],
  [Values.any, Values.array],
  [Values.any, Values.any],
  [Values.geometry, Values.geometry],
  [Values.string, Values.regex],
  [Values.array, Values.any],
  [Values.any, Values.range]
]

export const operation = (random: Rng, operator: string): string => {
  const [left, right] = random.pick(operands)
  return `(${left(random)}) ${operator} (${right(random)})`
}

/** Kinds a value is cast to. */
export const casts = [
  "any",
  "array",
  "array<int>",
  "array<string>",
  "array<any, 3>",
  "bool",
  "bytes",
  "datetime",
  "decimal",
  "duration",
  "float",
  "geometry",
  "geometry<point>",
  "geometry<point | polygon>",
  "int",
  "number",
  "object",
  "option<int>",
  "option<string>",
  "point",
  "range",
  "record",
  "record<t>",
  "set",
  "set<int>",
  "set<string>",
  "set<any, 2>",
  "string",
  "uuid",
  "int | string",
  "bool | none",
  "array<option<int>>",
  "regex",
  "table"
] as const

export const casting = (random: Rng, kind: string): string =>
  `<${kind}> ${random.pick([Values.any, Values.any, Values.string, Values.number, Values.array, Values.readable, Values.readable, Values.geometry, Values.record, Values.uuid, Values.datetime, Values.duration, Values.object, Values.bool])(random)}`

/** Without decimals and tables by name: among several they may end the database's process, cast from a text. */
const plainKinds =
  "bool bytes datetime duration float geometry int number object point range record regex set string uuid array function table null none record<t> record<t|u> geometry<point>".split(
    " "
  )
const constantKinds = ["'x'", "1", "1.5", "true", "[int, string]", "{ a: int }", "{ a: int, b: option<string> }"]

/** One type that may be one of several. */
const alternative = (random: Rng, depth: number): string => {
  if (depth === 0 || random.chance(0.5)) return random.pick(random.chance(0.8) ? plainKinds : constantKinds)
  const inner = kind(random, depth - 1)
  return `${random.pick(["array", "set"])}<${inner}${random.chance(0.3) ? `, ${random.below(4)}` : ""}>`
}

/** Any type that the database's grammar has. */
const kind = (random: Rng, depth = 2): string => {
  const several = (): string =>
    Array.from({ length: 1 + random.below(3) }, () => alternative(random, depth)).join(" | ")
  const one = random.below(10)
  return one === 0 ? "any" : one < 4 ? `option<${several()}>` : several()
}

const kindValue: Pool = (random) =>
  random.pick([Values.any, Values.string, Values.array, Values.set, Values.record, Values.readable, Values.object])(
    random
  )

const aboutThis = [
  "$this",
  "!$this",
  "type::is_record($this)",
  "type::is_object($this)",
  "count($this)",
  "r = $this",
  "$this = t:1",
  "$this.a = 1",
  "$this IN [t:1, t:9]",
  "$this.b CONTAINS 'x'",
  "a = 1 OR $this = t:9"
]

/** Casts, arguments and results of closures whose types are drawn too, and filters over lists of links. */
export const drawnForms = ["cast", "argument", "result", "links"] as const

export const drawnForm = (random: Rng, form: string): string => {
  switch (form) {
    case "cast":
      return `<${kind(random)}> ${kindValue(random)}`
    case "argument":
      return `(|$x: ${alternative(random, 2)}| $x)(${kindValue(random)})`
    case "result":
      return `(|$x| -> ${kind(random)} { RETURN $x })(${kindValue(random)})`
    default:
      return `[t:1, t:2, t:9, ${random.pick([Values.record, Values.int, Values.duration, Values.bool])(random)}][WHERE ${random.pick(aboutThis)}]`
  }
}

/** Signs in front, places, methods. */
export const others = ["-", "!", "!!", "place", "part", "last", "method"] as const

export const other = (random: Rng, form: string): string => {
  switch (form) {
    case "place":
      return `(${random.pick([Values.array, Values.set, Values.any])(random)})[${random.pick([Values.count, Values.int])(random)}]`
    case "part":
      return `(${random.pick([Values.object, Values.any])(random)}).${random.pick(["a", "b", "a.b", "*", "{ a }", "a[0]", "?.a"])}`
    case "last":
      return `(${random.pick([Values.array, Values.any])(random)})[${random.pick(["$", "*", "0..2", "1..", "..=1", "-1", "'a'", "WHERE true"])}]`
    case "method": {
      const name = random.pick(names.filter((known) => known.includes("::")))
      const [first, ...rest] = drawn(random, random.pick(signaturesOf(name)))
      return `(${first ?? "NONE"}).${name.split("::").slice(1).join("_")}(${rest.join(", ")})`
    }
    default:
      return `${form} (${random.pick([Values.any, Values.number])(random)})`
  }
}
