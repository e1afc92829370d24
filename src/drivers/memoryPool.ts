/** The pool of a scheduler in the process's memory and nowhere else. */
import { Effect, Layer } from "effect"
import * as JsonText from "../core/jsonText.ts"
import { PoolStore, type PoolStoreShape } from "../ports/PoolStore.ts"
import { openedFrom, opening, type Put, Results, type Row } from "./shared/poolRows.ts"
import { failure } from "./shared/sqliteFailure.ts"

/** Over a map that outlives it: a test's restart. */
export const inMemory = (rows: Map<string, Row>): PoolStoreShape => {
  const apply = ({ key, kind, under, value }: Put): void => {
    if (under === true) for (const [at, row] of rows) if (row.kind === kind && row.key.startsWith(key)) rows.delete(at)
    if (under === true) return
    if (value === undefined) rows.delete(`${kind} ${key}`)
    else rows.set(`${kind} ${key}`, { kind, key, value: JsonText.parse(JsonText.write(value)) })
  }
  const results = new Results()
  return {
    resultOf: results.of,
    open: (logId, maxResults) =>
      Effect.try({
        try: () => {
          const read = [...rows.values()]
          const opened = openedFrom(read, logId)
          for (const put of [...opening(opened, logId), ...results.open(read, maxResults)]) apply(put)
          return opened
        },
        catch: failure
      }),
    write: (writes) => Effect.sync(() => writes.flatMap(results.puts).forEach(apply))
  }
}

/** One layer value, built twice, is two stores. */
export const layer: Layer.Layer<PoolStore> = Layer.sync(PoolStore, () => inMemory(new Map()))
