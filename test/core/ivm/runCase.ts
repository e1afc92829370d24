/**
 * Runs one case (views and changes as plain data) on the engine and holds every law against it after every step.
 *
 * Why data and not code: a case that fails can be cut down by leaving steps out, printed, and committed as it stands.
 * The laws are checked from outside: rows, keys, versions, failing records, deltas, generations and hashes as a client
 * sees them, whichever way the engine maintains a query.
 */
import { Either } from "effect"
import { Engine } from "../../../src/core/ivm/engine.ts"
import { holdingsOf } from "../../../src/core/ivm/holdings.ts"
import type { EngineOptions } from "../../../src/core/ivm/options.ts"
import type { Touched, View } from "../../../src/core/ivm/view/view.ts"
import * as JsonText from "../../../src/core/jsonText.ts"
import { type Change, decodeChange } from "../../../src/core/record/change.ts"
import { parseSelect } from "../../../src/core/surql/syntax/parse.ts"
import { fromJson } from "../../../src/core/surql/values/json.ts"
import type { Value } from "../../../src/core/surql/values/value.ts"
import { Broken, broken, checkDelta, checkResult, failingOf, lines, type Shown, show } from "./checks.ts"
import { childrenFault, childrenOf, type Places, placeOf } from "./children.ts"
import { FollowedRows } from "./followedRows.ts"
import { Model, type PlainResult, plainly } from "./model.ts"
import { innerTables, mayMissFailing, placedByLink } from "./queryTraits.ts"

type Json = { readonly [key: string]: unknown }

export type Step =
  /** Registers a view under a name. */
  | { readonly watch: string; readonly query: string; readonly params?: Json }
  | { readonly release: string }
  /** Record changes, one step each. */
  | { readonly write: ReadonlyArray<unknown> }
  /** Record changes, one step for all. */
  | { readonly batch: ReadonlyArray<unknown> }
  /** A new engine takes over the records; the views are registered again. */
  | { readonly restart: true }

export type Case = ReadonlyArray<Step>

export interface Violation {
  readonly step: number
  readonly view: string | undefined
  readonly what: string
}

export interface Tally {
  /** Views held against the oracle. */
  checks: number
  /** Changes that had an effect. */
  changes: number
  deltas: number
  additions: number
  updates: number
  removals: number
  failing: number
  batches: number
  /** Rows of subqueries announced. */
  children: number
  /** Rows told to followers in format rows, and those of them that were told by path. */
  rows: number
  patched: number
  maxRows: number
}

export const newTally = (): Tally => ({
  checks: 0,
  changes: 0,
  deltas: 0,
  additions: 0,
  updates: 0,
  removals: 0,
  failing: 0,
  batches: 0,
  children: 0,
  rows: 0,
  patched: 0,
  maxRows: 0
})

interface Watched {
  readonly name: string
  readonly query: string
  readonly params: { readonly [name: string]: Value }
  readonly plain: (touched: ReadonlySet<string> | undefined) => PlainResult
  last: PlainResult | undefined
  instance: View
  /** The same in format rows, of every other view. */
  rows: FollowedRows | undefined
  generation: number
  hash: string
  /** What a client that follows the deltas holds. */
  shown: ReadonlyMap<string, Shown>
  /** Tables of subqueries: a new version of a row of theirs counts as a change, shown or not (D8). */
  readonly childTables: ReadonlyArray<string>
  /** The rows of its subqueries, where they can be told. */
  readonly childrenOf: ReturnType<typeof childrenOf>
  children: Places
  /** Every content there was, by hash, and the other way round. */
  readonly contents: Map<string, string>
  readonly hashes: Map<string, string>
}

export const decode = (json: unknown): Change => {
  const decoded = decodeChange(json)
  if (Either.isLeft(decoded)) throw new Error(`${JsonText.write(json)}: ${decoded.left.message}`)
  return decoded.right
}

/** A new engine with the records of a model. */
export const loaded = (model: Model, options?: EngineOptions): Engine => {
  const engine = new Engine(options)
  for (const { id, version, doc } of model.records.values()) engine.load(id, version, doc)
  for (const { id, version } of model.gone.values()) engine.load(id, version, undefined)
  return engine
}

