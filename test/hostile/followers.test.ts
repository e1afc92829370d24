/**
 * Followers of a view that do not read (D11): a change costs nothing for them, what they miss is kept once, and they
 * are told.
 *
 * The table is `attacks/followers.ts`. Counted, not timed: how often an event is made into text, how many pieces each follower is given.
 */

import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { Feed } from "../../src/node/streams/feed.ts"
import { SingleStreams } from "../../src/node/streams/singleStreams.ts"
import { endEvent, type ViewEvent } from "../../src/node/streams/viewEvent.ts"
import type { Reply } from "../../src/ports/Front.ts"
import { rows } from "./attacks/followers.ts"

const snapshot: ViewEvent = { event: "snapshot", id: "i.0", data: {} }
const told = ({ data, event, id }: ViewEvent): string =>
  event === "end" ? `end ${(data as { readonly reason: string }).reason}` : `${event} ${id}`

const feedOf = (capacity: number): Feed => new Feed(capacity, (feed) => void setImmediate(() => feed.flush()))

/** A client that takes one piece each time it is asked; undefined: there is none yet, or never again. */
const client = (feed: Feed, first: ReadonlyArray<ViewEvent> = []) => {
  let taken: ReadonlyArray<string> | undefined
  const follower = feed.listen({ take: (events) => ((taken = events.map(told)), false) }, first)
  return {
    close: () => follower.close(),
    taken: () => taken,
    take: (): ReadonlyArray<string> | undefined => {
      taken = undefined
      follower.resume()
      return taken
    }
  }
}

/** Deltas that count how often they are made into text. */
const counting = () => {
  const made = { texts: 0 }
  const delta = (n: number, size = 10): ViewEvent => ({
    event: "delta",
    id: `i.${n}`,
    data: {
      toJSON: () => {
        made.texts++
        return { text: "x".repeat(size) }
      }
    }
  })
  return { made, delta }
}

/** A response nobody reads: takes as many pieces as it has room for, then no more for ever. */
const stalled = (all: SingleStreams, feed: Feed, room: number) => {
  const given: Array<number> = []
  let close = (): void => {}
  const reply: Pick<Reply, "stream" | "whenGone"> = {
    stream: (_, { gone }) => {
      close = gone
      return { write: (piece) => given.push(piece.length) < room, end: () => {} }
    },
    whenGone: () => {}
  }
  all.open((taker) => feed.listen(taker, [snapshot]), reply)
  return { given, close: () => close() }
}

describe("followers that do not read", () => {
  for (const { batches, changes, followers, size, takes, what } of rows)
    it(`D11 ${what}: a change makes one text however many follow, and none for a client that does not take it`, async () => {
      const { delta, made } = counting()
      const feed = feedOf(10_000)
      const all = new SingleStreams(Effect.runFork)
      const streams = Array.from({ length: followers }, () => stalled(all, feed, takes))
      const given = (): ReadonlySet<number> => new Set(streams.map((stream) => stream.given.length))
      await expect.poll(given).toEqual(new Set([Math.min(takes, 2)]))
      for (let batch = 0; batch < batches; batch++) {
        for (let n = 1; n <= changes; n++)
          feed.push(changes * batch + n - 1, changes * batch + n, delta(changes * batch + n, size))
        // As many pieces as it takes, then no more; meanwhile a text is made once for all.
        await expect.poll(given).toEqual(new Set([Math.min(takes, 3 + batch)]))
        await new Promise((done) => setTimeout(done, 5))
        expect(made.texts).toBeLessThanOrEqual(changes * (batch + 1))
      }
      expect(made.texts).toBeLessThan(changes * batches)
      for (const { close } of streams) close()
      expect(feed.listening).toBe(0)
    })
  it("D11 a change without a waiting client touches no follower", () => {
    const { delta, made } = counting()
    const feed = feedOf(100)
    const followers = Array.from({ length: 300 }, () => client(feed))
    for (let n = 1; n <= 100_000; n++) feed.push(n - 1, n, delta(n))
    expect([made.texts, feed.listening]).toEqual([0, 300])
    expect(followers[0]!.take()).toEqual(["end behind"])
    expect([followers[0]!.take(), feed.listening]).toEqual([undefined, 299])
  })
  it("D11 a client that reads late gets all that is buffered, in order, in pieces of bounded size, and then the end", () => {
    const { delta } = counting()
    const feed = feedOf(100)
    const late = client(feed, [snapshot])
    for (let n = 1; n <= 100; n++) feed.push(n - 1, n, delta(n, 10_000))
    feed.end(endEvent("unregistered"))
    const all: Array<string> = []
    for (let piece = late.take(); piece !== undefined; piece = late.take()) {
      expect(piece.length).toBeLessThanOrEqual(4)
      all.push(...piece)
    }
    expect(all).toEqual([
      "snapshot i.0",
      ...Array.from({ length: 100 }, (_, n) => `delta i.${n + 1}`),
      "end unregistered"
    ])
  })
  it("D11 one beyond the buffer is told end, behind, whatever else has ended; one within it loses nothing", () => {
    const { delta } = counting()
    const feed = feedOf(5)
    const behind = client(feed)
    feed.push(0, 1, delta(1))
    const within = client(feed)
    for (let n = 2; n <= 6; n++) feed.push(n - 1, n, delta(n))
    expect(behind.take()).toEqual(["end behind"])
    expect(within.take()).toEqual([2, 3, 4, 5, 6].map((n) => `delta i.${n}`))
  })
  it("D11 resuming finds its place in the buffer, or none", () => {
    const { delta } = counting()
    const feed = feedOf(5)
    expect([feed.after(7, 7), feed.after(6, 7), feed.after(8, 7)]).toEqual([0, undefined, undefined])
    for (let n = 8; n <= 14; n++) feed.push(n - 1, n, delta(n))
    expect([14, 13, 9, 8, 0, 15].map((n) => feed.after(n, 14))).toEqual([7, 6, 2, undefined, undefined, undefined])
    // Numbers that one event has skipped are no places to go on from.
    feed.push(14, 17, delta(17))
    expect([14, 15, 16, 17].map((n) => feed.after(n, 17))).toEqual([7, undefined, undefined, 8])
    // A change that was not told (the view moved without a delta): nothing can be resumed over it.
    expect(feed.after(13, 18)).toBeUndefined()
  })
  it("D11 a client that waits is told at once, and a client that left is not", async () => {
    const { delta } = counting()
    const feed = feedOf(5)
    const stays = client(feed)
    const goes = client(feed)
    expect([stays.take(), goes.take()]).toEqual([undefined, undefined])
    goes.close()
    feed.push(0, 1, delta(1))
    await expect.poll(stays.taken).toEqual(["delta i.1"])
    expect([goes.taken(), goes.take(), feed.listening]).toEqual([undefined, undefined, 1])
  })
})
