/**
 * The pure parts of the client: events out of bytes, the list of rows, sharing, deltas, the tables.
 */
import { describe, expect, it } from "vitest"
import { rng, runs, seeded } from "../../kit/data/random.ts"
import { applyDelta, Misfit, patched } from "../../src/client/delta.ts"
import { backoffMs, connection, onEnd, onRefused, unchanged, view } from "../../src/client/machines.ts"
import { RowList } from "../../src/client/rowList.ts"
import { shareEqualParts } from "../../src/client/share.ts"
import { maxLine, SseParser } from "../../src/client/sse.ts"
import { ViewRows } from "../../src/client/viewRows.ts"
import * as JsonText from "../../src/core/jsonText.ts"
import { canonical, diff, type Json, step } from "./diff.ts"

const here = "test/client/parts.test.ts"
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

describe("events out of bytes", () => {
  const text =
    ': comment\n\nevent: open\ndata: {"stream":"s"}\n\nview: 3\nevent: delta\nid: a.1\ndata: {"t":"zwölf 🦊"}\n\nid: b.2\r\ndata:x\r\ndata: y\r\nretry: 5\r\n\r\nevent: none\n\ndata\n\n'
  const expected = [
    { event: "open", id: undefined, view: undefined, data: '{"stream":"s"}' },
    { event: "delta", id: "a.1", view: 3, data: '{"t":"zwölf 🦊"}' },
    { event: "message", id: "b.2", view: undefined, data: "x\ny" },
    { event: "message", id: undefined, view: undefined, data: "" }
  ]
  it("are the same wherever the bytes are cut, inside a character too", () => {
    const all = bytes(text)
    expect(new SseParser().push(all)).toEqual(expected)
    for (let at = 0; at <= all.length; at++) {
      const parser = new SseParser()
      expect([...parser.push(all.slice(0, at)), ...parser.push(all.slice(at))], `cut at ${at}`).toEqual(expected)
    }
    const single = new SseParser()
    expect([...all].flatMap((each) => single.push(Uint8Array.of(each)))).toEqual(expected)
  })
  it("are not told before their empty line", () =>
    expect(new SseParser().push(bytes("event: delta\ndata: {}\n"))).toEqual([]))
  it("have a limit to a line, and take one just below it", () => {
    const piece = bytes("x".repeat(1 << 22))
    const parser = new SseParser()
    for (let sent = 0; sent < maxLine; sent += piece.length) parser.push(piece)
    expect(() => parser.push(piece)).toThrow("has more than 67108864 characters")
  })
})

describe("the list of rows", () => {
  seeded("does what an array does", here, (random) => {
    for (let run = 0; run < runs(5); run++) {
      const plain = Array.from({ length: random.below(3000) }, (_, n) => n)
      const list = new RowList(plain)
      for (let n = 0; n < 2000; n++) {
        const grows = run % 2 === 0 ? random.chance(0.7) : random.chance(0.3)
        if (grows || plain.length === 0) {
          const at = random.chance(0.5) ? random.below(plain.length + 1) : Math.min(plain.length, 3)
          plain.splice(at, 0, -n)
          list.insert(at, -n)
        } else {
          const at = random.below(plain.length)
          expect(list.remove(at)).toBe(plain.splice(at, 1)[0])
        }
        if (plain.length > 0) {
          const at = random.below(plain.length)
          plain[at] = n
          list.set(at, n)
          expect(list.get(random.below(1) + at)).toBe(n)
        }
        expect(list.length).toBe(plain.length)
      }
      expect(list.toArray()).toEqual(plain)
    }
  })
})

describe("sharing", () => {
  it("keeps what equals, at any depth, and items of lists wherever they went", () => {
    const old = {
      id: "a",
      n: 1,
      tags: ["x"],
      comments: [
        { id: "c:1", t: 1 },
        { id: "c:2", t: 2 }
      ],
      deep: { a: { b: 1 } }
    }
    const text = JSON.stringify(old)
    expect(shareEqualParts(old, JSON.parse(text))).toBe(old)
    const next = JSON.parse(text) as typeof old
    next.n = 2
    next.comments = [next.comments[1]!, { id: "c:3", t: 3 }, next.comments[0]!]
    const shared = shareEqualParts(old, next) as typeof old
    expect(shared).toEqual({ ...old, n: 2, comments: [old.comments[1], { id: "c:3", t: 3 }, old.comments[0]] })
    expect(shared).not.toBe(old)
    expect([shared.tags === old.tags, shared.deep === old.deep]).toEqual([true, true])
    expect([shared.comments[0] === old.comments[1], shared.comments[2] === old.comments[0]]).toEqual([true, true])
    expect(old).toEqual(JSON.parse(text))
  })
  it("tells -0 from 0, a list from an object, and a field called __proto__ from a prototype", () => {
    expect(Object.is(shareEqualParts({ a: 0 }, { a: -0 }), 0)).toBe(false)
    expect(Object.is((shareEqualParts({ a: 0 }, { a: -0 }) as { a: number }).a, -0)).toBe(true)
    expect(shareEqualParts([], {})).toEqual({})
    const old = JSON.parse('{"__proto__":{"a":1},"b":1}') as object
    const next = shareEqualParts(old, JSON.parse('{"__proto__":{"a":1},"b":2}')) as object
    expect(JSON.stringify(next)).toBe('{"__proto__":{"a":1},"b":2}')
    expect(Object.getPrototypeOf(next)).toBe(Object.prototype)
    expect(shareEqualParts({}, JSON.parse('{"__proto__":{}}'))).not.toEqual({})
  })
})

