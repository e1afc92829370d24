/**
 * When a heap is full, when it has room again, and which changes are taken meanwhile.
 */
import { describe, expect, it } from "vitest"
import { rng } from "../../kit/data/random.ts"
import * as Memory from "../../src/core/record/memory.ts"
import * as Ids from "../../src/core/surql/values/recordId.ts"
import type { RecordId } from "../../src/core/surql/values/value.ts"

const mebibyte = 2 ** 20

describe("D43 memory has an end", () => {
  it("is full from 85 % on and has room below 80 %, whatever came before: 20,000 random collections", () => {
    const random = rng(43)
    let memory: Memory.Memory = { usedBytes: 0, limitBytes: 1000, isFull: false }
    const seen = { filled: 0, emptied: 0, kept: 0 }
    for (let i = 0; i < 20_000; i++) {
      const before = memory
      memory = Memory.afterCollection(before, random.below(1000))
      const { isFull, usedBytes } = memory
      expect(memory.limitBytes).toBe(1000)
      if (usedBytes >= 850) expect(isFull).toBe(true)
      else if (usedBytes < 800) expect(isFull).toBe(false)
      else expect(isFull, "between the bounds it stays as it was").toBe(before.isFull)
      if (isFull !== before.isFull) seen[isFull ? "filled" : "emptied"]++
      else if (usedBytes >= 800 && usedBytes < 850) seen.kept++
    }
    expect(Math.min(seen.filled, seen.emptied, seen.kept)).toBeGreaterThan(500)
  })

  it("takes deletes and updates that do not grow, and nothing else", () => {
    const known = { name: "four", n: 1 }
    const grows = (op: "CREATE" | "UPDATE" | "DELETE", doc: Record<string, string | number>): boolean =>
      Memory.grows({ op, doc }, known)
    expect(grows("UPDATE", { name: "five", n: 2 })).toBe(false)
    expect(grows("UPDATE", { n: 2 })).toBe(false)
    expect(grows("UPDATE", { name: "fourteen", n: 1 })).toBe(true)
    expect(grows("CREATE", { name: "four", n: 1, more: 1 })).toBe(true)
    expect(grows("DELETE", {})).toBe(false)
    expect(Memory.grows({ op: "CREATE", doc: {} }, undefined)).toBe(true)
    expect(Memory.grows({ op: "DELETE", doc: {} }, undefined)).toBe(false)
  })

  it("takes a step read of the database that does not grow all in all, and nothing else", () => {
    const [a, b] = [Ids.make("t", "a"), Ids.make("t", "b")]
    const known = (id: RecordId) => (id === a ? { text: "0123456789" } : undefined)
    const grows = (...changes: ReadonlyArray<readonly [RecordId, text: string | undefined]>): boolean =>
      Memory.growsTogether(
        changes.map(([id, text]) => ({ id, op: text === undefined ? "DELETE" : "UPDATE", doc: { text: text ?? "" } })),
        known
      )
    expect([grows([a, "0123456789"]), grows([a, "01"]), grows([a, undefined])]).toEqual([false, false, false])
    expect([grows([a, "01234567890"]), grows([b, "0"])]).toEqual([true, true])
    expect([grows([a, undefined], [b, "0"]), grows([a, "012345678"], [b, "0"])]).toEqual([false, true])
  })

  it("reads as much of a database in one step as half of its room is enough for, between 1 and 64 MiB", () => {
    const step = (used: number, limit: number): number =>
      Memory.stepBytes({ usedBytes: used * mebibyte, limitBytes: limit * mebibyte, isFull: false }) / mebibyte
    expect([step(100, 64), step(52, 64), step(8000, 8000)]).toEqual([1, 1, 1])
    expect(step(400, 1000)).toBeCloseTo(37.5, 3)
    expect([step(0, 8000), step(0, Infinity)]).toEqual([64, 64])
  })

  it("takes the least of container and machine, by cgroup v2 and v1, and never more than V8 allows", () => {
    const total = 8192 * mebibyte
    expect(Memory.machineBytesOf([], total)).toBe(total)
    expect(Memory.machineBytesOf(["max\n"], total)).toBe(total)
    expect(Memory.machineBytesOf(["9223372036854771712\n"], total)).toBe(total)
    expect(Memory.machineBytesOf([`${512 * mebibyte}\n`], total)).toBe(512 * mebibyte)
    expect(Memory.limitOf(4096 * mebibyte, 512 * mebibyte, 75)).toBe(384 * mebibyte)
    expect(Memory.limitOf(96 * mebibyte, 512 * mebibyte, 75)).toBe(96 * mebibyte)
  })

  it("says at start that V8 keeps the heap far below what the container has, and what would be right", () => {
    const unused = (heap: number, container: number): string | undefined =>
      Memory.unusedMemory(heap * mebibyte, container * mebibyte, 75)
    expect(unused(512, 2048)).toMatch(/^the heap may take 512 MiB, .* 1536 MiB of .* 2048 MiB: .*size=1536$/)
    expect([unused(1536, 2048), unused(1000, 2048), unused(4096, 2048)]).toEqual([undefined, undefined, undefined])
  })

  it("names figure, limit and setting, and what a start would need", () => {
    const memory = { usedBytes: 90 * mebibyte, limitBytes: 100 * mebibyte, isFull: true }
    expect(Memory.fullMessage(memory, "deletes")).toMatch(
      /^90 MiB .* below 80 MiB .*100 MiB.*SVC_MAX_MEMORY\); deletes are taken$/
    )
    expect(Memory.notReadable(memory, 700, "database")).toMatch(
      /limit of 100 MiB .* the database's records: .* 700 of them read 90 MiB .*SVC_MAX_MEMORY/
    )
    expect(Memory.notLoadable(memory, 10, 20, "views", 60 * mebibyte)).toMatch(
      /10 of 20 views take 30 MiB beside 60 MiB of other data, .* about 141 MiB; .*--max-old-space-size=142 .*SVC_MAX/
    )
    // Of 100 MiB a start may use 92, so 32 are left beside 60 for all views.
    expect(Memory.isMostOfRoom(memory, 60 * mebibyte, 75 * mebibyte)).toBe(false)
    expect(Memory.isMostOfRoom(memory, 60 * mebibyte, 73 * mebibyte)).toBe(true)
    expect(Memory.notLoadable(memory, 1000, 2000)).toMatch(
      /1000 of 2000 records take 90 MiB, .* about 212 MiB; .*--max-old-space-size=212 .*SVC_MAX_MEMORY/
    )
  })
})
