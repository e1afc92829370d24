/**
 * A cluster of real processes under load while its members are killed, stopped and started again: nothing that was
 * acknowledged is missing anywhere, every view is on one SSP and right (D5, D20, D26, D31).
 *
 * Small by default; `SVC_CAMPAIGN=1 SVC_RUNS=5` kills 200 times with 20,000 records, 100 views and 200 events a second.
 * Pauses come on top of the kills.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { checkRecords, checkTrees, checkViews, registerViews, viewIds } from "../../kit/checks/clusterChecks.ts"
import { campaign, long, type Rng, runs, seeded } from "../../kit/data/random.ts"
import { sleep, until } from "../../kit/processes/Door.ts"
import { Load, type Process, ProcessCluster } from "../../kit/processes/processCluster.ts"

const file = "test/live/cluster.test.ts"
const scale = campaign
  ? { keys: 20_000, views: 100, perSecond: 200, kills: runs(40) }
  : long
    ? { keys: 1000, views: 20, perSecond: 100, kills: 3 }
    : { keys: 300, views: 10, perSecond: 50, kills: 2 }

/** Heartbeat time-out, and what D31 gives on top of it. */
const ownerlessMs = 1500 + 5000

/**
 * The views an SSP shows, all in one answer; of one that runs and is only slow it is waited for, for it is asked by a
 * test beside it on a machine that both keep busy.
 */
const viewsOn = async (ssp: Process): Promise<ReadonlyArray<string> | undefined> => {
  const answer = ssp.door === undefined ? undefined : await ssp.ask({ path: "/debug/deps" }, 5000)
  if (answer?.status !== 200) return undefined
  return Object.values(
    (answer.json as { readonly dependency_map: { readonly [table: string]: ReadonlyArray<string> } }).dependency_map
  ).flat()
}

/** Which SSP the scheduler wants each view on; undefined: it does not answer. */
const ownersOf = async (cluster: ProcessCluster): Promise<ReadonlyMap<string, string> | undefined> => {
  const answer = await cluster.scheduler.ask({ path: "/views?limit=200" })
  if (answer?.status !== 200) return undefined
  return new Map(
    (
      answer.json as { readonly views: ReadonlyArray<{ readonly id: string; readonly owner: string | null }> }
    ).views.map(({ id, owner }) => [id, owner ?? ""])
  )
}

/**
 * Looks again and again whether each view is shown by an SSP. Time counts while the scheduler answers and an SSP is
 * Ready, before and after the look, and from the last blow to the SSP that was to have the view: where the heir is
 * killed too, the scheduler has its time-out to wait for once more.
 */
const watch = (cluster: ProcessCluster, ids: ReadonlyArray<string>, blows: ReadonlyArray<string>) => {
  let ended = false
  let worst = 0
  let worstOf = ""
  let story = ""
  const without = new Map(ids.map((id) => [id, 0]))
  const loop = async (): Promise<void> => {
    let before = performance.now()
    let counted = (await cluster.ready()).length > 0
    let owners = await ownersOf(cluster)
    let struck = new Map(cluster.ssps.map(({ blows, name }) => [name, blows]))
    while (!ended) {
      await sleep(200)
      const shown = await Promise.all(cluster.ssps.map(viewsOn))
      const seen = new Set(shown.flatMap((views) => views ?? []))
      const ready = (await cluster.ready()).length
      const nowOwners = (await ownersOf(cluster)) ?? owners
      const nowStruck = new Map(cluster.ssps.map(({ blows, name }) => [name, blows]))
      const isStruck = (name: string | undefined): boolean =>
        name !== undefined && struck.get(name) !== nowStruck.get(name)
      const now = performance.now()
      for (const id of ids) {
        const anew = seen.has(id) || isStruck(owners?.get(id)) || isStruck(nowOwners?.get(id))
        without.set(id, anew ? 0 : (without.get(id) ?? 0) + (counted && ready > 0 ? now - before : 0))
      }
      const most = Math.max(...without.values())
      if (most > worst)
        worstOf = `${[...without.values()].filter((ms) => ms > 0).length} views had none, ${ready} SSPs were ready, views shown by each: ${shown.map((views) => views?.length ?? "no answer").join(", ")}, at ${new Date().toISOString()}`
      if (most > worst && most > ownerlessMs / 2)
        story = `blows: ${blows.slice(-5).join(", ")}\n${cluster.scheduler.logs.slice(-3000)}`
      worst = Math.max(worst, most)
      counted = ready > 0
      owners = nowOwners
      struck = nowStruck
      before = now
    }
  }
  const running = loop()
  return {
    worst: () => `${worst.toFixed(0)} ms (${worstOf})`,
    story: () => story,
    end: async () => {
      ended = true
      await running
      return worst
    }
  }
}

const bootstraps = (ssp: Process): number => ssp.logs.match(/bootstrapped at position/g)?.length ?? 0

const unanswered = (ssp: Process): number => ssp.logs.match(/heartbeat failed: no answer within/g)?.length ?? 0

/**
 * From rest, with every SSP ready by its own word too: what bootstraps then, bootstraps because of the restart. Answers
 * whether that could be told of every SSP: one whose heartbeats found no answer from a scheduler that was back had
 * another reason, a machine that has no time for either.
 */
