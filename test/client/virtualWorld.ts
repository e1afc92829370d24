/**
 * Time, network and chance for the client, in the hands of a test: hours pass in milliseconds, always in the same order.
 */

import type { Rng } from "../../kit/data/random.ts"
import type { World } from "../../src/client/world.ts"

interface Timer {
  readonly at: number
  readonly run: () => void
  readonly isIdle: boolean
}

export class VirtualWorld implements World {
  readonly random: () => number
  readonly said: Array<string> = []
  private clock = 0
  private readonly timers = new Set<Timer>()
  private readonly wakers = new Set<() => void>()
  /** What answers requests. A test sets it. */
  answer: (address: string, init: RequestInit) => Promise<Response> = () => Promise.reject(new Error("no server"))

  constructor(random: Rng) {
    this.random = random.next
  }

  readonly fetch = (address: string, init: RequestInit): Promise<Response> => this.answer(address, init)
  readonly now = (): number => this.clock
  readonly say = (line: string): void => void this.said.push(line)
  readonly after = (ms: number, run: () => void, isIdle = false): (() => void) => {
    const timer = { at: this.clock + ms, run, isIdle }
    this.timers.add(timer)
    return () => void this.timers.delete(timer)
  }
  readonly onWake = (run: () => void): (() => void) => {
    this.wakers.add(run)
    return () => void this.wakers.delete(run)
  }

  get pending(): number {
    return this.timers.size + this.wakers.size
  }

  /** Timers that keep a program from ending. */
  get holding(): number {
    return [...this.timers].filter(({ isIdle }) => !isIdle).length
  }

  wake(): void {
    for (const run of [...this.wakers]) run()
  }

  /** Until nothing moves without time going on. */
  async settle(): Promise<void> {
    for (let n = 0; n < 4; n++) await new Promise<void>((done) => void setImmediate(done))
  }

  /** Lets time pass, each timer in its turn. */
  async pass(ms: number): Promise<void> {
    const end = this.clock + ms
    await this.settle()
    for (;;) {
      let next: Timer | undefined
      for (const timer of this.timers) if (timer.at <= end && (next === undefined || timer.at < next.at)) next = timer
      if (next === undefined) break
      this.timers.delete(next)
      this.clock = Math.max(this.clock, next.at)
      next.run()
      await this.settle()
    }
    this.clock = end
  }
}
