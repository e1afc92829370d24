/**
 * Streams in format rows (D50): what a follower is told makes the result, from any event on, and rows are kept no longer
 * than they are followed.
 */

import { it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { describe, expect } from "vitest"
import { applied, type RowsDeltaJson } from "../../../../kit/checks/followRows.ts"
import { ingest } from "../../../../kit/checks/viewsAsked.ts"
import { VirtualTime } from "../../../../kit/data/virtualTime.ts"
import type { Subscription } from "../../../../src/node/streams/feed.ts"
import { bytesOf, type ViewEvent } from "../../../../src/node/streams/viewEvent.ts"
import { streamEvents } from "../../../../src/protocol/streamEvents.ts"
import { visibleErrors } from "../../../../src/ssp/views/answerBytes.ts"
import type { Views } from "../../../../src/ssp/views/Views.ts"
import { change, registration, ticking, withViews } from "../../viewsKit.ts"

const strictly = { onExcessProperty: "error" } as const
const decoded = {
  snapshot: Schema.decodeUnknownSync(streamEvents.rows.snapshot, strictly),
  delta: Schema.decodeUnknownSync(streamEvents.rows.delta, strictly),
  end: Schema.decodeUnknownSync(streamEvents.rows.end, strictly)
}

/** A client of a stream in format rows, which decodes every event by the schema of the wire. */
class Client {
  rows: ReadonlyArray<unknown> | undefined
  hash: string | undefined
  lastId: string | undefined
  ended: unknown
  errors: unknown = []
  readonly events: Array<ViewEvent> = []
  private parts: Array<unknown> = []
  private readonly following: Subscription

  constructor(views: Views["Type"], id: string, after?: string, rows?: ReadonlyArray<unknown>) {
    this.rows = rows
    const following = views.follow(id, "rows", after, { take: (events) => (this.take(events), true) })
    if (following === undefined) throw new Error(`nothing to follow: ${id}`)
    this.following = following
    following.resume()
  }

  close(): void {
    this.following.close()
  }

  private take(events: ReadonlyArray<ViewEvent>): void {
    for (const event of events) {
      this.events.push(event)
      const text = new TextDecoder().decode(bytesOf(event))
      const data: unknown = JSON.parse(text.slice(text.indexOf("data: ") + 6))
      decoded[event.event as keyof typeof decoded](data)
      if (event.event === "end") this.ended = data
      else if (event.event === "delta") this.delta(data as RowsDeltaJson)
      else this.part(data as { readonly part: number; readonly parts: number; readonly rows: ReadonlyArray<unknown> })
      this.lastId = event.id ?? this.lastId
    }
  }

  private part({ part, parts, rows, ...end }: { part: number; parts: number; rows: ReadonlyArray<unknown> }): void {
    if (part === 0) this.parts = []
    this.parts.push(...rows)
    if (part < parts - 1) return expect(end).toEqual({ query_id: expect.any(String) })
    const { errors = [], result_hash } = end as { errors?: unknown; result_hash?: string }
    this.rows = this.parts
    this.hash = result_hash
    this.errors = errors
  }

  private delta(delta: RowsDeltaJson): void {
    this.rows = applied(this.rows!, delta)
    this.hash = delta.result_hash
    this.errors = delta.errors ?? this.errors
  }
}

const result = (views: Views["Type"], id: string) =>
  Effect.map(views.read(id, "tree"), ({ errors = [], result_data, result_hash }) => ({
    rows: result_data,
    hash: result_hash,
    errors: visibleErrors(errors, "kinds")
  }))

/** The event of a batch is made in the next turn. */
const settled = Effect.yieldNow().pipe(Effect.repeatN(5))

const holds = (views: Views["Type"], id: string, client: Client) =>
  Effect.gen(function* () {
    yield* settled
    const { errors, hash, rows } = yield* result(views, id)
    expect({ rows: client.rows, hash: client.hash, errors: client.errors }).toEqual({ rows, hash, errors })
  })

const kinds = (client: Client): ReadonlyArray<string> => client.events.map(({ event }) => event)

const records = (n: number, more = {}) => Array.from({ length: n }, (_, i) => change(`t:${i}`, { n: i, ...more }))

describe("a stream of rows", () => {
  it.live("D50 a snapshot and deltas make the result, for every kind of view", () =>
    withViews(({ views }) =>
      Effect.gen(function* () {
        const queries = [
          "SELECT * FROM t",
          "SELECT id, n FROM t ORDER BY n DESC LIMIT 3",
          "SELECT g, count() AS c FROM t GROUP BY g ORDER BY g"
        ]
        for (const [i, query] of queries.entries()) {
          yield* views.register(registration(`v${i}`, query))
          const client = new Client(views, `v${i}`)
          for (let n = 0; n < 8; n++) {
            yield* ingest(views, [change(`t:${n}`, { n: (n * 7 + i) % 5, g: (n + i) % 2 })])
            yield* holds(views, `v${i}`, client)
          }
          yield* ingest(views, [change("t:3", {}, {}, "DELETE")])
          yield* holds(views, `v${i}`, client)
          expect(kinds(client).filter((kind) => kind === "delta").length).toBeGreaterThan(3)
          client.close()
          yield* views.unregister(`v${i}`)
        }
      })
    )
  )
  it.live("D50 what is applied in one turn is one event, and views of one result share its text", () =>
    withViews(({ views }) =>
      Effect.gen(function* () {
        yield* views.register(registration("a", "SELECT * FROM t"))
        yield* views.register(registration("b", "SELECT * FROM t"))
        const clients = [new Client(views, "a"), new Client(views, "b")]
        yield* ingest(views, records(9))
        yield* ingest(views, [change("t:1", { n: 100 }, {}, "UPDATE"), change("t:2", {}, {}, "DELETE")])
        for (const [i, id] of ["a", "b"].entries()) yield* holds(views, id, clients[i]!)
        expect(clients.map(kinds)).toEqual([
          ["snapshot", "delta", "delta"],
          ["snapshot", "delta", "delta"]
        ])
        const [first, second] = clients.map(({ events }) => JSON.stringify(events[2]!.data))
        expect(first).toBe(second)
        expect(first).not.toContain("seq")
      })
    )
  )
  it.live("D50 a client that comes back gets what it missed, and a snapshot where that is not there any more", () =>
    withViews(({ views }) =>
      Effect.gen(function* () {
        yield* views.register(registration("a", "SELECT * FROM t"))
        const gone = new Client(views, "a")
        yield* ingest(views, records(2))
        yield* settled
        const { lastId } = gone
        gone.close()
        yield* ingest(views, [change("t:5", { n: 5 })])
        yield* ingest(views, [change("t:6", { n: 6 })])
        yield* settled
        const back = new Client(views, "a", lastId, gone.rows)
        yield* settled
        expect(back.events.every(({ event }) => event === "delta") && back.events.length > 0).toBe(true)
        expect(back.rows).toHaveLength(4)
        back.close()
        for (let n = 0; n < 7; n++) {
          yield* ingest(views, [change(`t:9${n}`, { n })])
          yield* settled
        }
        const late = new Client(views, "a", lastId)
        yield* holds(views, "a", late)
        expect(kinds(late)).toEqual(["snapshot"])
        late.close()
        const other = new Client(views, "a", "someone.3")
        expect(kinds(other)).toEqual(["snapshot"])
      })
    )
  )
  it.live("D50 a row of which a part changed is told by path", () =>
    withViews(({ views }) =>
      Effect.gen(function* () {
        const text = "x".repeat(2_000)
        yield* ingest(views, [change("t:1", { text, n: 1 }), change("t:2", { text, n: 2 })])
        yield* views.register(registration("a", "SELECT * FROM t"))
        const client = new Client(views, "a")
        yield* ingest(views, [change("t:2", { text, n: 3 }, {}, "UPDATE")])
        yield* holds(views, "a", client)
        expect(client.events[1]!.data).toEqual({
          patch: [[1, [[["n"], 3]]]],
          result_hash: expect.any(String)
        })
      })
    )
  )
  it.live("D50 a large snapshot comes in parts, and changes meanwhile come behind it", () =>
    withViews(
      ({ views }) =>
        Effect.gen(function* () {
          yield* ingest(views, records(700, { text: "x".repeat(1_000) }))
          yield* views.register(registration("a", "SELECT * FROM t ORDER BY n"))
          const client = new Client(views, "a")
          for (let n = 0; n < 30 && client.rows === undefined; n++) {
            yield* ingest(views, [change(`t:${n}`, { n, text: `now ${n}` }, {}, "UPDATE")])
            yield* Effect.yieldNow()
          }
          yield* settled
          yield* ingest(views, [change("t:699", { n: -1, text: "first" }, {}, "UPDATE")])
          yield* holds(views, "a", client)
          const snapshots = client.events.filter(({ event }) => event === "snapshot")
          expect(snapshots.length).toBeGreaterThan(3)
          expect(snapshots.map(({ id }) => id !== undefined)).toEqual(
            snapshots.map((_, part) => part === snapshots.length - 1)
          )
        }),
      ticking()
    )
  )
  it.live("D2a D50 rows that are left out are named, and no more when they can be shown", () =>
    withViews(({ views }) =>
      Effect.gen(function* () {
        yield* views.register(registration("a", "SELECT id, n + 1 AS m FROM t"))
        const client = new Client(views, "a")
        yield* ingest(views, [change("t:1", { n: 1 }), change("t:2", { n: true })])
        yield* holds(views, "a", client)
        expect(client.errors).toHaveLength(1)
        yield* ingest(views, [change("t:2", { n: 2 }, {}, "UPDATE")])
        yield* holds(views, "a", client)
        expect(client.errors).toEqual([])
      })
    )
  )
  it.live("D50 FROM ONLY is one row or none", () =>
    withViews(({ views }) =>
      Effect.gen(function* () {
        yield* views.register(registration("a", "SELECT * FROM ONLY t:1"))
        const client = new Client(views, "a")
        expect(client.events[0]!.data).toMatchObject({ only: true, rows: [] })
        yield* ingest(views, [change("t:1", { n: 1 })])
        yield* settled
        expect(client.rows).toEqual([{ id: "t:1", n: 1 }])
        yield* ingest(views, [change("t:1", {}, {}, "DELETE")])
        yield* settled
        expect(client.rows).toEqual([])
      })
    )
  )
  it.live("D11 D50 it ends with the reason for which the view goes", () =>
    withViews(({ stop, views }) =>
      Effect.gen(function* () {
        yield* views.register(registration("a", "SELECT * FROM t"))
        const first = new Client(views, "a")
        yield* views.register(registration("a", "SELECT * FROM t WHERE n > 1"))
        expect(first.ended).toEqual({ reason: "replaced" })
        first.close()
        const second = new Client(views, "a")
        yield* views.unregister("a")
        expect(second.ended).toEqual({ reason: "unregistered" })
        second.close()
        yield* views.register(registration("a", "SELECT * FROM t"))
        const third = new Client(views, "a")
        yield* views.reset
        expect(third.ended).toEqual({ reason: "reset" })
        third.close()
        yield* views.register(registration("a", "SELECT * FROM t"))
        const last = new Client(views, "a")
        yield* stop
        expect(last.ended).toEqual({ reason: "shutdown" })
      })
    )
  )
  it.live("D48 D50 a result that takes more than it may is not followed, or no more, and the setting is named", () =>
    withViews(({ views }) =>
      Effect.gen(function* () {
        yield* views.register(registration("a", "SELECT * FROM t"))
        const client = new Client(views, "a")
        yield* ingest(views, [change("t:1", { text: "x".repeat(600_000) })])
        yield* settled
        expect(client.ended).toBeUndefined()
        yield* ingest(views, [change("t:2", { text: "x".repeat(600_000) })])
        yield* settled
        const ended = { reason: "tooLarge", message: expect.stringMatching(/1000000 bytes.*SVC_VIEW_RESULT_BYTES/) }
        expect(client.ended).toEqual(ended)
        client.close()
        const another = new Client(views, "a")
        yield* settled
        expect(another.ended).toEqual(ended)
        another.close()
        yield* ingest(views, [change("t:2", {}, {}, "DELETE")])
        yield* holds(views, "a", new Client(views, "a"))
      })
    )
  )
  it.live("D50 rows are kept for a minute behind their last follower, and what they take is given back", () => {
    const time = new VirtualTime()
    return withViews(
      ({ views }) =>
        Effect.gen(function* () {
          const kept = () => views.figures().streamedChars
          const passes = (ms: number) => Effect.promise(() => time.advance(ms))
          yield* ingest(views, records(5))
          yield* views.register(registration("a", "SELECT * FROM t"))
          expect(kept()).toBe(0)
          const client = new Client(views, "a")
          const taken = kept()
          expect(taken).toBeGreaterThan(50)
          client.close()
          yield* passes(59_000)
          expect(kept()).toBe(taken)
          yield* passes(16_000)
          expect(kept()).toBe(0)
          yield* holds(views, "a", new Client(views, "a"))
          yield* views.unregister("a")
          expect(kept()).toBe(0)
        }),
      time.clock
    )
  })
})
