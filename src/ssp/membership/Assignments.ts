/**
 * Views that the scheduler has placed here, with their assignment numbers (D21, D31).
 *
 * Numbers grow with every move of a view, and calls may arrive late or twice: a late register call must not bring back
 * a view that another SSP has by now, and a late unregister call must not remove a view placed anew. Views registered
 * directly are not listed here, and stay with this SSP (D16). Between routes and views, so that neither needs to know
 * this.
 */
import { Effect } from "effect"
import { Recent } from "../../core/recent.ts"
import { viewKey } from "../../core/view/viewId.ts"
import type { Views } from "../views/Views.ts"
import { Overloaded, type ViewRegistration } from "../viewTypes.ts"

/** Most ended assignments that are remembered: no call arrives later than so many others. */
const maxGone = 100_000

interface Unregistration {
  readonly id: string
  readonly assignment?: number | undefined
  /** Whether another SSP has the view or will have it: its rows in the database stay. */
  readonly moved?: boolean | undefined
  /** Whether the transaction that deletes the database row waits for the answer and holds the row's lock. */
  readonly deleted?: boolean | null | undefined
}

export class Assignments {
  /** Highest number of each view that is here or being registered. */
  private readonly held = new Map<string, number>()
  private readonly gone = new Recent<string, number>(maxGone)
  private times = 0

  /** Registers a view, unless the assignment has ended. */
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

  /** Unregisters a view; succeeds without effect if the view is held under a later assignment. */
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
   * For a register call: undefined if a later assignment is known; else a function that tells whether the call still
   * holds when the view is installed.
   */
  claim(key: string, assignment: number): (() => boolean) | undefined {
    if (assignment < (this.held.get(key) ?? 0) || assignment <= (this.gone.get(key) ?? -1)) return undefined
    this.held.set(key, assignment)
    const { times } = this
    return () => times === this.times
  }

  /** For an unregister call: whether the view must be removed. */
  takeBack(key: string, assignment: number): boolean {
    const held = this.held.get(key)
    const goes = held !== undefined && held <= assignment
    if (goes) this.held.delete(key)
    this.gone.set(key, Math.max(this.gone.get(key) ?? 0, assignment))
    return goes
  }

  /** Whether the view was registered here directly. */
  isDirect(key: string): boolean {
    return !this.held.has(key)
  }

  /** Called when the view was unregistered directly, or has expired. */
  forget(key: string): void {
    this.held.delete(key)
  }

  /**
   * Called at a new registration of this SSP: all assignments end, calls under way too. Answers whether a view had been
   * placed.
   */
  clear(): (key: string) => boolean {
    const before = new Set(this.held.keys())
    this.times++
    this.held.clear()
    this.gone.clear()
    return (key) => before.has(key)
  }
}