describe("deltas", () => {
  it("are applied in the order of the contract, positions before and after as it says", () => {
    const list = new RowList(["a", "b", "c", "d", "e", "f", "g", "h"])
    applyDelta(list, {
      remove: [7, 2],
      insert: [
        [0, "x"],
        [5, "y"]
      ],
      update: [[3, "B"]]
    })
    expect(list.toArray()).toEqual(["x", "a", "b", "B", "e", "y", "f", "g"])
  })
  it("patch by path: set, remove a field, splice, the row itself, one after the other", () => {
    const old = { id: "a", n: 1, list: [{ a: 1 }, { a: 2 }, { a: 3 }], other: { same: true } }
    const next = patched(old, [
      [["n"], 2],
      [["list"], 1, 1, [{ a: 9 }, { a: 8 }]],
      [["list", 2, "b"], "new"],
      [["list", 0, "a"]]
    ]) as typeof old
    expect(next).toEqual({ id: "a", n: 2, list: [{}, { a: 9 }, { a: 8, b: "new" }, { a: 3 }], other: { same: true } })
    expect([next.other === old.other, next.list[3] === old.list[2]]).toEqual([true, true])
    expect(old.list[0]).toEqual({ a: 1 })
    expect(patched(old, [[[], 5]])).toBe(5)
    expect(JSON.stringify(patched({}, [[["__proto__"], { a: 1 }]]))).toBe('{"__proto__":{"a":1}}')
  })
  it("keep the row that moves the same object", () => {
    const rows = [
      { id: "a", n: { x: 1 } },
      { id: "b", n: { x: 2 } },
      { id: "c", n: { x: 3 } }
    ]
    const list = new RowList(rows)
    applyDelta(list, {
      remove: [2, 0],
      insert: [
        [0, { id: "c", n: { x: 3 } }],
        [2, { id: "a", n: { x: 1 }, moved: true }]
      ]
    })
    const [c, b, a] = list.toArray() as typeof rows
    expect([c === rows[2], b === rows[1], a === rows[0], a?.n === rows[0]?.n]).toEqual([true, true, false, true])
  })
  for (const [what, delta] of Object.entries({
    "a removal beyond the end": { remove: [3] },
    "removals that do not descend": { remove: [1, 1] },
    "an insertion beyond the end": { insert: [[4, 1]] },
    "insertions that do not ascend": {
      insert: [
        [1, 1],
        [1, 1]
      ]
    },
    "an update of no row": { update: [[3, 1]] },
    "a fraction": { update: [[0.5, 1]] },
    "a patch of no row": { patch: [[-1, [[["a"], 1]]]] },
    "a path through nothing": { patch: [[0, [[["a", "b"], 1]]]] },
    "a path through a prototype": { patch: [[0, [[["__proto__", "a"], 1]]]] },
    "a splice of no list": { patch: [[0, [[["id"], 0, 0, []]]]] },
    "a splice beyond the end": { patch: [[0, [[["list"], 1, 1, []]]]] },
    "a field that is not there removed": { patch: [[0, [[["nothing"]]]]] },
    "an item removed as a field": { patch: [[0, [[["list", 0]]]]] },
    "the row removed": { patch: [[0, [[[]]]]] },
    "a change without a path": { patch: [[0, [["id", 1]]]] }
  }))
    it(`refuse ${what}`, () => {
      const list = new RowList([{ id: "a", list: [1] }, { id: "b" }, { id: "c" }])
      expect(() => applyDelta(list, delta as unknown as Parameters<typeof applyDelta>[1])).toThrow(Misfit)
    })
  seeded(
    "made by an independent diff give the rows that they are of, and leave what was shown as it was",
    here,
    (random) => {
      for (let run = 0; run < runs(20); run++) {
        let next = 0
        let rows: ReadonlyArray<Json> = []
        const view = new ViewRows()
        view.snapshot({ part: 0, parts: 1, rows: [] }, "i.0")
        for (let n = 0; n < 100; n++) {
          const shown = view.rows
          const text = canonical(shown)
          const after = step(random, rows, () => `p:${next++}`)
          const delta = diff(random, rows, after)
          view.delta(JsonText.parse(JsonText.write(delta)) as typeof delta, `i.${n}`)
          rows = after
          expect(canonical(view.rows), canonical(delta)).toBe(canonical(rows))
          expect(canonical(shown)).toBe(text)
          if (Object.keys(delta).length === 0) expect(view.rows).toBe(shown)
        }
      }
    }
  )
})

