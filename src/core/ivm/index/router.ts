/**
 * All instances of one shape, and the ways to find those a change can concern.
 *
 * Rule: an instance is filed by its arguments, and a changed row is shown to those its old or its new state meets, and to
 * nobody else (see lane.ts). Instances of single records are filed under their records. Cost: a few lookups per shape,
 * whatever the number of instances. A shape of whole tables without indexed conjuncts, and an instance whose arguments
 * have no exact key, are shown every change.
 */
import { addTo, removeFrom } from "../../multimap.ts"
import type { Slices } from "../../surql/scope.ts"
import type { Obj, Value } from "../../surql/value.ts"
import { type Placement, placementOf } from "../query/indexPlan.ts"
import type { Indexes } from "./secondaryIndexes.ts"
import { type Candidate, Lane } from "./viewIndex.ts"
import type { LiveList, Turnover } from "./subqueryValues.ts"
import type { Maintained } from "../view/incrementalView.ts"
import type { Place } from "../store/recordSlot.ts"
import { mostKept } from "./secondaryIndex.ts"
import type { Shape } from "../query/shape.ts"
import type { Store, Write } from "../store/store.ts"

/** Rows looked at between two pauses of a fill. */
export const sliceRows = 256

export class ShapeGroup {
  readonly shape: Shape
  readonly instances = new Set<Maintained>()
  /** The one there is, if there is one. */
  private lone: Maintained | undefined = undefined
  private readonly indexes: Indexes
  /** Where instances are filed; made with their first one. */
  private usual: Lane | undefined = undefined
  private ranges: Lane | undefined = undefined
  /** Where all of them stand again under what never leaves a row, if the shape also has paths that may. */
  private coarse: Lane | undefined = undefined
  /** Instances of a shape with indexed conjuncts that are filed nowhere. */
  private readonly everywhere = new Set<Maintained>()
  /** Instances whose parameters say what they read: those of tables and ranges by table, those of records by record. */
  private readonly byTable = new Map<string, Set<Maintained>>()
  private readonly byRecord = new Map<string, Set<Maintained>>()
  /** How many instances read each table. */
  private readonly reading = new Map<string, number>()

  constructor(shape: Shape, indexes: Indexes) {
    this.shape = shape
    this.indexes = indexes
  }

  add(instance: Maintained): void {
    this.instances.add(instance)
    this.lone = this.instances.size === 1 ? instance : undefined
    if (this.shape.access !== undefined) {
      const placement = this.placement(instance)
      if (placement === undefined) this.everywhere.add(instance)
      else {
        this.laneOf(placement).add(placement, instance)
        const coarse = this.coarsely(instance)
        if (coarse !== undefined) (this.coarse ??= this.newCoarse()).add(coarse, instance)
      }
    }
    for (const { table } of instance.slots?.scanned ?? []) addTo(this.byTable, table, instance)
    for (const text of instance.slots?.records.keys() ?? []) addTo(this.byRecord, text, instance)
    for (const table of instance.mainTables) this.reading.set(table, (this.reading.get(table) ?? 0) + 1)
  }

  remove(instance: Maintained): void {
    this.instances.delete(instance)
    if (this.instances.size <= 1) [this.lone] = this.instances
    if (this.shape.access !== undefined && !this.everywhere.delete(instance)) this.unfile(this.placement(instance)!, instance)
    for (const { table } of instance.slots?.scanned ?? []) removeFrom(this.byTable, table, instance)
    for (const text of instance.slots?.records.keys() ?? []) removeFrom(this.byRecord, text, instance)
    for (const table of instance.mainTables) {
      const left = this.reading.get(table)! - 1
      if (left === 0) this.reading.delete(table)
      else this.reading.set(table, left)
    }
  }

  readsTable(table: string): boolean {
    return this.reading.has(table)
  }

  /** Shows a new instance the rows it has to look at: those under its key where there is an index, else its sources. Pauses. */
  *fill(instance: Maintained, store: Store): Slices<void> {
    let count = 0
    for (const candidate of this.candidates(instance, store)) {
      // A list may change while this pauses, so that what led here need not hold any more.
      if (candidate !== undefined) instance.update(candidate.place, candidate.place.doc, candidate.routed && this.shape.list === undefined)
      if (++count % sliceRows === 0) yield
    }
    instance.begin()
    this.keep(instance)
  }

  /**
   * What shows every row of its key, and no more than can be filed again at once, stands for them in the index. Only subqueries
   * ask an index in the middle of a step, and what cannot fail has none: all that keeps rows is up to date before any is made.
   */
  private keep(instance: Maintained): void {
    const { access, list, residual, total } = this.shape
    const placement = access !== undefined && list === undefined && residual === undefined && total ? this.placement(instance) : undefined
    if (placement !== undefined && !placement.inRange && instance.matches <= mostKept) this.laneOf(placement).keep(placement, instance)
  }

  /** The rows a new instance has to look at; undefined for one that is passed over, where the caller may pause. */
  private *candidates(instance: Maintained, store: Store): Generator<Candidate | undefined, void, void> {
    const placement = this.shape.access && this.placement(instance)
    if (placement !== undefined) {
      const coarse = this.coarsely(instance)
      return yield* this.laneOf(placement).candidates(placement, store, coarse && { lane: this.coarse!, placement: coarse })
    }
    for (const place of instance.slots === undefined ? store.rows(this.shape.table!) : instance.slots.rows(store)) yield { place, routed: false }
  }

