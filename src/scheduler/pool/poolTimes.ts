/**
 * Converts the pool's steady times (D73) to times of day in the store: a steady time means nothing to readers of the
 * rows, to another process, or to this one after its clock was set and it was started again.
 */
import { type Clock, Effect } from "effect"
import type { PoolStoreShape, PoolWrite, StoredPool } from "../../ports/PoolStore.ts"
import { steadyAheadMs } from "../../ports/Turn.ts"

type ViewRow = Extract<PoolWrite, { readonly tag: "PersistView" }>["row"]
type QuarantineRow = Extract<PoolWrite, { readonly tag: "PersistQuarantine" }>["row"]

const movedView = (row: ViewRow, ms: number): ViewRow => ({
  ...row,
  spec: { ...row.spec, lastActiveAt: row.spec.lastActiveAt + ms },
  assignedAt: row.assignedAt + ms
})

const movedQuarantine = (row: QuarantineRow, ms: number): QuarantineRow => ({ ...row, at: row.at + ms })

const movedWrite = (write: PoolWrite, ms: number): PoolWrite => {
  switch (write.tag) {
    case "PersistView":
      return { ...write, row: movedView(write.row, ms) }
    case "PersistQuarantine":
      return { ...write, row: movedQuarantine(write.row, ms) }
    default:
      return write
  }
}

const movedSaved = (saved: StoredPool["saved"], ms: number): StoredPool["saved"] => ({
  ...saved,
  views: saved.views.map((row) => movedView(row, ms)),
  ...(saved.quarantined && { quarantined: saved.quarantined.map((row) => movedQuarantine(row, ms)) })
})

/** A store that keeps times of day, for a pool that counts in steady time. */
export const storedByDay = (store: PoolStoreShape, clock: Clock.Clock): PoolStoreShape => ({
  open: (logId, maxResults) =>
    Effect.map(store.open(logId, maxResults), (opened) => ({
      ...opened,
      saved: movedSaved(opened.saved, steadyAheadMs(clock))
    })),
  write: (writes) =>
    Effect.suspend(() => {
      const ahead = steadyAheadMs(clock)
      return store.write(writes.map((write) => movedWrite(write, -ahead)))
    }),
  resultOf: (job) => store.resultOf(job)
})
