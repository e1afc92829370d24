/**
 * Registering and unregistering views where a scheduler places them (D21, D31).
 *
 * Between the doors and the views, so that neither needs to know that calls of a scheduler may come late, twice or out
 * of order.
 */
import { Effect } from "effect"
import { viewKey } from "../../core/view/viewId.ts"
import type { Views } from "../views/Views.ts"
import { Overloaded, type ViewRegistration } from "../viewTypes.ts"
import type { Assignments } from "./Assignments.ts"

export const register = (
  views: Pick<Views["Type"], "register">,
  assignments: Assignments,
  registration: ViewRegistration
): ReturnType<Views["Type"]["register"]> => {
  const { assignment, id } = registration
  const key = viewKey(id)
  if (assignment === undefined || key === undefined) return views.register(registration)
  return Effect.suspend(() => {
    const still = assignments.claim(key, assignment)
    return still === undefined
      ? Effect.fail(new Overloaded({ message: `assignment ${assignment} of this view is over`, retryAfterSecs: 1 }))
      : views.register({ ...registration, still })
  })
}

interface Unregistration {
  readonly id: string
  readonly assignment?: number | undefined
  /** Another SSP has it, or will: its rows in the database are not this SSP's to remove. */
  readonly moved?: boolean | undefined
  /** The transaction that deletes the row in the database waits for the answer, with the row locked. */
  readonly deleted?: boolean | null | undefined
}

/** Done, too, where the view is held under a later assignment. */
export const unregister = (
  views: Pick<Views["Type"], "unregister">,
  assignments: Assignments,
  { assignment, deleted, id, moved }: Unregistration
): ReturnType<Views["Type"]["unregister"]> =>
  Effect.suspend(() => {
    const key = viewKey(id)
    if (assignment !== undefined && key !== undefined && !assignments.takeBack(key, assignment)) return Effect.void
    if (key !== undefined) assignments.forget(key)
    return moved === true ? views.unregister(id, true, "moved") : views.unregister(id, deleted === true)
  })
