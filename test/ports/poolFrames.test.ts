/**
 * The pool's frames as a scheduler that stands by reads them ahead: a take-over has all of them, whatever a server kept
 * back, and asks for few.
 */
import { Effect } from "effect"
import { describe, expect } from "vitest"
import { type Rng, runs, seeded } from "../../kit/data/random.ts"
import { type Frame, firstHead, firstMessageOf, type Head, isLastPiece } from "../../src/drivers/nats/frame.ts"
import { PoolFrames } from "../../src/drivers/nats/poolFrames.ts"

/** A stream that grows, and a journal that reads it. */
class Stream {
  readonly frames: Array<Frame> = []
  /** Messages that were asked for, each by its kind from a place on, and those of whole stretches. */
  asked = 0
  /** How often an answer is that of a server which lacks what is asked for. */
  lag = 0
  private readonly random: Rng
  private head = firstHead("log")

  constructor(random: Rng) {
    this.random = random
    this.push({ kind: "term" })
  }

  private push(change: Partial<Head>): void {
    this.head = { ...this.head, part: 0, parts: 1, ...change }
    this.frames.push({ at: this.frames.length + 1, head: this.head, body: new Uint8Array() })
  }

  get last(): Frame {
    return this.frames.at(-1)!
  }

  /** The pool's frames that count. */
  get pool(): ReadonlyArray<Frame> {
    const { pool } = this.head
    return pool === 0 ? [] : this.frames.filter(({ at, head }) => head.kind === "pool" && at >= pool)
  }

  grow(): void {
    const { random } = this
    if (random.chance(0.6)) return this.push({ kind: random.pick(["records", "beat"] as const) })
    const parts = random.chance(0.2) ? 2 : 1
    const begin = this.frames.length + 1
    const { pool, writes } = this.head
    if (parts === 2) this.push({ kind: "pool", part: 0, parts })
    // Of the rows the oldest one may have been written again, all may have been, and none may be left.
    const later = this.pool.filter(isLastPiece)
    const oldest = random.chance(0.02)
      ? 0
      : pool === 0 || random.chance(0.02)
        ? begin
        : random.chance(0.2)
          ? firstMessageOf(random.pick(later))
          : pool
    this.push({ kind: "pool", part: parts - 1, parts, writes: writes + 1, pool: oldest })
  }

  readonly journal = {
    next: (kind: string, from: number) =>
      Effect.sync(() => {
        this.asked++
        const found = this.frames.filter(({ at, head }) => at >= from && head.kind === kind)
        return this.random.chance(this.lag) ? found[1] : found[0]
      }),
    among: (kind: string, from: number, to: number) =>
      Effect.sync(() => {
        this.asked += Math.max(0, to + 1 - from)
        return this.frames.filter(({ at, head }) => at >= from && at <= to && head.kind === kind)
      })
  }
}

/** Takes the pool over after so many messages, read ahead now and then. */
const takenOver = async (random: Rng, messages: number, lag: number) => {
  const stream = new Stream(random)
  stream.lag = lag
  const frames = new PoolFrames(stream.journal)
  let read = 0,
    news = 0,
    writes = 0
  for (let i = 0; i < messages; i++) {
    stream.grow()
    if (!random.chance(0.1)) continue
    await Effect.runPromise(frames.readAhead(stream.last))
    read = stream.last.at
    if (stream.last.head.writes !== writes) news++
    writes = stream.last.head.writes
  }
  // Each frame once, and where there is news that there is no more; none is asked for where there is none.
  expect(stream.asked).toBeLessThanOrEqual(stream.frames.filter(({ head }) => head.kind === "pool").length + news)
  stream.asked = 0
  const taken = await Effect.runPromise(frames.take(stream.last))
  return { asked: stream.asked, behind: stream.last.at - read, taken, wanted: stream.pool }
}

describe("D62 the pool's frames, read ahead", () => {
  const file = "test/ports/poolFrames.test.ts"
  seeded("a take-over has those that count, and asks for what came since the last look alone", file, async (random) => {
    for (let i = 0; i < runs(300); i++) {
      const { asked, behind, taken, wanted } = await takenOver(random, random.below(200), 0)
      expect(taken).toEqual(wanted)
      expect(asked).toBeLessThanOrEqual(behind)
    }
  })
  seeded("a server that keeps one back costs a reading of all of them, and no frame", file, async (random) => {
    let again = 0
    for (let i = 0; i < runs(300); i++) {
      const { asked, behind, taken, wanted } = await takenOver(random, random.below(200), 0.1)
      expect(taken.filter(isLastPiece)).toEqual(wanted.filter(isLastPiece))
      if (asked > behind) again++
    }
    expect(again).toBeGreaterThan(20)
  })
})
