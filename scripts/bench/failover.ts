/**
 * The bench of a cluster that loses a member: what registering a view through the scheduler costs, and how long the
 * views of an SSP that is killed are served by nobody, all on the settings a deployment starts with.
 *
 * Registering is judged by CPU time of the scheduler, which other work on the machine hardly changes; failing over by
 * the clock, because what is waited for (a probe, its confirmation, the moves) is the point. A view counts as served
 * when the other SSP answers for it.
 */

import { registration } from "../../kit/data/registration.ts"
import { sleep, until } from "../../kit/processes/Door.ts"
import { type Process, ProcessCluster, usualTimes } from "../../kit/processes/processCluster.ts"
import { cpuMicros, type Judged, load, requestBytes } from "./load.ts"

const quiet = { SVC_LOG_LEVEL: "warn" }

const started = (ssps: number): Promise<ProcessCluster> =>
  ProcessCluster.start(ssps, { ...usualTimes.scheduler, ...quiet }, () => ({ ...usualTimes.ssp, ...quiet }))

const view = (n: number): object => registration(`view-${n}`, `SELECT * FROM post WHERE author = user:${n}`)

const portOf = ({ url }: Process): number => Number(new URL(url).port)

/** So many views at once as a few busy clients would ask for. */
const connections = 64

const told = (what: string, ratio: number, goal: number, text: string): Judged => {
  console.log(`| ${what} | ${text} | at most ${goal} | ${ratio <= goal ? "met" : "missed"} |`)
  return { ratio, goal }
}

const placedOn = async (ssp: Process): Promise<number> => {
  const answer = await ssp.ask({ path: "/info" }, 5000)
  return (answer?.json as ReadonlyArray<{ readonly views: number }> | undefined)?.[0]?.views ?? 0
}

/** Views a second, and CPU of the scheduler beside an SSP alone. */
const registering = async (): Promise<ReadonlyArray<Judged>> => {
  const count = 5_000
  const cluster = await started(2)
  try {
    const { scheduler, ssps } = cluster
    await load(
      portOf(scheduler),
      scheduler.door!.pid,
      500,
      (n) => requestBytes("/view/register", view(1e6 + n)),
      connections
    )
    const before = ssps.map((ssp) => cpuMicros(ssp.door!.pid))
    const start = performance.now()
    const cpu = await load(
      portOf(scheduler),
      scheduler.door!.pid,
      count,
      (n) => requestBytes("/view/register", view(n)),
      connections
    )
    const ms = performance.now() - start
    const onSsps = ssps.reduce((sum, ssp, i) => sum + cpuMicros(ssp.door!.pid) - before[i]!, 0) / count
    const text = `${((count / ms) * 1000).toFixed(0)} views/s by the clock, ${cpu.toFixed(0)} us CPU of the scheduler and ${onSsps.toFixed(0)} us of the SSPs each`
    return [told("milliseconds of scheduler CPU to register a view", cpu / 1000, 0.667, text)]
  } finally {
    await cluster.close()
  }
}

/** Seconds from `kill -9` of an SSP to its removal, and to all its views on the other. */
const failingOver = (views: number, goal: number) => async (): Promise<ReadonlyArray<Judged>> => {
  const cluster = await started(2)
  try {
    const {
      scheduler,
      ssps: [victim, heir]
    } = { scheduler: cluster.scheduler, ssps: cluster.ssps as readonly [Process, Process] }
    await load(
      portOf(scheduler),
      scheduler.door!.pid,
      2 * views,
      (n) => requestBytes("/view/register", view(n)),
      connections
    )
    const held = await placedOn(heir)
    await sleep(500)
    const start = performance.now()
    await victim.kill()
    await until(
      "the SSP is removed",
      async () =>
        (await cluster.ready()).length === 1 &&
        !((await scheduler.ask({ path: "/info" }))?.text ?? "").includes(victim.name),
      120_000
    )
    const removed = (performance.now() - start) / 1000
    await until("the other SSP has all views", async () => (await placedOn(heir)) === 2 * views, 120_000)
    const served = (performance.now() - start) / 1000
    return [
      told(
        `seconds until ${2 * views - held} views of a killed SSP are served by the other`,
        served,
        goal,
        `${served.toFixed(1)} s, of which ${removed.toFixed(1)} s to its removal`
      )
    ]
  } finally {
    await cluster.close()
  }
}

export const failover = {
  "failover-register": registering,
  "failover-60": failingOver(60, 3),
  "failover-2500": failingOver(2_500, 6)
}
