/**
 * Bringing the replica to the log's end: what was lost of it between a commit and a crash comes back exactly as it was.
 *
 * The types are what is easily lost: the log has a record as the JSON it came as, and what it means depends on what is
 * declared for its table.
 */
import { it } from "@effect/vitest"
import { Effect, Either, Layer } from "effect"
import { expect } from "vitest"
import { decodeChange } from "../../src/core/record/change.ts"
import * as Event from "../../src/core/record/event.ts"
import { identical } from "../../src/core/surql/values/order.ts"
import * as MemoryReplica from "../../src/drivers/memoryReplica.ts"
import { Replica } from "../../src/ports/Replica.ts"
import { Wal } from "../../src/ports/Wal.ts"
import { recover } from "../../src/scheduler/ingest/recovery.ts"

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
