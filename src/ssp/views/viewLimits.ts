/**
 * Limits of views from the settings, and the refusals of a full heap.
 */
import { Effect } from "effect"
import type { Store } from "../../core/ivm/store/store.ts"
import type { Change } from "../../core/record/change.ts"
import {
  fullMessage,
  grows,
  growsTogether,
  isLoadable,
  isMostOfRoom,
  type Memory,
  notLoadable,
  tooLargeView
} from "../../core/record/memory.ts"
import type { Known } from "../../core/record/reconcile.ts"
import type { RecordId } from "../../core/surql/values/value.ts"
import { DatabaseError, type StoredView } from "../../ports/Database.ts"
import type { HeapShape } from "../../ports/ProcessFigures.ts"
import { Overloaded } from "../viewTypes.ts"

export interface StreamLimits {
  /** Deltas kept per streamed view. */
  readonly streamBuffer: number
  /** Most open streams. */
  readonly maxStreams: number
  /** Bytes that one result in format `tree` or `rows` may take when it is written out. */
  readonly resultBytes: number
}

export interface ViewLimits extends StreamLimits {
  /** Most registered views. */
  readonly maxViews: number
  /** How long a registration waits for the database, in milliseconds. */
  readonly databaseWaitMs: number
  /** Changes that may wait for the store. */
  readonly maxPendingChanges: number
  /** How long saved state may lag behind, in milliseconds. */
  readonly stateDebounceMs: number
  /** Deleted records that are remembered. */
  readonly maxTombstones: number
  /** Evaluation steps that one row of a view may take. */
  readonly rowSteps: number
  /** Evaluation steps that the rows of all views may take for one change. */
  readonly changeSteps: number
  /** Evaluation steps that a run of a whole query may take. */
  readonly querySteps: number
  /** Bytes that the evaluation of one row, or of a whole query, may allocate. */
  readonly queryBytes: number
  /** Bytes that the rows of all views may take; 0: a share of the heap. */
  readonly viewBytesTotal: number
}

/** The heap's size divided by this number limits the rows of all views, and one result that is written out. */
const heapShare = 3

/** The limits in a heap of `heapBytes`. */
export const withinHeap = (limits: ViewLimits, heapBytes: number): ViewLimits => {
  const share = Math.floor(heapBytes / heapShare)
  return {
    ...limits,
    viewBytesTotal: limits.viewBytesTotal > 0 ? limits.viewBytesTotal : share,
    resultBytes: Math.min(limits.resultBytes, share)
  }
}

/** The setting of {@link ViewLimits.resultBytes}, which a string's limit of 512 Mi characters bounds. */
export const resultBytes = { setting: "SVC_VIEW_RESULT_BYTES", value: 268_435_456, most: 402_653_184 } as const

/** The refusal of changes that grow while the heap is full; records are compared only then. */
export const refusalOfChanges = (
  heap: HeapShape,
  store: Pick<Store, "docOf">,
  changes: ReadonlyArray<Change>
): Overloaded | undefined => {
  const memory = heap.memory()
  return memory.isFull && changes.some((change) => grows(change, store.docOf(change.id))) ? heapFull(memory) : undefined
}

/** The refusal of one step of the database's changes that grows in sum while the heap is full. */
export const refusalOfStep = (
  heap: HeapShape,
  records: { readonly get: (id: RecordId) => Known | undefined },
  changes: ReadonlyArray<Change>
): Overloaded | undefined => {
  const memory = heap.measured()
  return memory.isFull && growsTogether(changes, (id) => records.get(id)?.doc) ? heapFull(memory) : undefined
}

/** The refusal of whatever grows while the heap is full (D43). */
export const heapFull = (memory: Memory): Overloaded =>
  shortOfMemory(fullMessage(memory, "deletes and updates that do not grow"))

/** The refusal of a compare with the database for which the heap has no room. */
export const shortOfMemory = (message: string): Overloaded => new Overloaded({ message, retryAfterSecs: 5 })

/** Asked while a view fills: why it has to be given up; undefined while there is room. */
export type TooLargeCheck = () => string | undefined

/**
 * Serves the stored views of a start one by one; fails when the heap has no room for more (D43). The size of a view is
 * known only when it is filled, so the heap is measured between two views and while one fills. A view that takes most
 * of the room alone is given up, and the others are served.
 */
export const loadViews = (
  heap: HeapShape,
  views: ReadonlyArray<StoredView>,
  serve: (view: StoredView, tooLarge: TooLargeCheck) => Effect.Effect<void>
): Effect.Effect<void, DatabaseError> =>
  Effect.gen(function* () {
    const beside = heap.measured().usedBytes
    const failed = (memory: Memory, loaded: number): DatabaseError =>
      new DatabaseError({ reason: "failed", message: notLoadable(memory, loaded, views.length, "views", beside) })
    for (const [loaded, view] of views.entries()) {
      const before = heap.measured()
      if (!isLoadable(before)) return yield* failed(before, loaded)
      let full: Memory | undefined,
        isGivenUp = false
      const tooLarge: TooLargeCheck = () => {
        const now = heap.measured()
        if (isLoadable(now)) return undefined
        isGivenUp = true
        if (!isMostOfRoom(now, beside, before.usedBytes)) full = now
        return tooLargeView(now, now.usedBytes - before.usedBytes)
      }
      yield* serve(view, tooLarge)
      if (isGivenUp) heap.released()
      if (full !== undefined) return yield* failed(full, loaded + 1)
    }
  })
