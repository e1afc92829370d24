/**
 * An SSP that bootstraps while changes come without a pause, more of them per bootstrap than may wait for it (D55).
 *
 * Whole nodes in virtual time: what is asked is how often the SSP registered, and what it holds in the end.
 */
import { Context, Effect, HashMap } from "effect"
import { expect, it } from "vitest"
import { rng } from "../../kit/data/random.ts"
import { VirtualTime } from "../../kit/data/virtualTime.ts"
import { Range } from "../../src/core/surql/values/value.ts"
import { Views } from "../../src/ssp/views/Views.ts"
import { Network } from "./network.ts"
import { isSentAll, schedulerNode, sspNode, type World } from "./nodes.ts"

const maxBuffer = 100
const records = 300

it("D55 under steady load that brings more than max_buffer_per_ssp in one bootstrap, an SSP is sent back once and then Ready, with everything", async () => {
  const time = new VirtualTime()
  const network = new Network(time, rng(1))
  network.weather = { lose: 0, loseAnswer: 0, double: 0, delayMs: 40 }
  const world: World = { time, network, logs: [], crashes: [] }
  const scheduler = schedulerNode(world, {
    SVC_SCHEDULER_MAX_BUFFER_PER_SSP: String(maxBuffer),
    SVC_SCHEDULER_BOOTSTRAP_CHUNK_SIZE: "10"
  })
  const ssp = sspNode(world, 1, isSentAll)
  let written = 0
  let loading = true
  const write = (): void => {
    const n = written++
    const body = JSON.stringify({ table: "item", op: "UPDATE", id: `item:${n % records}`, record: { n } })
    const headers = { "content-type": "application/json" }
    network.send("client", "127.0.0.1:9667", { method: "POST", path: "/ingest", headers, body }, (reply) => {
      if (reply?.status !== 200) world.crashes.push(`/ingest answered ${reply?.status}: ${reply?.body}`)
    })
  }
  const load = (): void => {
    if (!loading) return
    write()
    time.after(4, load)
  }
  const count = (what: RegExp): number => network.trace.filter((line) => what.test(line)).length
  const member = () => [...HashMap.values(scheduler.pool().state().members)][0]

  await scheduler.node.start()
  for (let n = 0; n < records; n++) write()
  await time.advance(2000)
  load()
  await ssp.start()
  const before = written
  let during: number | undefined
  for (let i = 0; i < 300 && member()?.state !== "Ready"; i++) {
    await time.advance(50)
    if (during === undefined && member()?.state === "Overflowed") during = written - before
  }
  expect(member()?.state, world.logs.slice(-20).join("\n")).toBe("Ready")
  expect(during, "more came while it pulled than may wait").toBeGreaterThan(maxBuffer)
  await time.advance(3000)
  loading = false
  await time.advance(3000)
  expect([count(/POST \/ssp\/register/), world.logs.filter((line) => /must bootstrap again/.test(line))]).toEqual([
    2,
    [expect.stringContaining(`max_buffer_per_ssp is ${maxBuffer}`)]
  ])
  const rows = await Effect.runPromise(scheduler.durable.replica.records("item", undefined, 1_000_000))
  const held = [...Context.get(ssp.context!, Views).records.rowsBetween("item", new Range(undefined, undefined))]
  expect(held.map((row) => [row.id.text, row.version])).toEqual(rows.map(({ id, version }) => [id.text, version]))
  expect(held).toHaveLength(records)
  expect(member()?.queue.acked).toBe(written)
  expect(world.crashes).toEqual([])
  for (const node of [scheduler.node, ssp]) await node.crash()
})

it("D55 when it is Ready and stops answering, what waits for it counts as ever: beyond the limit it must bootstrap again", async () => {
  const time = new VirtualTime()
  const network = new Network(time, rng(2))
  const world: World = { time, network, logs: [], crashes: [] }
  const scheduler = schedulerNode(world, {
    SVC_SCHEDULER_MAX_BUFFER_PER_SSP: String(maxBuffer),
    SVC_SCHEDULER_HEARTBEAT_TIMEOUT_MS: "60000",
    SVC_SCHEDULER_DELIVERY_WAIT_MS: "0"
  })
  const ssp = sspNode(world, 1, isSentAll)
  await scheduler.node.start()
  await ssp.start()
  await time.advance(2000)
  network.cutOff.add("ssp-1")
  for (let n = 0; n <= maxBuffer; n++) {
    const body = JSON.stringify({ table: "item", op: "UPDATE", id: `item:${n}`, record: { n } })
    const headers = { "content-type": "application/json" }
    network.send("client", "127.0.0.1:9667", { method: "POST", path: "/ingest", headers, body }, () => {})
    await time.advance(5)
  }
  const told = () => world.logs.filter((line) => /101 events wait, max_buffer_per_ssp is 100/.test(line))
  await time.advance(500)
  expect(told()).toHaveLength(1)
  network.cutOff.delete("ssp-1")
  await time.advance(10_000)
  expect([...HashMap.values(scheduler.pool().state().members)].map(({ state }) => state)).toEqual(["Ready"])
  for (const node of [scheduler.node, ssp]) await node.crash()
})
