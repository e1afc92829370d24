/**
 * The view engine: the store, the shapes and the views, and the one step that moves them all (laws L1-L6).
 *
 * Mutable inside, sealed outside: synchronous, deterministic, one owner. Changes go `plan` (pure) -> the owner makes
 * them durable -> `apply`, which cannot fail. A step works from the inside out: a view is settled after the subqueries
 * it holds (its stratum is how deep they nest), and what a settled view changed is read again by exactly the rows that
 * hold it. Cost of a step: per shape on the table two index lookups, per view found one evaluation and O(log n), per
 * row that had read what changed one evaluation; nothing per registered view.
 */
import { Either } from "effect"
import { append } from "../multimap.ts"
import type { Change } from "../record/change.ts"
import { drain, type Scope, type Slices } from "../surql/evaluate/scope.ts"
import type { Select } from "../surql/syntax/ast.ts"
import { print } from "../surql/syntax/print.ts"
import { encode } from "../surql/values/encode.ts"
import type { Obj, RecordId, Value } from "../surql/values/value.ts"
import { noSlot } from "../view/watch.ts"
import type { EngineContext, PageUpdate, ViewSpec } from "./context.ts"
import { DeferredWork } from "./deferredWork.ts"
import { StepLog } from "./delta/stepLog.ts"
import { EvaluationNote } from "./evaluating.ts"
import { type Held, HeldViews } from "./heldViews.ts"
import { type CountedStructures, shapesOf } from "./holdings.ts"
import { type RefiledViews, refileAll, ViewRouter } from "./index/router.ts"
import { SecondaryIndexes } from "./index/secondaryIndexes.ts"
import { type InList, withList } from "./index/subqueryValues.ts"
import { KeptBytes } from "./keptBytes.ts"
import { type EngineOptions, limitsOf } from "./options.ts"
import { boundSourcesOf } from "./query/boundSources.ts"
import { type LiftedOnce, lift, type Params } from "./query/lift.ts"
import type { MembersPlan } from "./query/membersPlan.ts"
import { pageKeysOf } from "./query/pagePlan.ts"
import { PreparedQueries, type Refused } from "./query/preparedQueries.ts"
import { boundsOf, plan } from "./query/shape.ts"
import { Releases } from "./releases.ts"
import { RowSources } from "./rowSources.ts"
import { lenderAbout, notifySharers, Sharing } from "./sharing.ts"
import type { Write } from "./store/recordSlot.ts"
import { netWrites, Store } from "./store/store.ts"
import { StepWrites } from "./store/written.ts"
import { fillDuringRow, fillMissing, maxFillWaits, UnfilledResult } from "./unfilled.ts"
import { Dependencies, rereadAll } from "./view/dependencies.ts"
import { DirtyRows } from "./view/dirtyRows.ts"
import type { IncrementalView } from "./view/incrementalView.ts"
import { RecomputedViews } from "./view/recomputedView.ts"
import type { ResultView } from "./view/resultView.ts"
import { TrackedSource } from "./view/source.ts"
import type { ChangedViews, Touched, View } from "./view/view.ts"
import { ViewChange } from "./view/viewChange.ts"
import { newWorkCounters } from "./workCounters.ts"

/** Records and their views: `acquire` a view, `plan` and `apply` changes; each changed view answers its delta. */
export class Engine {
  readonly store: Store
  private readonly source: TrackedSource
  readonly keptBytes: KeptBytes
  readonly dependencies = new Dependencies((result) => this.idle.push(result as IncrementalView))
  private readonly releases: Releases
  private readonly held = new HeldViews()
  readonly failing = this.held.failing
  private readonly routers = new Map<string, ViewRouter>()
  private readonly indexes: SecondaryIndexes
  private readonly sharing: Sharing
  private readonly sources: RowSources
  private readonly recomputed = new RecomputedViews()
  private queries = new PreparedQueries()
  private readonly context: EngineContext<ResultView>
  private readonly evaluating: EvaluationNote
  private dirty: Array<ResultView> | undefined = undefined
  /** Work left in the current step; empty between steps. */
  private readonly dirtyRows = new DirtyRows()
  private relistings: RefiledViews = []
  private readonly deferred: DeferredWork
  private readonly pageUpdates: Array<PageUpdate> = []
  /** The list of idle views that `releases` works through. */
  private readonly idle: Releases["idle"]
  private highestStratum = 0
  private steps = 0
  /** Records that the current step writes. */
  private writes = 0
  private readonly written = new StepWrites()

