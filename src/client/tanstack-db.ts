/**
 * A view as a TanStack DB collection: `createCollection(viewCollection({ live, view, getKey }))`.
 *
 * Unchanged rows are the same objects, so changes are found by comparing references, and the collection gets only
 * changed rows. It does not keep the order of the view: a query of TanStack DB has its own.
 */
import type { CollectionConfig, SyncConfig } from "@tanstack/db"
import type { Viewing } from "./api.ts"

/** Options of {@link viewCollection}. */
export interface ViewCollectionOptions<Row extends object> {
  readonly live: Viewing
  /** Id of the view, or its name with `params`. */
  readonly view: string
  readonly params?: object
  /** Key of a row. If several rows have the same key, the last one is kept. */
  readonly getKey: (row: Row) => string | number
}

type Sync<Row extends object> = SyncConfig<Row, string | number>["sync"]

const syncOf =
  <Row extends object>({ getKey, live, params, view }: ViewCollectionOptions<Row>): Sync<Row> =>
  ({ begin, commit, markError, markReady, write }) => {
    const shared = live.view(view, params)
    let told: ReadonlyArray<unknown> | undefined
    let known = new Map<string | number, Row>()
    const tell = (): void => {
      const { error, rows, status } = shared.state
      if (status === "loading") return
      if (status === "error" && told === undefined) return markError(new Error(error?.message, { cause: error }))
      if (rows !== told) {
        const fresh = new Map((rows as ReadonlyArray<Row>).map((row) => [getKey(row), row] as const))
        begin()
        for (const [key, value] of known) if (!fresh.has(key)) write({ type: "delete", value })
        for (const [key, value] of fresh) {
          const before = known.get(key)
          if (before !== value) write({ type: before === undefined ? "insert" : "update", value })
        }
        commit()
        known = fresh
        told = rows
      }
      markReady()
    }
    const stop = shared.subscribe(tell)
    const release = shared.hold()
    tell()
    return () => {
      stop()
      release()
    }
  }

/**
 * Options for `createCollection`. The collection is read-only unless the application adds handlers such as `onInsert`.
 */
export const viewCollection = <Row extends object>(
  options: ViewCollectionOptions<Row>
): CollectionConfig<Row, string | number> => ({
  id: `${options.view} ${JSON.stringify(options.params ?? {})}`,
  getKey: options.getKey,
  sync: { sync: syncOf(options), rowUpdateMode: "full" }
})
