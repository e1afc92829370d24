/**
 * What a charged step takes and what a charged byte holds, measured: every function, operator and cast with arguments
 * of many kinds.
 *
 * Why so: a row is evaluated without a pause, so its time is its steps times what the dearest of them takes. Each call
 * is made as large as the budget of a row lets it be, which is what somebody would do who wants to stop a process.
 */

import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { Either } from "effect"
import { fromRecords } from "../../../src/core/surql/evaluate/memory.ts"
import { limits, makeBudget } from "../../../src/core/surql/evaluate/scope.ts"
import { evaluate } from "../../../src/core/surql/evaluate/select/select.ts"
import { parseStatements } from "../../../src/core/surql/syntax/parse.ts"
import { geometryOf } from "../../../src/core/surql/values/makeObject.ts"
import type { Obj, Value } from "../../../src/core/surql/values/value.ts"
import { charged, kinds, points, shapes, sizeable, splitArguments } from "./costCases.ts"

export interface Price {
  readonly what: string
  readonly size: number
  readonly steps: number
  /** Milliseconds of CPU, the best of some runs, as they would be where nothing else runs. */
  readonly ms: number
  readonly nsPerStep: number
  /** What the answer holds of the heap, and what was charged for it. */
  readonly held: number
  readonly bytes: number
}

const mapped =
  (body: string) =>
  (n: number): string =>
    `array::range(0, ${n}).map(|$v| ${body})`

/** Lists whose elements are of one kind, beside those of numbers, texts, lists and datetimes. */
const lists: { readonly [kind: string]: (n: number) => string } = {
  numbers: kinds["numbers"]!,
  strings: kinds["strings"]!,
  lists: kinds["lists"]!,
  dates: kinds["dates"]!,
  decimals: mapped("<decimal> $v + 0.1dec"),
  large: mapped("9007199254740993 + $v"),
  long: mapped("string::repeat('ab', 100) + <string> $v"),
  objects: mapped("{ a: $v, b: 'x' }"),
  shared: (n) => `array::repeat(array::range(0, 100), ${Math.ceil(n / 100)})`,
  points: mapped("<point> [0, 1]"),
  mixed: mapped("[$v, <string> $v, [$v], { a: $v }, 1.5dec, NONE][$v % 6]"),
  unlike: mapped("'é' + <string> ($v * 7919 % 100003)"),
  halves: (n) => `[array::range(0, ${n >> 1}), array::range(0, ${n >> 1})]`
}

const texts: { readonly [kind: string]: (n: number) => string } = Object.fromEntries(
  ["ab ", "é😀", " ", "a.", "A", "%20", "<&", "李", "::"].map((piece) => [
    `text ${JSON.stringify(piece)}`,
    (n: number): string => `string::repeat("${piece}", ${n})`
  ])
)

/** The arguments of a shape in other kinds: what is asked for at `@numbers` may be any list, at `@text` any text. */
const variants = (name: string, args: string): ReadonlyArray<readonly [kind: string, (n: number) => string]> => {
  const fill =
    (kind: (n: number) => string) =>
    (n: number): string =>
      args
        .replace(/@(\w+)/g, (_, given: string) =>
          given === "1" || Object.hasOwn(lists, given)
            ? name.startsWith("set::")
              ? `<set> ${kind(n)}`
              : kind(n)
            : given === "set"
              ? `<set> ${kind(n)}`
              : given === "text"
                ? kind(n)
                : kinds[given]!(n)
        )
        .replaceAll("#", String(n))
  if (/@text/.test(args)) return Object.entries(texts).map(([kind, make]) => [kind, fill(make)])
  if (/@(1|set|numbers|strings|lists|dates)/.test(args))
    return Object.entries(lists).map(([kind, make]) => [kind, fill(make)])
  return [["its own", fill(() => "")]]
}

const between: ReadonlyArray<string> = ["=", "<", "+", "?=", "CONTAINS", "CONTAINSALL", "CONTAINSNONE", "INTERSECTS"]

const casts: ReadonlyArray<string> = [
  "array<string>",
  "array<decimal>",
  "set",
  "string",
  "bytes",
  "array<datetime | uuid | int | string>",
  "array<option<record<t>>>",
  "array<1 | 2 | 'a'>",
  "datetime",
  "duration",
  "record",
  "regex"
]

const shapesOf: { readonly [kind: string]: (n: number) => string } = {
  line: (n) => `{ type: 'LineString', coordinates: [${points(n, (v) => `[${v / 100_000}, 1]`)}] }`,
  polygon: (n) =>
    `{ type: 'Polygon', coordinates: [[${points(n, (v) => `[${v / 100_000}, ${v % 2}]`)}, [1, 5], [0, 0]]] }`
}

type Case = readonly [
  what: string,
  values: (n: number) => ReadonlyArray<string>,
  expression: (names: ReadonlyArray<string>) => string
]

