/** The pool of a scheduler in the process's memory and nowhere else. */
import { Effect, Layer } from "effect"
import * as JsonText from "../core/jsonText.ts"
import { PoolStore, type PoolStoreShape } from "../ports/PoolStore.ts"
import { type Put, type Row, storeOver } from "./poolRows.ts"

/** Over a map that outlives it: a test's restart. */
export const inMemory = (rows: Map<string, Row>): PoolStoreShape => {
  const apply = ({ key, kind, under, value }: Put): void => {
    if (under === true) for (const [at, row] of rows) if (row.kind === kind && row.key.startsWith(key)) rows.delete(at)
    if (under === true) return
    if (value === undefined) rows.delete(`${kind} ${key}`)
    else rows.set(`${kind} ${key}`, { kind, key, value: JsonText.parse(JsonText.write(value)) })
  }
  return storeOver({
    rows: Effect.sync(() => [...rows.values()]),
    put: (puts) => Effect.sync(() => puts.forEach(apply))
  })
}

/** One layer value, built twice, is two stores. */
export const layer: Layer.Layer<PoolStore> = Layer.sync(PoolStore, () => inMemory(new Map()))
