/**
 * Jobs on a cluster of real processes that are killed while they run: each ends, none runs twice at once, none is
 * called more often than its retries and the deaths of its runners allow (D31, D35, D36, D38).
 *
 * The backend is the judge: it sees every call, who made it (each SSP has a path of its own) and which were under way
 * together. Small by default; `SVC_CAMPAIGN=1` runs 10,000 jobs under kills until the last has ended, `SVC_RUNS`
 * multiplies them.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { campaign, type Rng, rng, runs, seed, seeded } from "../../kit/data/random.ts"
import { TestBackend } from "../../kit/processes/backend.ts"
import { removeFolder, sleep, temporaryFolder, until } from "../../kit/processes/Door.ts"
import { type Process, ProcessCluster } from "../../kit/processes/processCluster.ts"

const file = "test/live/clusterJobs.long.test.ts"
const scale = campaign
  ? { jobs: runs(10_000), perBatch: 100, endMs: 1_800_000 }
  : { jobs: 60, perBatch: 10, endMs: 40_000 }

/** What a job's backend does to it, by its number: most do well, some need another try or two, some never do. */
const kinds = ["good", "good", "good", "slow", "shaky", "good", "hopeless", "refused"] as const
const kindOf = (key: string) => kinds[Number(key.slice("mail_job:".length)) % kinds.length]!
const maxRetries = (key: string): number => (kindOf(key) === "hopeless" ? 1 : 3)
const endOf = { good: "success", slow: "success", shaky: "success", hopeless: "failed", refused: "failed" } as const

interface Call {
  readonly ssp: string
  readonly at: number
}

interface Death {
  readonly ssp: string
  readonly from: number
  readonly to: number
}

/** Deaths of runners that a job went through: those of the caller between a call and the next one. */
const crashes = (calls: ReadonlyArray<Call>, deaths: ReadonlyArray<Death>): number =>
  calls.filter(({ at, ssp }, i) =>
    deaths.some((death) => death.ssp === ssp && death.to >= at && death.from <= (calls[i + 1]?.at ?? Infinity))
  ).length

const jobOf = (key: string) => ({
  table: "mail_job",
  op: "CREATE",
  id: key,
  record: {
    path: "/send",
    payload: { n: Number(key.slice("mail_job:".length)) },
    status: "pending",
    retries: 0,
    max_retries: maxRetries(key),
    retry_strategy: "linear",
    errors: []
  }
})

class Field {
  readonly calls = new Map<string, Array<Call>>()
  readonly deaths: Array<Death> = []
  readonly blows: Array<string> = []
  readonly cluster: ProcessCluster
  readonly backend: TestBackend

  constructor(cluster: ProcessCluster, backend: TestBackend) {
    this.cluster = cluster
    this.backend = backend
    const random = rng(seed)
    backend.reply = ({ key, path }, response, n) => {
      const calls = this.calls.get(key) ?? []
      this.calls.set(key, [...calls, { ssp: /^POST \/(ssp-\d)\/send$/.exec(path)?.[1] ?? path, at: performance.now() }])
      const kind = kindOf(key)
      const status = kind === "refused" ? 400 : kind === "hopeless" || (kind === "shaky" && n <= 2) ? 500 : 200
      setTimeout(
        () => response.writeHead(status).end("{}"),
        kind === "slow" ? 100 + random.below(300) : random.below(20)
      )
    }
  }

  async kill(ssp: Process, downMs: number): Promise<void> {
    const from = performance.now()
    await ssp.kill()
    // Calls that it had sent may still wait to be read here: they were made before the end, and are seen after it.
    await sleep(100)
    this.deaths.push({ ssp: ssp.name, from, to: performance.now() })
    this.blows.push(`kill ${ssp.name}`)
    await sleep(downMs)
    await ssp.start()
  }

  async restartScheduler(): Promise<void> {
    await this.cluster.scheduler.kill()
    this.blows.push("kill scheduler")
    await this.cluster.scheduler.start()
  }

