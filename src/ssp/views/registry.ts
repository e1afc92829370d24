/**
 * The registered views by key: instance, registration, generation.
 *
 * Ids with the same query and parameters share one instance (D9); a view of its own has a generation (counted from its
 * registration), an incarnation and a feed.
 */

import type { Engine } from "../../core/ivm/engine.ts"
import type { EvaluationNote } from "../../core/ivm/evaluating.ts"
import { tablesRead } from "../../core/ivm/view/tablesRead.ts"
import type { View } from "../../core/ivm/view/view.ts"
import { addTo, removeFrom } from "../../core/multimap.ts"
import { plainFailure } from "../../core/surql/evaluate/failure.ts"
import { drain, type Slices } from "../../core/surql/evaluate/scope.ts"
import { toJson } from "../../core/surql/values/json.ts"
import { bytesWritten } from "../../core/surql/written/paid.ts"
import { Feed } from "../../node/streams/feed.ts"
import type { StoredView } from "../../ports/Database.ts"
import { type Format, formatGiven, type PlacedViewAnswer, type ViewAnswer } from "../viewTypes.ts"
import { resultBytes } from "./viewLimits.ts"

export interface RegisteredView {
  stored: StoredView
  readonly instance: View
  /** Number of the scheduler's assignment; undefined if a client registered the view here. */
  assignment: number | undefined
  /** Added to the instance's generation to give the view's own. */
  readonly generationOffset: number
  /** New at every start, replacement and move; never holds a dot. */
  readonly incarnation: string
  /** Feed of deltas, made by {@link Registry.feedOf} when the view is first streamed. */
  feed: Feed | undefined
  /** Feed in format rows, made by `RowStreams` and dropped when no stream has followed it for a while. */
  rowsFeed: Feed | undefined
}

/** A view at this generation. */
export const makeRegistered = (
  view: Pick<RegisteredView, "stored" | "instance" | "assignment" | "incarnation">,
  generation: number
): RegisteredView => ({
  ...view,
  generationOffset: generation - view.instance.generation,
  feed: undefined,
  rowsFeed: undefined
})

export const generationOf = (view: RegisteredView): number => view.instance.generation + view.generationOffset

/**
 * Position in a feed where a client resumes, by the id of its last event; undefined: it needs a snapshot. `current`:
 * number of the feed's last event.
 */
export const resumePosition = (
  view: RegisteredView,
  feed: Feed,
  current: number,
  lastEventId: string | undefined
): number | undefined => {
  const [incarnation, n] = lastEventId?.split(".") ?? []
  return incarnation === view.incarnation && n !== undefined && /^\d+$/.test(n)
    ? feed.after(Number(n), current)
    : undefined
}

/** A format as it is stored; empty if the registration names none. */
export const formatText = (format: Format | null): string => format ?? ""

export const formatOf = (view: RegisteredView): Format => formatGiven(view.stored.format)

/** Most links followed for the tables in {@link placedAnswer}. */
const linksLooked = 400

/** Answer to a scheduler about a view that it has placed: O(1), however large the result. */
export const placedAnswer = (view: RegisteredView, id: string, engine: Engine): PlacedViewAnswer => ({
  query_id: id,
  format: formatOf(view),
  result_hash: view.instance.hash(),
  content_generation: generationOf(view),
  tables: [...tablesRead(engine.dependencies, view.instance, linksLooked)]
})

/** A result in a format, with its generation and hash. */
export interface ResultState {
  readonly instance: View
  readonly generation: number
  readonly hash: string
  readonly format: Format
  readonly data: ViewAnswer["result_data"]
  /** Rows that are left out. An entry with an empty id tells why the whole result is not shown. */
  readonly errors: NonNullable<ViewAnswer["errors"]>
  /** Why the result is too large to write out; undefined if it is not. */
  readonly tooLarge: string | undefined
}

/** Bytes written, and rows listed, between two pauses: a few milliseconds of work. */
const bytesPerSlice = 262_144
const rowsPerSlice = 8_192
/** Evaluation steps between two pauses. */
const stepsPerSlice = 20_000

/** The rows as JSON, with pauses; undefined if they take more than `most` bytes. */
function* treeOf(instance: View, most: number, spent: () => number): Slices<ReadonlyArray<unknown> | undefined> {
  const values: Array<unknown> = []
  let left = most
  let pauseAt = left - bytesPerSlice,
    pausedAt = spent()
  for (const row of instance.each()) {
    const value = row.value()
    left -= bytesWritten(value, left)
    if (left < 0) return undefined
    values.push(toJson(value))
    if (left > pauseAt && spent() - pausedAt < stepsPerSlice) continue
    pauseAt = left - bytesPerSlice
    pausedAt = spent()
    yield
  }
  return values
}

/** Rows as key and version, with pauses. */
function* flatOf(instance: View): Slices<ReadonlyArray<unknown>> {
  const pairs: Array<readonly [string, number]> = []
  for (const { key, version } of instance.each()) {
    pairs.push([key, version])
    if (pairs.length % rowsPerSlice === 0) yield
  }
  return pairs
}

/** Reads a result with pauses, in which it must not change. */
function* shownIn(instance: View, format: Format, most: number, spent: () => number): Slices<ResultState> {
  yield* instance.arrange()
  const rows = yield* format === "tree" ? treeOf(instance, most, spent) : flatOf(instance)
  const state = { instance, generation: instance.generation, hash: instance.hash(), format, errors: instance.errors() }
  if (rows !== undefined) {
    const data = format === "tree" && instance.only ? (rows[0] ?? null) : rows
    return { ...state, data, tooLarge: undefined }
  }
  const tooLarge = `The result takes more than ${most} bytes to write out; ask for fewer rows (LIMIT), read it in format flat, or raise ${resultBytes.setting} and the heap's limit to allow it`
  return {
    ...state,
    data: instance.only ? null : [],
    errors: [{ id: "", failure: plainFailure(tooLarge) }, ...state.errors],
    tooLarge
  }
}

