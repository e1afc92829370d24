/**
 * The reading of record changes (D3, D4, D5): what is accepted, how every fault is named, and that the hand-written
 * decoder takes nothing the declared contract refuses.
 */
import { Either, Schema } from "effect"
import { describe, expect, test } from "vitest"
import { type Rng, runs, seeded } from "../../../kit/data/random.ts"
import { decodeChange, decodeChanges } from "../../../src/core/record/change.ts"
import { Datetime, RecordId } from "../../../src/core/surql/values/value.ts"
import * as Wire from "../../../src/protocol/wire.ts"

const good = { table: "person", op: "CREATE", id: "person:a", record: { name: "x" } }
const faultsOf = (json: unknown) =>
  Either.match(decodeChanges(json), {
    onLeft: (refused) => [refused.code, refused.details.map((fault) => fault.path)],
    onRight: () => "accepted"
  })

describe("what a change means", () => {
  test("D3 op in any letter case, id with or without escapes, record.id of the same record", () => {
    for (const op of ["CREATE", "create", "Update", "dElEtE"]) expect(faultsOf({ ...good, op }), op).toBe("accepted")
    expect(faultsOf({ ...good, record: { id: "person:a" } })).toBe("accepted")
    expect(faultsOf({ ...good, id: "person:`a b`", record: { id: "person:⟨a b⟩" } })).toBe("accepted")
    expect(faultsOf({ ...good, id: "person:a-b" })).toBe("accepted")
  })

  test("D4 _svc_rv is the version and leaves the content", () => {
    const change = Either.getOrThrow(decodeChange({ ...good, record: { name: "x", _svc_rv: 7 } }))
    expect(change.version).toBe(7)
    expect(Object.keys(change.doc).sort()).toEqual(["id", "name"])
    expect(faultsOf({ ...good, record: { _svc_rv: -1 } })).toEqual(["INVALID_REQUEST", ["record._svc_rv"]])
    expect(faultsOf({ ...good, record: { _svc_rv: "7" } })).toEqual(["INVALID_REQUEST", ["record._svc_rv"]])
    expect(faultsOf({ ...good, op: "DELETE", record: { _svc_rv: "ignored", id: "ignored" } })).toBe("accepted")
  })

  test("D1 where the database's schema is known, its types count, and a change that names types names all there are", () => {
    const schema = (table: string) =>
      table === "item"
        ? { at: "none | datetime", boss: "record<person>", "tags.*": "uuid", price: "decimal", note: "string" }
        : undefined
    const uuid = "0190b5c3-1111-7000-8000-000000000000"
    const record = {
      at: "2024-01-01T00:00:00Z",
      boss: "person:b",
      tags: [uuid, "x"],
      price: "1.50",
      note: "2024-01-01T00:00:00Z",
      free: "2024-01-01T00:00:00Z"
    }
    const docOf = (change: object, known = schema) =>
      Either.getOrThrow(decodeChange({ table: "item", op: "CREATE", id: "item:1", record, ...change }, known)).doc
    const kinds = (doc: object) =>
      Object.fromEntries(
        Object.entries(doc).map(([name, value]) => [
          name,
          typeof value === "string" ? "text" : (value as object).constructor.name
        ])
      )
    expect(kinds(docOf({}))).toEqual({
      at: "Datetime",
      boss: "RecordId",
      tags: "Array",
      price: "Decimal",
      note: "text",
      free: "Datetime",
      id: "RecordId"
    })
    expect((docOf({})["tags"] as ReadonlyArray<unknown>).map((item) => typeof item)).toEqual(["object", "string"])
    expect(kinds(docOf({ types: { boss: "record" } }))).toEqual({
      at: "text",
      boss: "RecordId",
      tags: "Array",
      price: "text",
      note: "text",
      free: "text",
      id: "RecordId"
    })
    expect(kinds(docOf({ types: { boss: "record" } }, () => undefined))).toMatchObject({
      at: "Datetime",
      boss: "RecordId",
      note: "Datetime"
    })
    expect(
      Either.getOrThrow(decodeChanges([{ table: "item", op: "UPDATE", id: "item:1", record }], schema))[0]?.doc
    ).toEqual(docOf({}))
  })
  test("D1 the record is typed once: id always, date-times by shape, declared types first", () => {
    const change = Either.getOrThrow(
      decodeChange({ ...good, record: { at: "2020-01-02T03:04:05Z", day: "2020-01-02", boss: "person:b" } })
    )
    expect(change.doc["id"]).toBeInstanceOf(RecordId)
    expect(change.doc["at"]).toBeInstanceOf(Datetime)
    expect(change.doc["day"]).toBe("2020-01-02")
    expect(change.doc["boss"]).toBe("person:b")
    const typed = Either.getOrThrow(
      decodeChange({ ...good, record: { boss: "person:b" }, types: { boss: "record<person>" } })
    )
    expect(typed.doc["boss"]).toBeInstanceOf(RecordId)
  })

  test("keys such as __proto__ are plain data", () => {
    const change = Either.getOrThrow(
      decodeChange({ ...good, record: JSON.parse('{"__proto__": {"x": 1}, "constructor": 2}') as object })
    )
    expect(Object.keys(change.doc).sort()).toEqual(["__proto__", "constructor", "id"])
    expect(Object.getPrototypeOf(change.doc)).toBe(Object.prototype)
  })
})