  /** Repeated until it is taken, as a database's feed does. */
  async send(count: number): Promise<void> {
    for (let from = 0; from < count; from += scale.perBatch) {
      const batch = Array.from({ length: Math.min(scale.perBatch, count - from) }, (_, i) => {
        return jobOf(`mail_job:${from + i}`)
      })
      while (
        (await this.cluster.scheduler.ask({ method: "POST", path: "/ingest", body: batch }, 10_000))?.status !== 200
      )
        await sleep(50)
    }
  }

  /** Until so many more calls have come, or none come any more: a blow on what is not up again yet tells nothing. */
  async goesOn(calls: number): Promise<void> {
    const goal = this.backend.received.length + calls
    for (const end = performance.now() + 60_000; this.backend.received.length < goal && performance.now() < end; )
      await sleep(50)
  }

  async tracked(): Promise<number | undefined> {
    const answer = await this.cluster.scheduler.ask({ path: "/metrics" })
    return (answer?.json as { readonly scheduler?: { readonly running_jobs: number } } | undefined)?.scheduler
      ?.running_jobs
  }

  /**
   * Counts only when nothing is tracked: the whole table is much to ask for, again and again, of a scheduler that is at
   * work.
   */
  async ended(count: number): Promise<boolean> {
    if ((await this.tracked()) !== 0) return false
    const rows = await this.cluster.query("SELECT VALUE status FROM mail_job").catch(() => [])
    return rows.filter((status) => String(status) === "success" || String(status) === "failed").length === count
  }

  async check(count: number): Promise<void> {
    const rows = (await this.cluster.query("SELECT id, status, errors FROM mail_job")) as ReadonlyArray<{
      readonly id: string
      readonly status: string
      readonly errors: ReadonlyArray<object>
    }>
    expect(rows.length).toBe(count)
    expect(rows.filter(({ id, status }) => status !== endOf[kindOf(id)])).toEqual([])
    expect(this.backend.overlaps, "called while a call was under way").toEqual([])
    const tooOften = rows.flatMap(({ id }) => {
      const calls = this.calls.get(id) ?? []
      return calls.length < 1 || calls.length > 1 + maxRetries(id) + crashes(calls, this.deaths) ? [{ id, calls }] : []
    })
    expect(
      tooOften.length,
      `called too often: ${JSON.stringify(tooOften)}; deaths: ${JSON.stringify(this.deaths)}`
    ).toBe(0)
    expect(rows.filter(({ errors, id }) => errors.length > 1 + maxRetries(id))).toEqual([])
  }
}

const startField = async (folder: string, more: { readonly [name: string]: string } = {}): Promise<Field> => {
  const backend = await TestBackend.start()
  const path = join(folder, "svc.yml")
  writeFileSync(
    path,
    "job_tables:\n  mail_job:\n    name: mail\n    base_url: ${JOB_BACKEND}\n    auth_token: ${JOB_TOKEN}\n    timeout_ms: 5000\n    concurrency: 8\n"
  )
  const env = (at: string) => ({ SVC_CONFIG_PATH: path, JOB_BACKEND: `${backend.url}/${at}`, JOB_TOKEN: backend.token })
  const cluster = await ProcessCluster.start(
    3,
    { ...env("scheduler"), SVC_SCHEDULER_HEARTBEAT_TIMEOUT_MS: campaign ? "6000" : "3000" },
    (id) => ({ ...env(id), SVC_JOB_RETRY_BASE_MS: "50", ...more })
  )
  return new Field(cluster, backend)
}

const strike = (field: Field, random: Rng): Promise<void> =>
  random.chance(0.25) ? field.restartScheduler() : field.kill(random.pick(field.cluster.ssps), random.below(3000))

