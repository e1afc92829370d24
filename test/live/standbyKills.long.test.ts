/**
 * The leader of a log, in PostgreSQL and on three NATS servers, is killed again and again under load: what was
 * acknowledged is there, once, views and records are right everywhere, and no SSP loads anything again (D60, D62).
 *
 * One kill and one stop by default; `SVC_CAMPAIGN=1 SVC_RUNS=5` kills 200 times, one every 5 s, with the lease of a
 * deployment and 60 views, and prints how long writes were away.
 */
import { Effect, Either, ManagedRuntime } from "effect"
import { afterAll, beforeAll, describe, expect } from "vitest"
import * as Checks from "../../kit/checks/clusterChecks.ts"
import { campaign, runs, seeded } from "../../kit/data/random.ts"
import { sleep, until } from "../../kit/processes/Door.ts"
import * as Nats from "../../kit/processes/nats.ts"
import * as Postgres from "../../kit/processes/postgres.ts"
import { Load, type Process } from "../../kit/processes/processCluster.ts"
import { StandbyCluster } from "../../kit/processes/standbyCluster.ts"
import { SharedLog } from "../../src/ports/SharedLog.ts"

const file = "test/live/standbyKills.long.test.ts"
/** Of `kills`, one more in every `perStop` is a SIGTERM. */
const scale = campaign
  ? { keys: 2000, views: 60, perSecond: 50, kills: runs(40), perStop: 10, everyMs: 5000, leaseMs: 3000 }
  : { keys: 300, views: 8, perSecond: 40, kills: 1, perStop: 1, everyMs: 0, leaseMs: 2000 }

interface Engine {
  readonly name: string
  readonly isThere: boolean
  readonly missing: string
  readonly start: () => Promise<{ readonly url: string; readonly close: () => Promise<void> }>
  readonly sharedOf: typeof Postgres.sharedOf
}

const engines: ReadonlyArray<Engine> = [
  {
    name: "PostgreSQL",
    isThere: Postgres.isReachable,
    missing: "no PostgreSQL at 127.0.0.1:5432; SVC_TEST_POSTGRES names one",
    start: async () => ({ url: Postgres.freshLog(), close: async () => {} }),
    sharedOf: Postgres.sharedOf
  },
  {
    name: "three NATS servers",
    isThere: Nats.hasServer,
    missing: "no nats-server in the path",
    start: async () => {
      const servers = await Nats.Servers.start(3)
      return { url: Nats.freshLog(servers.url), close: () => servers.close() }
    },
    sharedOf: (url) => Nats.sharedOf(url, undefined, 3)
  }
]

/** How long after each moment it took until a write was acknowledged that was begun after it, in order of length. */
const awayMs = ({ times }: Load, moments: ReadonlyArray<number>): ReadonlyArray<number> =>
  moments
    .map((at) => Math.min(...times.filter(([begun]) => begun >= at).map(([, done]) => done)) - at)
    .sort((a, b) => a - b)

const told = (sorted: ReadonlyArray<number>): string =>
  `p50 ${sorted[sorted.length >> 1]?.toFixed(0)} ms, p90 ${sorted[Math.floor(sorted.length * 0.9)]?.toFixed(0)} ms, max ${sorted.at(-1)?.toFixed(0)} ms`

/** Reads the log beside the schedulers, while it is written and before it is cut: how often each write is in it. */
class Reader {
  private readonly runtime: ManagedRuntime.ManagedRuntime<SharedLog, unknown>
  private readonly times = new Map<number, number>()
  private at = 0

  constructor(shared: ReturnType<Engine["sharedOf"]>) {
    this.runtime = ManagedRuntime.make(shared)
  }

