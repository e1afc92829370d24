/**
 * Expiry of views by the steady clock (D73): their stored times are times of day, and setting the clock would change
 * them all at once.
 *
 * When a registration or a stored activity is first looked at, the steady clock gets its remaining time to live, at
 * most the whole of it; after a restart the time of day says how much remains. If the clock was set since the look
 * before, the activity may have been stored by either clock, and the one that is behind decides.
 */
import * as ViewTimes from "./viewTimes.ts"

export class Deadlines {
  private readonly at = new WeakMap<object, number>()
  /**
   * Time of the last look, and by how much the steady clock was ahead of the time of day then, and at the look before.
   */
  private lookedAt = Number.NaN
  private apart = Number.NaN
  private apartBefore = Number.NaN

  /** Notes both clocks, once per look for all views, even if there are none. */
  look(nowMs: number, steadyMs: number): void {
    if (steadyMs === this.lookedAt) return
    this.apartBefore = Number.isNaN(this.apart) ? steadyMs - nowMs : this.apart
    this.apart = steadyMs - nowMs
    this.lookedAt = steadyMs
  }

  /** `nowMs`: time of day; `steadyMs`: steady clock. A new `times` object is a new activity. */
  isOver(times: ViewTimes.ViewTimes, nowMs: number, steadyMs: number): boolean {
    this.look(nowMs, steadyMs)
    let at = this.at.get(times)
    if (at === undefined) {
      const dayMs = Math.min(nowMs, steadyMs - this.apartBefore)
      const left = ViewTimes.expiresAtMs(times) - Math.max(dayMs, times.lastActiveAtMs)
      at = steadyMs + Math.max(0, left)
      this.at.set(times, at)
    }
    return at <= steadyMs
  }
}
