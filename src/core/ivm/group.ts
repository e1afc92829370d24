/**
 * All instances of one shape, and the argument index that finds those a change can concern.
 *
 * Rule: a row belongs to the instances filed under the values of its indexed paths; a changed row is shown to those of
 * its old key and those of its new key, and to nobody else. Cost: two lookups per shape, whatever the number of
 * instances. A shape without indexed conjuncts, and a row without a fixed key, are shown to every instance.
 */
import { addTo, removeFrom } from "../multimap.ts"
import type { Value } from "../surql/value.ts"
import type { Maintained } from "./maintained.ts"
import { absent, dynamic, keyOfArguments, type RowIndex } from "./rowIndex.ts"
import type { Shape } from "./shape.ts"
import type { Row } from "./store.ts"

export class ShapeGroup {
  readonly shape: Shape
  /** Undefined for a shape without indexed conjuncts. */
  readonly index: RowIndex | undefined
  readonly instances = new Set<Maintained>()
  private readonly byArguments = new Map<unknown, Set<Maintained>>()

  constructor(shape: Shape, index: RowIndex | undefined) {
    this.shape = shape
    this.index = index
  }

  add(instance: Maintained): void {
    this.instances.add(instance)
    if (this.index !== undefined) addTo(this.byArguments, this.argumentKey(instance.params), instance)
  }

  remove(instance: Maintained): void {
    this.instances.delete(instance)
    if (this.index !== undefined) removeFrom(this.byArguments, this.argumentKey(instance.params), instance)
  }

  /** Ids of the rows an instance with these arguments has to look at first; undefined means all. */
  candidates(params: { readonly [name: string]: Value }): { readonly routed: Iterable<string>; readonly dynamic: Iterable<string> } | undefined {
    return this.index === undefined ? undefined : { routed: this.index.ids(this.argumentKey(params)), dynamic: this.index.ids(dynamic) }
  }

  /** Shows one changed record to the instances it can concern; the index has been moved already. */
  route(text: string, after: Row | undefined): void {
    if (this.index === undefined) {
      for (const instance of this.instances) instance.update(text, after, false)
      return
    }
    const { oldKey, newKey } = this.index
    if (oldKey === dynamic || newKey === dynamic) {
      for (const instance of this.instances) instance.update(text, after, false)
      return
    }
    if (oldKey !== absent && oldKey !== newKey) for (const instance of this.filed(oldKey)) instance.update(text, undefined, true)
    if (newKey !== absent) for (const instance of this.filed(newKey)) instance.update(text, after, true)
  }

  private filed(key: unknown): Iterable<Maintained> {
    return this.byArguments.get(key) ?? []
  }

  private argumentKey(params: { readonly [name: string]: Value }): unknown {
    return keyOfArguments(this.shape.argumentNames.map((name) => params[name]))
  }
}