/** What a client sees; the versions of rows that are no records are the engine's own. */
const contentOf = (plain: PlainResult, keys: ReadonlyArray<string>): string =>
  plain.rows.map((row, i) => `${keys[i]} ${row.version ?? ""} ${row.text}`).join("\n")

/**
 * One delta, one generation, another hash; no delta, none of it. Within a history, hash and content belong together.
 */
const checkHash = (view: Watched, touched: Touched | undefined, content: string): void => {
  const { instance } = view
  const hash = instance.hash()
  if (touched === undefined) {
    if (hash !== view.hash) broken(`L2 the hash changes from ${view.hash} to ${hash} without a delta`)
    if (instance.generation !== view.generation)
      broken(`L2 the generation goes from ${view.generation} to ${instance.generation} without a delta`)
  } else {
    if (hash !== touched.hash || instance.generation !== touched.generation)
      broken(
        `L3 the step says hash ${touched.hash}, generation ${touched.generation}; the result says ${hash}, ${instance.generation}`
      )
    if (instance.generation !== view.generation + 1)
      broken(`D13 the generation goes from ${view.generation} to ${instance.generation} in one step`)
  }
  const other = view.contents.get(hash)
  if (other !== undefined && other !== content)
    broken(`the hash ${hash} stands for two contents:${lines([other, "and", content])}`)
  const former = view.hashes.get(content)
  if (former !== undefined && former !== hash && !placedByLink(view.query) && view.childTables.length === 0)
    broken(`L5 one content has had the hashes ${former} and ${hash}:${lines([content])}`)
  view.contents.set(hash, content)
  view.hashes.set(content, hash)
}

class Runner {
  readonly model = new Model()
  readonly views = new Map<string, Watched>()
  /** What is left to do for views that were let go. */
  private left: Array<Iterator<undefined, void>> = []
  private readonly options: EngineOptions = { atOnce: 0, later: (work) => void this.left.push(work()) }
  engine = new Engine(this.options)
  private changes = 0
  private begun = 0
  private readonly tally: Tally
  /** Reads the rows of a view that has no reason to have changed only now and then. */
  private readonly quick: boolean
  private skipped = 0

  constructor(tally: Tally, quick: boolean) {
    this.tally = tally
    this.quick = quick
  }

  step(step: Step): void {
    if ("watch" in step) return this.watch(step.watch, step.query, step.params ?? {})
    if ("release" in step) return this.release(step.release)
    if ("restart" in step) return this.restart()
    if ("write" in step) {
      for (const json of step.write) this.change([json])
      return
    }
    this.tally.batches++
    this.change(step.batch)
  }

  /** Ends the case: a new engine with the same records answers the same, and nothing stays behind. */
  end(): void {
    this.restart()
    this.clearUp()
    this.views.clear()
  }

  /** Lets all views go: L7 nothing of them stays behind. */
  private clearUp(): void {
    for (const { instance } of this.views.values()) this.engine.release(instance)
    this.goOn(Infinity)
    const { departing, heldRows, indexEntries, instances, readingRows } = holdingsOf(this.engine.kept)
    if (departing + heldRows + indexEntries + instances + readingRows > 0)
      broken(
        `L7 stays behind: ${JSON.stringify({ departing, heldRows, indexEntries, instances, readingRows, shapes: this.engine.shapes() })}`
      )
  }

  /** Does some of what is left. */
  private goOn(pieces: number): void {
    for (let n = 0; n < pieces && this.left.length > 0; n++) if (this.left[0]!.next().done === true) this.left.shift()
  }

  /** Lets one view go and acquires it again at once: what is left of the one is in the way of the other's rows. */
  private again(): void {
    const view = [...this.views.values()][this.changes % this.views.size]
    if (view === undefined) return
    this.engine.release(view.instance)
    view.instance = this.acquire(view.query, view.params, view.generation)
    this.current = view
    if (view.instance.hash() !== view.hash)
      broken(`L5 the hash of a view that is acquired again is ${view.instance.hash()}, was ${view.hash}`)
    this.begin(view)
  }