  constructor(options: EngineOptions = {}) {
    this.store = new Store(options.maxTombstones, options.hashSeed)
    this.keptBytes = new KeptBytes(options.viewBytesTotal ?? Infinity, () => this.store.edgeBytes)
    this.evaluating = options.evaluating ?? new EvaluationNote()
    this.indexes = new SecondaryIndexes(this.store)
    this.releases = new Releases(this.dependencies, (view) => this.drop(view), options)
    this.idle = this.releases.idle
    this.source = new TrackedSource(this.store, limitsOf(options), (query, scope) => {
      const view = this.resultOf(query, scope)
      return view && { read: view, value: () => this.valueInRow(view) }
    })
    this.deferred = new DeferredWork(this.source, this.evaluating)
    this.context = {
      store: this.store,
      source: this.source,
      counters: options.counters ?? newWorkCounters(),
      evaluating: this.evaluating,
      moves: new StepLog(),
      kept: this.keptBytes,
      failing: this.held.failing,
      declined: (query) => {
        const lifted = this.queries.subquery(query)
        return "reason" in lifted ? lifted.reason : undefined
      },
      childAt: (shape, child) => this.queries.childAt(shape, child),
      resultOf: (query, scope) => this.resultOf(query, scope),
      watch: (reader, text, reads) => this.dependencies.watch(reader, text, reads),
      readsOf: (reader, row) => this.dependencies.count(reader, row),
      defer: (view, slot) => this.deferred.defer(view, slot),
      dirty: (view) => void (this.dirty = append(this.dirty, view)),
      noteUpdate: (update) => this.pageUpdates.push(update) - 1,
      updateAt: (place) => this.pageUpdates[place]!,
      postponed: new Map(),
      writes: () => this.writes,
      docBefore: (slot) => this.written.before(slot),
      step: () => this.steps
    }
    this.sharing = new Sharing((plan, params) => this.lenderFor(plan, params))
    this.sources = new RowSources(this.context, this.sharing, this.held, this.releases, this.recomputed, this.deferred)
  }

  /** The writes that these changes lead to; changes nothing. */
  plan(changes: ReadonlyArray<Change>): ReadonlyArray<Write | undefined> {
    return this.store.plan(changes)
  }

  /** Applies one planned write and answers every view it changed. */
  apply(write: Write): ReadonlyArray<Touched> {
    return this.step([write])
  }

  /** Applies planned writes as one step: every view they changed, with one delta each. */
  applyAll(writes: ReadonlyArray<Write>): ReadonlyArray<Touched> {
    return this.step(writes.length > 1 ? netWrites(writes) : writes)
  }

  /** Puts a record (or a tombstone) in place before any view exists: restore and bootstrap. */
  load(id: RecordId, version: number, doc: Obj | undefined): void {
    const slot = this.store.slotOf(id)
    this.store.apply({ id, slot, before: slot.doc, after: doc, version })
  }

  /** Loads a record of a table that no view reads; indexes over the table, if there are any, are updated. */
  loadUnread(id: RecordId, version: number, doc: Obj): void {
    const slot = this.store.slotOf(id)
    this.move({ id, slot, before: slot.doc, after: doc, version })
  }

  /**
   * The view for a query and its parameters, made and filled (at the given generation) if it is missing. Each call
   * needs one {@link release}. Refuses a query that cannot be a live view, with the offset in its text.
   */
  acquire(select: Select, params: Params, generation = 1): Either.Either<View, Refused> {
    return drain(this.acquireSliced(select, params, generation))
  }

