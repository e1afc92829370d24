/**
 * The processes under soak: one SSP on its embedded store or in memory, or a scheduler with two SSPs.
 *
 * Growth is judged over one life of a process, so who is judged is left alone for most of the time: the single SSP is
 * killed once near the start and once more before the last compare; of the cluster the second SSP goes again and again,
 * the first never.
 */
import { join } from "node:path"
import { Door, freePort, until } from "../../kit/processes/Door.ts"
import { Process, ProcessCluster, usualTimes } from "../../kit/processes/processCluster.ts"
import { nodeOptions } from "./probe.ts"

export const forms = ["ssp", "memory", "cluster"] as const
export type Form = (typeof forms)[number]

export interface Nodes {
  /** Where changes, registrations and readers go. */
  readonly url: string
  readonly all: ReadonlyArray<Process>
  /** Times of restarts while it runs, in parts of the whole, and who. */
  readonly restarts: (
    minutes: number
  ) => ReadonlyArray<{ readonly at: number; readonly who: Process; readonly how: "kill" | "stop" }>
  /** The process that is killed before the last compare. */
  readonly last: Process | undefined
  /** Waits until all serve. */
  readonly settled: () => Promise<void>
  readonly close: () => Promise<void>
}

/** Started anew where it was: the port and the data stay. */
export const restart = async (who: Process, how: "kill" | "stop"): Promise<void> => {
  await (how === "kill" ? who.kill() : who.stop())
  await who.start()
}

const common = (config: string) => ({ NODE_OPTIONS: nodeOptions, SVC_LOG_LEVEL: "warn", SVC_CONFIG_PATH: config })
/**
 * Expired views go soon, failed calls come again soon: an hour of a soak is to hold many of them. Few deleted records
 * are remembered: half of them go when there are too many, and a saw of 10 MiB would hide what is looked for.
 */
const sspEnv = { TTL_CLEANUP_INTERVAL_SECS: "5", SVC_JOB_RETRY_BASE_MS: "500", SVC_MAX_TOMBSTONES: "5000" }

const single = async (folder: string, config: string, memory: boolean): Promise<Nodes> => {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const env = {
    ...common(config),
    ...sspEnv,
    LISTEN_ADDR: `127.0.0.1:${port}`,
    STORE_ADDR: memory ? "memory://" : undefined
  }
  const ssp = new Process("ssp", url, () => Door.spawn({ dataDir: join(folder, "ssp"), env }))
  const settled = async (): Promise<void> =>
    void (await until(
      "the SSP serves",
      async () => {
        if (ssp.door?.exit !== undefined) throw new Error(`the SSP ended:\n${ssp.logs.slice(-3000)}`)
        return (await ssp.ask({ path: "/health" }))?.status === 200
      },
      120_000
    ))
  await ssp.start()
  await settled().catch(async (error: unknown) => {
    await ssp.kill()
    throw error
  })
  return {
    url,
    all: [ssp],
    settled,
    restarts: () => (memory ? [] : [{ at: 0.1, who: ssp, how: "kill" }]),
    last: memory ? undefined : ssp,
    close: () => ssp.kill()
  }
}

/** Minutes between two restarts of the second SSP, and how often in a run that is shorter. */
const everyMinutes = 5
const fewest = 2

const several = async (config: string): Promise<Nodes> => {
  // The time-outs are those of production: the kit's own are for tests that wait for them. An SSP that is slow on a
  // busy machine catches up; one that must bootstrap again and again would be judged by its bootstraps.
  const patience = { ...usualTimes.scheduler, SVC_SCHEDULER_MAX_BUFFER_PER_SSP: "50000" }
  const cluster = await ProcessCluster.start(2, { ...common(config), ...patience }, () => ({
    ...common(config),
    ...sspEnv,
    ...usualTimes.ssp
  }))
  const [, second] = cluster.ssps
  const restarts = (minutes: number) => {
    const count = Math.max(fewest, Math.floor(minutes / everyMinutes))
    return Array.from({ length: count }, (_, i) => ({
      at: (i + 0.5) / count,
      who: second!,
      how: i % 2 === 0 ? ("kill" as const) : ("stop" as const)
    }))
  }
  return {
    url: cluster.scheduler.url,
    all: cluster.all,
    settled: () => cluster.settled(),
    restarts,
    last: undefined,
    close: () => cluster.close()
  }
}

export const start = (form: Form, folder: string, config: string): Promise<Nodes> =>
  form === "cluster" ? several(config) : single(folder, config, form === "memory")
