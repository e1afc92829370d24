/**
 * Where the views name the rows that the database is to hold of their results: registrations and edges (D21).
 *
 * Told synchronously and answered at once, because it is told on the way of every change; the order of the writes is
 * the writer's affair. Without a database nothing is told and nothing is kept.
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
  /** Operations that wait or are on their way. */
  readonly waiting: number
  /** Edges put and edges removed, refused ones left out. */
  readonly puts: number
  readonly removals: number
  readonly batches: number
  /** Batches that did not arrive and were tried again. */
  readonly failures: number
  readonly refused: number
  /** Views lost to another owner. */
  readonly lost: number
  /**
   * Views whose edges were compared with the database, the edges found there, and how many of all were to be written.
   */
  readonly compared: number
  readonly found: number
  readonly differences: number
}

/** Edges of one view that the database has refused, one of them by name. */
export interface RefusedEdges {
  readonly count: number
  /** The record that the first of them shows. */
  readonly edge: string
  readonly reason: string
}

export interface EdgesShape {
  /** False: there is no database, and the views need not tell anything. */
  readonly present: boolean
  /** Why no more changes can be taken; undefined while there is room. */
  readonly overloaded: () => Overloaded | undefined
  /**
   * Writes a registration and takes it over; answers the assignment for {@link open}. Waits for the row, not for edges.
   */
  readonly register: (view: StoredView) => Effect.Effect<number, UpstreamError>
  /**
   * From here on the view's edges are kept: those that are there are compared with its result first, then its deltas
   * follow. Said again for a key, it begins anew. Without an assignment the registration is claimed first, as soon as
   * the database answers; one that is not there waits until it is known what becomes of the view.
   */
  readonly open: (view: StoredView, instance: View, assignment: number | undefined) => void
  /** The view was registered again unchanged. */
  readonly refreshed: (view: StoredView, instance: View, assignment: number) => void
  /** A change has had this effect on the view. */
  readonly changed: (key: string, delta: Delta) => void
  /** The view's edges are no longer kept; `remove` takes registration and edges away. */
  readonly close: (key: string, remove: boolean) => void
  /** Edges of a view that the database has refused; undefined if it has all of them, or is being asked. */
  readonly refused: (key: string) => RefusedEdges | undefined
  /** Has the edges that the database has refused written again, where it takes them now. */
  readonly heal: Effect.Effect<void>
  /** Whether another has this view now. */
  readonly isLost: (key: string) => boolean
  /** Called with the key of every view that turns out to be another's. */
  readonly onLost: (lost: (key: string) => void) => void
  /** Whether the removal of this view's registration has yet to reach the database. */
  readonly isLeaving: (key: string) => boolean
  /** As {@link Upstream}'s, for views of this SSP. */
  readonly expire: (
    keys: ReadonlyArray<string>,
    nowMs: number
  ) => Effect.Effect<ReadonlyArray<OwnedRegistration>, UpstreamError>
  /** Removes every registration of this SSP, known to it or not. */
  readonly clear: Effect.Effect<void, UpstreamError>
  /**
   * Sets the condition for writing and comparing: memory that does not yet equal the database would overwrite correct
   * edges.
   */
  readonly allowWhen: (may: () => boolean) => void
  readonly counts: () => EdgeCounts
  /** Returns when nothing waits any more. */
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
