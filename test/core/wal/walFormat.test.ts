/**
 * The WAL's lines: written and read back, cut at every byte, every bit flipped, sectors and pages zeroed.
 *
 * What matters is what is never true: a record that is not what was written is never read as good, and a record that
 * may have been acknowledged is never cut off by a rule meant for crashes.
 */

import { crc32 as reference } from "node:zlib"
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import { type Rng, rounds, seeded } from "../../../kit/data/random.ts"
import * as Format from "../../../src/core/wal/walFormat.ts"

const file = "test/core/wal/walFormat.test.ts"
const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)

const recordOf = (random: Rng, n: number): string =>
  JSON.stringify({
    table: "t",
    op: "CREATE",
    id: `t:${n}`,
    record: {
      n,
      text: Array.from({ length: random.below(60) }, () =>
        random.pick(["a", "ü", " ", "\n", "😀", "\u0000", '"', "*", "J"])
      ).join("")
    }
  })

const journal = (
  random: Rng,
  count: number,
  after = 0
): { readonly bytes: Uint8Array; readonly starts: ReadonlyArray<number>; readonly records: ReadonlyArray<string> } => {
  const records = Array.from({ length: count }, (_, i) => recordOf(random, i))
  const bytes = Format.encodeLines(after + 1, records)
  const starts = [0]
  bytes.forEach((byte, i) => byte === 10 && starts.push(i + 1))
  return { bytes, starts, records }
}

const scan = (bytes: Uint8Array, after = 0, sealed = false): Format.Scanned => Format.scan(bytes, 0, after, sealed)
const zeroed = (bytes: Uint8Array, from: number, to: number): Uint8Array => new Uint8Array(bytes).fill(0, from, to)

describe("the WAL's format", () => {
  it("is a line a person can read: checksum as gzip has it, seq, JSON", () => {
    const line = text(Format.encodeLines(7, ['{"a":"ü"}']))
    expect(line).toBe(`${reference('7 {"a":"ü"}').toString(16).padStart(8, "0")} 7 {"a":"ü"}\n`)
    const header = text(Format.encodeHeader({ logId: "l", segment: 3, after: 12 }))
    expect(header).toMatch(/^[0-9a-f]{8} \{"svc_wal":1,"log_id":"l","segment":3,"after":12,"lines":".*"\}\n$/)
  })
  seeded("gives back every record as it was, in pieces of any length", file, (random) => {
    const { bytes, records } = journal(random, 200, 41)
    expect(scan(bytes, 41)).toMatchObject({ last: 241, end: bytes.length, fault: undefined })
    const found: Array<Format.WalRecord> = []
    for (let at = 0, length = 1; at < bytes.length; length = 1 + random.below(400)) {
      const page = Format.readPage(bytes.subarray(at, at + length), 41 + found.length)
      expect(page.fault).toBeUndefined()
      found.push(...page.records)
      at += page.end
    }
    expect(found).toEqual(records.map((json, i) => ({ seq: 42 + i, json })))
  })
  it("refuses a header that was changed, and one of a later version by name", () => {
    const header = Format.encodeHeader({ logId: "l", segment: 1, after: 0 })
    expect(Either.isRight(Format.decodeHeader(header))).toBe(true)
    for (let bit = 0; bit < header.length * 8; bit++) {
      const flipped = new Uint8Array(header)
      flipped[bit >> 3]! ^= 1 << (bit & 7)
      expect(Either.isLeft(Format.decodeHeader(flipped)), `bit ${bit}`).toBe(true)
    }
    const json = '{"svc_wal":2,"log_id":"l","new":true}'
    const later = new TextEncoder().encode(`${reference(json).toString(16).padStart(8, "0")} ${json}\n`)
    expect(Format.decodeHeader(later)).toMatchObject({
      left: { kind: "newer", reason: expect.stringMatching(/format 2, this one knows 1/) }
    })
  })
  seeded("a cut at every byte of the last three records is a torn tail behind the whole ones", file, (random) => {
    const { bytes, starts } = journal(random, 12)
    for (let end = starts[9]!; end < bytes.length; end++) {
      const whole = starts.filter((start) => start <= end).length - 1
      const scanned = scan(bytes.subarray(0, end))
      expect(scanned).toMatchObject({ last: whole, end: starts[whole] })
      expect(scanned.fault?.kind, `cut at ${end}`).toBe(end === starts[whole] ? undefined : "torn")
      if (end !== starts[whole])
        expect(scan(bytes.subarray(0, end), 0, true).fault?.kind, "in a complete file").toBe("damaged")
    }
  })
  const flips = rounds(200)
  seeded(
    `every bit of ${flips} random records flipped is damage at that record, in the last one too`,
    file,
    (random) => {
      let flipped = 0
      for (let round = 0; round < flips; round++) {
        const { bytes, starts } = journal(random, 4, round)
        // Every second one the last, where a rule for torn tails could swallow it.
        const which = round % 2 === 0 ? 3 : random.below(4)
        for (let at = starts[which]!; at < starts[which + 1]!; at++) {
          for (let bit = 0; bit < 8; bit++) {
            bytes[at]! ^= 1 << bit
            const { fault, last } = scan(bytes, round)
            if (
              fault?.kind !== "damaged" ||
              last !== round + which ||
              fault.offset !== starts[which] ||
              fault.seq !== round + which + 1
            )
              expect.fail(`round ${round}, byte ${at}, bit ${bit}: ${JSON.stringify(fault)}`)
            if (Format.readPage(bytes, round).records.length > which)
              expect.fail(`round ${round}, byte ${at}, bit ${bit} is read as good`)
            bytes[at]! ^= 1 << bit
            flipped++
          }
        }
      }
      expect(flipped).toBeGreaterThan(100_000)
    }
  )
  seeded("a zeroed page is damage before good records, and a torn tail where nothing good follows", file, (random) => {
    const { bytes, starts } = journal(random, 400)
    let damaged = 0
    for (let at = 0; at < bytes.length; at += 4096) {
      const first = starts.findLastIndex((start) => start <= at)
      const reaches = at + 4096 >= bytes.length
      const { fault, last } = scan(zeroed(bytes, at, at + 4096))
      expect(fault).toMatchObject({ kind: reaches ? "torn" : "damaged", offset: starts[first], seq: first + 1 })
      expect(last).toBe(first)
      if (!reaches) damaged++
    }
    expect(damaged).toBeGreaterThan(5)
    const longest = Format.encodeLines(1, [JSON.stringify("x".repeat(3000))])
    expect(scan(zeroed(longest, 512, 1024)).fault?.kind, "a sector of the last line never arrived").toBe("torn")
    expect(scan(zeroed(longest, 600, 1100)).fault?.kind, "zeros that no disk leaves").toBe("damaged")
  })
  it("gaps and repeats are damage, at the end too", () => {
    const line = (seq: number): Uint8Array => Format.encodeLines(seq, ["{}"])
    const joined = (...seqs: ReadonlyArray<number>): Uint8Array => Buffer.concat(seqs.map(line))
    expect(scan(joined(1, 2, 4)).fault).toMatchObject({
      kind: "damaged",
      seq: 3,
      offset: line(1).length * 2,
      reason: expect.stringMatching(/seq 4: 1 before it are missing/)
    })
    expect(scan(joined(1, 2, 2)).fault).toMatchObject({
      kind: "damaged",
      seq: 3,
      reason: expect.stringMatching(/seq 2, which has been there before/)
    })
    expect(scan(joined(1, 2, 3)).fault).toBeUndefined()
  })
})
