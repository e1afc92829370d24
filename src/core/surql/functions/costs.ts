/**
 * Cost of each function (D48): steps for walking, bytes for new values, charged before the call.
 *
 * Why so: a test can check one table. A function without an entry walks all parts of its arguments and makes no more
 * than they have, so that none is forgotten; functions that look at one element, make more than they take, or process
 * parts repeatedly have an entry. Arguments are not type-checked yet. Steps and bytes are measured and rounded up: some
 * ten nanoseconds, and the runtime's bytes.
 */
import { idSteps, lengthOf, paySearch, payWalk, sortSteps } from "../evaluate/charge.ts"
import type { Budget } from "../evaluate/scope.ts"
import { spendBytes, spendSteps } from "../evaluate/scope.ts"
import * as Regexes from "../regex/regex.ts"
import { isNumber, toFloat } from "../values/number.ts"
import type { Value } from "../values/value.ts"
import { Closure, Regex, SetValue } from "../values/value.ts"

type Args = ReadonlyArray<Value>

type Cost = (b: Budget, args: Args) => void

const numberOf = (v: Value): number => (isNumber(v) ? Math.max(0, toFloat(v)) : 0)

const walkAll = (b: Budget, args: Args): number => {
  let parts = 0
  for (let i = 0; i < args.length; i++) {
    const v = args[i]
    if (typeof v === "string" || (typeof v === "object" && v !== null)) parts += payWalk(b, v)
  }
  return parts
}

const lengths = (args: Args): number => {
  let n = 0
  for (const v of args) n += lengthOf(v)
  return n
}

/** Looks at one element. */
const glance: Cost = (b) => spendSteps(b, 1)

/** Walks the arguments `steps` times, and makes so many bytes for each part. */
const walks =
  (steps: number, bytes: number): Cost =>
  (b, args) => {
    spendSteps(b, 1)
    const parts = walkAll(b, args)
    if (parts === 0) return
    spendSteps(b, (steps - 1) * parts)
    spendBytes(b, bytes * parts)
  }

/** Cost of a function without an entry: walks all its arguments. */
const standard = walks(1, 16)

/** Copies references without walking their targets: so many steps for each. */
const copying =
  (steps: number): Cost =>
  (b, args) => {
    const n = 1 + lengths(args)
    spendSteps(b, steps * n)
    spendBytes(b, 8 * n)
  }

const copies = copying(2)

/** Walks the elements of its arguments, not their parts. */
const scans: Cost = (b, args) => spendSteps(b, 1 + 2 * lengths(args))

/** Whether a list has only numbers, which are hashed and compared much faster. */
const onlyNumbers = (v: Value): boolean => {
  const items = Array.isArray(v) ? (v as Args) : v instanceof SetValue ? v.items : []
  for (let i = 0; i < items.length; i++) if (typeof items[i] !== "number") return false
  return true
}

/** Makes keys of the elements. */
const keyed: Cost = (b, args) => walks(args.every(onlyNumbers) ? 8 : 24, 64)(b, args)

/** Sorts: so many steps for a comparison, two for numbers. */
const sorting =
  (steps: number): Cost =>
  (b, args) => {
    const parts = walkAll(b, args)
    spendSteps(b, 1 + (args.every(onlyNumbers) ? 2 : steps) * sortSteps(parts))
    spendBytes(b, 64 * parts)
  }

const sorts = sorting(4)

/** Pairs each element of the first argument with each of the second. */
const pairs =
  (steps: number, bytes: number): Cost =>
  (b, args) => {
    const n = walkAll(b, args.slice(0, 1)) * walkAll(b, args.slice(1, 2))
    spendSteps(b, 1 + steps * n)
    spendBytes(b, bytes * n)
  }

/** Makes as many elements as a numeric argument says. */
const counted =
  (at: (args: Args) => number): Cost =>
  (b, args) => {
    const n = at(args)
    // The function itself refuses a result that is too long, and pays for the rest.
    spendSteps(b, 1)
    if (n <= 1_000_000) spendBytes(b, 8 * n)
  }

/** Processes texts character by character. */
const characters =
  (steps: number, bytes: number): Cost =>
  (b, args) => {
    const n = lengths(args)
    spendSteps(b, 1 + Math.ceil(steps * n))
    spendBytes(b, bytes * n)
  }

/** The runtime processes the texts as a whole. */
const texts: Cost = (b, args) => {
  const n = lengths(args)
  spendSteps(b, 1 + (n >> 4))
  if (n > 64) spendBytes(b, 2 * n)
}

/** Numbers added, multiplied or compared one by one; decimals are the most expensive. */
const numbers = walks(8, 16)

const finds: Cost = (b, [text, wanted]) => {
  spendSteps(b, 1)
  if (typeof text === "string" && typeof wanted === "string") paySearch(b, text, wanted)
}

