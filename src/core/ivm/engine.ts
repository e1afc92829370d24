/**
 * The view engine: the store, the shapes and the instances, and the one step that moves them all (laws L1-L6).
 *
 * Mutable inside, sealed outside: synchronous, deterministic, one owner. A change goes `plan` (pure) -> the owner makes
 * it durable -> `apply`, which cannot fail. Cost of `apply`: per shape on the table two index lookups, per instance
 * found one evaluation and O(log n), per row that had read this record one evaluation; nothing per registered view.
 */
import { Either } from "effect"
import type { Change } from "../change.ts"
import { analyze } from "../surql/analyze.ts"
import type { Select } from "../surql/ast.ts"
import { encode } from "../surql/encode.ts"
import { print } from "../surql/print.ts"
import { field, type Obj, type RecordId, setField, type Value } from "../surql/value.ts"
import { addTo, removeFrom } from "../multimap.ts"
import { ShapeGroup } from "./group.ts"
import type { Delta } from "./delta.ts"
import { endsOf } from "./edgeIndex.ts"
import type { Instance, Touched } from "./instance.ts"
import { lift } from "./lift.ts"
import { Maintained, type Surroundings } from "./maintained.ts"
import { Readers } from "./readers.ts"
import { Recomputed } from "./recomputed.ts"
import { rerun } from "./rerun.ts"
import { RowIndex } from "./rowIndex.ts"
import { boundsOf, plan, type Shape } from "./shape.ts"
import { edgeRead, TrackedSource } from "./source.ts"
import { Row, Store, type Write } from "./store.ts"

export interface Refused {
  readonly reason: string
  readonly at: number
}

interface Held {
  readonly instance: Maintained | Recomputed
  readonly group: ShapeGroup | undefined
  uses: number
}

interface SharedIndex {
  readonly index: RowIndex
  uses: number
}

export class Engine {
  readonly store = new Store()
  private readonly source = new TrackedSource(this.store)
  private readonly readers = new Readers()
  private readonly held = new Map<string, Held>()
  private readonly groups = new Map<string, ShapeGroup>()
  private readonly groupsByTable = new Map<string, Set<ShapeGroup>>()
  private readonly indexes = new Map<string, SharedIndex>()
  private readonly indexesByTable = new Map<string, Set<RowIndex>>()
  private readonly recomputedByTable = new Map<string, Set<Recomputed>>()
  private dirty: Array<Maintained> = []
  private readonly around: Surroundings

  constructor() {
    this.around = {
      scope: (row, params) => this.source.scope(row.doc, params, row.id.text),
      reads: () => this.source.reads,
      watch: (reader, text, reads) => this.readers.watch(reader, text, reads),
      row: (table, text) => this.store.byText(table, text),
      dirty: (instance) => this.dirty.push(instance)
    }
  }

  /** What these changes would do; nothing is touched. */
  plan(changes: ReadonlyArray<Change>): ReadonlyArray<Write | undefined> {
    return this.store.plan(changes)
  }

  /** Applies one planned write and answers every view it changed. */
  apply(write: Write): ReadonlyArray<Touched> {
    const { id, before, after } = write
    this.store.apply(write)
    this.refile(id, before, after)
    for (const group of this.groupsByTable.get(id.table) ?? []) group.route(id.text, after)
    this.readers.reread(id.text)
    if (this.store.hasEdges) for (const read of edgeReads(before, after)) this.readers.reread(read)
    return this.finish(id.table)
  }

  /** Puts a record (or a tombstone) in place before any instance exists: restore and bootstrap. */
  load(id: RecordId, version: number, doc: Obj | undefined): void {
    this.store.apply({ id, before: undefined, after: doc === undefined ? undefined : new Row(id, version, doc), version })
  }

  /**
   * The instance for a query and its parameters, made and filled when it is not there yet, at the generation given then.
   * Each call needs one {@link release}. Refuses what a live view cannot be, with the offset in the query text.
   */
  acquire(select: Select, params: { readonly [name: string]: Value }, generation = 1): Either.Either<Instance, Refused> {
    const facts = analyze(select)
    const volatile = facts.nonDeterministic[0]
    if (volatile !== undefined) return Either.left({ reason: `${volatile.name} gives another answer each time and cannot be part of a live view`, at: volatile.at })
    const lifted = lift(select, this.source.scope({}, params, ""))
    const given = { ...params, ...lifted.args }
    const used: Record<string, Value> = {}
    for (const name of analyze(lifted.select).params) setField(used, name, field(given, name))
    const text = print(lifted.select)
    const key = `${text}\n${encode(used)}`
    const existing = this.held.get(key)
    if (existing !== undefined) {
      existing.uses++
      return Either.right(existing.instance)
    }
    const held = this.make(lifted.select, used, { key, text, generation })
    return Either.map(held, (made) => {
      this.held.set(key, made)
      return made.instance
    })
  }

  release(instance: Instance): void {
    const held = this.held.get(instance.key)
    if (held === undefined || --held.uses > 0) return
    this.held.delete(instance.key)
    if (held.instance instanceof Recomputed) {
      for (const table of tablesOf(held.instance)) removeFrom(this.recomputedByTable, table, held.instance)
      return
    }
    this.readers.forget(held.instance)
    held.group?.remove(held.instance)
    if (held.group?.instances.size === 0) this.dropGroup(held.group)
  }

