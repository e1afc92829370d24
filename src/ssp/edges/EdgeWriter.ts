/**
 * The port through which views name the rows that the database must hold of their results: registrations and edges
 * (D21).
 *
 * Calls are synchronous and answered at once, because every change makes some; the writer decides when it writes.
 * Without a database the calls do nothing.
 */
import { Context, Effect, Layer, type Scope } from "effect"
import type { Delta } from "../../core/ivm/delta/delta.ts"
import type { View } from "../../core/ivm/view/view.ts"
import * as Metered from "../../node/work/metered.ts"
import type { StoredView } from "../../ports/Database.ts"
import { Serving } from "../../ports/Front.ts"
import { Meters } from "../../ports/Meters.ts"
import { type OwnedRegistration, Upstream, type UpstreamError } from "../../ports/Upstream.ts"
import { SspConfig } from "../Config.ts"
import { Lease } from "../membership/Lease.ts"
import type { Overloaded } from "../viewTypes.ts"
import { makeWriter } from "./writer.ts"

/** Counters of the writer since the process began; all but `waiting` only grow. */
export interface EdgeCounts {
  /** Operations that wait or are being written. */
  readonly waiting: number
  /** Edges put, and edges removed, without refused ones. */
  readonly puts: number
  readonly removals: number
  readonly batches: number
  /** Batches that failed and were tried again. */
  readonly failures: number
  readonly refused: number
  /** Views lost to another owner. */
  readonly lost: number
  /** Views whose edges were compared with the database, edges found there, and edges that had to be written. */
  readonly compared: number
  readonly found: number
  readonly differences: number
}

/** Edges of one view that the database has refused, one of them by name. */
export interface RefusedEdges {
  readonly count: number
  /** Record that the first refused edge shows. */
  readonly edge: string
  readonly reason: string
}

export interface EdgesShape {
  /** False: there is no database, and calls do nothing. */
  readonly present: boolean
  /** Why no more changes can be accepted; undefined while there is room. */
  readonly overloaded: () => Overloaded | undefined
  /** Writes and claims a registration; answers the assignment for {@link open}. Waits for the row, not for edges. */
  readonly register: (view: StoredView) => Effect.Effect<number, UpstreamError>
  /**
   * Starts to keep the view's edges: those in the database are compared with its result, then its deltas follow. A
   * second call for a key starts anew. Without an assignment the registration is claimed first, once the database
   * answers; a view whose row is missing waits until it is restored or removed.
   */
  readonly open: (view: StoredView, instance: View, assignment: number | undefined) => void
  /** Called when the view was registered again unchanged. */
  readonly refreshed: (view: StoredView, instance: View, assignment: number) => void
  /** Called with the delta of a change to the view. */
  readonly changed: (key: string, delta: Delta) => void
  /** Stops keeping the view's edges; `remove` deletes its registration and edges. */
  readonly close: (key: string, remove: boolean) => void
  /** Refused edges of a view; undefined if the database has all of them, or is being asked. */
  readonly refused: (key: string) => RefusedEdges | undefined
  /** Compares views with refused edges again, so that edges the database now accepts are written. */
  readonly heal: Effect.Effect<void>
  /** Whether another SSP has taken the view over. */
  readonly isLost: (key: string) => boolean
  /** Sets the callback for the key of every view that another SSP has taken over. */
  readonly onLost: (lost: (key: string) => void) => void
  /** Whether the removal of this view's registration is not yet in the database. */
  readonly isLeaving: (key: string) => boolean
  /** {@link Upstream}'s `expire` for views of this SSP. */
  readonly expire: (
    keys: ReadonlyArray<string>,
    nowMs: number
  ) => Effect.Effect<ReadonlyArray<OwnedRegistration>, UpstreamError>
  /** Removes every registration of this SSP from the database, also those unknown here. */
  readonly clear: Effect.Effect<void, UpstreamError>
  /**
   * Sets the condition for writing and comparing: memory that does not yet equal the database would overwrite correct
   * edges.
   */
  readonly allowWhen: (may: () => boolean) => void
  readonly counts: () => EdgeCounts
  /** Returns when no operation waits any more. */
  readonly settled: Effect.Effect<void>
}

export class EdgeWriter extends Context.Tag("ssp/EdgeWriter")<EdgeWriter, EdgesShape>() {
  static readonly layer: Layer.Layer<EdgeWriter, never, Upstream | Lease | SspConfig | Serving> = Layer.scoped(
    EdgeWriter,
    Effect.gen(function* () {
      const upstream = Metered.upstream(yield* Upstream, { meters: yield* Meters, clock: yield* Effect.clock })
      const { maxPendingEdges, reconcileIntervalSecs, sspId } = yield* SspConfig
      const serving = yield* Serving
      const { held } = yield* Lease
      if (!upstream.present) return noEdges
      const maxHealMs = (reconcileIntervalSecs || 600) * 1_000
      return yield* makeWriter(upstream, { owner: sspId, maxPending: maxPendingEdges, held, maxHealMs }, (loop) =>
        Effect.provideService(Serving.fork(loop), Serving, serving)
      )
    })
  )
}

/** Runs a loop for the life of the scope; a defect in it ends the process. */
export type Fork = (loop: Effect.Effect<never>) => Effect.Effect<void, never, Scope.Scope>

const nothingDone: EdgeCounts = {
  waiting: 0,
  puts: 0,
  removals: 0,
  batches: 0,
  failures: 0,
  refused: 0,
  lost: 0,
  compared: 0,
  found: 0,
  differences: 0
}

/** For a node without a database. */
export const noEdges: EdgesShape = {
  present: false,
  overloaded: () => undefined,
  register: () => Effect.succeed(1),
  open: () => undefined,
  refreshed: () => undefined,
  changed: () => undefined,
  close: () => undefined,
  refused: () => undefined,
  heal: Effect.void,
  isLost: () => false,
  onLost: () => undefined,
  isLeaving: () => false,
  expire: () => Effect.succeed([]),
  clear: Effect.void,
  allowWhen: () => undefined,
  counts: () => nothingDone,
  settled: Effect.void
}