  /**
   * {@link acquire} in slices of a few hundred rows; changes may be applied between them. An abandoned one leaves
   * nothing behind. `watchSlot`: the view's watchdog slot (`EvaluationNote`). `needsRoom`: ends at the first row
   * without room ({@link noRoomFor}), with a view to be released.
   */
  *acquireSliced(
    select: Select,
    params: Params,
    generation = 1,
    watchSlot = noSlot,
    needsRoom = false
  ): Slices<Either.Either<View, Refused>> {
    this.evaluating.begin(watchSlot)
    const view = this.queries.view(select)
    if ("reason" in view) return this.refuse(view, watchSlot)
    const list = view.list === undefined ? undefined : yield* this.fillList(view, params, watchSlot)
    const scope = this.source.scope({}, params, undefined)
    const given = view.params(scope)
    const once = given !== undefined && (view.list === undefined || list !== undefined)
    const lifted = once ? { select: view.select, params: given } : lift(select, scope)
    const text = once ? view.text : print(lifted.select)
    const key = `${text}\n${once ? view.keyOf(given) : encode(lifted.params)}${resultKey(list)}`
    const made =
      this.held.get(key) ??
      this.make(select, lifted.select, lifted.params, { key, text, generation, failsAsWhole: false, list, watchSlot })
    this.evaluating.end()
    if ("reason" in made) return this.refuse(made, watchSlot)
    if (made.view.watchSlot !== watchSlot) this.evaluating.close(watchSlot)
    made.view.uses++
    if (view.readsEdges) made.before ??= this.store.indexEdges()
    const { refused } = this.keptBytes
    let finished = false
    try {
      while (made.isFilling) {
        this.source.boundWork(() => made.fillOn())
        this.releases.fillOn()
        if (needsRoom && this.keptBytes.refused > refused && this.noRoomFor(made.view) !== undefined) break
        if (made.isFilling) yield
        // `clear` was called in the pause.
        if (this.held.get(key) !== made) return yield* this.acquireSliced(select, params, generation, noSlot, needsRoom)
      }
      finished = true
    } finally {
      if (!finished) this.release(made.view)
    }
    return Either.right(made.view)
  }

  private refuse(refused: Refused, watchSlot: number): Either.Either<never, Refused> {
    this.evaluating.end()
    this.evaluating.close(watchSlot)
    this.releases.tidy()
    return Either.left(refused)
  }

  release(view: View): void {
    const held = this.held.of(view)
    if (held === undefined) return
    held.view.uses--
    this.idle.push(view)
    this.releases.tidy()
  }

  /** Forgets all records and views; fills that are under way begin again. */
  clear(): void {
    for (const view of this.held.views()) this.evaluating.close(view.ownSlot)
    this.held.clear()
    this.routers.clear()
    this.sharing.clear()
    this.indexes.clear()
    this.sources.ordered.clear()
    this.recomputed.clear()
    this.dependencies.clear()
    this.releases.clear()
    this.queries = new PreparedQueries()
    this.highestStratum = 0
    this.keptBytes.used = 0
    this.deferred.clear()
    // The log and the reads of the last step would keep what they refer to.
    this.context.moves.clear()
    this.source.scope({}, {}, undefined)
    this.store.clear()
  }

  /** Evaluation steps of rows so far. */
  get spent(): number {
    return this.source.spent
  }

  /** Why rows of this view are left out for want of memory; undefined if none are. */
  noRoomFor(view: View): string | undefined {
    const { reason, refused } = this.keptBytes
    return refused > 0 && view.errors().some((error) => error.failure.reason.startsWith(reason)) ? reason : undefined
  }

  /** The shapes in use and how many views each has. */
  shapes(): ReturnType<typeof shapesOf> {
    return shapesOf(this.kept.views)
  }

  /** The structures to be counted (`holdings.ts`); walks all views. */
  get kept(): CountedStructures {
    return {
      indexes: this.indexes,
      ordered: this.sources.ordered,
      dependencies: this.dependencies,
      releases: this.releases,
      store: this.store,
      views: [...this.held.views()]
    }
  }

  private step(writes: ReadonlyArray<Write>): ReadonlyArray<Touched> {
    this.steps++
    this.writes = writes.length
    this.written.all = writes
    this.context.moves.clear()
    this.deferred.begin()
    // Loops by index: V8 gives empty lists another kind, and `for of` over several kinds makes an iterator for each
    // loop.
    for (let i = 0; i < writes.length; i++) this.move(writes[i]!)
    const { relistings, dirtyRows } = this
    if (!this.dependencies.empty) for (const write of writes) dirtyRows.collect(write, this.dependencies, this.store)
    let touched: ChangedViews
    for (let stratum = 0; stratum <= this.highestStratum; stratum++) {
      // A refiled view is not found under its old keys: it drops the rows found there and looks at the rows under its
      // new keys.
      if (relistings.length > 0)
        for (const { view } of relistings)
          if (view.stratum === stratum) for (const { slot } of writes) view.dropRow(slot)
      for (let i = 0; i < writes.length; i++) this.route(writes[i]!, stratum)
      if (relistings.length > 0) for (const { view, look } of relistings) if (view.stratum === stratum) look()
      dirtyRows.run(stratum)
      this.deferred.settle(stratum)
      for (let i = 0; i < this.pageUpdates.length; i++)
        if (this.pageUpdates[i]!.page.stratum === stratum) this.pageUpdates[i]!.page.applyUpdate(this.pageUpdates[i]!)
      touched = this.settle(relistings, touched)
    }
    dirtyRows.clear()
    // Pops one by one: setting `length` is a call into the runtime.
    while (this.pageUpdates.length > 0) this.pageUpdates.pop()
    if (relistings.length > 0) this.relistings = []
    if (!this.recomputed.empty) touched = this.deferred.runAgain(this.recomputed, writes, touched)
    this.deferred.end()
    if (this.idle.length > 0) this.releases.tidy()
    this.store.forgetDeleted()
    this.written.clear()
    this.evaluating.end()
    return touched ?? none
  }

