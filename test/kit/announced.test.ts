/**
 * The checker of announcements finds a version that is told before its content can be read, one that is never told, and
 * a record that leaves before it is gone.
 */
import type { RecordId, Surreal } from "surrealdb"
import { expect, it } from "vitest"
import { Announcements } from "../../kit/checks/announced.ts"
import type { EventStream, StreamEvent } from "../../kit/checks/EventStream.ts"
import type { NodeBeside } from "../../kit/processes/nodeBeside.ts"

/** A database and a node that hold what they are told to, and one client on the stream. */
const world = async () => {
  const database = new Map<number, number>()
  const memory = new Map<number, { readonly version: number; readonly n: number }>()
  const answer = (text: string, ids: ReadonlyArray<RecordId> = []): ReadonlyArray<unknown> =>
    text.startsWith("LIVE")
      ? ["a live query"]
      : text.startsWith("LET")
        ? [null, ids.flatMap((id) => (database.has(Number(id.id)) ? [{ id, n: database.get(Number(id.id)) }] : []))]
        : [[]]
  const db = {
    query: async (text: string, bindings: { readonly ids?: ReadonlyArray<RecordId> } = {}) =>
      answer(text, bindings.ids),
    liveOf: async () => ({ subscribe: () => undefined })
  }
  const records = {
    get: (id: { readonly key: unknown }) => {
      const row = memory.get(Number(id.key))
      return row && { id, version: row.version, doc: { n: row.n } }
    }
  }
  const announcements = new Announcements(
    "item",
    db as unknown as Surreal,
    { records } as unknown as Pick<NodeBeside, "records">
  )
  const stream = { heard: (_: StreamEvent): void => undefined }
  await announcements.follow("items", stream as EventStream)
  const told = (data: object): void =>
    stream.heard({ event: "delta", id: undefined, data: { additions: [], updates: [], removals: [], ...data } })
  return { announcements, database, memory, told }
}

it("D44 the checker of announcements takes what can be read, and names what is told before", async () => {
  const { announcements, database, memory, told } = await world()
  database.set(1, 10)
  memory.set(1, { version: 1, n: 10 })
  told({ additions: [["item:1", 1]] })
  memory.set(1, { version: 2, n: 11 })
  told({ updates: [["item:1", 2]] })
  await new Promise(setImmediate)
  expect(announcements.behind(new Map([[1, 11]]))).toContain(
    "stream has 1 as 10, told of version 2, the database as 11"
  )
  database.set(1, 11)
  told({ updates: [["item:1", 2]] })
  await new Promise(setImmediate)
  expect(announcements.behind(new Map([[1, 11]])).filter((text) => text.startsWith("stream"))).toEqual([])
  expect(await announcements.end()).toEqual(["stream 1 has version 2, which is 11 at least; read then: 10"])
})

it("D44 the checker of announcements names a version that memory has passed, and what leaves before it is gone", async () => {
  const { announcements, database, memory, told } = await world()
  database.set(1, 10)
  memory.set(1, { version: 1, n: 10 })
  told({ additions: [["item:1", 1]] })
  memory.set(1, { version: 3, n: 12 })
  told({ updates: [["item:1", 2]] })
  memory.delete(1)
  told({ removals: ["item:1"] })
  await new Promise(setImmediate)
  announcements.deleting(1, 12)
  database.delete(1)
  told({ updates: [["item:1", 3]] })
  told({ removals: ["item:1"] })
  expect(await announcements.end()).toEqual([
    "stream 1 has version 2, which is 11 at least; read then: 10",
    "stream 1 has left with 11; read then: 10"
  ])
  expect(announcements.counts()).toEqual({ live: 0, poll: 0, stream: 5 })
})
