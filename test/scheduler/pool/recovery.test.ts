/**
 * Bringing the replica to the log's end: what was lost of it between a commit and a crash comes back exactly as it was.
 *
 * The types are what is easily lost: the log has a record as the JSON it came as, and what it means depends on what is
 * declared for its table.
 */
import { it } from "@effect/vitest"
import { Chunk, Effect, Either, Layer, Stream } from "effect"
import { expect } from "vitest"
import { decodeChange } from "../../../src/core/record/change.ts"
import * as Event from "../../../src/core/record/event.ts"
import { identical } from "../../../src/core/surql/values/order.ts"
import * as Ids from "../../../src/core/surql/values/recordId.ts"
import * as Definitions from "../../../src/core/surreal/definitionsRecord.ts"
import * as MemoryReplica from "../../../src/drivers/memoryReplica.ts"
import { Replica } from "../../../src/ports/Replica.ts"
import { Wal } from "../../../src/ports/Wal.ts"
import { definitionsInReplica } from "../../../src/scheduler/pool/DeclaredTables.ts"
import { recover } from "../../../src/scheduler/pool/recovery.ts"

const types = { took: "duration", "prices.*": "decimal" }
const record = { took: "1h", prices: ["1.50"], note: "2020-01-01T00:00:00Z", at: "2021-01-01T00:00:00Z" }
const events = [
  { table: "t", id: "t:1", record },
  { table: "t", id: "t:2", record, types: { at: "datetime" } },
  { table: "free", id: "free:1", record }
]
const schema = (table: string) => (table === "t" ? types : undefined)

it.effect("D1 D26 events that are replayed from the log are typed as they were when they came in", () =>
  Effect.gen(function* () {
    const replica = yield* Replica
    const wal = yield* Wal
    yield* replica.putTables([{ name: "t", types }])
    yield* wal.append(events.map((event, i) => Event.toLine(event, "CREATE", i + 3, undefined)))
    yield* recover({ replicaDbPath: "r", walPath: "w" }, wal, replica, false)
    const wanted = events.map((event) =>
      Either.getOrThrowWith(decodeChange({ ...event, op: "CREATE" }, schema), ({ message }) => new Error(message))
    )
    const found = yield* replica.current(wanted.map(({ id }) => id))
    for (const [i, { doc, id }] of wanted.entries())
      expect([id.text, found.get(id.text)?.version, identical(found.get(id.text)?.doc, doc)]).toEqual([
        id.text,
        i + 3,
        true
      ])
    expect(yield* replica.applied).toBe(3)
  }).pipe(Effect.provide(Layer.merge(MemoryReplica.layer, Wal.layerMemory("log"))))
)

it.effect("D44 a log that ends within a step, because its writer died there, gets the step's end at the start", () =>
  Effect.gen(function* () {
    const replica = yield* Replica
    const wal = yield* Wal
    const paths = { replicaDbPath: "r", walPath: "w" }
    const lines = events.map((event, i) => Event.toLine(event, "CREATE", i + 3, undefined, true))
    yield* wal.append(lines)
    expect((yield* recover(paths, wal, replica, false)).head).toBe(4)
    const last = yield* Effect.map(Stream.runCollect(wal.read(3)), Chunk.toReadonlyArray)
    const end = Either.getOrThrow(decodeChange(JSON.parse(last[0]!.json)))
    expect([end.op, end.position, Event.endsWithin(last[0]!.json)]).toEqual(["DELETE", undefined, false])
    expect((yield* recover(paths, wal, replica, false)).head).toBe(4)
    expect(yield* replica.applied).toBe(4)
  }).pipe(Effect.provide(Layer.merge(MemoryReplica.layer, Wal.layerMemory("log"))))
)

it("D44 no record makes the line of a change look as if its step went on", () => {
  const record = { _svc_rv: 1, step_continues: true }
  for (const types of [undefined, { step_continues: "true" }]) {
    const raw = { table: "t", id: "t:1", record, ...(types === undefined ? {} : { types }) }
    expect(Event.endsWithin(Event.toLine(raw, "CREATE", 1, undefined))).toBe(false)
    expect(Event.endsWithin(Event.toLine(raw, "CREATE", 1, "me", true))).toBe(true)
  }
})

it.effect("D57 what the log says of definitions on the way types what is behind it, and nothing before", () =>
  Effect.gen(function* () {
    const replica = yield* Replica
    const wal = yield* Wal
    const defined = (types: { readonly [path: string]: string }) =>
      Definitions.textOf({
        definitions: { functions: new Map(), params: new Map() },
        tables: [{ name: "t", types, derived: false, view: undefined, announced: true, told: true, shape: "" }]
      })
    const line = (id: string) => Event.toLine({ table: "t", id, record: { took: "1h" } }, "CREATE", 1, undefined)
    const first = Definitions.docOf(defined({}))
    yield* replica.commit({ records: [{ id: Definitions.definitionsId, version: 1, doc: first }], through: 0 })
    const second = Event.toLine(Definitions.rawOf(defined({ took: "duration" })), "UPDATE", 2, undefined)
    yield* wal.append([line("t:1"), second, line("t:2")])
    yield* recover({ replicaDbPath: "r", walPath: "w" }, wal, replica, false)
    const ids = ["t:1", "t:2"].map((text) => Ids.parseLenient(text)!)
    const found = yield* replica.current(ids)
    expect(ids.map(({ text }) => typeof found.get(text)?.doc?.["took"])).toEqual(["string", "object"])
    expect((yield* definitionsInReplica(replica)).tables[0]?.types).toEqual({ took: "duration" })
  }).pipe(Effect.provide(Layer.merge(MemoryReplica.layer, Wal.layerMemory("log"))))
)
