/**
 * SSPs that are away for a while and come back: stopped as they stand, or for good with a goodbye (D26, D30, D31).
 *
 * The default run counts and takes no time: bootstraps, views, and moves per second, which may only be fewer.
 * `SVC_CAMPAIGN=1` stops one of four SSPs for 60 s and also judges what the scheduler spends per event and how long
 * answers take, beside the time before.
 */

import { readdirSync, readFileSync } from "node:fs"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { campaign } from "../../kit/data/random.ts"
import { change, registration } from "../../kit/data/registration.ts"
import { type Door, sleep, until } from "../../kit/processes/Door.ts"
import { type Process, ProcessCluster } from "../../kit/processes/processCluster.ts"

const maxBuffer = 600
const movesPerSecond = 50

const bootstraps = (ssp: Process): number => ssp.logs.match(/bootstrapped at position/g)?.length ?? 0

const cpuMs = (door: Door): number => {
  const threads = readdirSync(`/proc/${door.pid}/task`)
  return (
    threads.reduce(
      (sum, thread) => sum + Number(readFileSync(`/proc/${door.pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]),
      0
    ) / 1e6
  )
}

interface Served {
  readonly delivered: ReadonlyArray<number>
  readonly cpuMsPerEvent: number
  readonly p99Ms: number
}

describe("SSPs that are away", () => {
  let cluster: ProcessCluster
  let sent = 0
  beforeAll(async () => {
    cluster = await ProcessCluster.start(4, {
      SVC_SCHEDULER_HEARTBEAT_TIMEOUT_MS: "120000",
      SVC_SCHEDULER_MAX_BUFFER_PER_SSP: String(campaign ? 1_000_000 : maxBuffer)
    })
  })
  afterAll(() => cluster?.close())

  const write = async (): Promise<readonly [delivered: number, ms: number]> => {
    const begun = performance.now()
    const answer = await cluster.scheduler.ask(
      { method: "POST", path: "/ingest", body: change("UPDATE", `item:${++sent % 500}`, { n: sent }), keepAlive: true },
      60_000
    )
    expect(answer?.status).toBe(200)
    return [(answer!.json as { readonly delivered: number }).delivered, performance.now() - begun]
  }
  /** Writers one after the other, so many beside each other. */
  const serve = async (events: number, writers = 4): Promise<Served> => {
    const before = cpuMs(cluster.scheduler.door!)
    const answers: Array<readonly [number, number]> = []
    await Promise.all(
      Array.from({ length: writers }, async () => {
        for (let i = 0; i < events / writers; i++) answers.push(await write())
      })
    )
    const times = answers.map(([, ms]) => ms).sort((a, b) => a - b)
    return {
      delivered: answers.map(([delivered]) => delivered),
      cpuMsPerEvent: (cpuMs(cluster.scheduler.door!) - before) / events,
      p99Ms: times[Math.floor(times.length * 0.99)] ?? 0
    }
  }
  /** A view of its own, so that it follows the table. */
  const shows = async (ssp: Process): Promise<void> => {
    const body = registration("stays", "SELECT * FROM item")
    const answer = await ssp.ask({ method: "POST", path: "/view/register", body }, 20_000)
    expect(answer?.status, answer?.text).toBe(200)
  }
  /** Every SSP shows what the replica has. */
  const equal = async (): Promise<void> => {
    const expected = await cluster.query("SELECT *, _svc_rv FROM item")
    for (const ssp of cluster.ssps) {
      await until(
        `${ssp.name} has everything`,
        async () => {
          const answer = await ssp.ask(
            { method: "POST", path: "/view/register", body: registration("check", "SELECT * FROM item") },
            20_000
          )
          const found = (answer?.json as { readonly result_data?: ReadonlyArray<unknown> } | undefined)?.result_data
          return JSON.stringify(found) === JSON.stringify(expected.map(({ id, _svc_rv }) => [id, _svc_rv]))
        },
        120_000
      )
      await ssp.ask({ method: "POST", path: "/view/unregister", body: { id: "check" } })
    }
  }
  const waiting = async (name: string): Promise<number | undefined> => {
    const progress = (await cluster.scheduler.ask({ path: "/progress" }))?.json as
      | { readonly ssps?: ReadonlyArray<{ readonly id: string; readonly waiting: number }> }
      | undefined
    return progress?.ssps?.find(({ id }) => id === name)?.waiting
  }
  const told = (error: unknown): Error =>
    new Error(
      `${error instanceof Error ? error.message : String(error)}\n${cluster.all.map(({ logs, name }) => `--- ${name}\n${logs.slice(-2500)}`).join("\n")}`
    )

  it.runIf(!campaign)(
    "D26 D30 one of four that is stopped holds up nobody: within its buffer it catches up, beyond it bootstraps once, and the others never",
    async () => {
      try {
        const [stopped, ...others] = cluster.ssps as readonly [Process, ...ReadonlyArray<Process>]
        await serve(100)
        for (const ssp of cluster.ssps) await shows(ssp)
        const before = cluster.ssps.map(bootstraps)
        stopped.door!.signal("SIGSTOP")
        const during = await serve(300)
        expect(Math.max(...during.delivered), "a stopped SSP has applied nothing").toBe(3)
        expect(await waiting(stopped.name)).toBeGreaterThanOrEqual(300)
        stopped.door!.signal("SIGCONT")
        await until("it has caught up", async () => (await waiting(stopped.name)) === 0)
        await equal()
        expect(cluster.ssps.map(bootstraps), "caught up without a bootstrap").toEqual(before)

        stopped.door!.signal("SIGSTOP")
        await serve(maxBuffer + 100, 8)
        stopped.door!.signal("SIGCONT")
        await until("it has bootstrapped", () => bootstraps(stopped) > before[0]!)
        await cluster.settled()
        await equal()
        await serve(100)
        await equal()
        expect([bootstraps(stopped), others.map(bootstraps)], "once, and nobody else").toEqual([
          before[0]! + 1,
          before.slice(1)
        ])
        expect(cluster.scheduler.logs.match(/must bootstrap again/g)).toHaveLength(1)
      } catch (error) {
        throw told(error)
      }
    }
  )

  it.runIf(campaign)(
    "D26 one of four that is stopped for 60 s costs the others nothing: CPU per event and p99 as before, and it catches up",
    async () => {
      const [stopped] = cluster.ssps as readonly [Process]
      await serve(3000)
      const before = await serve(3000)
      const times = cluster.ssps.map(bootstraps)
      stopped.door!.signal("SIGSTOP")
      const begun = performance.now()
      const parts: Array<Served> = []
      while (performance.now() - begun < 60_000) parts.push(await serve(1000))
      const p99Ms = parts.map((part) => part.p99Ms).sort((a, b) => a - b)[parts.length >> 1]!
      const cpu = parts.reduce((sum, part) => sum + part.cpuMsPerEvent, 0) / parts.length
      stopped.door!.signal("SIGCONT")
      await until("it has caught up", async () => (await waiting(stopped.name)) === 0, 300_000)
      await equal()
      console.log(
        `one of four stopped for 60 s, ${parts.length * 1000} events: CPU per event ${before.cpuMsPerEvent.toFixed(3)} ms before, ${cpu.toFixed(3)} ms during (${(cpu / before.cpuMsPerEvent).toFixed(2)}); p99 ${before.p99Ms.toFixed(1)} ms before, ${p99Ms.toFixed(1)} ms during (${(p99Ms / before.p99Ms).toFixed(2)}); bootstraps ${cluster.ssps.map((ssp, i) => bootstraps(ssp) - times[i]!).join(" ")}`
      )
      expect(cluster.ssps.map((ssp, i) => bootstraps(ssp) - times[i]!).filter((count) => count > 1)).toEqual([])
      expect(cpu / before.cpuMsPerEvent).toBeLessThan(1.1)
      expect(p99Ms / before.p99Ms).toBeLessThan(1.5)
    }
  )

  it.runIf(campaign)(
    "D31 those that return get a fair share back, at a limited rate, and no view is on two",
    async () => {
      try {
        const count = 120
        const [stays, ...leave] = cluster.ssps as readonly [Process, ...ReadonlyArray<Process>]
        for (const ssp of leave) expect(await ssp.stop()).toBe(0)
        for (let i = 0; i < count; i += 20) {
          await Promise.all(
            Array.from({ length: 20 }, async (_, n) =>
              expect(
                (
                  await cluster.scheduler.ask(
                    {
                      method: "POST",
                      path: "/view/register",
                      body: registration(`v${i + n}`, `SELECT * FROM item WHERE n > ${i + n}`)
                    },
                    60_000
                  )
                )?.status
              ).toBe(200)
            )
          )
        }
        const held = async (ssp: Process): Promise<ReadonlyArray<string>> => {
          const answer = await ssp.ask({ path: "/debug/deps" }, 10_000)
          return answer?.status === 200
            ? ((answer.json as { readonly dependency_map: { readonly item?: ReadonlyArray<string> } }).dependency_map
                .item ?? [])
            : []
        }
        expect(await held(stays)).toHaveLength(count)
        const samples: Array<{ readonly from: number; readonly to: number; readonly left: number }> = []
        await Promise.all(leave.map((ssp) => ssp.start()))
        await until(
          "views are spread",
          async () => {
            const from = performance.now()
            const left = (await held(stays)).length
            samples.push({ from, to: performance.now(), left })
            if (left === count) return false
            const all = await Promise.all(cluster.ssps.map(held))
            // With equal shares nothing moves any more; before, a view may be seen where it was and then where it went.
            return all.every((views) => views.length === count / 4)
          },
          400_000
        )
        const all = (await Promise.all(cluster.ssps.map(held))).flat()
        expect([all.length, new Set(all).size]).toEqual([count, count])
        for (const [i, a] of samples.entries()) {
          for (const b of samples.slice(i + 1))
            expect(a.left - b.left, "moves").toBeLessThanOrEqual(
              Math.ceil(((b.to - a.from) / 1000) * movesPerSecond) + movesPerSecond
            )
        }
        await sleep(1000)
        expect(await held(stays), "and nobody takes more").toHaveLength(count / 4)
      } catch (error) {
        throw told(error)
      }
    },
    600_000
  )
})
