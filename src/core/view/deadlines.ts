/**
 * When views end by time that goes by (D73): their times are times of day, which a clock that is set changes for all of
 * them at once.
 *
 * A registration, or an activity that is written down, is given what is left of its time to live when it is first
 * looked at, and never more than all of it: after a restart the time of day says how much that is. Where the clock was
 * set since the look before, it may have been written down by either clock, and the one that is behind decides.
 */
import * as ViewTimes from "./viewTimes.ts"

export class Deadlines {
  private readonly at = new WeakMap<object, number>()
  /** When views were looked at last, and how far time that goes by was ahead of the time of day then, and before. */
  private lookedAt = Number.NaN
  private apart = Number.NaN
  private apartBefore = Number.NaN

  /** Notes how the clock stands, once for all views of a look; also where there are none yet. */
  look(nowMs: number, steadyMs: number): void {
    if (steadyMs === this.lookedAt) return
    this.apartBefore = Number.isNaN(this.apart) ? steadyMs - nowMs : this.apart
    this.apart = steadyMs - nowMs
    this.lookedAt = steadyMs
  }

  /** `nowMs`: time of day; `steadyMs`: time that goes by. A new object is a new activity. */
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
