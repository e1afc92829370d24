/**
 * The view engine: the store, the shapes and the instances, and the one step that moves them all (laws L1-L6).
 *
 * Mutable inside, sealed outside: synchronous, deterministic, one owner. Changes go `plan` (pure) -> the owner makes them
 * durable -> `apply`, which cannot fail. A step works from the inside out: an instance is settled after the subqueries
 * it holds (its rank is how deep they nest), and what a settled instance changed is read again by exactly the rows that
 * hold it. Cost of a step: per shape on the table two index lookups, per instance found one evaluation and O(log n), per
 * row that had read what changed one evaluation; nothing per registered view.
 */
import { Either } from "effect"
import type { Change } from "../change.ts"
import { append, join, leave } from "../multimap.ts"
import { analyze } from "../surql/analyze.ts"
import type { Select } from "../surql/ast.ts"
import { encode } from "../surql/encode.ts"
import { print } from "../surql/print.ts"
import { drain, type Scope, type Slices } from "../surql/scope.ts"
import type { Obj, RecordId } from "../surql/value.ts"
import { noSlot } from "../watch.ts"
import { Evaluating } from "./evaluating.ts"
import { relistAll, type Relists, ShapeGroup } from "./index/router.ts"
import { Indexes } from "./index/secondaryIndexes.ts"
import type { Instance, Touched } from "./view/view.ts"
import { type Kept, shapesOf } from "./holdings.ts"
import { lift, type LiftedOnce, type Params } from "./query/lift.ts"
import { type List, withList } from "./index/subqueryValues.ts"
import { Maintained } from "./view/incrementalView.ts"
import { Moved, Moves } from "./delta/stepLog.ts"
import { type EngineOptions, limitsOf } from "./options.ts"
import { Queries, type Refused } from "./query/preparedQueries.ts"
import { Readers, rereadAll } from "./view/dependencies.ts"
import { Recomputed, RecomputedByTable } from "./view/recomputedView.ts"
import { Releases } from "./releases.ts"
import { Rereads } from "./view/dirtyRows.ts"
import { rerun } from "./view/rerun.ts"
import { boundsOf, plan } from "./query/shape.ts"
import { slotsOf } from "./query/boundSources.ts"
import { type StepLimits, StoreSource, TrackedSource } from "./view/source.ts"
import { newSpy } from "./workCounters.ts"
import { netOf, Store, type Write } from "./store/store.ts"
import type { Surroundings } from "./context.ts"

interface Held {
  readonly instance: Maintained | Recomputed
  readonly group: ShapeGroup | undefined
  /** The first fill, while it goes on. */
  filling: Iterator<undefined, void> | undefined
  /** Forgets it where it was written down by a shorter name. */
  readonly known: Array<() => void>
}

/** What a step has changed so far. */
type Told = Array<Touched> | undefined

/** Records and the views of them: `acquire` a view, `plan` changes, `apply` what is planned; every view that changed is answered with its delta. */
export class Engine {
  readonly store: Store
  private readonly limits: StepLimits
  private readonly source: TrackedSource
  private readonly readers = new Readers((result) => this.idle.push(result as Maintained))
  private readonly releases: Releases
  private readonly held = new Map<string, Held>()
  private readonly groups = new Map<string, ShapeGroup>()
  private readonly indexes: Indexes
  private readonly recomputed = new RecomputedByTable()
  private queries = new Queries()
  private readonly around: Surroundings
  private readonly evaluating: Evaluating
  private dirty: Array<Maintained> | undefined = undefined
  /** What the running step still has to do; empty between steps. */
  private readonly rereads = new Rereads()
  private relists: Relists = []
  /** That of the releases. */
  private readonly idle: Releases["idle"]
  private highestRank = 0
  private steps = 0

  constructor(options: EngineOptions = {}) {
    this.limits = limitsOf(options)
    this.store = new Store(options.maxTombstones)
    this.evaluating = options.evaluating ?? new Evaluating()
    this.indexes = new Indexes(this.store)
    this.releases = new Releases(this.readers, (instance) => this.drop(instance), options)
    this.idle = this.releases.idle
    this.source = new TrackedSource(this.store, this.limits, (query, scope) => {
      const instance = this.resultOf(query, scope)
      return instance && { read: instance, value: () => this.source.aside(() => instance.value()) }
    })
    this.around = {
      store: this.store,
      source: this.source,
      spy: options.spy ?? newSpy(),
      evaluating: this.evaluating,
      moves: new Moves(),
      declined: (query) => {
        const lifted = this.queries.subquery(query)
        return "reason" in lifted ? lifted.reason : undefined
      },
      childAt: (shape, child) => this.queries.childAt(shape, child),
      resultOf: (query, scope) => this.resultOf(query, scope),
      watch: (reader, text, reads) => this.readers.watch(reader, text, reads),
      watches: (reader, row) => this.readers.watches(reader, row),
      dirty: (instance) => void (this.dirty = append(this.dirty, instance)),
      step: () => this.steps
    }
  }

