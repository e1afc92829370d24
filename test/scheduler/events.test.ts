/**
 * The events that a scheduler keeps in memory: what feeds and deliveries get of them is right, and both together stay
 * within the bound.
 */
import { Effect } from "effect"
import { expect, it } from "vitest"
import { heapUsed } from "../../kit/checks/heap.ts"
import * as Hostile from "../../kit/data/hostile.ts"
import { rng, runs, seed } from "../../kit/data/random.ts"
import * as JsonText from "../../src/core/jsonText.ts"
import * as Event from "../../src/core/record/event.ts"
import * as FeedLines from "../../src/core/record/feedLines.ts"
import * as Json from "../../src/core/surql/values/json.ts"
import { Wal, type WalShape } from "../../src/ports/Wal.ts"
import { Events, maxChars } from "../../src/scheduler/pool/Events.ts"

const wal = (): Promise<WalShape> => Effect.runPromise(Effect.provide(Wal, Wal.layerMemory("the log")))
const lineOf = (table: string, n: number, text: string): string =>
  Event.toLine({ table, id: `${table}:${n}`, record: { text } }, "CREATE", 1, undefined)

it("D61 a kept event is the feed's line with the one before it in its table, and what SSPs without a feed are sent", async () => {
  const events = new Events(await wal(), 3)
  const lines = [lineOf("a", 1, "x"), lineOf("b", 1, '"}\n'), lineOf("a", 2, "é"), lineOf("a", 3, "")]
  events.appended(lines, 4)
  const sent = lines.map((line, i) => Event.forwardedLine(line, i + 1, "the log", 3))
  expect(await Effect.runPromise(events.read(1, 4))).toEqual(sent)
  const before = [undefined, undefined, 1, 3]
  expect([1, 2, 3, 4].map((seq) => events.entry(seq).line)).toEqual(
    sent.map((text, i) => FeedLines.eventLine(text, before[i]))
  )
})

it("D77 a line as the specification has it holds the four fields, and the record as it came without its version; a job of another SSP is processing", () => {
  const random = rng(seed)
  for (let n = 0; n < runs(2000); n++) {
    const content = Json.toJson(Hostile.content(random)) as { readonly [field: string]: unknown }
    const version = random.chance(0.3) ? { _svc_rv: random.below(9) } : {}
    const record = random.chance(0.5) ? { ...version, ...content } : { ...content, ...version }
    const id = `t:${n}`
    const op = random.pick(["CREATE", "UPDATE", "DELETE"] as const)
    const types = random.pick([undefined, null, {}, { _svc_rv: "int", '"}': "string" }])
    const raw = { table: "t", id, record, ...(types === undefined ? {} : { types }) }
    const assignee = random.pick([undefined, '"_svc_rv":1', ""])
    const line = Event.toLine(raw, op, random.below(1e9), assignee, random.chance(0.5))
    const trace = random.pick([undefined, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"])
    const ssp = random.pick([assignee ?? "", "b"])
    const told = Event.plainChangeOf(random.chance(0.5) ? line : Event.forwardedLine(line, n, 'a "log"', 3, trace), ssp)
    const kept = op === "DELETE" ? {} : content
    const shown = (assignee ?? ssp) === ssp ? kept : { ...kept, status: "processing" }
    expect(told, line).toBe(JsonText.write({ table: "t", op, id, record: shown }))
  }
})

it("kept events take the bound and no more when feeds and deliveries have read them", async () => {
  const events = new Events(await wal(), 1)
  const before = heapUsed()
  const each = 64 * 1024
  const count = 1.5 * (maxChars / each)
  for (let n = 1; n <= count; n++) events.appended([lineOf("t", n, String(n).padEnd(each, "x"))], n)
  const first = events.firstKept
  let kept = 0
  for (let seq = first; seq <= count; seq++) {
    // A text in one piece, as it is when it has been sent.
    kept += Buffer.from(events.entry(seq).line).length
    for (const text of await Effect.runPromise(events.read(seq, seq))) Buffer.from(text)
  }
  expect(kept).toBeLessThanOrEqual(maxChars)
  expect(kept).toBeGreaterThan(0.9 * maxChars)
  expect(heapUsed() - before).toBeLessThan(1.3 * maxChars)
  expect(events.holds(first)).toBe(true)
})
