/** The pool of a scheduler, in memory alone. */
import { Effect, Layer } from "effect"
import * as JsonText from "../core/jsonText.ts"
import { PoolStore, type PoolStoreShape } from "../ports/PoolStore.ts"
import { type Row, type RowPut, storeOver } from "./poolRows.ts"

/** A store over a map that outlives it, as in a test's restart. */
export const poolOver = (rows: Map<string, Row>): PoolStoreShape => {
  const apply = ({ key, kind, under, value }: RowPut): void => {
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

/** The layer makes a new store for each build. */
export const layer: Layer.Layer<PoolStore> = Layer.sync(PoolStore, () => poolOver(new Map()))