  private watch(name: string, query: string, given: Json): void {
    const parsed = parseSelect(query)
    if (Either.isLeft(parsed)) return broken(`does not parse: ${parsed.left.message} in ${query}`)
    const params = fromJson(given) as { readonly [name: string]: Value }
    const view: Watched = {
      name,
      query,
      params,
      plain: plainly(parsed.right, params, this.model),
      last: undefined,
      instance: this.acquire(query, params, 1),
      rows: undefined,
      generation: 1,
      hash: "",
      shown: new Map(),
      contents: new Map(),
      hashes: new Map(),
      childTables: innerTables(query),
      childrenOf: childrenOf(parsed.right, (id) => this.model.records.get(id)?.version ?? 0),
      children: new Map()
    }
    this.views.set(name, view)
    this.begin(view)
  }

  private acquire(query: string, params: { readonly [name: string]: Value }, generation: number): View {
    const made = this.engine.acquire(Either.getOrThrow(parseSelect(query)), params, generation)
    return Either.isRight(made) ? made.right : broken(`L6 refused: ${made.left.reason}, ${query}`)
  }

  /** The first look at an instance. */
  private begin(view: Watched): void {
    this.current = view
    const { instance } = view
    view.generation = instance.generation
    view.hash = instance.hash()
    view.shown = show(instance)
    view.rows = ++this.begun % 2 === 0 ? new FollowedRows(instance, this.tally) : undefined
    for (const row of instance.plan())
      if (row.incremental === (row.reason !== null))
        broken(`L6 ${row.operator} is ${row.incremental ? "" : "not "}incremental, reason ${row.reason}`)
    this.check(view, undefined, undefined)
  }

  private release(name: string): void {
    const view = this.views.get(name)
    if (view === undefined) return
    this.views.delete(name)
    this.engine.release(view.instance)
  }

  private restart(): void {
    this.clearUp()
    this.engine = loaded(this.model, this.options)
    for (const view of this.views.values()) {
      const before = [...view.shown.values()].map(({ text }) => text).join("\n")
      view.instance = this.acquire(view.query, view.params, view.generation)
      this.current = view
      if (view.instance.hash() !== view.hash)
        broken(`L5 the hash after a restart is ${view.instance.hash()}, was ${view.hash}`)
      if ([...show(view.instance).values()].map(({ text }) => text).join("\n") !== before)
        broken("L5 the rows after a restart are others")
      if (view.instance.generation !== view.generation)
        broken(`L5 the generation after a restart is ${view.instance.generation}, was ${view.generation}`)
    }
    for (const view of this.views.values()) this.begin(view)
  }

  private change(jsons: ReadonlyArray<unknown>): void {
    const changes = jsons.map(decode)
    this.current = undefined
    const planned = this.engine.plan(changes)
    changes.forEach((change, i) => {
      const effective = this.model.take(change)
      if (effective) this.tally.changes++
      if (effective !== (planned[i] !== undefined))
        broken(`D3 ${change.op} ${change.id.text} ${effective ? "has" : "has no"} effect, the plan says otherwise`)
    })
    const writes = planned.filter((write) => write !== undefined)
    const [only] = writes
    const touched =
      only === undefined ? [] : jsons.length === 1 ? this.engine.apply(only) : this.engine.applyAll(writes)
    const moved = this.model.moved()
    const byInstance = new Map<View, Touched>()
    for (const one of touched) {
      if (byInstance.has(one.view)) broken(`L2 two deltas for ${one.view.shape} in one step`)
      byInstance.set(one.view, one)
    }
    for (const view of this.views.values()) this.check(view, byInstance.get(view.instance), moved)
    const known = new Set([...this.views.values()].map(({ instance }) => instance))
    for (const instance of byInstance.keys())
      if (!known.has(instance)) broken(`a delta for ${instance.shape}, which nobody watches`)
    const failing = new Set(this.engine.failing.walk())
    for (const instance of known)
      if (failing.has(instance) !== instance.errors().length > 0)
        broken(`D79 ${instance.shape} leaves out ${instance.errors().length} rows, the failing views say otherwise`)
    // A few pieces of what is left between two changes, and often none.
    this.goOn([0, 0, 1, 3, 0, 20][++this.changes % 6]!)
    if (this.changes % 17 === 0) this.again()
  }

  current: Watched | undefined = undefined

