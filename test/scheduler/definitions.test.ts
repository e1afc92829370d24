/**
 * What a database defines, as a record of the log (D57): SSPs get it at its place, and type what is behind it by it.
 */
import { Effect, Either } from "effect"
import { afterEach, expect, it } from "vitest"
import { rng } from "../../kit/data/random.ts"
import { sleep, until } from "../../kit/processes/Door.ts"
import { decodeChange } from "../../src/core/record/change.ts"
import { Duration } from "../../src/core/surql/values/value.ts"
import * as Definitions from "../../src/core/surreal/definitionsRecord.ts"
import { FakeSsp } from "./FakeSsp.ts"
import { Node } from "./node.ts"

const closing: Array<() => Promise<void>> = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const textOf = (types: { readonly [path: string]: string }): string =>
  Definitions.textOf({
    definitions: { functions: new Map(), params: new Map() },
    tables: [{ name: "t", types, derived: false, view: undefined, announced: true, told: true, shape: "" }]
  })

it("D57 a record is typed alike by the scheduler and by every SSP, however its posting meets a change of definitions", async () => {
  const node = await Node.start()
  closing.push(() => node.close())
  const ssp = await (await FakeSsp.start("a")).join(node)
  closing.push(() => ssp.close())
  // What is held back goes out in deliveries of many.
  let isHeld = true
  ssp.behaviour = ({ path }) => (isHeld && path === "/ingest" ? { status: 503 } : undefined)
  const random = rng(57)
  const kinds = ["duration", "string"]
  const sent: Array<Promise<unknown>> = []
  for (let n = 0; n < 60; n++) {
    if (n % 10 === 5)
      sent.push(Effect.runPromise(node.ingest.define(textOf({ wait: kinds[(n / 5) % 4 > 1 ? 1 : 0]! }))))
    sent.push(node.post("/ingest", { table: "t", op: "CREATE", id: `t:${n}`, record: { wait: "1h" } }))
    if (random.chance(0.3)) await sleep(5)
  }
  const refused = ssp.told.length
  isHeld = false
  await Promise.all(sent)
  await until("all are delivered", async () => ssp.applied.length >= node.pool.state().log.head)
  const bodies = ssp.told.slice(refused).flatMap(({ json, path }) => (path === "/ingest" ? [json] : []))
  expect(bodies.some((body) => Array.isArray(body) && body.length > 2)).toBe(true)
  let declared: ReturnType<typeof Definitions.ofText> | undefined
  const typed = new Map<string, boolean>()
  for (const body of bodies) {
    const events = Array.isArray(body) ? (body as ReadonlyArray<unknown>) : [body]
    const changes = events.map((event) =>
      Either.getOrThrow(decodeChange(event, (table) => declared?.tables.find(({ name }) => name === table)?.types))
    )
    const defined = Definitions.latest(changes)
    if (defined !== undefined) expect(changes.length).toBe(1)
    declared = defined ?? declared
    for (const { doc, id } of changes) if (id.table === "t") typed.set(id.text, doc["wait"] instanceof Duration)
  }
  const { json } = await node.post("/proxy/query", { query: "SELECT id, type::of(wait) = 'duration' AS is FROM t" })
  const here = new Map(
    (json as ReadonlyArray<{ readonly id: string; readonly is: boolean }>).map(({ id, is }) => [id, is])
  )
  expect(here.size).toBe(60)
  expect(typed).toEqual(here)
  expect(new Set(here.values())).toEqual(new Set([true, false]))
})

it("D57 the same definitions are logged once, and a client writes none", async () => {
  const node = await Node.start()
  closing.push(() => node.close())
  const define = (text: string): Promise<void> => Effect.runPromise(node.ingest.define(text))
  const text = textOf({ wait: "duration" })
  await define(text)
  const { head } = node.pool.state().log
  await define(text)
  expect(node.pool.state().log.head).toBe(head)
  await define(textOf({}))
  expect(node.pool.state().log.head).toBe(head + 1)
  const forged = Definitions.rawOf(text)
  for (const body of [
    { ...forged, op: "UPDATE" },
    [
      { table: "t", op: "CREATE", id: "t:1", record: {} },
      { ...forged, op: "DELETE", seq: 1 }
    ]
  ]) {
    const answer = await node.post("/ingest", body)
    expect([answer.status, answer.json]).toEqual([
      400,
      expect.objectContaining({
        code: "INVALID_REQUEST",
        message: expect.stringMatching(/table must not be _svc_definitions/)
      })
    ])
  }
})