describe("jobs on a cluster of processes", () => {
  seeded(
    `D31 D35 D36 ${scale.jobs} jobs on 3 SSPs under SIGKILLs, of the scheduler too: each ends, none runs twice at once, none is called more often than retries and crashes allow`,
    file,
    async (random) => {
      const folder = temporaryFolder()
      const field = await startField(folder)
      const { cluster } = field
      const begun = performance.now()
      try {
        const sending = field.send(scale.jobs)
        if (campaign) {
          for (
            const end = performance.now() + scale.endMs;
            !(await field.ended(scale.jobs)) && performance.now() < end;
          ) {
            await strike(field, random)
            await field.goesOn(50 + random.below(300))
            if (field.blows.length % 10 === 0)
              process.stdout.write(
                `${((performance.now() - begun) / 1000).toFixed(0)} s: ${field.calls.size} jobs called, ${field.backend.received.length} calls, ${(await field.tracked()) ?? "?"} tracked, ${field.blows.length} blows\n`
              )
          }
        } else {
          await until("the first calls", () => field.calls.size > 5)
          await Promise.all([field.kill(random.pick(cluster.ssps), 0), field.restartScheduler()])
        }
        await sending
        await until("every job has ended", () => field.ended(scale.jobs), scale.endMs)
        await field.check(scale.jobs)
        if (campaign)
          process.stdout.write(
            `${scale.jobs} jobs in ${((performance.now() - begun) / 1000).toFixed(0)} s, ${field.backend.received.length} calls, ${field.blows.length} blows (${field.blows.filter((blow) => blow.endsWith("scheduler")).length} on the scheduler)\n`
          )
      } catch (error) {
        throw new Error(
          `${error instanceof Error ? error.message : String(error)}\nblows: ${field.blows.join(", ")}\n${cluster.all.map(({ logs, name }) => `--- ${name}\n${logs.slice(-4000)}`).join("\n")}`
        )
      } finally {
        await cluster.close()
        await field.backend.close()
        removeFolder(folder)
      }
    },
    2 * scale.endMs + 120_000
  )
  seeded(
    "D80 200 jobs on SSPs of which two are told to stop one after the other: each is called once, and none is left",
    file,
    async (random) => {
      const folder = temporaryFolder()
      const { backend, cluster } = await startField(folder)
      const ids = Array.from({ length: 200 }, (_, n) => `mail_job:${n}`)
      backend.reply = (_, response) => void setTimeout(() => response.end("{}"), 20 + random.below(500))
      try {
        const record = { path: "/send", payload: {}, status: "pending", max_retries: 0 }
        const body = ids.map((id) => ({ table: "mail_job", op: "CREATE", id, record }))
        expect((await cluster.scheduler.ask({ method: "POST", path: "/ingest", body }, 20_000))?.status).toBe(200)
        for (const ssp of cluster.ssps.slice(0, 2)) {
          const goal = backend.received.length + 10 + random.below(30)
          await until("jobs are called", () => backend.received.length >= goal)
          expect(await ssp.stop()).toBe(0)
          expect(cluster.scheduler.logs).toContain(`${ssp.name} is removed: it deregistered`)
        }
        const isOver = async () => {
          const found = await cluster.query("SELECT VALUE status FROM mail_job")
          return found.filter((status) => String(status) === "success").length === ids.length
        }
        await until("none is left", isOver, scale.endMs)
        expect(backend.overlaps).toEqual([])
        expect(ids.filter((id) => backend.calls(id).length !== 1)).toEqual([])
      } finally {
        await cluster.close()
        await backend.close()
        removeFolder(folder)
      }
    },
    2 * scale.endMs + 120_000
  )

  it.each(["pull", "push"])("D35 a job that is posted to two SSPs at once is called once (%s)", async (feed) => {
    const folder = temporaryFolder()
    const field = await startField(folder, { SVC_CLUSTER_FEED: feed })
    try {
      const keys = Array.from({ length: 20 }, (_, n) => `mail_job:${8 * n}`)
      const post = (ssp: Process, key: string) => ssp.ask({ method: "POST", path: "/ingest", body: jobOf(key) }, 10_000)
      const answered = await Promise.all(keys.flatMap((key) => field.cluster.ssps.map((ssp) => post(ssp, key))))
      expect(answered.map((answer) => answer?.status)).toEqual(answered.map(() => 200))
      await until("all jobs have ended", () => field.ended(keys.length), scale.endMs)
      expect(keys.map((key) => field.calls.get(key)?.length)).toEqual(keys.map(() => 1))
    } finally {
      await field.cluster.close()
      await field.backend.close()
      removeFolder(folder)
    }
  })
})
