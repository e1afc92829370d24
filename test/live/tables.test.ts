/**
 * A cluster whose SSPs hold the tables of their views and no others, as processes (D61, D65): where views go, and what
 * an SSP answers for what it does not hold.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { create, registration } from "../../kit/data/registration.ts"
import { until } from "../../kit/processes/Door.ts"
import { type Process, ProcessCluster } from "../../kit/processes/processCluster.ts"

const tables = ["t0", "t1", "t2", "t3"]

describe("SSPs that hold the tables of their views", () => {
  let cluster: ProcessCluster
  const post = (to: Process, path: string, body: unknown) => to.ask({ method: "POST", path, body }, 20_000)
  const holds = async (ssp: Process): Promise<ReadonlyArray<string>> =>
    ((await ssp.ask({ path: "/integrity" }))?.json as { readonly holds: ReadonlyArray<string> }).holds
  const foreignTo = async (ssp: Process): Promise<string> => {
    const held = await holds(ssp)
    return tables.find((table) => !held.includes(table))!
  }
  beforeAll(async () => {
    cluster = await ProcessCluster.start(2, {}, () => ({ SVC_TABLE_GRACE_SECS: "1" }))
    for (const table of tables) await post(cluster.scheduler, "/ingest", create(`${table}:1`, { n: 1 }))
  })
  afterAll(() => cluster?.close())

  it("D65 views of a table go where it is, and the tables are shared out", async () => {
    for (let n = 0; n < 12; n++) {
      const body = registration(`v${n}`, `SELECT * FROM ${tables[n % 4]} WHERE n < ${n}`)
      expect((await post(cluster.scheduler, "/view/register", body))?.status).toBe(200)
    }
    const [a = [], b = []] = await Promise.all(cluster.ssps.map(holds))
    expect([...a, ...b].sort()).toEqual(tables)
    expect([a.length, b.length]).toEqual([2, 2])
  })
  it("D61 D77 an SSP hands a change of a table that it does not hold on to the scheduler, and takes no events of the log", async () => {
    const [ssp] = cluster.ssps as readonly [Process]
    const foreign = await foreignTo(ssp)
    const change = create(`${foreign}:2`, { n: 2 })
    const handedOn = await post(ssp, "/ingest", change)
    expect([handedOn?.status, handedOn?.json]).toEqual([200, { views_affected: 0, edges_updated: 0 }])
    const query = { query: `SELECT VALUE n FROM ${foreign}:2` }
    expect((await post(cluster.scheduler, "/proxy/query", query))?.json).toEqual([2])
    const event = await post(ssp, "/ingest", { ...change, seq: 99, log_id: "log", epoch: 1 })
    expect([event?.status, event?.text]).toEqual([409, expect.stringMatching(/follows the scheduler's feed/)])
  })
  it("D41 D61 an SSP has no hashes of a table that it does not hold, rather than those of an empty one", async () => {
    const [ssp] = cluster.ssps as readonly [Process]
    const answer = await ssp.ask({ path: `/integrity?table=${await foreignTo(ssp)}` })
    expect([answer?.status, answer?.text]).toEqual([400, expect.stringMatching(/which this SSP does not hold/)])
  })
  it("D61 a table that no view reads any more is let go, and read again for the next one", async () => {
    const [ssp] = cluster.ssps as readonly [Process]
    const [table = ""] = await holds(ssp)
    for (let n = tables.indexOf(table); n < 12; n += 4)
      await post(cluster.scheduler, "/view/unregister", { id: `v${n}` })
    await until("it is let go", async () => !(await holds(ssp)).includes(table))
    const body = registration("again", `SELECT n FROM ${table}`)
    expect((await post(ssp, "/view/register", body))?.json).toMatchObject({ result_data: [[`${table}:1`, 1]] })
    expect(await holds(ssp)).toContain(table)
  })
})