/** Runs a regular expression over a text. */
const matches: Cost = (b, [text, pattern]) => {
  const n = lengthOf(text)
  const source = pattern instanceof Regex ? pattern.source : typeof pattern === "string" ? pattern : ""
  // Parsing a pattern costs by its length; a cached one costs little, but a charge must not rely on that.
  spendSteps(b, 1 + (source.length >> 2))
  if (typeof text === "string") spendSteps(b, Math.ceil((n * Regexes.workOf(source)) / 2))
}

/** Closures pay for themselves. */
const higher =
  (bytes: number): Cost =>
  (b, args) => {
    const n = lengthOf(args[0])
    spendSteps(b, 1 + n)
    if (!(args[1] instanceof Closure)) walkAll(b, args)
    spendBytes(b, bytes * n)
  }

const windows: Cost = (b, [items, size]) => {
  const n = lengthOf(items),
    wide = numberOf(size)
  const made = wide < 1 ? 0 : Math.max(0, n - wide + 1)
  spendSteps(b, 1 + n + made * (1 + Math.ceil(wide / 8)))
  spendBytes(b, made * (32 + 8 * wide))
}

/** Makes as many rows as the longest column has elements, each as long as there are columns. */
const transpose: Cost = (b, [items]) => {
  const columns = Array.isArray(items) ? (items as Args) : []
  spendSteps(b, 1 + columns.length)
  let height = 0
  for (const column of columns) height = Math.max(height, Array.isArray(column) ? column.length : 1)
  spendSteps(b, height * (1 + columns.length))
  spendBytes(b, 16 * columns.length + height * (160 + 8 * columns.length))
}

const flattened = (b: Budget, items: Value): number => {
  spendSteps(b, 1 + 2 * lengthOf(items))
  let n = 0
  if (Array.isArray(items)) for (const v of items as Args) n += Array.isArray(v) ? v.length : 1
  else n = lengthOf(items)
  spendSteps(b, 4 * n)
  return n
}

const flatten: Cost = (b, [items]) => spendBytes(b, 16 * flattened(b, items))

const group: Cost = (b, [items]) => {
  const parts = payWalk(b, items)
  spendSteps(b, (onlyNumbers(items) ? 8 : 24) * parts)
  spendBytes(b, 64 * parts + 16 * flattened(b, items))
}

/** Bytes of `n` values in a table of distances. */
const table = (b: Budget, [x, y]: Args, bytes: number): void => {
  const n = (1 + lengthOf(x)) * (1 + lengthOf(y))
  spendSteps(b, 1 + 2 * n)
  spendBytes(b, 32 * lengths([x, y]) + bytes * n)
}

const measures =
  (bytes: number): Cost =>
  (b, args) =>
    table(b, args, bytes)

/** A path in a text: parsing costs the square of its steps. */
const path: Cost = (b, [given]) => {
  for (const text of Array.isArray(given) ? (given as Args) : [given]) {
    const length = lengthOf(text)
    let steps = 1
    if (typeof text === "string") for (let at = text.indexOf("."); at >= 0; at = text.indexOf(".", at + 1)) steps++
    spendSteps(b, 16 + length + steps * steps)
    spendBytes(b, 16 * length + 8 * steps * steps)
  }
}

/** Every operation walks the whole value. */
const patch: Cost = (b, [v, operations]) => {
  const parts = 1 + payWalk(b, v) + payWalk(b, operations),
    n = lengthOf(operations)
  spendSteps(b, 4 * parts * n)
  spendBytes(b, 32 * parts * n)
}

const each = (names: string, cost: Cost): ReadonlyArray<readonly [string, Cost]> =>
  names
    .trim()
    .split(/\s+/)
    .map((name) => [name, cost] as const)

const both = (names: string, cost: Cost): ReadonlyArray<readonly [string, Cost]> =>
  names
    .trim()
    .split(/\s+/)
    .flatMap(
      (name) =>
        [
          [`array::${name}`, cost],
          [`set::${name}`, cost]
        ] as const
    )

