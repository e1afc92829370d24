/**
 * What a client sees of a view, held against the laws: its rows against a fresh run (L1), its deltas against its rows
 * (L2).
 *
 * Apart from the runner because it knows no history: two results and what was told in between.
 */
import type { Touched, View } from "../../../src/core/ivm/view/view.ts"
import { encode } from "../../../src/core/surql/values/encode.ts"
import { render } from "../../../src/core/surql/values/text.ts"
import type { PlainResult } from "./model.ts"

export interface Shown {
  readonly version: number
  readonly text: string
}

/** A law does not hold. */
export class Broken {
  readonly what: string
  constructor(what: string) {
    this.what = what
  }
}

export const broken = (what: string): never => {
  throw new Broken(what)
}

/** The rows of a view by key. */
export const show = (view: View): Map<string, Shown> => {
  const shown = new Map<string, Shown>()
  for (const row of view.rows()) {
    if (shown.has(row.key)) broken(`two rows have the key ${row.key}`)
    shown.set(row.key, { version: row.version, text: encode(row.value()) })
  }
  return shown
}

export const lines = (rows: Iterable<string>): string => [...rows].map((row) => `\n    ${row}`).join("")

export const failingOf = (view: View): ReadonlySet<string> => new Set(view.errors().map(({ id }) => id))

/** L1: rows, order, keys, versions, size and failing records are those of a fresh run. */
export const checkResult = (
  view: View,
  shown: ReadonlyMap<string, Shown>,
  plain: PlainResult,
  lenient: boolean
): void => {
  let i = 0
  let same = shown.size === plain.rows.length
  // SPLIT numbers the pieces of a record before anything orders or cuts them.
  for (const [key, { text, version }] of shown) {
    const row = plain.rows[i++]
    if (!same || row === undefined) break
    same =
      row.text === text &&
      (row.record === undefined ||
        (row.version === version && (key === row.record || key.startsWith(`${row.record}#`))))
  }
  if (!same) {
    broken(
      `L1 rows\n  expected${lines(plain.rows.map((row) => `${row.record ?? "-"} v${row.version ?? "-"} ${render(row.value)}`))}\n  got${lines(view.rows().map((row) => `${row.key} v${row.version} ${render(row.value())}`))}`
    )
  }
  if (view.size !== shown.size) broken(`L1 size is ${view.size} with ${shown.size} rows`)
  const failing = failingOf(view)
  if ((failing.size !== plain.failing.size && !lenient) || [...failing].some((id) => !plain.failing.has(id))) {
    broken(
      `D2a failing records: expected [${[...plain.failing].sort().join(" ")}], got [${[...failing].sort().join(" ")}]`
    )
  }
}

const differ = (a: Shown, b: Shown): boolean => a.version !== b.version || a.text !== b.text

/** L2: the delta leads from one result to the next, and announces nothing that did not change. */
export const checkDelta = (
  before: ReadonlyMap<string, Shown>,
  now: ReadonlyMap<string, Shown>,
  touched: Touched | undefined,
  lenient: boolean
): void => {
  const announced = new Set<string>()
  const once = (key: string): void => {
    if (announced.has(key)) broken(`L2 ${key} is announced twice`)
    announced.add(key)
  }
  const { additions, removals, subqueries, updates } = touched?.delta ?? {
    additions: [],
    removals: [],
    subqueries: [],
    updates: []
  }
  // A row is told with its children (D11), though what it shows of them may be the same: none, and one that is NONE.
  const parents = new Set(subqueries.map(({ parent }) => parent))
  for (const [key, version] of additions) {
    once(key)
    if (before.has(key) || now.get(key)?.version !== version)
      broken(`L2 addition of [${key}, ${version}] to ${shownText(before)} which becomes ${shownText(now)}`)
  }
  for (const key of removals) {
    once(key)
    if (!before.has(key) || now.has(key))
      broken(`L2 removal of ${key} from ${shownText(before)} which becomes ${shownText(now)}`)
  }
  const moved = lenient || sequence(before, now) !== sequence(now, before)
  for (const [key, version] of updates) {
    once(key)
    const old = before.get(key),
      new_ = now.get(key)
    if (old === undefined || new_?.version !== version)
      broken(`L2 update of [${key}, ${version}] in ${shownText(before)} which becomes ${shownText(now)}`)
    else if (!differ(old, new_) && !moved && !parents.has(key))
      broken(`L2 an update of ${key} is announced and nothing of it has changed: ${old.text}`)
  }
  for (const [key, old] of before) {
    const new_ = now.get(key)
    if ((new_ === undefined || differ(old, new_)) && !announced.has(key))
      broken(
        `L2 ${key} ${new_ === undefined ? "is gone" : "has changed"} without a word: ${old.text} -> ${new_?.text ?? "nothing"}`
      )
  }
  for (const key of now.keys()) if (!before.has(key) && !announced.has(key)) broken(`L2 ${key} has come without a word`)
  const quiet = (shown: ReadonlyMap<string, Shown>): string =>
    [...shown.keys()].filter((key) => !announced.has(key)).join(" ")
  if (quiet(before) !== quiet(now))
    broken(`L2 rows nobody spoke of have changed places: ${quiet(before)} -> ${quiet(now)}`)
}

const shownText = (shown: ReadonlyMap<string, Shown>): string =>
  `[${[...shown].map(([key, { version }]) => `${key} v${version}`).join(", ")}]`

/** Keys of `a` that are in `b` too, in the order of `a`. */
const sequence = (a: ReadonlyMap<string, Shown>, b: ReadonlyMap<string, Shown>): string =>
  [...a.keys()].filter((key) => b.has(key)).join("\n")