describe("faults", () => {
  test("D6 every fault of a change is named at once", () => {
    expect(faultsOf({})).toEqual(["INVALID_REQUEST", ["table", "op", "id", "record"]])
    expect(
      faultsOf({
        table: 1,
        op: "DROP",
        id: "x",
        record: [],
        types: [],
        seq: -1,
        epoch: "1",
        log_id: 2,
        job_assignee: {}
      })
    ).toEqual(["INVALID_REQUEST", ["table", "op", "id", "record", "types", "seq", "epoch", "log_id", "job_assignee"]])
    expect(faultsOf({ ...good, op: "DROP" })).toEqual(["INVALID_OPERATION", ["op"]])
    expect(faultsOf({ ...good, op: 1 })).toEqual(["INVALID_REQUEST", ["op"]])
    expect(faultsOf({ ...good, id: "animal:a" })).toEqual(["INVALID_REQUEST", ["id"]])
    expect(faultsOf({ ...good, record: { id: "person:b" } })).toEqual(["INVALID_REQUEST", ["record.id"]])
    for (const body of [null, 1, "x", true]) expect(faultsOf(body)).toEqual(["INVALID_REQUEST", [""]])
  })

  test("D5 one bad element refuses the array and names its index; an empty array is refused", () => {
    expect(faultsOf([])).toEqual(["INVALID_REQUEST", [""]])
    expect(faultsOf([good, { ...good, record: null }])).toEqual(["INVALID_REQUEST", ["[1].record"]])
    expect(faultsOf([good, 1])).toEqual(["INVALID_REQUEST", ["[1]"]])
    expect(faultsOf([good, { ...good, op: "DROP" }])).toEqual(["INVALID_OPERATION", ["[1].op"]])
  })
})

const odd: ReadonlyArray<unknown> = [
  null,
  0,
  1.5,
  -1,
  "",
  "x",
  "person:a",
  "person:",
  ":a",
  [],
  {},
  true,
  { id: "person:a" },
  "CREATE",
  "drop",
  2 ** 60
]

const mutated = (rng: Rng): unknown => {
  const change: Record<string, unknown> = { ...good }
  for (let i = rng.below(3); i > 0; i--) {
    const key = rng.pick(["table", "op", "id", "record", "types", "seq", "log_id", "epoch", "job_assignee"])
    if (rng.chance(0.3)) delete change[key]
    else change[key] = rng.pick(odd)
  }
  return change
}

seeded(
  "what the decoder accepts, the declared schema of /ingest accepts too",
  "test/core/record/change.test.ts",
  (random) => {
    const declared = Schema.decodeUnknownEither(Wire.Ingest)
    let accepted = 0
    let refused = 0
    for (let i = 0; i < runs(5_000); i++) {
      const body = random.chance(0.3)
        ? Array.from({ length: 1 + random.below(3) }, () => mutated(random))
        : mutated(random)
      if (Either.isLeft(decodeChanges(body))) refused++
      else {
        accepted++
        expect(Either.isRight(declared(body)), JSON.stringify(body)).toBe(true)
      }
    }
    expect(Math.min(accepted, refused)).toBeGreaterThan(500)
  }
)