  /** What these changes would do; nothing is touched. */
  plan(changes: ReadonlyArray<Change>): ReadonlyArray<Write | undefined> {
    return this.store.plan(changes)
  }

  /** Applies one planned write and answers every view it changed. */
  apply(write: Write): ReadonlyArray<Touched> {
    return this.step([write])
  }

  /** Applies planned writes as one step: every view they changed, with one delta each. */
  applyAll(writes: ReadonlyArray<Write>): ReadonlyArray<Touched> {
    return this.step(writes.length > 1 ? netOf(writes) : writes)
  }

  /** Puts a record (or a tombstone) in place before any instance exists: restore and bootstrap. */
  load(id: RecordId, version: number, doc: Obj | undefined): void {
    const place = this.store.placeOf(id)
    this.store.apply({ id, place, before: place.doc, after: doc, version })
  }

  /**
   * The instance for a query and its parameters, made and filled when it is not there yet, at the generation given then.
   * Each call needs one {@link release}. Refuses what a live view cannot be, with the offset in the query text.
   */
  acquire(select: Select, params: Params, generation = 1): Either.Either<Instance, Refused> {
    return drain(this.acquireSliced(select, params, generation))
  }

  /**
   * {@link acquire} in slices: pauses between a few hundred rows, and changes may be applied meanwhile. Ended early, it
   * leaves nothing behind. `slot`: of the view it is for (`Evaluating`); it is given back with the instance, or when there is another that shows the same.
   */
  *acquireSliced(select: Select, params: Params, generation = 1, slot = noSlot): Slices<Either.Either<Instance, Refused>> {
    this.evaluating.begin(slot)
    const view = this.queries.view(select)
    if ("reason" in view) return this.refuse(view, slot)
    const scope = this.source.scope({}, params, "")
    const given = view.params(scope)
    const list = given === undefined ? undefined : this.listOf(view, scope)
    const once = given !== undefined && (view.list === undefined || list !== undefined)
    const lifted = once ? { select: view.select, params: given } : lift(select, scope)
    const text = once ? view.text : print(lifted.select)
    const key = `${text}\n${once ? view.keyOf(given) : encode(lifted.params)}${list?.result.key ?? ""}`
    const made = this.held.get(key) ?? this.make(select, lifted.select, lifted.params, { key, text, generation, strict: false, list, slot })
    this.evaluating.end()
    if ("reason" in made) return this.refuse(made, slot)
    if (made.instance.watchSlot !== slot) this.evaluating.close(slot)
    made.instance.uses++
    let finished = false
    try {
      while (made.filling !== undefined) {
        this.fillOn(made)
        this.releases.fillOn()
        if (made.filling !== undefined) yield
        // Everything has been cleared meanwhile.
        if (this.held.get(key) !== made) return yield* this.acquireSliced(select, params, generation)
      }
      finished = true
    } finally {
      if (!finished) this.release(made.instance)
    }
    return Either.right(made.instance)
  }

  private refuse(refused: Refused, slot: number): Either.Either<never, Refused> {
    this.evaluating.end()
    this.evaluating.close(slot)
    this.releases.tidy()
    return Either.left(refused)
  }

  release(instance: Instance): void {
    const held = this.held.get(instance.key)
    if (held === undefined || held.instance !== instance) return
    held.instance.uses--
    this.idle.push(instance)
    this.releases.tidy()
  }

  /** Forgets all records and instances; what fills meanwhile has to begin again. */
  clear(): void {
    for (const { instance } of this.held.values()) this.evaluating.release(instance)
    this.held.clear()
    this.groups.clear()
    this.indexes.clear()
    this.recomputed.clear()
    this.readers.clear()
    this.releases.clear()
    this.queries = new Queries()
    this.highestRank = 0
    this.store.clear()
  }

  /** The shapes in use and how many instances each has. */
  shapes(): ReturnType<typeof shapesOf> {
    return shapesOf(this.kept.instances)
  }

  /** What it holds, to be counted. */
  get kept(): Kept {
    return { indexes: this.indexes, readers: this.readers, releases: this.releases, store: this.store, instances: Array.from(this.held.values(), ({ instance }) => instance) }
  }

