/**
 * The bench of a service that nothing is asked of: what a scheduler and an SSP of it spend, beside a bare Node process
 * that a timer wakes a hundred times a second.
 *
 * A wake costs from 60 µs to 150, by the machine, and whatever looks at the clock by itself pays it for as long as the
 * service runs.
 */
import { spawn } from "node:child_process"
import { sleep } from "../../test/kit/Door.ts"
import { ProcessCluster, usualTimes } from "../../test/kit/processCluster.ts"
import { registration } from "../../test/kit/registration.ts"
import { cpuMicros, type Judged } from "./load.ts"

/** Behind a start V8 optimizes and collects for a while. */
const settleMs = 60_000
const measuredMs = 20_000
const goal = 1.5

export const idle = async (): Promise<ReadonlyArray<Judged>> => {
  const bare = spawn(process.execPath, ["--eval", "setInterval(() => {}, 10)"], { stdio: "inherit" })
  const cluster = await ProcessCluster.start(1, usualTimes.scheduler, () => usualTimes.ssp)
  try {
    const [ssp] = cluster.ssps
    await ssp!.ask({ method: "POST", path: "/view/register", body: registration("idle", "SELECT * FROM post") }, 20_000)
    await sleep(settleMs)
    const processes = [
      { name: "SSP with a view", pid: ssp!.door!.pid },
      { name: "scheduler with an SSP", pid: cluster.scheduler.door!.pid },
      { name: "bare", pid: bare.pid! }
    ].map((each) => ({ ...each, before: cpuMicros(each.pid) }))
    await sleep(measuredMs)
    const [own, scheduler, least] = processes.map(({ before, name, pid }) => ({
      name,
      perSecond: (cpuMicros(pid) - before) / measuredMs
    }))
    return [own!, scheduler!].map(({ name, perSecond }) => {
      const ratio = perSecond / least!.perSecond
      console.log(
        `| idle ${name} / bare node with a timer of 10 ms | ${ratio.toFixed(2)}, ${perSecond.toFixed(1)} and ${least!.perSecond.toFixed(1)} ms of CPU a second | at most ${goal} | ${ratio <= goal ? "met" : "missed"} |`
      )
      return { ratio, goal }
    })
  } finally {
    bare.kill()
    await cluster.close()
  }
}
