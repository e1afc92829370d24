/**
 * Which views have the same filter, and which of them lends its rows to the others.
 *
 * The first view of a filter keeps its rows as if it were alone, and lends them to later ones. It stays as long as one
 * of them does, even after its own caller has released it. If no two views can have the same filter and arguments, as
 * for a lone shape, nothing is recorded: a service has a hundred thousand such views.
 */
import { encode } from "../surql/values/encode.ts"
import { field, setField, type Value } from "../surql/values/value.ts"
import type { ViewSpec } from "./context.ts"
import type { Delta, DeltaBuilder } from "./delta/delta.ts"
import type { ViewRouter } from "./index/router.ts"
import type { Params } from "./query/lift.ts"
import { type MembersPlan, membersKey } from "./query/membersPlan.ts"
import type { IncrementalView } from "./view/incrementalView.ts"
import type { LenderStep, Sharer } from "./view/sharer.ts"
import type { ChangedViews } from "./view/view.ts"

/** The views of one filter and the same arguments that keep rows. */
interface Keepers {
  /** The view that lends its rows. */
  lender: IncrementalView | undefined
  count: number
}

/** The views of one filter, with any arguments. */
class FilterViews {
  readonly routers = new Set<ViewRouter>()
  /** Undefined if no two views can have the same arguments. */
  private byKey: Map<string, Keepers> | undefined = undefined

  /** Adds the views of a shape, present and future. */
  enter(router: ViewRouter): void {
    this.routers.add(router)
    if (this.byKey !== undefined || (this.routers.size === 1 && !router.shape.members!.varies)) return
    this.byKey = new Map()
    for (const { views } of this.routers)
      for (const view of views) if (!view.failsAsWhole) this.add(view as IncrementalView)
  }

  /** The view that lends its rows for these arguments; undefined if none does. */
  lenderOf(plan: MembersPlan, params: Params): IncrementalView | undefined {
    return this.byKey?.get(membersKey(plan, params))?.lender
  }

  /** Whether a view with these arguments keeps its rows already. */
  isKept(plan: MembersPlan, params: Params): boolean {
    return this.byKey?.has(membersKey(plan, params)) === true
  }

  /** Adds a view that keeps its rows. */
  add(view: IncrementalView): void {
    const plan = view.plainShape.members!
    const lender = plan.lends ? view : undefined
    if (this.byKey === undefined) return
    const key = membersKey(plan, view.params)
    const keepers = this.byKey.get(key)
    if (keepers === undefined) this.byKey.set(key, { lender, count: 1 })
    else {
      keepers.lender ??= lender
      keepers.count++
    }
  }

  remove(view: IncrementalView): void {
    const plan = view.plainShape.members!
    const key = membersKey(plan, view.params)
    const keepers = this.byKey?.get(key)
    if (keepers === undefined) return
    if (keepers.lender === view) keepers.lender = undefined
    if (--keepers.count === 0) this.byKey!.delete(key)
  }
}

/** Whether a view keeps rows that others of its filter could share. */
const isKeeper = ({ failsAsWhole, plainShape: { members } }: IncrementalView): boolean =>
  members !== undefined && !failsAsWhole

/** The views of every filter that can be shared. */
export class Sharing {
  private readonly byText = new Map<string, FilterViews>()
  private readonly lenderFor: (plan: MembersPlan, params: Params) => IncrementalView | undefined

  /** `lenderFor` makes a view that only lends its rows; no caller holds it. */
  constructor(lenderFor: Sharing["lenderFor"]) {
    this.lenderFor = lenderFor
  }

  /** Another view of the same filter that lends this one its rows; undefined if the view keeps its own. */
  lenderOf(router: ViewRouter, spec: ViewSpec): IncrementalView | undefined {
    const { members } = spec.shape
    if (members === undefined || spec.failsAsWhole) return undefined
    const views = this.of(router, members)
    const lends = views.lenderOf(members, spec.params)
    if (lends !== undefined || members.lends || !views.isKept(members, spec.params)) return lends
    return this.lenderFor(members, spec.params)
  }

  /** Adds a view that keeps its own rows, and its router. */
  add(view: IncrementalView, router: ViewRouter): void {
    if (isKeeper(view)) this.of(router, view.plainShape.members!).add(view)
  }

  remove(view: IncrementalView, router: ViewRouter): void {
    if (isKeeper(view)) this.of(router, view.plainShape.members!).remove(view)
  }

  /** Removes a shape that has no views any more. */
  leave(router: ViewRouter): void {
    const text = router.shape.members?.text
    const views = text === undefined ? undefined : this.byText.get(text)
    if (views?.routers.delete(router) === true && views.routers.size === 0) this.byText.delete(text!)
  }

  clear(): void {
    this.byText.clear()
  }

  /** The views of the filter of a shape; adds the shape to them. */
  private of(router: ViewRouter, { text }: MembersPlan): FilterViews {
    let views = this.byText.get(text)
    if (views === undefined) this.byText.set(text, (views = new FilterViews()))
    views.enter(router)
    return views
  }
}

/** Tells the views that borrow a view's rows about its step. Answers the views changed so far in the step. */
export const notifySharers = (
  sharers: ReadonlySet<Sharer>,
  delta: Delta,
  moves: DeltaBuilder,
  told: ChangedViews
): ChangedViews => {
  const lent: LenderStep = { delta, moves, entryChanges: new Map() }
  let touched = told
  for (const view of sharers) touched = view.lenderChanged(lent, touched)
  return touched
}

/** Begins the keys of views that no caller has asked for: others show their rows. */
const lenderPrefix = "\u0002"

/** The spec of a view that lends its rows to the views of a filter with these arguments. */
export const lenderAbout = ({ names, text }: MembersPlan, given: Params) => {
  const params: Record<string, Value> = {}
  for (const name of names) setField(params, name, field(given, name))
  return { params, key: `${lenderPrefix}${text}\n${encode(params)}`, text, list: undefined }
}