  /**
   * L2 for the rows of subqueries: what the deltas told of them is what the result shows, and what `children` lists.
   */
  private checkChildren(
    view: Watched,
    plain: PlainResult,
    now: ReadonlyMap<string, Shown>,
    touched: Touched | undefined,
    moved: ReadonlySet<string> | undefined
  ): void {
    // A query that is run whole does not tell its children.
    if (view.childrenOf === undefined || view.instance.plan().some(({ incremental }) => !incremental)) return
    const keys = [...now.keys()]
    const children = view.childrenOf(plain.rows.map((row, i) => [keys[i] ?? "", row.value] as const))
    const top = new Set(keys)
    const listed = new Map<string, number>()
    for (const [alias, parent, ids] of view.instance.children())
      for (const id of ids) listed.set(placeOf(alias, parent, id), (listed.get(placeOf(alias, parent, id)) ?? 0) + 1)
    for (const [place, count] of listed)
      if ((children.get(place)?.length ?? 0) < count) broken(`D13 children lists ${place} ${count} times`)
    for (const place of children.keys())
      if (
        top.has(place.slice(place.indexOf(" of ") + 4, place.lastIndexOf(": "))) &&
        /^a\d of /.test(place) &&
        !listed.has(place)
      )
        broken(`D13 children does not list ${place}`)
    if (moved !== undefined) {
      const fault = childrenFault(view.children, children, touched?.delta.subqueries ?? [], moved)
      if (fault !== undefined) broken(`L2 ${fault}\n  entries ${JSON.stringify(touched?.delta.subqueries ?? [])}`)
    }
    this.tally.children += touched?.delta.subqueries.length ?? 0
    view.children = children
  }

  private check(view: Watched, touched: Touched | undefined, moved: ReadonlySet<string> | undefined): void {
    this.current = view
    const { tally } = this,
      { instance } = view
    const plain = view.plain(moved)
    tally.checks++
    if (
      this.quick &&
      plain === view.last &&
      moved !== undefined &&
      touched === undefined &&
      ++this.skipped % 16 !== 0
    ) {
      if (
        instance.size !== view.shown.size ||
        instance.generation !== view.generation ||
        instance.hash() !== view.hash ||
        (failingOf(instance).size !== plain.failing.size && !mayMissFailing(view.query))
      )
        broken(
          `L2 size, generation, hash or failing records change without a delta: ${instance.size} rows, hash ${instance.hash()}`
        )
      return
    }
    view.last = plain
    const now = show(instance)
    checkResult(instance, now, plain, mayMissFailing(view.query))
    checkDelta(
      view.shown,
      now,
      touched,
      placedByLink(view.query) || view.childTables.some((table) => table === "$" || moved?.has(`rows ${table}`))
    )
    this.checkChildren(view, plain, now, touched, moved)
    checkHash(view, touched, contentOf(plain, [...now.keys()]))
    view.shown = now
    view.hash = instance.hash()
    view.generation = instance.generation
    tally.maxRows = Math.max(tally.maxRows, now.size)
    tally.failing += plain.failing.size
    if (touched === undefined) return
    view.rows?.step(touched)
    tally.deltas++
    tally.additions += touched.delta.additions.length
    tally.updates += touched.delta.updates.length
    tally.removals += touched.delta.removals.length
  }
}

export interface Options {
  /** Sees model and views when all steps are done. */
  readonly after?: (model: Model, views: ReadonlyMap<string, { readonly instance: View }>) => void
  /**
   * Looks at what no record read by a view has touched only now and then, and at its hash, size and generation always.
   */
  readonly quick?: boolean
}

/** The first law a case breaks, if any. */
export const runCase = (
  steps: Case,
  tally: Tally = newTally(),
  { after, quick = false }: Options = {}
): Violation | undefined => {
  const runner = new Runner(tally, quick)
  for (let i = 0; i <= steps.length; i++) {
    try {
      const step = steps[i]
      if (step !== undefined) runner.step(step)
      else {
        runner.current = undefined
        after?.(runner.model, runner.views)
        runner.end()
      }
    } catch (error) {
      const what =
        error instanceof Broken
          ? error.what
          : error instanceof Error
            ? (error.stack ?? error.message).split("\n").slice(0, 6).join("\n  ")
            : String(error)
      return { step: i, view: runner.current?.name, what }
    }
  }
  return undefined
}
