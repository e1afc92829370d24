/**
 * Replaces all records of an SSP in one step by those pulled from the scheduler (D20).
 *
 * Alone in the committer's queue, so that no change and no registration falls between old and new; loaded in slices
 * while all fills wait, so that the process answers meanwhile and no view fills from half a store. Views that the
 * scheduler placed here are dropped: it places them anew. Views registered here directly stay, filled from the new
 * records.
 */
import { Effect } from "effect"
import type { Engine } from "../../core/ivm/engine.ts"
import type { Slices } from "../../core/surql/evaluate/scope.ts"
import type { Definitions } from "../../core/surql/syntax/definitions.ts"
import {
  type Database,
  type StoredPosition,
  type StoredRecord,
  type StoredView,
  startPosition
} from "../../ports/Database.ts"
import { StoreFailed } from "../viewTypes.ts"
import type { Committer } from "./committer.ts"
import { generationOf, type RegisteredView } from "./registry.ts"
import { type PlanContext, serveStored } from "./replanning.ts"

export interface ReplacementRecords {
  readonly records: ReadonlyArray<StoredRecord>
  /** Position of the records in the scheduler's log. */
  readonly position: Omit<StoredPosition, "writes">
  /** Whether a view, by its key, was registered here directly and stays. */
  readonly stays: (key: string) => boolean
  /** Definitions of the database, if they are known. */
  readonly definitions?: Definitions | undefined
}

/** The parts of the views service that replacing uses. */
export interface ReplaceContext extends PlanContext {
  readonly committer: Committer
  readonly database: Database["Type"]
  /** Called when all acquired instances have become void. */
  readonly cleared: () => void
  /** Removes a view; its streams end with `reset`. */
  readonly reset: (view: RegisteredView) => void
}

/** Clears views, records and the store (D16). `asides`: forgets the quarantined views. */
export const clearAll = (holder: ReplaceContext, asides: () => void): Effect.Effect<void, StoreFailed> =>
  Effect.suspend(() => {
    const { committer, database, engine, slicer, unserved } = holder
    return committer.alone(
      database.reset.pipe(
        Effect.mapError(
          (cause) => new StoreFailed({ message: `the store refused to be cleared: ${cause.message}`, cause })
        ),
        Effect.map(() => {
          committer.standAt(startPosition)
          holder.cleared()
          // A view that is filling has read records that are gone: it begins again, on the empty store.
          slicer.restart(() => {
            for (const view of [...holder.views()]) holder.reset(view)
            asides()
            unserved.clear()
            engine.clear()
          })
        })
      )
    )
  })

/** Records loaded between two looks at the clock. */
const stride = 500

function* load(engine: Engine, records: ReadonlyArray<StoredRecord>): Slices<void> {
  let n = 0
  for (const { doc, id, version } of records) {
    engine.load(id, version, doc)
    if (++n % stride === 0) yield
  }
}

export const replaceAll = (
  holder: ReplaceContext,
  { definitions, position, records, stays }: ReplacementRecords
): Effect.Effect<void, StoreFailed> => {
  const { committer, database, engine, slicer } = holder
  const staying: Array<{ readonly stored: StoredView; readonly generation: number }> = []
  const empty = (): void => {
    holder.cleared()
    for (const view of [...holder.views()]) {
      if (stays(view.stored.key)) staying.push({ stored: view.stored, generation: generationOf(view) + 1 })
      holder.drop(view)
    }
    for (const { stored } of holder.unserved.values()) if (stays(stored.key)) staying.push({ stored, generation: 1 })
    holder.unserved.clear()
    if (definitions !== undefined) holder.queries.define(definitions)
    engine.clear()
  }
  return committer.alone(
    Effect.gen(function* () {
      const after = { ...position, writes: committer.position.writes + records.length }
      yield* slicer.alone(empty, () => load(engine, records)).pipe(Effect.catchTag("Closed", () => Effect.interrupt))
      committer.standAt(after)
      yield* database.reset
      yield* database.commit({
        records: [],
        putViews: staying.map(({ stored }) => stored),
        removeViews: [],
        position: after
      })
      for (const { generation, stored } of staying) yield* serveStored(holder, stored, generation)
    }).pipe(
      Effect.mapError((cause) => new StoreFailed({ message: `the store refused the write: ${cause.message}`, cause }))
    )
  )
}