describe("a view's rows", () => {
  it("come in parts, are shown with the last, and keep list and rows where nothing changed", () => {
    const view = new ViewRows()
    expect(view.snapshot({ part: 0, parts: 2, rows: [{ id: "a" }] }, undefined)).toBe(false)
    expect([view.rows, view.hasShown]).toEqual([[], false])
    expect(view.snapshot({ part: 1, parts: 2, rows: [{ id: "b" }], only: false, warnings: ["w"] }, "i.1")).toBe(true)
    const { rows } = view
    expect([rows, view.after, view.warnings]).toEqual([[{ id: "a" }, { id: "b" }], "i.1", ["w"]])
    view.snapshot({ part: 0, parts: 1, rows: [{ id: "a" }, { id: "b" }] }, "j.1")
    expect(view.rows).toBe(rows)
    view.delta({ errors: [{ id: "c", reason: "r" }] }, "j.2")
    expect([view.rows === rows, view.errors]).toEqual([true, [{ id: "c", reason: "r" }]])
  })
  it("stay as they were shown last when a delta does not fit, however far it got", () => {
    const view = new ViewRows()
    view.snapshot({ part: 0, parts: 1, rows: [1, 2, 3] }, "i.1")
    const { rows } = view
    expect(() => view.delta({ remove: [0], update: [[9, 9]] }, "i.2")).toThrow("updates row 9 of 2")
    view.spoil()
    expect([view.rows === rows, view.after]).toEqual([true, undefined])
    expect(() => view.delta({ remove: [0] }, "i.3")).toThrow("before the snapshot")
    expect(() => view.snapshot({ part: 1, parts: 2, rows: [] }, "i.3")).toThrow("part 1 of 2")
  })
})

describe("the tables", () => {
  it("never leave a view or a connection without a way on", () => {
    const waits = { timer: ["waiting", "pausing", "resting"], rest: ["idle", "failed"] }
    for (const table of [connection, view])
      for (const [state, cells] of Object.entries(table)) {
        const moves = Object.entries(cells).filter(([, cell]) => cell !== unchanged)
        if (!waits.rest.includes(state)) expect(moves.length, state).toBeGreaterThan(1)
        if (waits.timer.includes(state)) expect(cells, state).toMatchObject({ due: { to: expect.any(String) } })
        // A state with a timer is entered by starting it and left by its end or by calling it off.
        for (const [event, cell] of moves)
          if (waits.timer.includes(state) && event !== "due")
            expect((cell as { emit: ReadonlyArray<string> }).emit[0], `${state} ${event}`).toBe("cancel")
        for (const [, cell] of moves) {
          const { emit, to } = cell as { emit: ReadonlyArray<string>; to: string }
          if (waits.timer.includes(to)) expect(["wait", "rest", "soon"], `to ${to}`).toContain(emit.at(-1))
        }
      }
  })
  it("know every reason of an end; one that is new is an end to come back from", () => {
    expect(
      ["behind", "moved", "shutdown", "rebootstrap", "replaced", "reset", "failed", "toString", "new"].map(onEnd)
    ).toEqual(Array(9).fill("again"))
    expect(["unauthorized", "unregistered", "expired"].map(onEnd)).toEqual(Array(3).fill("anew"))
    expect(["quarantined", "revoked", "tooLarge"].map(onEnd)).toEqual(Array(3).fill("final"))
    expect(["OVERLOADED", "UNAUTHORIZED", "FORBIDDEN", "constructor"].map(onRefused)).toEqual([
      "again",
      "anew",
      "final",
      "again"
    ])
  })
  it("wait longer and longer, at random, at most 30 s or as long as the server asks", () => {
    expect([0, 1, 2, 6, 60].map((failures) => backoffMs(failures, 0.999999999))).toEqual(
      [500, 1000, 2000, 30_000, 30_000].map((ms) => expect.closeTo(ms, 3))
    )
    expect(backoffMs(0, 0)).toBe(250)
    expect(backoffMs(0, 0, 7000)).toBe(7000)
    expect(rng(1).next()).not.toBe(rng(2).next())
  })
})
