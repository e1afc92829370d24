/**
 * The registered views: which key stands for which instance, with what registration, since when.
 *
 * Two ids with the same query and parameters share one instance (D9); what is a view's own is its generation (counted
 * from its registration), its incarnation and its feed.
 */
import type { Evaluating } from "../../core/ivm/evaluating.ts"
import type { View } from "../../core/ivm/view/view.ts"
import { addTo, removeFrom } from "../../core/multimap.ts"
import { toJson } from "../../core/surql/values/json.ts"
import { bytesWritten } from "../../core/surql/written/paid.ts"
import type { StoredView } from "../../ports/Database.ts"
import { Feed } from "./feed.ts"
import { resultBytes } from "./viewLimits.ts"
import type { Format, ViewAnswer, ViewPlaced } from "./viewTypes.ts"

export interface Registered {
  stored: StoredView
  readonly instance: View
  /** Added to the instance's generation to give the view's own. */
  readonly generationOffset: number
  /** New at every start, replacement and move; never holds a dot. */
  readonly incarnation: string
  /** Made by {@link Registry.feedOf} when the view is first streamed. */
  feed: Feed | undefined
}

export const generationOf = (view: Registered): number => view.instance.generation + view.generationOffset

/** As it is kept: empty where the registration names none. */
export const formatText = (format: Format | null): string => format ?? ""

/** As it was registered; an unknown format counts as none. */
export const formatNamed = (text: string): Format | null =>
  text === "tree" || text === "streaming" || text === "flat" ? text : null

/** As results are given: flat where none is named (D8). */
export const formatGiven = (text: string): Format => formatNamed(text) ?? "flat"

export const formatOf = (view: Registered): Format => formatGiven(view.stored.format)

/** What the scheduler hears of a view that it has placed: O(1), however large the result. */
export const placedOf = (view: Registered, id: string, format: Format): ViewPlaced => ({
  query_id: id,
  format,
  result_hash: view.instance.hash(),
  content_generation: generationOf(view)
})

/** What a result shows in a format, and of which state it is. */
export interface Shown {
  readonly instance: View
  readonly generation: number
  readonly hash: string
  readonly format: Format
  readonly data: ViewAnswer["result_data"]
  /** Why nothing is shown, though there is something. */
  readonly tooLarge: string | undefined
}

/** The rows as JSON; undefined where writing them out takes more than so many bytes. */
const treeOf = (instance: View, most: number): ViewAnswer["result_data"] | undefined => {
  const values: Array<unknown> = []
  let left = most
  for (const row of instance.rows()) {
    const value = row.value()
    left -= bytesWritten(value, left)
    if (left < 0) return undefined
    values.push(toJson(value))
  }
  return instance.only ? (values[0] ?? null) : values
}

const shownIn = (instance: View, format: Format, most: number): Shown => {
  const data =
    format === "tree" ? treeOf(instance, most) : instance.rows().map((row) => [row.key, row.version] as const)
  const state = { instance, generation: instance.generation, hash: instance.hash(), format }
  if (data !== undefined) return { ...state, data, tooLarge: undefined }
  const tooLarge = `The result takes more than ${most} bytes to write out; ask for fewer rows (LIMIT), read it in format flat, or raise ${resultBytes.setting} to allow it`
  return { ...state, data: instance.only ? null : [], tooLarge }
}

const isStill = ({ format, generation, hash, instance }: Shown, now: View, wanted: Format): boolean =>
  instance === now && format === wanted && generation === now.generation && hash === now.hash()

export class Registry {
  private readonly evaluating: Evaluating
  private readonly resultBytes: number
  private readonly byKey = new Map<string, Registered>()
  private readonly byInstance = new Map<View, Set<Registered>>()
  /** Of each instance, the views that are streamed: all that a change has to tell. */
  private readonly streamed = new Map<View, Set<Registered>>()

  /** `resultBytes`: what writing out one result in format `tree` may take. */
  constructor(evaluating: Evaluating, resultBytes: number) {
    this.evaluating = evaluating
    this.resultBytes = resultBytes
  }

  /** What a result shows now; its rows are evaluated here. */
  shown(instance: View, format: Format): Shown {
    return this.evaluating.during(instance.watchSlot, () => shownIn(instance, format, this.resultBytes))
  }

  /**
   * The current result as D8 shapes it; `id` as the request gave it. One that is too large to be written out shows no
   * rows, and says so under an empty id as a query does that fails as a whole. `known`: what it showed a moment ago.
   */
  answer(view: Registered, id: string, format: Format, known?: Shown): ViewAnswer {
    const { instance } = view
    const { data, tooLarge } =
      known !== undefined && isStill(known, instance, format) ? known : this.shown(instance, format)
    const answer = { ...placedOf(view, id, format), result_data: data }
    const errors = [...(tooLarge === undefined ? [] : [{ id: "", reason: tooLarge }]), ...instance.errors()]
    return errors.length === 0 ? answer : { ...answer, errors }
  }

  get size(): number {
    return this.byKey.size
  }

  get(key: string): Registered | undefined {
    return this.byKey.get(key)
  }

  all(): Iterable<Registered> {
    return this.byKey.values()
  }

  /** How many view ids show this instance. */
  sharing(instance: View): number {
    return this.byInstance.get(instance)?.size ?? 0
  }

  /** The views that show this instance. */
  showing(instance: View): Iterable<Registered> {
    return this.byInstance.get(instance) ?? []
  }

  streaming(instance: View): Iterable<Registered> {
    return this.streamed.get(instance) ?? []
  }

  /** The view's feed; from now on its deltas are buffered. */
  feedOf(view: Registered, capacity: number): Feed {
    if (view.feed === undefined) {
      view.feed = new Feed(capacity)
      addTo(this.streamed, view.instance, view)
    }
    return view.feed
  }

  put(view: Registered): void {
    this.byKey.set(view.stored.key, view)
    addTo(this.byInstance, view.instance, view)
  }

  remove(view: Registered): void {
    this.byKey.delete(view.stored.key)
    removeFrom(this.byInstance, view.instance, view)
    removeFrom(this.streamed, view.instance, view)
  }
}
