/**
 * Numbers of texts beside a plain map, while texts come and go: each has one, no two share one, and none is lost where
 * many share a place.
 */
import { FastCheck } from "effect"
import { expect, test } from "vitest"
import { TextNumbers } from "../../../../src/core/ivm/store/textNumbers.ts"

/** Numbers, and their texts as an owner keeps them. */
class Kept {
  readonly texts: Array<string> = []
  readonly numbers: TextNumbers
  /** Texts that were compared. */
  read = 0

  constructor(seed: number) {
    this.numbers = new TextNumbers(seed, {
      textAt: (number) => {
        this.read++
        return this.texts[number]!
      }
    })
  }

  add(text: string): number {
    const number = this.numbers.add(text)
    this.texts[number] = text
    return number
  }
}

const text = FastCheck.oneof(
  FastCheck.nat(40).map((n) => `t:${n}`),
  FastCheck.nat(40).map((n) => `t:⟨${n}@example.com⟩`),
  FastCheck.string({ maxLength: 3 }),
  FastCheck.constantFrom("", "t:ä", "t:\u{1f600}", "x".repeat(3_000))
)

test("L7 each text has one number, whatever comes and goes, and numbers are used again", () => {
  FastCheck.assert(
    FastCheck.property(FastCheck.array(text, { maxLength: 400, size: "max" }), FastCheck.integer(), (texts, seed) => {
      const kept = new Kept(seed),
        { numbers } = kept
      const plain = new Map<string, number>()
      let most = 0
      for (const [n, text] of texts.entries()) {
        // Whole neighbourhoods go at once now and then, so that gaps are filled from behind.
        const going = n % 50 === 49 ? [...plain.keys()].slice(0, 20) : plain.has(text) ? [text] : []
        for (const gone of going) {
          numbers.remove(gone)
          plain.delete(gone)
          expect(numbers.find(gone)).toBe(-1)
        }
        if (going.length === 0) plain.set(text, kept.add(text))
        most = Math.max(most, plain.size)
        expect(numbers.size).toBe(plain.size)
        if (n % 10 === 9)
          for (const [known, number] of plain) if (numbers.find(known) !== number) expect.fail(`${known} is lost`)
      }
      expect(new Set(plain.values()).size).toBe(plain.size)
      for (const [known, number] of plain) expect([numbers.find(known), number < most]).toEqual([number, true])
    })
  )
})

test("L7 room that many texts took is given back when they go", () => {
  const kept = new Kept(0),
    { numbers } = kept
  const cells = () => (numbers as unknown as { readonly cells: Int32Array }).cells.length
  const some = Array.from({ length: 20_000 }, (_, n) => `person:${n}`)
  for (const text of some) kept.add(text)
  const full = cells()
  for (const text of some.slice(100)) numbers.remove(text)
  expect(cells()).toBeLessThan(full / 50)
  expect(some.slice(0, 100).map((text) => numbers.find(text))).toEqual(Array.from({ length: 100 }, (_, n) => n))
})

/** How many cells a look at a text passes over, on average of all texts. */
const passedOver = (numbers: TextNumbers): number => {
  const { cells, hashes, numberBits } = numbers as unknown as {
    readonly cells: Int32Array
    readonly hashes: Int32Array
    readonly numberBits: number
  }
  const mask = cells.length - 1
  let passed = 0
  for (const [at, cell] of cells.entries())
    if (cell !== 0) passed += (at - (hashes[(cell & numberBits) - 1]! & mask)) & mask
  return passed / numbers.size
}

test("L7 ids as people and databases make them spread as texts by chance do", () => {
  const kinds: ReadonlyArray<(n: number) => string> = [
    (n) => `person:a${n}`,
    (n) => `person:${n.toString(36).padStart(20, "0")}`,
    (n) => `person:${"x".repeat(60)}${n}`,
    (n) => `p${n}:tobie`
  ]
  for (const seed of [0, 7, -1])
    for (const textOf of kinds) {
      const kept = new Kept(seed)
      // Of 65,536 cells two thirds are full: hashes by chance pass over one cell then (Knuth 6.4).
      for (let n = 0; n < 43_000; n++) kept.add(textOf(n))
      expect(passedOver(kept.numbers), `${textOf(17)} under ${seed}`).toBeLessThan(1.2)
    }
})

test("L7 texts that end alike cost no more to find than others, however many there are before the first of them", () => {
  for (const [before, count] of [
    [0, 5_000],
    [5_000, 5_000],
    [5_000, 20]
  ] as const) {
    const kept = new Kept(3),
      { numbers } = kept
    for (let n = 0; n < before; n++) kept.add(`person:${n.toString(36).padStart(20, "0")}`)
    const alike = Array.from({ length: count }, (_, n) => `person:⟨${n}@mail.example.com⟩`)
    const given = alike.map((text) => kept.add(text))
    kept.read = 0
    expect(alike.map((text) => numbers.find(text))).toEqual(given)
    expect(alike.map((text) => numbers.find(`${text}?`)).every((number) => number === -1)).toBe(true)
    // One for each that is there; another one has the same 32 bits once in a million times.
    expect(kept.read).toBeLessThanOrEqual(alike.length + 10)
    for (let n = 0; n < before; n += 7)
      expect(numbers.find(`person:${n.toString(36).padStart(20, "0")}`), `text ${n}`).toBe(n)
    for (const text of alike) numbers.remove(text)
    expect([numbers.size, numbers.find(alike[0]!)]).toEqual([before, -1])
  }
})

test("L7 a text that is not there is not found, though it is the one by which it shows that texts end alike", () => {
  for (let seed = 0; seed < 50; seed++) {
    const kept = new Kept(seed),
      { numbers } = kept
    const alike = Array.from({ length: 5 }, (_, n) => `person:⟨${n}@example.com⟩`)
    for (const text of alike) kept.add(text)
    for (const other of ["person:⟨5@example.com⟩", "person:⟨6@example.com⟩"]) expect(numbers.find(other)).toBe(-1)
    expect(alike.map((text) => numbers.find(text))).toEqual([0, 1, 2, 3, 4])
  }
})

test("L7 a text is compared with itself and with the few that end alike, and with no other", () => {
  const kept = new Kept(11)
  const pairs = Array.from({ length: 2_000 }, (_, n) => [`a:${10_000_000 + n}`, `b:${10_000_000 + n}`]).flat()
  for (const text of pairs) kept.add(text)
  kept.read = 0
  for (const [n, text] of pairs.entries()) expect(kept.numbers.find(text)).toBe(n)
  expect(kept.read).toBeLessThan(1.6 * pairs.length)
})
