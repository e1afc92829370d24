/**
 * Several views over one connection, seen by a client that reads as it likes: nothing more is written until it has taken
 * what it was given, whatever is added and dropped meanwhile, and what it follows in the end is told whole and in order.
 */
import { describe, expect, it } from "vitest"
import { runs, seeded } from "../../../kit/data/random.ts"
import { followWhenSettled, type MultiStreamParts, type TakePieces } from "../../../src/node/streams/multiStream.ts"
import { OpenStreams } from "../../../src/node/streams/openStreams.ts"

const file = "test/node/streams/multiStream.test.ts"

/** A view whose events are its name and their numbers; it gives what it has as long as it is taken. */
class Source {
  sent = 0
  has: number
  isReady = false
  isClosed = false
  readonly take: TakePieces

  constructor(has: number, take: TakePieces) {
    this.has = has
    this.take = take
  }

  readonly resume = (): void => {
    if (this.isClosed) return
    this.isReady = true
    while (this.isReady && this.sent < this.has) this.isReady = this.take([piece(this.sent++)], false)
  }

  readonly close = (): void => {
    this.isClosed = true
    this.isReady = false
  }

  more(): void {
    this.has++
    if (this.isReady) this.resume()
  }
}

const pieceBytes = 1_000
const encoder = new TextEncoder()
const piece = (n: number): Uint8Array => encoder.encode(`id: ${n}\n`.padEnd(pieceBytes, "x"))

/** A stream to a client that takes nothing by itself. */
const opened = (maxViews: number) => {
  const streams = new OpenStreams(maxViews)
  const sources: Array<Source> = []
  const written: Array<string> = []
  const held = { bytes: 0 }
  /** Views whose names begin so are being registered while this is open. */
  const coming = { open: true, waiting: [] as Array<() => void> }
  const parts: MultiStreamParts = {
    admit: () => ({ expiresAtMs: undefined, subject: undefined }),
    follow: (view, _, take) => {
      const follow = (): ReturnType<MultiStreamParts["follow"]> => {
        if (view.endsWith("gone")) return { code: "VIEW_NOT_FOUND", message: "no such view" }
        const source = new Source(3, take)
        sources.push(source)
        return source
      }
      const isComing = view.startsWith("coming")
      return (
        followWhenSettled(follow, take, (done) => isComing && coming.open && coming.waiting.push(done) > 0) ?? follow()
      )
    }
  }
  const sink = {
    write: (bytes: Uint8Array): boolean => {
      written.push(new TextDecoder().decode(bytes))
      held.bytes += bytes.length
      return held.bytes < 2 * pieceBytes
    },
    end: () => {}
  }
  const stream = streams.open([], undefined, parts, sink)
  const change = (body: Parameters<OpenStreams["change"]>[2]) => streams.change(stream.id, undefined, body)
  const drain = (): void => {
    held.bytes = 0
    stream.drained()
  }
  return { stream, sources, written, held, change, drain, coming }
}

describe("a client that takes nothing", () => {
  it("is held no more than before, however often views are added and dropped", () => {
    const { change, held, sources, stream } = opened(99)
    const add = Array.from({ length: 99 }, () => ({ view: "a" }))
    let places: ReadonlyArray<number> = []
    for (let n = 0; n < 992; n++) {
      const changed = change({ drop: places, add })
      if (!("places" in changed)) throw new Error(changed.message)
      places = changed.places
    }
    expect(stream.live).toBe(99)
    expect(held.bytes).toBeLessThan(4 * pieceBytes)
    // Nothing is followed for it either.
    expect(sources.filter(({ isClosed }) => !isClosed).length).toBe(0)
  })
  it("counts what waits among the views of the stream", () => {
    const { change } = opened(3)
    const add = Array.from({ length: 3 }, () => ({ view: "a" }))
    change({ add })
    expect(change({ add: [{ view: "a" }] })).toMatchObject({ code: "INVALID_REQUEST" })
    expect(change({ drop: [1], add: [{ view: "a" }] })).toEqual({ places: [3] })
  })
})

describe("a view whose registration is on its way", () => {
  const settle = ({ coming }: ReturnType<typeof opened>, open: boolean): void => {
    coming.open = open
    for (const done of coming.waiting.splice(0)) done()
  }
  it("is followed once that is over, and refused where it came to nothing", () => {
    const node = opened(9)
    expect(node.change({ add: [{ view: "coming" }, { view: "coming gone" }] })).toEqual({ places: [0, 1] })
    settle(node, true)
    expect([node.sources.length, node.stream.live, node.written.length]).toEqual([0, 2, 1])
    settle(node, false)
    for (let n = 0; n < 4; n++) node.drain()
    expect([node.sources.length, node.stream.live]).toEqual([1, 1])
    expect(node.written.filter((text) => text.startsWith("view: 0\nid:")).length).toBe(3)
    expect(node.written.find((text) => text.startsWith("view: 1\n"))).toContain("VIEW_NOT_FOUND")
  })
  it("is not followed when it was dropped meanwhile", () => {
    const node = opened(9)
    node.change({ add: [{ view: "coming" }] })
    node.change({ drop: [0] })
    settle(node, false)
    expect([node.sources.length, node.stream.live, node.written.length]).toEqual([0, 0, 1])
  })
})

seeded("a client that takes some now and then is told of each view all there is, in order", file, (random) => {
  for (let run = 0; run < runs(40); run++) {
    const { change, drain, held, sources, stream, written } = opened(8)
    const live = new Set<number>()
    let most = 0
    for (let step = 0; step < 300; step++) {
      const what = random.below(6)
      if (what <= 1 && stream.live < 8) {
        const gone = random.below(5) === 0
        const added = change({ add: [{ view: gone ? "gone" : "a" }] })
        if ("places" in added && !gone) live.add(added.places[0]!)
      } else if (what === 2 && live.size > 0) {
        const place = [...live][random.below(live.size)]!
        live.delete(place)
        change({ drop: [place] })
      } else if (what === 3) drain()
      else for (const source of sources) source.more()
      most = Math.max(most, held.bytes)
    }
    // The limit, the piece that went over it, and the line that names its place.
    expect(most).toBeLessThan(3.5 * pieceBytes)
    for (let n = 0; n < 5_000; n++) drain()
    const told = new Map<number, Array<number>>()
    for (const text of written) {
      const [, place, id] = /^view: (\d+)\nid: (\d+)\n/.exec(text) ?? []
      if (id !== undefined) told.set(Number(place), [...(told.get(Number(place)) ?? []), Number(id)])
    }
    expect(stream.live).toBe(live.size)
    const open = sources.filter(({ isClosed }) => !isClosed)
    expect(open.length).toBe(live.size)
    expect(open.every(({ has, sent }) => has === sent)).toBe(true)
    for (const [place, ids] of told) expect(ids, `place ${place}`).toEqual(ids.map((_, n) => n))
    expect([...live].every((place) => told.has(place))).toBe(true)
  }
})