/** Readings with pauses of a result that keeps changing; then it is read at once. */
const maxReadings = 3

/** The answer of D8 for a result; `id` as in the request. */
export const answerOf = (view: RegisteredView, id: string, shown: ResultState): ViewAnswer => {
  const { data, errors, format, generation, hash } = shown
  const answer = {
    query_id: id,
    format,
    result_hash: hash,
    content_generation: generation + view.generationOffset,
    result_data: data
  }
  return errors.length === 0 ? answer : { ...answer, errors }
}

export class Registry {
  /** Whether failing rows may have changed since {@link failing} was last called. */
  moved = false
  private readonly byKey = new Map<string, RegisteredView>()
  private readonly byInstance = new Map<View, Set<RegisteredView>>()
  /** The streamed views of each instance: all that a change must notify. */
  private readonly streamed = new Map<View, Set<RegisteredView>>()

  /** `resultBytes`: limit of one result in format `tree`. `spent`: evaluation steps so far. */
  constructor(
    private readonly evaluating: EvaluationNote,
    private readonly resultBytes: number,
    private readonly spent: () => number,
    private readonly failingViews: Engine["failing"]
  ) {}

  /** Runs `look` while the watchdog notes this instance as being evaluated. */
  during<A>({ watchSlot }: View, look: () => A): A {
    return this.evaluating.during(watchSlot, look)
  }

  /** Reads a result at once. */
  shown(instance: View, format: Format): ResultState {
    return this.evaluating.during(instance.watchSlot, () =>
      drain(shownIn(instance, format, this.resultBytes, this.spent))
    )
  }

  /**
   * Reads an instance's result with pauses. A result that changes in a pause is read again, so the answer is one state,
   * the newest.
   */
  *instanceSliced(instance: View, format: Format): Slices<ResultState> {
    for (let reading = 0; reading < maxReadings; reading++) {
      const shown = yield* this.reading(instance, format)
      if (shown !== undefined) return shown
    }
    return this.shown(instance, format)
  }

  /** {@link instanceSliced} of a view; undefined if the view is replaced in a pause. */
  *shownSliced(view: RegisteredView, format: Format): Slices<ResultState | undefined> {
    const slices = this.instanceSliced(view.instance, format)
    for (;;) {
      const slice = slices.next()
      if (slice.done === true) return slice.value
      yield
      if (this.byKey.get(view.stored.key) !== view) return undefined
    }
  }

  /** One reading; undefined if the result has changed in a pause. */
  private *reading(instance: View, format: Format): Slices<ResultState | undefined> {
    const generation = instance.generation
    const hash = instance.hash()
    const slices = shownIn(instance, format, this.resultBytes, this.spent)
    do {
      const slice = this.evaluating.during(instance.watchSlot, () => slices.next())
      if (slice.done === true) return slice.value
      yield
    } while (generation === instance.generation && hash === instance.hash())
    return undefined
  }

  get size(): number {
    return this.byKey.size
  }

  get(key: string): RegisteredView | undefined {
    return this.byKey.get(key)
  }

  /** Notes a view's last activity: the later of the known time and this one from the database (D14). */
  seenActive(key: string, lastActiveAtMs: number): void {
    const view = this.byKey.get(key)
    if (view !== undefined && view.stored.lastActiveAtMs < lastActiveAtMs)
      view.stored = { ...view.stored, lastActiveAtMs }
  }

  /** Tables that the view reads; empty if there is no view of this key. */
  tablesOf(key: string): ReadonlyArray<string> {
    const instance = this.byKey.get(key)?.instance
    return instance === undefined ? [] : [...new Set([...instance.mainTables, ...instance.otherTables])]
  }

  all(): Iterable<RegisteredView> {
    return this.byKey.values()
  }

  /** Number of view ids that show this instance. */
  sharing(instance: View): number {
    return this.byInstance.get(instance)?.size ?? 0
  }

  /** Each failing instance under one of its views' ids; undefined if nothing has changed since the last call. */
  failing(): Iterable<readonly [id: string, instance: View]> | undefined {
    if (!this.moved) return undefined
    this.moved = false
    return this.named(this.failingViews.walk())
  }

  private *named(instances: Iterable<View>): Iterable<readonly [id: string, instance: View]> {
    for (const instance of instances) {
      const [first] = this.byInstance.get(instance) ?? []
      if (first !== undefined) yield [first.stored.id, instance]
    }
  }

  /** The views that show this instance. */
  showing(instance: View): Iterable<RegisteredView> {
    return this.byInstance.get(instance) ?? []
  }

  streaming(instance: View): Iterable<RegisteredView> {
    return this.streamed.get(instance) ?? []
  }

  /** The view's feed; creating it starts the buffering of deltas. */
  feedOf(view: RegisteredView, capacity: number, soon: (feed: Feed) => void): Feed {
    if (view.feed === undefined) {
      view.feed = new Feed(capacity, soon)
      addTo(this.streamed, view.instance, view)
    }
    return view.feed
  }

  put(view: RegisteredView): void {
    this.moved = true
    this.byKey.set(view.stored.key, view)
    addTo(this.byInstance, view.instance, view)
  }

  remove(view: RegisteredView): void {
    this.byKey.delete(view.stored.key)
    removeFrom(this.byInstance, view.instance, view)
    removeFrom(this.streamed, view.instance, view)
  }
}