  /** Forgets all records and instances. */
  clear(): void {
    for (const held of [...this.held.values()]) {
      held.uses = 1
      this.release(held.instance)
    }
    this.store.clear()
  }

  /** The shapes in use and how many instances each has. */
  shapes(): ReadonlyArray<{ readonly shape: string; readonly instances: number }> {
    const counts = new Map<string, number>()
    for (const { instance } of this.held.values()) counts.set(instance.shape, (counts.get(instance.shape) ?? 0) + 1)
    return [...counts].map(([shape, instances]) => ({ shape: shape.replaceAll("\u0000", "_"), instances }))
  }

  /** Ends a step: the net delta of every instance it changed, and the recomputed ones run again. */
  private finish(table: string): ReadonlyArray<Touched> {
    if (this.dirty.length === 0 && this.recomputedByTable.size === 0) return untouched
    const touched: Array<Touched> = []
    const note = (instance: Maintained | Recomputed, delta: Delta | undefined): void => {
      if (delta !== undefined) touched.push({ instance, delta, generation: instance.generation, hash: instance.hash() })
    }
    for (const instance of this.dirty) note(instance, instance.finish())
    this.dirty = []
    for (const name of [table, anyTable]) for (const instance of this.recomputedByTable.get(name) ?? untouched) note(instance, instance.recompute())
    return touched
  }

  private make(select: Select, params: { readonly [name: string]: Value }, { generation, key, text }: { readonly key: string; readonly text: string; readonly generation: number }): Either.Either<Held, Refused> {
    const group = this.groupOf(select, text)
    const bounds = boundsOf(select, this.source.scope({}, params, ""))
    if (Either.isLeft(bounds)) return Either.left({ reason: bounds.left, at: (select.limit ?? select.start ?? select).at })
    if (typeof group === "string") {
      const facts = analyze(select)
      const about = { key, shape: text, mainTables: facts.mainTables, otherTables: facts.referencedTables, only: select.only, generation, readsAnyTable: facts.reaches || facts.computedSource }
      const instance = new Recomputed(about, group, rerun(select, params, this.source, this.store))
      for (const table of tablesOf(instance)) addTo(this.recomputedByTable, table, instance)
      return Either.right({ instance, group: undefined, uses: 1 })
    }
    const instance = new Maintained(key, group.shape, params, bounds.right, this.around, generation)
    group.add(instance)
    this.fill(group, instance)
    return Either.right({ instance, group, uses: 1 })
  }

  /** Shows a new instance the rows it has to look at: those under its key where there is an index, else the table. */
  private fill(group: ShapeGroup, instance: Maintained): void {
    const { table } = group.shape
    const candidates = group.candidates(instance.params)
    if (candidates === undefined) for (const row of this.store.rows(table)) instance.update(row.id.text, row, false)
    else {
      for (const text of candidates.routed) instance.update(text, this.store.byText(table, text), true)
      for (const text of candidates.dynamic) instance.update(text, this.store.byText(table, text), false)
    }
    instance.begin()
    this.dirty = []
  }

  private groupOf(select: Select, text: string): ShapeGroup | string {
    const known = this.groups.get(text)
    if (known !== undefined) return known
    const shape = plan(select)
    if ("reason" in shape) return shape.reason
    const group = new ShapeGroup(shape, shape.paths.length === 0 ? undefined : this.useIndex(shape))
    this.groups.set(text, group)
    addTo(this.groupsByTable, shape.table, group)
    return group
  }

  private dropGroup(group: ShapeGroup): void {
    this.groups.delete(group.shape.text)
    removeFrom(this.groupsByTable, group.shape.table, group)
    if (group.index === undefined) return
    const name = indexName(group.shape)
    const shared = this.indexes.get(name)
    if (shared === undefined || --shared.uses > 0) return
    this.indexes.delete(name)
    removeFrom(this.indexesByTable, group.shape.table, shared.index)
  }

  private useIndex(shape: Shape): RowIndex {
    const name = indexName(shape)
    const existing = this.indexes.get(name)
    if (existing !== undefined) {
      existing.uses++
      return existing.index
    }
    const index = new RowIndex(shape.paths, this.store.rows(shape.table))
    this.indexes.set(name, { index, uses: 1 })
    addTo(this.indexesByTable, shape.table, index)
    return index
  }

  private refile(id: RecordId, before: Row | undefined, after: Row | undefined): void {
    for (const index of this.indexesByTable.get(id.table) ?? []) index.move(id.text, before, after)
  }
}

const indexName = (shape: Shape): string => `${shape.table}\n${JSON.stringify(shape.paths)}`

const tablesOf = (instance: Recomputed): ReadonlySet<string> =>
  instance.readsAnyTable ? new Set([anyTable]) : new Set([...instance.mainTables, ...instance.otherTables])

/** Every look at edges that a change of this record can have changed the answer of. */
function* edgeReads(before: Row | undefined, after: Row | undefined): Iterable<string> {
  for (const row of [before, after]) {
    const ends = row && endsOf(row.doc)
    if (row === undefined || ends === undefined) continue
    for (const table of [row.id.table, undefined]) {
      yield edgeRead("out", table, ends.in)
      yield edgeRead("in", table, ends.out)
    }
  }
}

const untouched: ReadonlyArray<never> = []

/** Stands for all tables: a query that follows links may read any of them. */
const anyTable = ""
