/**
 * The registered views: which key stands for which instance, with what registration, since when.
 *
 * Two ids with the same query and parameters share one instance (D9); what is a view's own is its generation (counted
 * from its registration), its incarnation and its feed.
 */
import type { Evaluating } from "../../core/ivm/evaluating.ts"
import type { View } from "../../core/ivm/view/view.ts"
import { addTo, removeFrom } from "../../core/multimap.ts"
import { toJson } from "../../core/surql/json.ts"
import type { StoredView } from "../../ports/Database.ts"
import { Feed } from "./feed.ts"
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

/** As it was registered; what nobody knows is as if there were none. */
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

const answerOf = (view: Registered, id: string, format: Format): ViewAnswer => {
  const { instance } = view
  const rows = instance.rows()
  const errors = instance.errors()
  const tree = () => {
    const values = rows.map((row) => toJson(row.value()))
    return instance.only ? (values[0] ?? null) : values
  }
  const answer = {
    ...placedOf(view, id, format),
    result_data: format === "tree" ? tree() : rows.map((row) => [row.key, row.version])
  }
  return errors.length === 0 ? answer : { ...answer, errors }
}

export class Registry {
  private readonly evaluating: Evaluating
  private readonly byKey = new Map<string, Registered>()
  private readonly byInstance = new Map<View, Set<Registered>>()
  /** Of each instance, the views somebody streams: all that a change has to tell. */
  private readonly streamed = new Map<View, Set<Registered>>()

  constructor(evaluating: Evaluating) {
    this.evaluating = evaluating
  }

  /** The current result as D8 shapes it, whose rows are evaluated here; `id` as the request gave it. */
  answer(view: Registered, id: string, format: Format): ViewAnswer {
    return this.evaluating.during(view.instance.watchSlot, () => answerOf(view, id, format))
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