const known: ReadonlyMap<string, Cost> = new Map([
  ...both("at first last len is_empty", glance),
  ...each("array::pop set::max set::min value::chain bytes::len", glance),
  ...each(
    "type::of type::table record::id record::tb record::table meta::id meta::tb record::exists record::is_edge not",
    glance
  ),
  ...each("append concat fill insert prepend push remove reverse slice swap".replaceAll(/\S+/g, "array::$&"), copies),
  ...each(
    "array::boolean_and array::boolean_not array::boolean_or array::boolean_xor array::logical_and array::logical_or array::logical_xor",
    copying(8)
  ),
  ...each("array::clump", (b, args) => {
    copies(b, args)
    spendBytes(b, 48 * lengthOf(args[0]))
  }),
  ...each("set::slice", copies),
  ...each("count", scans),
  ...each("object::len object::is_empty", scans),
  ...both("add complement difference intersect union", keyed),
  ...each("array::distinct math::mode vector::similarity::jaccard", keyed),
  ...each("set::remove set::contains", keyed),
  ...both("flatten", flatten),
  ...each("array::group", group),
  ...each("array::combine", (b, [x, y]) => {
    const n = lengthOf(x) * lengthOf(y)
    spendSteps(b, 1 + 8 * n)
    spendBytes(b, 48 * n)
  }),
  ...each(
    "array::repeat",
    counted(([, n]) => numberOf(n))
  ),
  ...each(
    "array::sequence",
    counted(([from, n]) => numberOf(n === undefined ? from : n))
  ),
  ...each("array::range", glance),
  ...each("array::transpose", transpose),
  ...each("array::windows", windows),
  ...each("array::sort array::sort::asc array::sort::desc", sorts),
  ...each("array::sort_lexical array::sort_natural array::sort_natural_lexical", sorting(12)),
  ...each(
    "set::add set::union set::difference set::flatten type::set object::keys object::values object::entries object::from_entries object::extend",
    sorts
  ),
  ...each("array::join set::join", (b, args) => {
    const parts = walkAll(b, args)
    spendSteps(b, 1 + 16 * parts)
    spendBytes(b, 64 * parts + lengthOf(args[0]) * (32 + 2 * lengthOf(args[1])))
  }),
  ...each("object::remove", (b, args) => {
    scans(b, args)
    pairs(1, 0)(b, args)
    spendBytes(b, 64 * lengthOf(args[0]))
  }),
  ...both("all any filter find fold map reduce", higher(16)),
  ...each("set::map", (b, args) => {
    higher(16)(b, args)
    spendSteps(b, 2 * sortSteps(lengthOf(args[0])))
  }),
  ...each("array::max array::min", walks(4, 0)),
  ...each("array::every array::some array::includes array::filter_index array::find_index array::index_of", higher(16)),

  ...each("string::lowercase string::uppercase string::trim string::starts_with string::ends_with", texts),
  ...each("string::contains", finds),
  ...each("string::len", characters(0.5, 0)),
  ...each("string::reverse string::slice", characters(2, 32)),
  ...each("string::split string::words", characters(2, 32)),
  ...each("string::capitalize string::slug string::html::encode", characters(8, 32)),
  ...each("string::concat string::join", walks(2, 64)),
  ...each("string::repeat", glance),
  ...each("string::replace", (b, args) => {
    characters(2, 32)(
      b,
      args.filter((v) => !(v instanceof Regex))
    )
    if (args[1] instanceof Regex) matches(b, args)
  }),
  ...each("string::matches", matches),
  ...each(
    "string::distance::damerau_levenshtein string::distance::normalized_damerau_levenshtein string::distance::osa",
    measures(8)
  ),
  ...each(
    "string::distance::hamming string::distance::levenshtein string::distance::normalized_levenshtein string::similarity::fuzzy string::similarity::smithwaterman",
    measures(0)
  ),
  ...each("string::similarity::jaro string::similarity::jaro_winkler string::similarity::sorensen_dice", measures(0)),

  ...each("crypto::blake3 crypto::joaat crypto::md5 crypto::sha1 crypto::sha256", characters(4, 16)),
  ...each("crypto::sha512", characters(12, 16)),
  ...each("encoding::base64::decode encoding::base64::encode", characters(4, 48)),
  ...each("encoding::cbor::encode", walks(24, 64)),
  ...each("encoding::cbor::decode", characters(24, 32)),
  ...each("time::format", characters(8, 32)),
  ...each("geo::hash::decode", characters(8, 0)),
  ...each("geo::area geo::centroid geo::is_valid", walks(8, 64)),
  ...each("type::field type::fields", path),
  ...each("type::record string::is_record", (b, args) => {
    standard(b, args)
    for (const v of args) if (typeof v === "string") spendSteps(b, idSteps(v))
  }),
  ...each("type::string type::string_lossy", walks(16, 64)),
  ...each("type::bytes", characters(4, 32)),
  ...each("type::array type::geometry", walks(4, 32)),
  ...each("value::diff", walks(16, 128)),
  ...each("value::patch", patch)
])

const stringTests = characters(2, 16)

/** Cost of a function by its name. */
export const costOf = (name: string): Cost => {
  const cost = known.get(name)
  if (cost !== undefined) return cost
  if (name.startsWith("type::is_")) return glance
  if (name.startsWith("string::is_") || name.startsWith("string::semver::") || name.startsWith("parse::"))
    return stringTests
  if (/^math::(median|interquartile|midhinge|trimean|nearestrank|percentile|bottom|top)$/.test(name)) return sorts
  return name.startsWith("math::") || name.startsWith("vector::") || name === "time::max" || name === "time::min"
    ? numbers
    : standard
}

/** Names of the functions with a cost of their own; the others walk all their arguments. */
export const functionsWithOwnCost: ReadonlyArray<string> = [...known.keys()]