  private step(writes: ReadonlyArray<Write>): ReadonlyArray<Touched> {
    this.steps++
    this.around.moves.clear()
    // By index: lists that are empty are of another kind to V8, and over several kinds it makes an iterator for each loop.
    for (let i = 0; i < writes.length; i++) this.move(writes[i]!)
    const { relists, rereads } = this
    if (!this.readers.empty) for (const write of writes) rereads.collect(write, this.readers, this.store)
    let touched: Told = undefined
    for (let rank = 0; rank <= this.highestRank; rank++) {
      // A view filed anew is not found by what a changed row was: it lets the row go, and is shown it where it is found now.
      if (relists.length > 0) for (const { instance } of relists) if (instance.rank === rank) for (const { place } of writes) instance.letGo(place)
      for (let i = 0; i < writes.length; i++) this.route(writes[i]!, rank)
      if (relists.length > 0) for (const { instance, look } of relists) if (instance.rank === rank) look()
      rereads.run(rank)
      touched = this.settle(relists, touched)
    }
    rereads.clear()
    if (relists.length > 0) this.relists = []
    if (!this.recomputed.empty) touched = this.runAgain(writes, touched)
    if (this.idle.length > 0) this.releases.tidy()
    this.evaluating.end()
    return touched ?? none
  }

  private move(write: Write): void {
    const { after, before, place, version } = write
    // Deleted and made again in one step, under a version given twice.
    if (before !== undefined && after !== undefined && version === place.version) place.outdate()
    this.store.apply(write)
    const { indexes } = place.table
    for (let i = 0; i < indexes.length; i++) indexes[i]!.move(place, before, after)
  }

  private route(write: Write, rank: number): void {
    const { groups } = write.place.table
    for (let i = 0; i < groups.length; i++) if (groups[i]!.shape.rank === rank) groups[i]!.route(write)
  }

  /** Ends the step for the instances that moved: their net delta, and word to the rows that hold them. */
  private settle(relists: Relists, told: Told): Told {
    const { dirty } = this
    if (dirty === undefined) return told
    this.dirty = undefined
    let touched = told
    for (let i = 0; i < dirty.length; i++) {
      const instance = dirty[i]!
      this.evaluating.begin(instance.watchSlot)
      const { delta, moved, turnover } = instance.finish()
      if (moved) rereadAll(instance, this.rereads, instance)
      if (turnover !== undefined) relistAll(instance.liveList(), turnover, (follower) => this.held.get(follower.key)!.group!, relists, this.store)
      if (delta !== undefined && instance.uses > 0) touched = append(touched, new Moved(instance, delta))
    }
    return touched
  }

  private runAgain(writes: ReadonlyArray<Write>, told: Told): Told {
    let touched = told
    for (const instance of this.recomputed.of(writes.map((write) => write.id.table))) {
      this.evaluating.begin(instance.watchSlot)
      const delta = instance.recompute()
      if (delta !== undefined) touched = append(touched, new Moved(instance, delta))
    }
    return touched
  }

  /** The maintained result of a subquery for the row in scope, made when it is not there yet. */
  private resultOf(query: Select, scope: Scope): Maintained | undefined {
    const lifted = this.queries.subquery(query)
    const params = "reason" in lifted ? undefined : lifted.params(scope)
    if ("reason" in lifted || params === undefined) return undefined
    const list = this.listOf(lifted, scope)
    if (lifted.list !== undefined && list === undefined) return undefined
    const short = lifted.keyOf(params) + (list?.result.key ?? "")
    const existing = lifted.results.get(short)
    if (existing !== undefined) return existing
    const key = `${strictPrefix}${lifted.text}\n${short}`
    return this.evaluating.during(this.evaluating.slot, () => this.source.aside(() => {
      const made = this.held.get(key) ?? this.make(query, lifted.select, params, { key, text: lifted.text, generation: 1, strict: true, list, slot: this.evaluating.slot })
      if ("reason" in made || !(made.instance instanceof Maintained)) return undefined
      while (made.filling !== undefined) this.fillOn(made)
      lifted.results.set(short, made.instance)
      // A row that fails before it has read it leaves it to nobody.
      this.idle.push(made.instance)
      made.known.push(() => lifted.results.delete(short))
      return made.instance
    }))
  }

  /** The list a query is filed by; undefined for a query without. */
  private listOf({ list }: LiftedOnce, scope: Scope): List | undefined {
    if (list === undefined) return undefined
    const result = this.resultOf(list.query, scope)
    return result === undefined ? undefined : { argument: list, result }
  }

