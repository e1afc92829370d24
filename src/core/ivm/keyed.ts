/**
 * Rows by key, without a Map until there are two: most views of a large service show one row or none.
 *
 * Why it matters: a Map that goes from one entry to none and back makes a new table each time, and tables that hang on
 * long-lived views survive into the old generation; with 10,000 such views that was half of what a change cost.
 */

export class Keyed<V extends { readonly key: string }> {
  private held: V | Map<string, V> | undefined = undefined

  get size(): number {
    return this.held === undefined ? 0 : this.held instanceof Map ? this.held.size : 1
  }

  get(key: string): V | undefined {
    const { held } = this
    return held instanceof Map ? held.get(key) : held?.key === key ? held : undefined
  }

  set(value: V): void {
    const { held } = this
    if (held instanceof Map) held.set(value.key, value)
    else if (held === undefined || held.key === value.key) this.held = value
    else this.held = new Map([[held.key, held], [value.key, value]])
  }

  delete(key: string): void {
    const { held } = this
    if (held instanceof Map) held.delete(key)
    else if (held?.key === key) this.held = undefined
  }

  values(): Iterable<V> {
    const { held } = this
    return held === undefined ? [] : held instanceof Map ? held.values() : [held]
  }
}
