/**
 * Plans views again when functions or parameters of the database that they use are redefined (D58).
 *
 * A view whose query the new definitions refuse is no longer served, as the query would fail in the database; its
 * registration stays, and the view is served again when the definitions allow it.
 */
import { Effect, Either } from "effect"
import type { View } from "../../core/ivm/view/view.ts"
import type { Definitions } from "../../core/surql/syntax/definitions.ts"
import type { Slicer } from "../../node/work/Slicer.ts"
import type { StoredView } from "../../ports/Database.ts"
import { type FillContext, fillStored, queryOf, warnRefused } from "./registering.ts"
import { generationOf, type RegisteredView } from "./registry.ts"
import type { TooLargeCheck } from "./viewLimits.ts"
import type { ViewTables } from "./viewTables.ts"

/** A stored registration whose query is refused, and the assignment of its view. */
export interface Unserved {
  readonly stored: StoredView
  readonly assignment: number | undefined
}

/** The parts of the views service that replanning uses. */
export interface PlanContext extends FillContext {
  readonly slicer: Slicer
  readonly views: () => Iterable<RegisteredView>
  readonly get: (key: string) => RegisteredView | undefined
  /** Registrations that are stored and not served, by key. */
  readonly unserved: Map<string, Unserved>
  /** Runs `work` while the tables of a query are held. */
  readonly holding: ViewTables["holding"]
  readonly inTurn: (key: string, work: Effect.Effect<void>) => Effect.Effect<void>
  /** Installs a view; an existing one of its key is replaced. */
  readonly put: (stored: StoredView, instance: View, generation: number, assignment: number | undefined) => void
  /** Removes a view; its streams end with `rebootstrap`. */
  readonly drop: (view: RegisteredView) => void
}

/**
 * Fills a stored view and installs it; if its query is refused or it is too large, the view is dropped and kept in
 * `unserved`.
 */
export const serveStored = (
  planned: PlanContext,
  stored: StoredView,
  generation: number,
  tooLarge?: TooLargeCheck
): Effect.Effect<void> =>
  Effect.gen(function* () {
    const acquired = yield* fillStored(planned, stored, generation, tooLarge)
    const before = planned.get(stored.key)
    const { assignment } = before ?? planned.unserved.get(stored.key) ?? { assignment: undefined }
    if (Either.isRight(acquired)) return planned.put(stored, acquired.right, generation, assignment)
    planned.unserved.set(stored.key, { stored, assignment })
    if (before !== undefined) planned.drop(before)
    yield* warnRefused(stored, "kept but not served", acquired.left)
  })

/** Fills a view again; until then its earlier plan is shown. */
const replan = (planned: PlanContext, { key }: StoredView): Effect.Effect<void> =>
  planned.inTurn(
    key,
    Effect.suspend(() => {
      const before = planned.get(key)
      const stored = before?.stored ?? planned.unserved.get(key)?.stored
      if (stored === undefined) return Effect.void
      const served = serveStored(planned, stored, before === undefined ? 1 : generationOf(before) + 1)
      // The new plan may read other tables; the earlier plan is shown until they are loaded.
      return Effect.eventually(planned.holding(queryOf(stored), served))
    })
  )

/** Adopts definitions; returns when every view that uses them is planned again. */
export const adoptDefinitions = (planned: PlanContext, definitions: Definitions): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { queries } = planned
    const all = [
      ...Array.from(planned.views(), ({ stored }) => stored),
      ...Array.from(planned.unserved.values(), ({ stored }) => stored)
    ]
    const before = new Map(all.map((stored) => [stored.key, queries.usesOf(queryOf(stored))]))
    queries.define(definitions)
    const moved = all.filter((stored) => queries.usesOf(queryOf(stored)) !== before.get(stored.key))
    return Effect.forEach(moved, (stored) => replan(planned, stored), { discard: true })
  })