  private make(
    original: Select, select: Select, params: Params, about: { readonly key: string; readonly text: string; readonly generation: number; readonly strict: boolean; readonly list: List | undefined; readonly slot: number }
  ): Held | Refused {
    const scope = this.source.scope({}, params, "")
    const bounds = boundsOf(select, scope)
    if (Either.isLeft(bounds)) return { reason: bounds.left, at: (original.limit ?? original.start ?? original).at }
    const group = this.groupOf(select, about)
    const slots = typeof group === "string" ? { reason: group } : group.shape.table !== undefined ? undefined : slotsOf(group.shape.sources, params)
    if (slots !== undefined && "reason" in slots) {
      if (typeof group !== "string") this.dropUnusedGroup(group)
      return about.strict ? { reason: slots.reason, at: original.at } : this.runWhole(original, select, params, { ...about, reason: slots.reason })
    }
    const { shape } = group as ShapeGroup
    const own = about.list === undefined ? params : withList(params, about.list)
    const instance = new Maintained({ key: about.key, shape, params: own, bounds: bounds.right, slots, strict: about.strict, generation: about.generation }, this.around)
    instance.watchSlot = about.slot
    const held: Held = { instance, group: group as ShapeGroup, filling: (group as ShapeGroup).fill(instance, this.store), known: [] }
    this.held.set(about.key, held)
    this.enlist(group as ShapeGroup, instance)
    if (about.list !== undefined) this.follow(held, about.list.result)
    return held
  }

  private follow({ instance, known }: Held, result: Maintained): void {
    result.liveList().followers.add(instance as Maintained)
    known.push(() => {
      result.liveList().followers.delete(instance as Maintained)
      this.idle.push(result)
    })
  }

  private runWhole(original: Select, select: Select, params: Params, { generation, key, reason, slot, text }: { readonly key: string; readonly text: string; readonly generation: number; readonly reason: string; readonly slot: number }): Held {
    const facts = analyze(original, params)
    const about = { key, shape: text, mainTables: facts.mainTables, otherTables: facts.referencedTables, only: select.only, generation, readsAnyTable: facts.reaches || facts.computedSource }
    const instance = new Recomputed(about, reason, rerun(select, params, new StoreSource(this.store), this.store, this.limits))
    instance.watchSlot = slot
    this.recomputed.add(instance)
    const held: Held = { instance, group: undefined, filling: instance.fill(() => this.steps), known: [] }
    this.held.set(key, held)
    return held
  }

  private fillOn(held: Held): void {
    if (this.evaluating.during(held.instance.watchSlot, () => held.filling?.next())?.done === true) held.filling = undefined
  }

  private enlist(group: ShapeGroup, instance: Maintained): void {
    group.add(instance)
    for (const table of instance.mainTables) join(this.store.table(table).groups, group)
    this.highestRank = Math.max(this.highestRank, group.shape.rank)
  }

  private groupOf(select: Select, { list, text }: { readonly text: string; readonly list: List | undefined }): ShapeGroup | string {
    const known = this.groups.get(text)
    if (known !== undefined) return known
    const shape = plan(select, list?.argument)
    if ("reason" in shape) return shape.reason
    const group = new ShapeGroup(shape, this.indexes)
    this.groups.set(text, group)
    return group
  }

  /** Lets an instance go that no view holds, no row shows and no other is filed by. */
  private drop(given: Instance): void {
    const held = this.held.get(given.key)
    if (held === undefined || held.instance !== given) return
    const { group, instance } = held
    if (instance.uses > 0 || (instance instanceof Maintained && (instance.reader !== undefined || instance.isFollowed))) return
    this.held.delete(instance.key)
    this.evaluating.release(instance)
    for (const forget of held.known) forget()
    if (instance instanceof Recomputed) return this.recomputed.remove(instance)
    instance.uses = -1
    group!.remove(instance)
    for (const table of instance.mainTables) if (!group!.readsTable(table)) this.store.quit(table, ({ groups }) => leave(groups, group!))
    this.dropUnusedGroup(group!)
    this.releases.add(instance)
    // What the last step and the last evaluation came by.
    this.around.moves.clear()
    this.source.scope({}, {}, "")
  }

  private dropUnusedGroup(group: ShapeGroup): void {
    if (group.instances.size === 0) this.groups.delete(group.shape.text)
  }
}

const none: ReadonlyArray<never> = []

/** Results of subqueries fail where views leave rows out, so they are instances of their own. */
const strictPrefix = "\u0001"