  private move(write: Write): void {
    const { after, before, slot, version } = write
    // The record was deleted and made again in one step, and both states have the same version.
    if (before !== undefined && after !== undefined && version === slot.version) slot.outdate()
    this.store.write(write)
  }

  private route(write: Write, stratum: number): void {
    const { routers } = write.slot.keeper
    for (let i = 0; i < routers.length; i++) if (routers[i]!.shape.stratum === stratum) routers[i]!.route(write)
  }

  /** Ends the step for the views that changed: nets their deltas and tells the rows that show them. */
  private settle(relistings: RefiledViews, told: ChangedViews): ChangedViews {
    const { dirty } = this
    if (dirty === undefined) return told
    this.dirty = undefined
    let touched = told
    for (let i = 0; i < dirty.length; i++) {
      const view = dirty[i]!
      this.evaluating.begin(view.watchSlot)
      const { before, delta, moved, valueSetDelta } = view.finish()
      if (moved) rereadAll(view, this.dirtyRows, view)
      if (valueSetDelta !== undefined)
        refileAll(
          view.subqueryValues(),
          valueSetDelta,
          (follower) => this.routers.get((follower as IncrementalView).shape)!,
          relistings,
          this.store
        )
      if (delta === undefined) continue
      if (view.uses > 0) touched = append(touched, new ViewChange(view, delta))
      if (view.sharers !== undefined) touched = notifySharers(view.sharers, delta, before!, touched)
    }
    // Groups over the rows of a view are settled after that view.
    return this.settle(relistings, touched)
  }

  /** The maintained result of a subquery for the row in scope; a missing one is made. */
  private resultOf(query: Select, scope: Scope): IncrementalView | undefined {
    const lifted = this.queries.subquery(query)
    const params = "reason" in lifted ? undefined : lifted.params(scope)
    if ("reason" in lifted || params === undefined) return undefined
    const list = this.listOf(lifted, scope)
    if (lifted.list !== undefined && list === undefined) return undefined
    const key = lifted.keyOf(params) + resultKey(list)
    const existing = this.held.result(lifted.text, key)
    if (existing !== undefined && !existing.isFilling) return existing.view as IncrementalView
    const { mayWait } = this.source
    return this.evaluating.during(this.evaluating.slot, () =>
      this.source.aside(() => {
        const { text } = lifted
        const { slot: watchSlot } = this.evaluating
        const made =
          existing ??
          this.make(query, lifted.select, params, { key, text, generation: 1, failsAsWhole: true, list, watchSlot })
        if ("reason" in made) return undefined
        fillDuringRow(made, mayWait, () => this.idle.push(made.view))
        // A row that fails before it has read the result leaves the result without a reader.
        this.idle.push(made.view)
        return made.view as IncrementalView
      })
    )
  }

  private valueInRow(view: IncrementalView): Value {
    if (this.source.mayWait && view.isLongToValue)
      throw UnfilledResult.unvalued(this.held.of(view)!, view, () => this.idle.push(view))
    return this.source.aside(() => view.value())
  }

  /** The subquery list that a query is filed by; undefined for a query without one. */
  private listOf({ list }: LiftedOnce, scope: Scope): InList<IncrementalView> | undefined {
    if (list === undefined) return undefined
    const result = this.resultOf(list.query, scope)
    return result === undefined ? undefined : { argument: list, result }
  }