  /** Files an instance by the values its list has gained and lost; what it returns shows it the rows those concern. */
  relist(instance: Maintained, { gained, lost }: Turnover, store: Store): () => void {
    const { access, list } = this.shape
    const under = (values: ReadonlyArray<Value>): Placement | undefined => placementOf(access!, { ...instance.params, [list!.name]: values }, true)
    const from = under(lost), to = under(gained)
    if (this.everywhere.has(instance) || from === undefined || to === undefined) return () => this.showAll(instance, store)
    const lane = this.laneOf(to)
    const coarse = access!.coarse
    if (coarse?.member?.lists.includes(list!.name) === true && this.coarsely(instance) !== undefined) {
      this.coarse!.refile(placementOf(coarse, { ...instance.params, [list!.name]: lost }, true)!, placementOf(coarse, { ...instance.params, [list!.name]: gained }, true)!, instance)
    }
    lane.refile(from, to, instance)
    lane.fileRows()
    return () => {
      for (const candidate of lane.candidates(from, store)) if (candidate !== undefined) instance.update(candidate.place, candidate.routed ? undefined : candidate.place.doc, candidate.routed)
      for (const candidate of lane.candidates(to, store)) if (candidate !== undefined) instance.update(candidate.place, candidate.place.doc, candidate.routed)
    }
  }

  /** Shows an instance every row there is. */
  showAll(instance: Maintained, store: Store): void {
    for (const place of store.rows(this.shape.table!)) instance.update(place, place.doc, false)
  }

  /** Shows one changed record to the instances it can concern; the indexes have been moved already. */
  route(write: Write): void {
    const { after, place } = write
    const { shape } = this
    if (shape.table === undefined) return this.routeBySource(place, after)
    // Of a lone instance the filter costs less than the keys; where it can fail or look elsewhere, it is asked as often as that of many.
    if (this.lone !== undefined && (shape.access === undefined || (shape.total && !shape.reaches))) return this.lone.update(place, after, false)
    const followers = shape.access === undefined ? this.instances : this.everywhere
    if (followers.size > 0) for (const instance of followers) instance.update(place, after, false)
    if (shape.access === undefined) return
    this.usual?.route(write, this.loosely)
    this.ranges?.route(write, (_, found) => this.everyone(this.ranges!, found))
  }

  private routeBySource(place: Place, after: Obj | undefined): void {
    const { table, text } = place.id
    for (const instance of this.byRecord.get(text) ?? none) instance.update(place, after, false)
    for (const instance of this.byTable.get(table) ?? none) instance.update(place, after, false)
  }

  private readonly loosely = (doc: Obj, found: (instance: Maintained) => void): void => {
    if (this.coarse !== undefined && this.coarse.size === this.usual!.size) this.coarse.meeting(doc, this.instances, found)
    else this.everyone(this.usual!, found)
  }

  /** All instances of a lane. */
  private everyone(lane: Lane, found: (instance: Maintained) => void): void {
    const inRange = lane === this.ranges
    for (const instance of this.instances) if (lane.size === this.instances.size || (!this.everywhere.has(instance) && this.placement(instance)!.inRange === inRange)) found(instance)
  }

  /** Undefined for an instance that has to see every change. Where a row of it must fail that no index leads to, all rows are looked at. */
  private placement({ params, strict }: Maintained): Placement | undefined {
    const access = this.shape.access!
    return strict && access.failsFirst ? undefined : placementOf(access, params, this.shape.list !== undefined)
  }

  /** Where an instance of the usual lane stands among the coarse ones; undefined where it does not. */
  private coarsely(instance: Maintained): Placement | undefined {
    const coarse = this.shape.access!.coarse
    const placement = coarse && placementOf(coarse, instance.params, this.shape.list !== undefined)
    return placement === undefined || placement.inRange || this.placement(instance)!.inRange ? undefined : placement
  }

  private newCoarse(): Lane {
    return new Lane(this.shape.table!, this.shape.access!.coarse!.spec, this.indexes, { byId: false, exact: false })
  }

  private laneOf({ inRange }: Placement): Lane {
    const { access, table } = this.shape
    if (inRange) return (this.ranges ??= new Lane(table!, access!.rangeSpec!, this.indexes, { byId: false, exact: false }))
    return (this.usual ??= new Lane(table!, access!.spec, this.indexes, { byId: access!.byId, exact: true }))
  }

  private unfile(placement: Placement, instance: Maintained): void {
    const lane = this.laneOf(placement), coarse = this.coarsely(instance)
    if (coarse !== undefined) {
      this.coarse!.remove(coarse, instance)
      if (this.coarse!.size === 0) this.coarse = undefined
    }
    lane.remove(placement, instance)
    if (lane.size > 0) return
    if (lane === this.usual) this.usual = undefined
    else this.ranges = undefined
  }
}

/** Views filed anew, and how they look at the rows that concern. */
export type Relists = Array<{ readonly instance: Maintained; readonly look: () => void }>

/** Files the views that follow a list by its new values; the rows those concern are looked at when their turn comes. */
export const relistAll = (list: LiveList, turnover: Turnover, groupOf: (follower: Maintained) => ShapeGroup, relists: Relists, store: Store): void => {
  const followers = Array.from(list.followers, (instance) => ({ instance, group: groupOf(instance) }))
  if (!turnover.exact) for (const { group, instance } of followers) group.remove(instance)
  list.renew()
  for (const { group, instance } of followers) {
    if (turnover.exact) relists.push({ instance, look: group.relist(instance, turnover, store) })
    else {
      group.add(instance)
      relists.push({ instance, look: () => group.showAll(instance, store) })
    }
  }
}

const none: ReadonlyArray<Maintained> = []