const restartScheduler = async (cluster: ProcessCluster, random: Rng): Promise<boolean> => {
  await cluster.settled()
  for (const ssp of cluster.ssps)
    await until(`${ssp.name} is ready`, async () => (await ssp.ask({ path: "/health" }))?.status === 200)
  await cluster.settled()
  const before = cluster.ssps.map((ssp) => ({ ssp, times: bootstraps(ssp), silent: unanswered(ssp) }))
  await cluster.scheduler.kill()
  await sleep(random.below(500))
  await cluster.scheduler.start()
  await cluster.settled()
  const starved = before.filter(({ silent, ssp }) => unanswered(ssp) > silent)
  for (const { ssp, times } of before) {
    if (!starved.some((each) => each.ssp === ssp))
      expect(bootstraps(ssp), `D31 the restart of the scheduler alone bootstraps nobody: ${ssp.name}`).toBe(times)
  }
  return starved.length === 0
}

/** One blow, chosen by the seed; a process that falls comes back. */
const strike = async (
  cluster: ProcessCluster,
  random: Rng
): Promise<{ readonly what: string; readonly killed: boolean; readonly alone?: boolean }> => {
  const roll = random.next()
  const ssp = random.pick(cluster.ssps)
  if (roll < 0.15) {
    await cluster.scheduler.kill()
    await sleep(random.below(500))
    await cluster.scheduler.start()
    return { what: "kill scheduler", killed: true }
  }
  if (roll < 0.3) {
    return { what: "kill scheduler at rest", killed: true, alone: await restartScheduler(cluster, random) }
  }
  if (roll < 0.5) {
    await ssp.pause(500 + random.below(2500))
    return { what: `pause ${ssp.name}`, killed: false }
  }
  await ssp.kill()
  await sleep(random.below(2500))
  await ssp.start()
  return { what: `kill ${ssp.name}`, killed: true }
}

/** Both tests use one cluster, which takes longer to start than to test, and stand alone. */
describe("a cluster of processes", () => {
  let cluster: ProcessCluster
  beforeAll(async () => {
    cluster = await ProcessCluster.start(3)
  })
  afterAll(() => cluster?.close())
  const told = (error: unknown): Error =>
    new Error(
      `${error instanceof Error ? error.message : String(error)}\n${cluster.all.map(({ logs, name }) => `--- ${name}\n${logs.slice(-4000)}`).join("\n")}`
    )

  // A kill of each kind in the default run is in `scheduler.test.ts` and `failover.test.ts`.
  describe.runIf(long)("under load", () => {
    seeded(
      `D26 D31 ${scale.kills} SIGKILLs, and pauses, under ${scale.perSecond} events/s, ${scale.keys} records and ${scale.views} views: nothing acknowledged is missing, every view is on one SSP and right`,
      file,
      async (random) => {
        const load = new Load(cluster.scheduler, random, scale.keys)
        const blows: Array<string> = []
        const begun = performance.now()
        try {
          await load.fill()
          await registerViews(cluster, scale.views)
          const running = load.run(scale.perSecond)
          const watching = watch(cluster, viewIds(scale.views), blows)
          await sleep(300)
          let restarts = Number(await restartScheduler(cluster, random))
          for (let kills = 1; kills < scale.kills; ) {
            const struck = new Date().toISOString()
            const { alone, killed, what } = await strike(cluster, random)
            blows.push(`${what} from ${struck} to ${new Date().toISOString()}`)
            if (alone === true) restarts++
            if (killed) kills++
            if (campaign && blows.length % 10 === 0)
              process.stdout.write(
                `${((performance.now() - begun) / 1000).toFixed(0)} s: ${kills} kills, ${restarts} restarts of the scheduler alone, ${load.acknowledged} events acknowledged, a view without an owner for ${watching.worst()} at worst\n`
              )
            // On two cores that also start what was killed, views that move have to wait for both: without a pause of
            // some seconds this measures the machine.
            await sleep(random.below(campaign ? 5000 : 1500))
          }
          load.end()
          await running
          await cluster.settled()
          const worst = await watching.end()
          await checkRecords(cluster, load.known)
          await checkTrees(cluster)
          await checkViews(cluster, scale.views)
          expect(load.acknowledged).toBeGreaterThan(campaign ? scale.kills * 100 : 100)
          if (campaign)
            console.log(
              `${blows.length + 1} blows, ${load.acknowledged} events acknowledged, ${cluster.ssps.reduce((sum, ssp) => sum + bootstraps(ssp), 0)} bootstraps, ${restarts} restarts of the scheduler alone, longest time of a view without an owner ${worst.toFixed(0)} ms`
            )
          if (campaign) console.log(watching.story())
          if (campaign) expect(restarts).toBeGreaterThan(scale.kills / 20)
          expect(worst, `a view was without an owner too long: ${watching.worst()}; ${watching.story()}`).toBeLessThan(
            ownerlessMs
          )
        } catch (error) {
          throw told(error)
        } finally {
          load.end()
        }
      },
      3_600_000
    )
  })

  it("D31 two processes with one id: the older ends with 1 and says why; a stop says goodbye, and views move at once", async () => {
    try {
      const [first, second, third] = cluster.ssps
      const older = first!.door!
      const twin = await cluster.twin(first!)
      expect([(await older.exited).code, older.logs]).toEqual([
        1,
        expect.stringMatching(/another process has registered under this SSP_ID/)
      ])
      await cluster.settled()
      await registerViews(cluster, scale.views)
      expect([await second!.stop(), await third!.stop()]).toEqual([0, 0])
      for (const { name } of [second!, third!])
        expect(cluster.scheduler.logs).toContain(`${name} is removed: it deregistered`)
      await until("all views on the twin", async () =>
        (await Promise.all(viewIds(scale.views).map((id) => twin.ask({ path: `/view/${id}` })))).every(
          (answer) => answer?.status === 200
        )
      )
    } catch (error) {
      throw told(error)
    }
  })
})
