/**
 * Silence is judged after arrived heartbeats are read: a scheduler that is too busy to read its sockets removes no SSP
 * whose heartbeats lie there (D29, D31).
 *
 * A turn of the event loop of the test's own reads what has arrived, so that timers are in time and sockets late, as in
 * a process that is busy.
 */
import { Effect, Layer } from "effect"
import { afterEach, describe, expect, it } from "vitest"
import { rng } from "../../kit/data/random.ts"
import { VirtualTime } from "../../kit/data/virtualTime.ts"
import * as State from "../../src/core/cluster/state.ts"
import { Turn } from "../../src/ports/Turn.ts"
import { Upstream } from "../../src/ports/Upstream.ts"
import { Network } from "../sim/network.ts"
import { schedulerNode, type World } from "../sim/nodes.ts"

const from = { ssp: "a", incarnation: "one" }

/**
 * A scheduler with one SSP that is ready, all by commands; heartbeats lie in the socket until a turn, the third from
 * when they arrived, reads them.
 */
class Busy {
  readonly time = new VirtualTime()
  private unread: Array<{ turns: number }> = []
  private readonly world: World = { time: this.time, network: new Network(this.time, rng(1)), logs: [], crashes: [] }
  private readonly scheduler = schedulerNode(
    this.world,
    {},
    Upstream.layerNone,
    Layer.succeed(Turn, {
      next: (run) =>
        void Effect.runFork(
          Effect.zipRight(
            Effect.yieldNow(),
            Effect.sync(() => {
              this.read()
              run()
            })
          )
        )
    })
  )

  get isKnown(): boolean {
    return State.member(this.scheduler.pool().state(), "a") !== undefined
  }

  async start(): Promise<void> {
    await this.scheduler.node.start()
    const pool = this.scheduler.pool()
    const asked = Effect.runPromise(
      pool.ask((ref) => ({
        tag: "Register",
        ref,
        registration: { ...from, url: "http://127.0.0.1:8661", batch: true, jobTables: undefined }
      }))
    )
    await this.time.advance(1)
    const reply = await asked
    if (reply.kind !== "registered") throw new Error(reply.kind)
    Effect.runSync(pool.tell({ tag: "Polled", ssp: "a", registration: reply.registration, health: "ready" }))
    await this.time.advance(1)
    expect(State.member(pool.state(), "a")?.state).toBe("Ready")
  }

  heartbeatArrives(): void {
    this.unread.push({ turns: 3 })
  }

  private read(): void {
    for (const each of this.unread) each.turns--
    for (const _ of this.unread.filter(({ turns }) => turns === 0))
      Effect.runFork(
        this.scheduler.pool().ask((ref) => ({
          tag: "Heartbeat",
          ref,
          from,
          registration: undefined,
          views: 0,
          cpu: undefined,
          memory: undefined
        }))
      )
    this.unread = this.unread.filter(({ turns }) => turns > 0)
  }

  stop(): Promise<void> {
    return this.scheduler.node.crash()
  }
}

let busy: Busy | undefined
afterEach(() => busy?.stop())

describe("D29 silence", () => {
  it("D29 heartbeats that have arrived and are read only when timers are through count: no SSP is removed by delay; an SSP that sends none is", async () => {
    const own = (busy = new Busy())
    await own.start()
    for (let ms = 0; ms < 10_000; ms += 500) {
      own.heartbeatArrives()
      await own.time.advance(500)
      expect(own.isKnown, `after ${ms} ms`).toBe(true)
    }
    await own.time.advance(2000)
    expect(own.isKnown).toBe(false)
  })
})
