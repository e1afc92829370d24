/**
 * Which views have the same filter, and which of them lends its rows to the others.
 *
 * The first view of a filter keeps its rows as if it were alone, and lends them to those that come behind it. It stays
 * for as long as one of them does, though its own holder has let it go. Where no two views can have the same filter and
 * the same arguments, as of one shape without others, nothing is noted of them: a service has a hundred thousand such
 * views.
 */
import type { ViewSpec } from "./context.ts"
import type { Delta, DeltaBuilder } from "./delta/delta.ts"
import type { ViewRouter } from "./index/router.ts"
import type { Params } from "./query/lift.ts"
import { type MembersPlan, membersKey } from "./query/membersPlan.ts"
import type { IncrementalView } from "./view/incrementalView.ts"
import type { Lent, Sharer } from "./view/sharer.ts"
import type { Told } from "./view/view.ts"

/** The views of one filter with the same arguments that keep their rows. */
interface Keepers {
  /** The one whose rows others may read. */
  lender: IncrementalView | undefined
  count: number
}

/** The views of one filter, whatever its arguments. */
class FilterViews {
  readonly routers = new Set<ViewRouter>()
  /** Undefined where two views never have the same arguments. */
  private byKey: Map<string, Keepers> | undefined = undefined

  /** From here on views of this shape are among them. */
  enter(router: ViewRouter): void {
    this.routers.add(router)
    if (this.byKey !== undefined || (this.routers.size === 1 && !router.shape.members!.varies)) return
    this.byKey = new Map()
    for (const { views } of this.routers)
      for (const view of views) if (!view.failsAsWhole) this.add(view as IncrementalView)
  }

  /** The view that lends its rows to views of these arguments; undefined where none does. */
  lenderOf(plan: MembersPlan, params: Params): IncrementalView | undefined {
    return this.byKey?.get(membersKey(plan, params))?.lender
  }

  /** Whether a view of these arguments keeps its rows already. */
  isKept(plan: MembersPlan, params: Params): boolean {
    return this.byKey?.has(membersKey(plan, params)) === true
  }

  /** A view that keeps its rows. */
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

/** It keeps rows that others of its filter could share. */
const isKeeper = ({ failsAsWhole, plainShape: { members } }: IncrementalView): boolean =>
  members !== undefined && !failsAsWhole

/** The views of every filter that something may share. */
export class Sharing {
  private readonly byText = new Map<string, FilterViews>()
  private readonly lenderFor: (plan: MembersPlan, params: Params) => IncrementalView | undefined

  /** `lenderFor` makes a view that lends its rows and that no caller holds. */
  constructor(lenderFor: Sharing["lenderFor"]) {
    this.lenderFor = lenderFor
  }

  /** Another view of the same filter that lends a view its rows; undefined where it keeps its own. */
  lenderOf(router: ViewRouter, spec: ViewSpec): IncrementalView | undefined {
    const { members } = spec.shape
    if (members === undefined || spec.failsAsWhole) return undefined
    const views = this.of(router, members)
    const lends = views.lenderOf(members, spec.params)
    if (lends !== undefined || members.lends || !views.isKept(members, spec.params)) return lends
    return this.lenderFor(members, spec.params)
  }

  /** A view that keeps rows of its own, with the router that shows it records. */
  add(view: IncrementalView, router: ViewRouter): void {
    if (isKeeper(view)) this.of(router, view.plainShape.members!).add(view)
  }

  remove(view: IncrementalView, router: ViewRouter): void {
    if (isKeeper(view)) this.of(router, view.plainShape.members!).remove(view)
  }

  /** A shape is in use no more. */
  leave(router: ViewRouter): void {
    const text = router.shape.members?.text
    const views = text === undefined ? undefined : this.byText.get(text)
    if (views?.routers.delete(router) === true && views.routers.size === 0) this.byText.delete(text!)
  }

  clear(): void {
    this.byText.clear()
  }

  /** The views of the same filter as those of a shape, which are among them from here on. */
  private of(router: ViewRouter, { text }: MembersPlan): FilterViews {
    let views = this.byText.get(text)
    if (views === undefined) this.byText.set(text, (views = new FilterViews()))
    views.enter(router)
    return views
  }
}

/** Tells the views that have their rows from another view what a step has done to it. */
export const tellSharers = (sharers: ReadonlySet<Sharer>, delta: Delta, moves: DeltaBuilder, told: Told): Told => {
  const lent: Lent = { delta, moves, brought: new Map() }
  let touched = told
  for (const view of sharers) touched = view.hear(lent, touched)
  return touched
}
