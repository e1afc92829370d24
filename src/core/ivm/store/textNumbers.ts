/**
 * Numbers for texts: 0, 1, 2 and so on; the number of a text that was let go goes to another one. What belongs to a
 * text then stands in arrays, at its number.
 *
 * Why not a map: a change of a large table finds the table's memory in no cache, and a map of texts takes some five
 * cold reads to find one (bucket, entry, text, and another entry of the same bucket before). Here it takes two: a cell
 * with a number and part of a hash, and the text that has it. Sixteen cells share a line of memory. Only the end of a
 * text is hashed, which tells random and counted keys apart; where texts end alike, all of each is. Cost: O(length of
 * the text) where it is compared.
 *
 * State: open addressing with linear probing, between a twelfth and four fifths full. A cell has, in its low bits, one
 * more than the number of its text, and above these the same bits of the hash; 0 is an empty cell. Whole hashes, by
 * number, are read where cells move.
 */

const fewestCells = 16
/** Characters of the end that are hashed: a key as the database makes it has 20, and each takes some nanoseconds. */
const endLength = 8
/** All characters of any text. */
const whole = 2 ** 30 - 1
/** Texts passed over whose cells have the part of the hash looked for: more are no chance, but texts that end alike. */
const mostAlike = 4

/** The owner of the texts: they stand beside what else belongs to them. */
export interface Texts {
  /** The text that has this number. */
  textAt(number: number): string
}

export class TextNumbers {
  private readonly seed: number
  private readonly texts: Texts
  /** Numbers given so far. */
  private given = 0
  private readonly unused: Array<number> = []
  private cells = new Int32Array(fewestCells)
  private mask = fewestCells - 1
  /** The bits of a cell that are of its number. */
  private numberBits = fewestCells - 1
  /** By number. */
  private hashes = new Int32Array(fewestCells)
  /** Characters of the end of a text that are hashed. */
  private hashed = endLength
  /** The hash of the text that was looked for last. */
  private last = 0
  size = 0

  /** `seed`: texts that are made to collide under one seed do not under another. */
  constructor(seed: number, texts: Texts) {
    this.seed = seed
    this.texts = texts
  }

  /** The number of a text; -1: it has none. */
  find(text: string): number {
    // First the cell: to look for it may give the cells another order, and another array.
    const cell = this.cellOf(text)
    return (this.cells[cell]! & this.numberBits) - 1
  }

  /** Gives a text that has none a number. */
  add(text: string): number {
    const cell = this.cellOf(text)
    const number = this.unused.pop() ?? this.given++
    this.hashes[number] = this.last
    this.cells[cell] = this.cell(number)
    if (5 * ++this.size > 4 * this.mask) this.resize(2 * (this.mask + 1))
    return number
  }

  /** Lets a text go, where it has a number; until then the owner has it. */
  remove(text: string): void {
    let gap = this.cellOf(text)
    const { cells, hashes, mask, numberBits } = this
    const number = (cells[gap]! & numberBits) - 1
    if (number < 0) return
    this.unused.push(number)
    // Those behind it that would not be found across the gap move into it.
    for (let at = (gap + 1) & mask; cells[at] !== 0; at = (at + 1) & mask) {
      const home = hashes[(cells[at]! & numberBits) - 1]! & mask
      if (((at - home) & mask) < ((at - gap) & mask)) continue
      cells[gap] = cells[at]!
      gap = at
    }
    cells[gap] = 0
    if (--this.size === 0) this.clear()
    else if (12 * this.size < mask && mask > fewestCells) this.resize((mask + 1) / 4)
  }

  clear(): void {
    this.unused.length = this.given = this.size = 0
    this.cells = new Int32Array(fewestCells)
    this.hashes = new Int32Array(fewestCells)
    this.mask = this.numberBits = fewestCells - 1
    this.hashed = endLength
  }

  /** The cell of a text, or the empty one where it would be; {@link last} is its hash then. */
  private cellOf(text: string): number {
    const { cells, mask, numberBits, texts } = this
    const hash = (this.last = this.hash(text))
    let at = hash & mask,
      alike = 0
    for (let cell = cells[at]!; cell !== 0; cell = cells[at]!) {
      if (((cell ^ hash) & ~numberBits) === 0) {
        if (texts.textAt((cell & numberBits) - 1) === text) return at
        if (++alike > mostAlike && this.hashed === endLength) return this.cellOfWhole(text)
      }
      at = (at + 1) & mask
    }
    return at
  }

  /** From now on all of each text is hashed. */
  private cellOfWhole(text: string): number {
    const { cells, hashes, numberBits, texts } = this
    this.hashed = whole
    for (const cell of cells) {
      if (cell === 0) continue
      const number = (cell & numberBits) - 1
      hashes[number] = this.hash(texts.textAt(number))
    }
    this.resize(this.mask + 1)
    return this.cellOf(text)
  }

  /** `count`: a power of two. */
  private resize(count: number): void {
    const { cells: before, numberBits: bitsBefore } = this
    const cells = new Int32Array(count),
      mask = count - 1
    // Numbers are below the most texts there were, of which a smaller table may have some.
    if (mask > bitsBefore) {
      this.numberBits = mask
      const hashes = new Int32Array(count)
      hashes.set(this.hashes)
      this.hashes = hashes
    }
    for (const cell of before) {
      if (cell === 0) continue
      const number = (cell & bitsBefore) - 1
      let at = this.hashes[number]! & mask
      while (cells[at] !== 0) at = (at + 1) & mask
      cells[at] = this.cell(number)
    }
    this.cells = cells
    this.mask = mask
  }

  private cell(number: number): number {
    return (this.hashes[number]! & ~this.numberBits) | (number + 1)
  }

  private hash(text: string): number {
    let hash = this.seed ^ text.length
    for (let i = Math.max(0, text.length - this.hashed); i < text.length; i++)
      hash = Math.imul(hash ^ text.charCodeAt(i), 0x5bd1e995) + (hash >>> 15)
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
    return hash ^ (hash >>> 13)
  }
}