/** Everything that is measured. */
export const cases = (): ReadonlyArray<Case> => [
  ...sizeable.flatMap((name) =>
    shapes
      .filter(([pattern]) => pattern.test(name))
      .slice(0, 1)
      .flatMap(([, args]) =>
        variants(name, args).map(
          ([kind, make]): Case => [
            `${name} of ${kind}`,
            (n) => splitArguments(make(n)),
            (names) => `${name}(${names.join(", ")})`
          ]
        )
      )
  ),
  ...between.flatMap((op) =>
    Object.entries({ ...lists, ...texts, object: kinds["object"]!, bytes: kinds["bytes"]!, ...shapesOf }).map(
      ([kind, make]): Case => [`${op} between ${kind}`, (n) => [make(n), make(n)], ([a, b]) => `${a} ${op} ${b}`]
    )
  ),
  ...between.flatMap((op) =>
    Object.entries(lists).map(
      ([kind, make]): Case => [
        `${op} between sets of ${kind}`,
        (n) => [`<set> ${make(n)}`, `<set> ${make(n)}`],
        ([a, b]) => `${a} ${op} ${b}`
      ]
    )
  ),
  ...casts.flatMap((type) =>
    Object.entries({ ...lists, ...texts }).map(
      ([kind, make]): Case => [`<${type}> of ${kind}`, (n) => [make(n)], ([a]) => `<${type}> ${a}`]
    )
  )
]

setFlagsFromString("--expose-gc")
const collect = runInNewContext("gc") as () => void

const heap = (): number => {
  collect()
  const { external, heapUsed } = process.memoryUsage()
  return heapUsed + external
}

const made = new Map<string, Value>()

/** A geometry of a text that is longer than a query may be. */
const geometryIn = (text: string): Value =>
  geometryOf(JSON.parse(text.replaceAll("'", '"').replace(/\b(type|coordinates):/g, '"$1":')) as Obj)

const valueOf = (text: string): Value => {
  if (made.size > 100) made.clear()
  if (!made.has(text))
    made.set(
      text,
      text.startsWith("{ type:")
        ? geometryIn(text)
        : Either.getOrElse(charged(`RETURN ${text}`).outcome, () => undefined)
    )
  return made.get(text)
}

const sizes = [32_768, 4_096, 512, 64]

/** Arguments that take long to make are made smaller at once. */
const dear = /points|sets|shared|records|long|object/

const ofKind = /Incorrect arguments|Could not cast|Cannot perform|Failed to/

interface Entry {
  readonly key: string
  readonly at: number
}

/** Work of no query, of the same kinds: hashing, sorting, making small objects. */
const yardstick = (): number => {
  const started = process.cpuUsage(),
    seen = new Map<string, Entry>()
  for (let i = 0; i < 8_000; i++) seen.set(`k${(i * 7919) % 8_009}`, { key: String(i), at: i })
  const sorted = [...seen.values()].sort((a, b) => (a.key < b.key ? -1 : 1))
  const { system, user } = process.cpuUsage(started)
  return sorted.length === 0 ? Infinity : (system + user) / 1000
}

let quickest = Infinity

/** How much slower everything is just now than it was at the best of times: machines are shared. */
const slowness = (): number => {
  const now = Math.min(yardstick(), yardstick())
  quickest = Math.min(quickest, now)
  return now / quickest
}

/**
 * Measures a case at the largest of three sizes that the budget of a row has room for; undefined where nothing of the
 * kind is taken.
 */
export const measure = ([what, values, expression]: Case): Price | undefined => {
  for (const size of sizes) {
    if (size === sizes[0] && dear.test(what)) continue
    const params: Record<string, Value> = {},
      names = values(size).map((text, i) =>
        text.startsWith("|") ? text : ((params[`p${i}`] = valueOf(text)), `$p${i}`)
      )
    const [statement] = Either.getOrThrowWith(
      parseStatements(`RETURN ${expression(names)}`),
      (e) => new Error(e.message)
    )
    const run = () => {
      const b = makeBudget(limits.rowSteps.value, "TEST"),
        started = process.cpuUsage()
      const answer = evaluate(statement!, { source: fromRecords([]), params, budget: b })
      const { system, user } = process.cpuUsage(started)
      return { ms: (system + user) / 1000, answer, steps: b.limit - b.left, bytes: b.byteLimit - b.bytes }
    }
    const first = run()
    if (Either.isLeft(first.answer) && !ofKind.test(first.answer.left.reason)) continue
    const before = Either.isRight(first.answer) && first.ms > 0.3 ? heap() : 0,
      second = run(),
      held = before === 0 ? 0 : heap() - before
    const { bytes, steps } = second,
      ms = (1 / slowness()) * Math.min(second.ms, run().ms, first.ms > 20 ? first.ms : run().ms)
    return {
      what,
      size,
      steps,
      ms,
      nsPerStep: steps === 0 ? Infinity : (ms * 1e6) / steps,
      held: Math.max(0, held),
      bytes
    }
  }
  return undefined
}
