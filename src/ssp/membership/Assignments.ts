/**
 * Which views the scheduler has placed here, and under which assignment (D21, D31).
 *
 * Assignments grow with every move of a view, and calls may arrive late or twice: a register call of an older
 * assignment, or of one already taken back, must not bring a view back that another SSP has by now; an unregister call
 * must not take away a view placed anew. Views registered directly are not in here, and stay with this SSP (D16).
 * Between the routes and the views, so that neither needs to know any of this.
 */
import { Effect } from "effect"
import { Recent } from "../../core/recent.ts"
import { viewKey } from "../../core/view/viewId.ts"
import type { Views } from "../views/Views.ts"
import { Overloaded, type ViewRegistration } from "../viewTypes.ts"

/** Assignments taken back that are remembered; a call does not stay on its way for so many others. */
const maxGone = 100_000

interface Unregistration {
  readonly id: string
  readonly assignment?: number | undefined
  /** Another SSP has it, or will: its rows in the database are not this SSP's to remove. */
  readonly moved?: boolean | undefined
  /** The transaction that deletes the row in the database waits for the answer, with the row locked. */
  readonly deleted?: boolean | null | undefined
}

export class Assignments {
  /** The highest seen of each view that is here or on its way. */
  private readonly held = new Map<string, number>()
  private readonly gone = new Recent<string, number>(maxGone)
  private times = 0

  /** Registers a view, unless the call is of an assignment that is over. */
  register(
    views: Pick<Views["Type"], "register">,
    registration: ViewRegistration
  ): ReturnType<Views["Type"]["register"]> {
    const { assignment, id } = registration
    const key = viewKey(id)
    if (assignment === undefined || key === undefined) return views.register(registration)
    return Effect.suspend(() => {
      const still = this.claim(key, assignment)
      return still === undefined
        ? Effect.fail(new Overloaded({ message: `assignment ${assignment} of this view is over`, retryAfterSecs: 1 }))
        : views.register({ ...registration, still })
    })
  }

  /** Unregisters a view; done, too, where the view is held under a later assignment. */
  unregister(
    views: Pick<Views["Type"], "unregister">,
    { assignment, deleted, id, moved }: Unregistration
  ): ReturnType<Views["Type"]["unregister"]> {
    return Effect.suspend(() => {
      const key = viewKey(id)
      if (assignment !== undefined && key !== undefined && !this.takeBack(key, assignment)) return Effect.void
      if (key !== undefined) this.forget(key)
      return moved === true ? views.unregister(id, true, "moved") : views.unregister(id, deleted === true)
    })
  }

  /**
   * A register call: undefined when it is older than the known assignment; else whether it still holds, to be asked
   * when the view is put in place.
   */
  claim(key: string, assignment: number): (() => boolean) | undefined {
    if (assignment < (this.held.get(key) ?? 0) || assignment <= (this.gone.get(key) ?? -1)) return undefined
    this.held.set(key, assignment)
    const { times } = this
    return () => times === this.times
  }

  /** An unregister call: whether the view goes. */
  takeBack(key: string, assignment: number): boolean {
    const held = this.held.get(key)
    const goes = held !== undefined && held <= assignment
    if (goes) this.held.delete(key)
    this.gone.set(key, Math.max(this.gone.get(key) ?? 0, assignment))
    return goes
  }

  /** A view that the scheduler has not placed. */
  isDirect(key: string): boolean {
    return !this.held.has(key)
  }

  /** The view is no longer here: unregistered directly, or expired. */
  forget(key: string): void {
    this.held.delete(key)
  }

  /**
   * A new registration: whatever was placed is placed anew, and calls under way are of the one before. Answers whether
   * a view had been placed.
   */
  clear(): (key: string) => boolean {
    const before = new Set(this.held.keys())
    this.times++
    this.held.clear()
    this.gone.clear()
    return (key) => before.has(key)
  }
}
