/**
 * Slots and what stands behind them, as a thread reads them from memory that another one writes.
 *
 * Each text is read back through a view of its own on the same memory.
 */
import { describe, expect, it } from "vitest"
import { noSlot } from "../../../src/core/view/watch.ts"
import { bytesFor, Labels, nameBytes, read } from "../../../src/core/view/watchLabels.ts"

const name = (byte: number): Uint8Array => new Uint8Array(nameBytes).fill(byte)

const made = (slots: number) => {
  const memory = new SharedArrayBuffer(bytesFor(slots))
  return { labels: new Labels(new Uint8Array(memory)), at: (slot: number) => read(new Uint8Array(memory), slot) }
}

describe("labels of slots", () => {
  it("are read as they were written until they are given back", () => {
    const { at, labels } = made(3)
    const slot = labels.open(name(0xab), "incantation:strong")
    expect(at(slot)).toEqual({ query: "ab".repeat(nameBytes), id: "incantation:strong" })
    labels.close(slot)
    expect(at(slot)).toBeUndefined()
    expect(at(noSlot)).toBeUndefined()
    expect(at(1e9)).toBeUndefined()
  })

  it("cut a long id between characters, and take an empty one", () => {
    const { at, labels } = made(2)
    const cut = at(labels.open(name(1), "ü€😀".repeat(100)))?.id ?? ""
    expect(cut.length).toBeGreaterThan(30)
    expect("ü€😀".repeat(100).startsWith(cut)).toBe(true)
    expect(at(labels.open(name(2), ""))).toMatchObject({ query: "02".repeat(nameBytes) })
  })

  it("are given out in a circle, none twice, and none where all are taken", () => {
    const { labels } = made(3)
    const [a, b, c] = [labels.open(name(1), "a"), labels.open(name(2), "b"), labels.open(name(3), "c")]
    expect(new Set([a, b, c]).size).toBe(3)
    expect(labels.open(name(4), "d")).toBe(noSlot)
    labels.close(b)
    labels.close(b)
    expect(labels.open(name(4), "d")).toBe(b)
    labels.close(a)
    labels.close(c)
    expect(labels.open(name(5), "e")).toBe(c)
    labels.close(noSlot)
    expect(labels.open(name(6), "f")).toBe(a)
    expect(labels.open(name(7), "g")).toBe(noSlot)
  })
})
