/** Reads that clients share: every client gets one answer, of a read that began behind its question. */
import { describe, expect, it } from "vitest"
import { rng } from "../../../kit/data/random.ts"
import type { Answer, PiecesAnswer } from "../../../src/ports/Front.ts"
import type { AnswerEvents } from "../../../src/ports/SspClient.ts"
import { type SendRead, SharedReads } from "../../../src/scheduler/http/sharedReads.ts"

interface Begun {
  readonly at: number
  readonly ifNoneMatch: string | undefined
  readonly heard: AnswerEvents
  readonly failed: () => void
  isClosed: boolean
}

/** An SSP whose answers the test gives, and clients that write down what they got. */
class Scene {
  readonly reads = new SharedReads()
  readonly begun: Array<Begun> = []
  readonly got: Array<string> = []
  now = 0
  isAway = false
  private readonly gone: Array<() => void> = []

  private readonly ask: SendRead = (ifNoneMatch, heard, began, failed) => {
    if (this.isAway) return false
    const begun: Begun = { at: this.now, ifNoneMatch, heard, failed, isClosed: false }
    this.begun.push(begun)
    began({ pause: () => {}, resume: () => {}, close: () => void (begun.isClosed = true) })
    return true
  }

  /** A client asks; answers its number. */
  client(what: string, ifNoneMatch?: string): number {
    const n = this.gone.length
    const got = (text: string): void => {
      this.got[n] = this.got[n] === undefined ? text : `${this.got[n]}, ${text}`
    }
    this.gone.push(() => {})
    const reply = {
      send: (answer: Answer | PiecesAnswer) => {
        if (!("pieces" in answer)) throw new Error("not in pieces")
        const { headers, pieces, status } = answer
        got(`${headers["etag"]} ${status === 304 ? "known" : Buffer.concat(pieces)}`)
      },
      whenGone: (abandon: () => void) => void (this.gone[n] = abandon)
    }
    this.reads.read(what, this.ask, { ifNoneMatch, reply, pass: () => got("pass") })
    return n
  }

  leaves(n: number): void {
    this.gone[n]!()
  }

  answer(n: number, etag: string, text: string, status = 200): void {
    const { heard } = this.begun[n]!
    heard.head(status, { etag, "content-length": String(text.length) })
    if (text !== "") heard.data(Buffer.from(text))
    heard.end(undefined)
  }
}

describe("reads that clients share", () => {
  it("all that come while a read is under way get the next one, and those of another result none of it", () => {
    const scene = new Scene()
    for (const what of ["a", "a", "b", "a"]) scene.client(what)
    expect(scene.begun).toHaveLength(2)
    scene.answer(0, '"1"', "one")
    scene.answer(1, '"b"', "other")
    expect(scene.got).toEqual(['"1" one', undefined, '"b" other'])
    scene.answer(2, '"2"', "two")
    expect([scene.got, scene.begun.length]).toEqual([['"1" one', '"2" two', '"b" other', '"2" two'], 3])
    scene.client("a")
    expect(scene.begun).toHaveLength(4)
  })
  it("what all have is asked for by its tag, and else those that have it are told so", () => {
    const scene = new Scene()
    scene.client("a", '"1"')
    scene.client("a", '"1"')
    scene.client("a", '"2"')
    scene.client("a")
    expect(scene.begun[0]!.ifNoneMatch).toBe('"1"')
    scene.answer(0, '"1"', "", 304)
    expect(scene.begun[1]!.ifNoneMatch).toBeUndefined()
    scene.answer(1, '"2"', "two")
    expect(scene.got).toEqual(['"1" known', '"2" two', '"2" known', '"2" two'])
  })
  it("a read that fails, is cut, refused or too long is passed on by every client", () => {
    const ends: ReadonlyArray<(begun: Begun) => void> = [
      ({ failed }) => failed(),
      ({ heard }) => heard.end(new Error("cut")),
      ({ heard }) => heard.head(404, {}),
      ({ heard }) => heard.head(200, { "content-length": String(2 ** 21) }),
      ({ heard }) => {
        heard.head(200, {})
        heard.data(new Uint8Array(2 ** 21))
      }
    ]
    for (const end of ends) {
      const scene = new Scene()
      scene.client("a")
      scene.client("a")
      scene.client("a")
      end(scene.begun[0]!)
      expect([scene.got, scene.begun.length]).toEqual([["pass"], 2])
      end(scene.begun[1]!)
      expect(scene.got).toEqual(["pass", "pass", "pass"])
      scene.isAway = true
      scene.client("a")
      expect(scene.got[3]).toBe("pass")
      scene.isAway = false
      scene.client("a")
      expect(scene.begun).toHaveLength(3)
    }
  })
  it("a client that has left is not answered; when all have, the read ends, and none begins for them", () => {
    const scene = new Scene()
    for (let n = 0; n < 3; n++) scene.client("a")
    scene.leaves(1)
    scene.leaves(2)
    scene.leaves(0)
    expect([scene.begun.length, scene.begun[0]!.isClosed, scene.got]).toEqual([1, true, []])
    scene.client("a")
    scene.answer(1, '"1"', "one")
    expect(scene.got[3]).toBe('"1" one')
  })
  it("any order: one answer each, of a read that began when the question was there", () => {
    for (let seed = 0; seed < 300; seed++) {
      const { below, next } = rng(seed)
      const scene = new Scene()
      const asked: Array<number> = []
      const left = new Set<number>()
      const open = new Set<number>()
      for (let step = 0; step < 60; step++) {
        scene.now = step
        const before = scene.begun.length
        const roll = next()
        if (roll < 0.5) asked[scene.client(String(below(2)))] = step
        else if (roll < 0.6 && asked.length > 0) {
          const n = below(asked.length)
          if (scene.got[n] === undefined) left.add(n)
          scene.leaves(n)
        } else {
          const [n] = open
          if (n !== undefined) {
            open.delete(n)
            if (!scene.begun[n]!.isClosed) scene.answer(n, `"${scene.begun[n]!.at}"`, String(scene.begun[n]!.at))
          }
        }
        for (let n = before; n < scene.begun.length; n++) open.add(n)
      }
      for (let rounds = 0; open.size > 0 && rounds < 10; rounds++)
        for (const n of [...open]) {
          open.delete(n)
          const before = scene.begun.length
          if (!scene.begun[n]!.isClosed) scene.answer(n, `"${scene.begun[n]!.at}"`, String(scene.begun[n]!.at))
          for (let m = before; m < scene.begun.length; m++) open.add(m)
        }
      for (const [n, at] of asked.entries()) {
        if (left.has(n)) expect(scene.got[n], `seed ${seed}`).toBeUndefined()
        else {
          expect(scene.got[n], `seed ${seed}, client ${n}`).toMatch(/^"\d+" \d+$/)
          expect(Number(/\d+/.exec(scene.got[n]!)![0]), `seed ${seed}`).toBeGreaterThanOrEqual(at)
        }
      }
    }
  })
})
