/**
 * An SSP whose process has gone, as a scheduler finds it out over real connections (D31, D32 said again).
 *
 * Nothing but the call of each test is made: events, probes and other calls are kept away, so that it is this call that
 * was understood.
 */
import { describe, expect, it } from "vitest"
import { create, registration } from "../../kit/data/registration.ts"
import { until } from "../../kit/processes/Door.ts"
import { FakeSsp } from "./FakeSsp.ts"
import { Node } from "./node.ts"

const start = async (probeMs: number): Promise<{ readonly node: Node; readonly ssp: FakeSsp }> => {
  const node = await Node.start({ env: { SVC_SCHEDULER_SSP_PROBE_INTERVAL_MS: String(probeMs) } })
  const ssp = await (await FakeSsp.start("a")).join(node)
  expect((await node.post("/view/register", registration("v", "SELECT * FROM t"))).status).toBe(200)
  return { node, ssp }
}

const calls: ReadonlyArray<readonly [string, number, (node: Node) => Promise<unknown>]> = [
  ["a health call", 20, () => Promise.resolve()],
  ["a delivery", 0, (node) => node.post("/ingest", create("t:1"))],
  ["a registration", 0, (node) => node.post("/view/register", registration("v", "SELECT * FROM t", { ttl: "2h" }))],
  ["a request handed on", 0, (node) => node.get("/view/v")]
]

describe("D31 an SSP that is gone", () => {
  for (const [what, probeMs, call] of calls) {
    it(`is suspect after ${what} that is refused, and removed after the next health call`, async () => {
      const { node, ssp } = await start(probeMs)
      await ssp.close()
      await call(node)
      await ssp.shown(node, undefined)
      const told = node.logs
        .filter((line) => /^a is (?:Suspect|removed)/.test(line))
        .map((line) => line.slice(0, line.indexOf(":")))
      expect(told).toEqual(["a is Suspect", "a is removed"])
      expect(await node.get("/view/v")).toMatchObject({ status: 503 })
      await node.close()
    })
  }
  it("an SSP that hangs, or breaks off its connections, stays until its heartbeats are missed", async () => {
    const { node, ssp } = await start(20)
    ssp.behaviour = ({ path }) => (path === "/health" ? "never" : undefined)
    const asked = ssp.calls("/health").length
    await until("it is asked", () => ssp.calls("/health").length > asked)
    ssp.release()
    await until("it is asked again", () => ssp.calls("/health").length > asked + 1)
    ssp.release()
    expect(node.logs.filter((line) => /Suspect|removed/.test(line))).toEqual([])
    await node.close()
    await ssp.close()
  })
})
