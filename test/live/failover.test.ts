/**
 * An SSP of two is killed on the settings a deployment starts with: its views are the other's, long before its
 * heartbeats are missed (D31, D32 said again).
 *
 * Told by the order of what happens and why; how long it takes is for the bench (`npm run bench -- --only failover`).
 */
import { afterAll, beforeAll, expect, it } from "vitest"
import { registration } from "../../kit/data/registration.ts"
import { until } from "../../kit/processes/Door.ts"
import { type Process, ProcessCluster } from "../../kit/processes/processCluster.ts"

const defaults = {
  SVC_SCHEDULER_SSP_POLL_INTERVAL_MS: "3000",
  SVC_SCHEDULER_HEARTBEAT_INTERVAL_MS: "5000",
  SVC_SCHEDULER_HEARTBEAT_TIMEOUT_MS: "15000"
}
const views = 60

let cluster: ProcessCluster
beforeAll(async () => {
  cluster = await ProcessCluster.start(2, defaults, () => ({ HEARTBEAT_INTERVAL_MS: "5000" }))
}, 180_000)
afterAll(() => cluster?.close())

interface Line {
  readonly message: string
}

/** What the scheduler has said of an SSP, in order. */
const saidOf = (ssp: Process): ReadonlyArray<string> =>
  cluster.scheduler.logs
    .split("\n")
    .flatMap((line) => (line.startsWith("{") ? [(JSON.parse(line) as Line).message] : []))
    .filter((message) => message.includes(ssp.name))

it("D31 kill -9: connections are refused, the SSP is suspect, then removed, and every view is served by the other with what came meanwhile", async () => {
  const {
    scheduler,
    ssps: [victim, heir]
  } = { scheduler: cluster.scheduler, ssps: cluster.ssps as readonly [Process, Process] }
  for (let n = 0; n < views; n++) {
    const answer = await scheduler.ask(
      {
        method: "POST",
        path: "/view/register",
        body: registration(`view-${n}`, `SELECT id, n FROM item WHERE n >= ${n}`, { format: "tree" })
      },
      20_000
    )
    expect(answer?.status, answer?.text).toBe(200)
  }
  expect((await scheduler.ask({ path: `/views?ssp=${victim.name}` }, 20_000))?.json).toMatchObject({
    views: Array.from({ length: views / 2 }, () => ({ owner: victim.name }))
  })
  await victim.kill()
  expect(
    (
      await scheduler.ask(
        { method: "POST", path: "/ingest", body: { table: "item", op: "CREATE", id: "item:1", record: { n: views } } },
        20_000
      )
    )?.status
  ).toBe(200)
  for (let n = 0; n < views; n++) {
    const found = await until(
      `view-${n} is served`,
      async () => {
        const answer = await scheduler.ask({ path: `/view/view-${n}` }, 20_000)
        return answer?.status === 200 ? answer : undefined
      },
      60_000
    )
    expect(found.json).toMatchObject({ result_data: [{ id: "item:1", n: views }] })
  }
  const told = saidOf(victim)
  const suspected = told.findIndex((message) => message.includes("is Suspect"))
  const removed = told.findIndex((message) => message.includes("is removed: connections to it are refused"))
  expect(
    [suspected >= 0, removed > suspected, told.some((message) => message.includes("no heartbeat for"))],
    told.join("\n")
  ).toEqual([true, true, false])
  expect((await heir.ask({ path: "/info" }, 20_000))?.json).toMatchObject([{ views }])
}, 240_000)

it("D31 it comes back, and is given its share again", async () => {
  const [victim] = cluster.ssps
  await victim!.start()
  await cluster.settled()
  await until(
    "it has views again",
    async () =>
      (
        (await victim!.ask({ path: "/info" }, 20_000))?.json as ReadonlyArray<{ readonly views: number }> | undefined
      )?.[0]?.views ===
      views / 2,
    120_000
  )
}, 240_000)
