/**
 * All instances of one shape, and the ways to find those a change can concern.
 *
 * Rule: a row belongs to the instances filed under the values of its indexed paths; a changed row is shown to those of
 * its old key and those of its new key, and to nobody else. Instances of single records are filed under their records.
 * Cost: two lookups per shape, whatever the number of instances. A shape of whole tables without indexed conjuncts, and a
 * row without a fixed key, are shown to every instance.
 */
import { addTo, removeFrom } from "../multimap.ts"
import type { Params } from "./lift.ts"
import type { Maintained } from "./maintained.ts"
import { absent, dynamic, keyOfArguments, type RowIndex } from "./rowIndex.ts"
import type { Shape } from "./shape.ts"
import type { Row, Write } from "./store.ts"

export class ShapeGroup {
  readonly shape: Shape
  /** Undefined for a shape without indexed conjuncts. */
  readonly index: RowIndex | undefined
  readonly instances = new Set<Maintained>()
  private readonly byArguments = new Map<unknown, Set<Maintained>>()
  /** Instances whose parameters say what they read: those of tables and ranges by table, those of records by record. */
  private readonly byTable = new Map<string, Set<Maintained>>()
  private readonly byRecord = new Map<string, Set<Maintained>>()
  /** How many instances read each table. */
  private readonly reading = new Map<string, number>()

  constructor(shape: Shape, index: RowIndex | undefined) {
    this.shape = shape
    this.index = index
  }

  add(instance: Maintained): void {
    this.instances.add(instance)
    if (this.index !== undefined) addTo(this.byArguments, this.argumentKey(instance.params), instance)
    for (const { table } of instance.slots?.scanned ?? []) addTo(this.byTable, table, instance)
    for (const text of instance.slots?.records.keys() ?? []) addTo(this.byRecord, text, instance)
    for (const table of instance.mainTables) this.reading.set(table, (this.reading.get(table) ?? 0) + 1)
  }

  remove(instance: Maintained): void {
    this.instances.delete(instance)
    if (this.index !== undefined) removeFrom(this.byArguments, this.argumentKey(instance.params), instance)
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

  /** Ids of the rows an instance with these arguments has to look at first; undefined means all. */
  candidates(params: Params): { readonly routed: Iterable<string>; readonly dynamic: Iterable<string> } | undefined {
    return this.index === undefined ? undefined : { routed: this.index.ids(this.argumentKey(params)), dynamic: this.index.ids(dynamic) }
  }

  /** Shows one changed record to the instances it can concern; the index has been moved already. */
  route({ after, before, id }: Write): void {
    if (this.shape.table === undefined) return this.routeBySource(id.table, id.text, after)
    if (this.index === undefined) return this.showAll(id.text, after)
    const { newKey, oldKey } = this.index.keys(before, after)
    if (oldKey === dynamic || newKey === dynamic) return this.showAll(id.text, after)
    if (oldKey !== absent && oldKey !== newKey) for (const instance of this.byArguments.get(oldKey) ?? none) instance.update(id.text, undefined, true)
    if (newKey !== absent) for (const instance of this.byArguments.get(newKey) ?? none) instance.update(id.text, after, true)
  }

  private routeBySource(table: string, text: string, after: Row | undefined): void {
    for (const instance of this.byRecord.get(text) ?? none) instance.update(text, after, false)
    for (const instance of this.byTable.get(table) ?? none) instance.update(text, after, false)
  }

  private showAll(text: string, after: Row | undefined): void {
    for (const instance of this.instances) instance.update(text, after, false)
  }

  private argumentKey(params: Params): unknown {
    return keyOfArguments(this.shape.argumentNames.map((name) => params[name]))
  }
}

const none: ReadonlyArray<Maintained> = []