  /** As {@link listOf}, for a view that a caller acquires: a list that takes long is filled with pauses. */
  private *fillList(view: LiftedOnce, params: Params, watchSlot: number): Slices<InList<IncrementalView> | undefined> {
    let list: InList<IncrementalView> | undefined
    const attempt = (waits: boolean) => {
      this.evaluating.begin(watchSlot)
      const scope = this.source.scope({}, params, undefined)
      return this.source.attempt(() => (list = view.params(scope) && this.listOf(view, scope)), waits)
    }
    yield* fillMissing(attempt(true), attempt, maxFillWaits(1, 1))
    return list
  }

  private make(
    original: Select,
    select: Select,
    params: Params,
    about: {
      readonly key: string
      readonly text: string
      readonly generation: number
      readonly failsAsWhole: boolean
      readonly list: InList<IncrementalView> | undefined
      readonly watchSlot: number
    }
  ): Held | Refused {
    const scope = this.source.scope({}, params, undefined)
    const bounds = boundsOf(select, scope)
    if (Either.isLeft(bounds)) return { reason: bounds.left, at: (original.limit ?? original.start ?? original).at }
    const router = this.routerOf(select, about)
    const boundSources =
      typeof router === "string"
        ? { reason: router }
        : router.shape.table !== undefined
          ? undefined
          : boundSourcesOf(router.shape.sources, params)
    if (boundSources !== undefined && "reason" in boundSources) {
      if (typeof router !== "string") this.dropUnusedRouter(router)
      return about.failsAsWhole
        ? { reason: boundSources.reason, at: original.at }
        : this.begun(this.sources.heldWhole(original, select, params, { ...about, reason: boundSources.reason }), false)
    }
    const { shape } = router as ViewRouter
    const own = about.list === undefined ? params : withList(params, about.list)
    const page = shape.page && pageKeysOf(shape.page, own, bounds.right, about.failsAsWhole)
    const spec: ViewSpec = {
      key: about.key,
      shape,
      params: own,
      bounds: bounds.right,
      boundSources,
      failsAsWhole: about.failsAsWhole,
      generation: about.generation,
      paged: page !== undefined
    }
    const held = this.sources.heldBy(router as ViewRouter, spec, page)
    held.view.watchSlot = about.watchSlot
    this.highestStratum = Math.max(this.highestStratum, shape.stratum)
    this.begun(held, about.failsAsWhole)
    if (about.list !== undefined) held.follow(about.list.result, (result) => this.idle.push(result))
    return held
  }

  private begun(held: Held, isWaitedFor: boolean): Held {
    this.held.add(held)
    held.begin(isWaitedFor)
    return held
  }

  /** A view that exists only to lend its rows to others. */
  private lenderFor(plan: MembersPlan, given: Params): IncrementalView | undefined {
    const { select } = plan
    const { slot: watchSlot } = this.evaluating
    const { params, ...about } = lenderAbout(plan, given)
    const made = this.make(select, select, params, { ...about, generation: 1, failsAsWhole: false, watchSlot })
    return "reason" in made ? undefined : (made.view as IncrementalView)
  }

  private routerOf(
    select: Select,
    { list, text }: { readonly text: string; readonly list: InList | undefined }
  ): ViewRouter | string {
    const known = this.routers.get(text)
    if (known !== undefined) return known
    const shape = plan(select, list?.argument)
    if ("reason" in shape) return shape.reason
    const router = new ViewRouter(shape, this.indexes)
    this.routers.set(text, router)
    return router
  }

  /** Removes a view that no caller holds, no row shows and no other view is filed by. */
  private drop(given: View): void {
    const held = this.held.of(given)
    if (held === undefined) return
    const { router, view } = held
    if (view.uses > 0 || view.isNeeded || held.awaited > 0) return
    this.held.delete(view)
    this.evaluating.close(view.ownSlot)
    held.unfollow?.()
    this.keptBytes.used -= view.kept
    view.kept = 0
    view.uses = -1
    held.leave()
    if (router !== undefined) this.dropUnusedRouter(router)
    // The log and the reads of the last step would keep what they refer to.
    this.context.moves.clear()
    this.source.scope({}, {}, undefined)
  }

  private dropUnusedRouter(router: ViewRouter): void {
    if (!router.isUnused) return
    this.routers.delete(router.shape.text)
    this.sharing.leave(router)
  }
}

const none: ReadonlyArray<never> = []

/** Tells apart equal queries that are filed by the values of different subqueries, by the arguments of the subquery. */
const resultKey = (list: InList<IncrementalView> | undefined): string =>
  list === undefined ? "" : `\u0001${list.result.key}`
