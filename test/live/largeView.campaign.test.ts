/**
 * A view whose result is larger than what a scheduler reads of any answer: it is placed, moved and read all the same
 * (D21, D31).
 *
 * With real processes, because the limit is that of the connections between them (`host/http/exchange.ts`).
 */
import { afterAll, beforeAll, expect, it } from "vitest"
import type { Ask } from "../../kit/checks/http.ts"
import { until } from "../../kit/processes/Door.ts"
import { type Process, ProcessCluster } from "../../kit/processes/processCluster.ts"

/** 36 records of 1.9 MB: more than 64 MiB as a result. */
const records = 36
const bytes = 1_900_000

let cluster: ProcessCluster
beforeAll(async () => {
  cluster = await ProcessCluster.start(2, {}, () => ({ STORE_ADDR: "memory://" }))
}, 120_000)
afterAll(() => cluster?.close())

const told = async (process: Process, ask: Ask): Promise<unknown> => {
  const answer = await process.ask(ask, 60_000)
  expect([ask.path, answer?.status], answer?.text.slice(0, 1000)).toEqual([ask.path, 200])
  return answer?.json
}

it("D31 a tree view over 64 MiB is registered through the scheduler, read, and moved when its SSP says goodbye", async () => {
  for (let n = 0; n < records; n++)
    await told(cluster.scheduler, {
      method: "POST",
      path: "/ingest",
      body: { table: "big", op: "CREATE", id: `big:${n}`, record: { n, text: "x".repeat(bytes) } }
    })
  const body = { id: "large", surql: "SELECT n, text FROM big ORDER BY n", clientId: "c", ttl: "1d", format: "tree" }
  // No SSP is ready for it while all of them take these records in.
  await until("an SSP takes the view", async () => {
    const answer = await cluster.scheduler.ask({ method: "POST", path: "/view/register", body }, 60_000)
    if (answer?.status !== 503) expect([answer?.status, answer?.text.slice(0, 1000)]).toEqual([200, expect.anything()])
    return answer?.status === 200
  })
  const shownBy = async (ssps: ReadonlyArray<Process>): Promise<Process> =>
    until(
      "an SSP shows the view",
      async () => {
        for (const ssp of ssps) if ((await ssp.ask({ path: "/view/large?format=flat" }))?.status === 200) return ssp
        return undefined
      },
      60_000
    )
  const first = await shownBy(cluster.ssps)
  const answer = await first.ask({ path: "/view/large" }, 60_000)
  expect(answer?.text.length).toBeGreaterThan(64 * 1024 * 1024)
  await first.stop()
  const second = await shownBy(cluster.ssps.filter((ssp) => ssp !== first))
  expect(
    ((await told(second, { path: "/view/large?format=flat" })) as { readonly result_data: ReadonlyArray<unknown> })
      .result_data
  ).toHaveLength(records)
}, 240_000)
