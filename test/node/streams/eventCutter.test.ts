/** Events cut out of the bytes of a stream (D50): wherever the bytes are cut, they are the same. */
import { describe, expect, it } from "vitest"
import { SseParser } from "../../../src/client/sse.ts"
import { type CutEvent, dataOf, EventCutter } from "../../../src/node/streams/eventCutter.ts"

const text = `event: open\ndata: {"stream":"s1"}\n\n: still here\n\nview: 0\nevent: snapshot\nid: a-1\ndata: {"rows":["é\\n","💡"]}\n\nview: 12\nevent: delta\nid: a-2\ndata: {"view: 3":"data: x"}\n\nview: 0\nevent: end\ndata: {"reason":"moved"}\n\n`
const bytes = new TextEncoder().encode(text)
const decoder = new TextDecoder()

/** Copied, because a chunk's memory is used again. */
const seen = (event: CutEvent) => ({ ...event, bytes: decoder.decode(event.bytes.slice()) })

const cut = (pieces: ReadonlyArray<Uint8Array>) => {
  const cutter = new EventCutter(1000)
  return pieces.flatMap((piece) => {
    const chunk = piece.slice()
    const events = cutter.push(chunk)!.map(seen)
    chunk.fill(0)
    return events
  })
}

const expected = [
  { place: undefined, name: "open", id: undefined, bytes: 'event: open\ndata: {"stream":"s1"}\n\n' },
  { place: undefined, name: "", id: undefined, bytes: ": still here\n\n" },
  {
    place: 0,
    name: "snapshot",
    id: "a-1",
    bytes: 'event: snapshot\nid: a-1\ndata: {"rows":["é\\n","💡"]}\n\n'
  },
  { place: 12, name: "delta", id: "a-2", bytes: 'event: delta\nid: a-2\ndata: {"view: 3":"data: x"}\n\n' },
  { place: 0, name: "end", id: undefined, bytes: 'event: end\ndata: {"reason":"moved"}\n\n' }
]

describe("events cut out of bytes", () => {
  it("D50 whole, in two pieces at any byte, and byte by byte", () => {
    expect(cut([bytes])).toEqual(expected)
    for (let at = 1; at < bytes.length; at++)
      expect(cut([bytes.subarray(0, at), bytes.subarray(at)]), `cut at ${at}`).toEqual(expected)
    expect(cut([...bytes].map((byte) => Uint8Array.of(byte)))).toEqual(expected)
  })
  it("D83 are those that the client reads, however the bytes are cut", () => {
    const events = expected.filter(({ bytes }) => !bytes.startsWith(":"))
    const told = events.map(({ bytes: whole, id, name: event, place: view }) => {
      const data = JSON.stringify(dataOf({ place: view, name: event, id, bytes: new TextEncoder().encode(whole) }))
      return { event, id, view, data }
    })
    for (let at = 0; at <= bytes.length; at++) {
      const parser = new SseParser()
      const read = [bytes.subarray(0, at), bytes.subarray(at)].flatMap((piece) => parser.push(piece))
      expect(read, `cut at ${at}`).toEqual(told)
    }
  })
  it("D50 an event that does not end is let in up to a length", () => {
    const cutter = new EventCutter(10)
    expect(cutter.push(new Uint8Array(10))).toEqual([])
    expect(cutter.push(new Uint8Array(1))).toBeUndefined()
  })
  it("D50 data that is no JSON is undefined", () => {
    const [event] = new EventCutter(1000).push(new TextEncoder().encode("view: 0\nevent: end\ndata: {\n\n"))!
    expect(dataOf(event!)).toBeUndefined()
  })
})
