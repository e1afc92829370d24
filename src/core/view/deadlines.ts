/**
 * When views end by time that goes by (D73): their times are times of day, which a clock that is set changes for all of
 * them at once.
 *
 * A registration, or an activity that is written down, is given what is left of its time to live when it is first
 * looked at, and never more than all of it: after a restart the time of day says how much that is.
 */
import * as ViewTimes from "./viewTimes.ts"

export class Deadlines {
  private readonly at = new WeakMap<object, number>()

  /** `nowMs`: time of day; `steadyMs`: time that goes by. A new object is a new activity. */
  isOver(times: ViewTimes.ViewTimes, nowMs: number, steadyMs: number): boolean {
    let at = this.at.get(times)
    if (at === undefined) {
      const left = ViewTimes.expiresAtMs(times) - Math.max(nowMs, times.lastActiveAtMs)
      at = steadyMs + Math.max(0, left)
      this.at.set(times, at)
    }
    return at <= steadyMs
  }
}