  /** Everything that is in it by now. */
  async read(): Promise<void> {
    const log = await this.runtime.runPromise(SharedLog)
    const asked = <A>(ask: Effect.Effect<A, { readonly message: string }>): Promise<A> =>
      until("the log is read", async () => Either.getOrUndefined(await Effect.runPromise(Effect.either(ask))))
    for (const { lastSeq } = await asked(log.row); this.at < lastSeq; )
      for (const record of await asked(log.page(this.at, lastSeq))) {
        expect(record.seq).toBe(this.at + 1)
        this.at = record.seq
        const { n } = (JSON.parse(record.json) as { readonly record?: { readonly n?: number } }).record ?? {}
        if (n !== undefined) this.times.set(n, (this.times.get(n) ?? 0) + 1)
      }
  }

  /** Of the writes 1 to `last`, each acknowledged: those that are not there, or again though they were sent once. */
  wrong(last: number, repeated: ReadonlySet<number>): ReadonlyArray<{ readonly n: number; readonly times: number }> {
    return Array.from({ length: last }, (_, i) => ({ n: i + 1, times: this.times.get(i + 1) ?? 0 })).filter(
      ({ n, times }) => times === 0 || (times > 1 && !repeated.has(n))
    )
  }

  close(): Promise<void> {
    return this.runtime.dispose()
  }
}

/** How often an SSP has loaded records. */
const loads = ({ logs }: Process): number => logs.split(/bootstrapped at position|joins at position/).length - 1

for (const { isThere, missing, name, sharedOf, start } of engines)
  describe.skipIf(!isThere)(`a leader that dies, over ${name}${isThere ? "" : ` (skipped: ${missing})`}`, () => {
    let engine: Awaited<ReturnType<Engine["start"]>>
    let cluster: StandbyCluster
    let reader: Reader

    beforeAll(async () => {
      engine = await start()
      const env = { SVC_LEASE_MS: String(scale.leaseMs) }
      cluster = await StandbyCluster.start(2, 2, env, { url: engine.url, isSupervised: true })
      await cluster.settled()
      reader = new Reader(sharedOf(engine.url))
    }, 180_000)
    afterAll(async () => {
      await reader?.close()
      await cluster?.close()
      await engine?.close()
    })

    seeded(
      "D60 kill -9 of the leader under load: nothing acknowledged is lost or there twice, no SSP loads again",
      file,
      async (random) => {
        await Checks.registerViews(cluster, scale.views)
        const load = new Load(cluster.one, random, scale.keys)
        const loading = load.run(scale.perSecond)
        const moments = { kill: [] as Array<number>, stop: [] as Array<number> }
        let loaded: ReadonlyArray<number> = []
        for (let i = 0; i < scale.kills + Math.floor(scale.kills / scale.perStop); i++) {
          const begun = performance.now()
          const before = load.acknowledged
          await until("writes are taken", () => load.acknowledged > before + 20, 60_000)
          if (i === 0) loaded = cluster.ssps.map(loads)
          await sleep(random.below(300))
          const leader = await cluster.leader()
          const how = i % (scale.perStop + 1) === scale.perStop ? "stop" : "kill"
          moments[how].push(performance.now())
          await leader[how]()
          await leader.start()
          await until("one stands by", () => cluster.isWhole(), 60_000).catch((error: unknown) => {
            throw new Error(`${String(error)}\n${cluster.logs}`)
          })
          await reader.read()
          await sleep(Math.max(0, scale.everyMs - (performance.now() - begun)))
        }
        const before = load.acknowledged
        await until("writes are taken", () => load.acknowledged > before + 20)
        load.end()
        await loading
        await cluster.settled()
        if (campaign)
          console.log(
            `${name}: ${load.acknowledged} writes acknowledged, ${cluster.superseded} more ends of a term; writes were back after ${moments.kill.length} kills ${told(awayMs(load, moments.kill))}; after ${moments.stop.length} SIGTERM ${told(awayMs(load, moments.stop))}`
          )
        await reader.read()
        expect(reader.wrong(load.last, load.repeated)).toEqual([])
        await Checks.checkRecords(cluster, load.known)
        await Checks.checkViews(cluster, scale.views)
        await Checks.checkTrees(cluster)
        expect(cluster.ssps.map(loads)).toEqual(loaded)
      },
      3_600_000
    )
  })
