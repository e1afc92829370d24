/**
 * Numbers for texts: 0, 1, 2 and so on; the number of a removed text is given to another one. Data of a text then
 * stands in arrays, at its number.
 *
 * Why not a map: a change of a large table finds the table's memory in no cache, and a map of texts takes some five
 * cold reads to find one (bucket, entry, text, and another entry of the same bucket before). Here it takes two: a cell
 * with a number and part of a hash, and the text with that number. Sixteen cells share a cache line. Only the end of a
 * text is hashed, which tells random and counted keys apart; if many texts end alike, whole texts are hashed. Cost:
 * O(length of the text) where it is compared.
 *
 * State: open addressing with linear probing, between a twelfth and four fifths full. A cell has, in its low bits, one
 * more than the number of its text, and above these the same bits of the hash; 0 is an empty cell. Whole hashes, by
 * number, are read where cells move.
 */

const fewestCells = 16
/** Characters at the end that are hashed: a generated key has 20, and each takes some nanoseconds. */
const endLength = 8
/** More characters than any text has. */
const whole = 2 ** 30 - 1
/**
 * Cells with an equal part of the hash that a search may pass. More of them are no coincidence: the texts end alike.
 */
const mostAlike = 4

/** The owner of the texts, which stores them beside their other data. */
export interface TextOwner {
  /** The text that has this number. */
  textAt(number: number): string
}

export class TextNumbers {
  private readonly seed: number
  private readonly texts: TextOwner
  /** Count of the numbers in use or free: the next new number. */
  private given = 0
  private readonly unused: Array<number> = []
  private cells = new Int32Array(fewestCells)
  private mask = fewestCells - 1
  /** Mask of the bits of a cell that hold the number. */
  private numberBits = fewestCells - 1
  /** Whole hashes, by number. */
  private hashes = new Int32Array(fewestCells)
  /** Characters at the end of a text that are hashed. */
  private hashed = endLength
  /** Hash of the text last searched for. */
  private last = 0
  size = 0

  /** `seed`: texts that collide under one seed do not under another. */
  constructor(seed: number, texts: TextOwner) {
    this.seed = seed
    this.texts = texts
  }

  /** The number of a text; -1 if it has none. */
  find(text: string): number {
    // Searches first: the search may rebuild the array of cells.
    const cell = this.cellOf(text)
    return (this.cells[cell]! & this.numberBits) - 1
  }

  /** Gives a text without a number one, and answers it. */
  add(text: string): number {
    const cell = this.cellOf(text)
    const number = this.unused.pop() ?? this.given++
    this.hashes[number] = this.last
    this.cells[cell] = this.cell(number)
    if (5 * ++this.size > 4 * this.mask) this.resize(2 * (this.mask + 1))
    return number
  }

  /** Removes a text, if it has a number; the owner must store the text until then. */
  remove(text: string): void {
    let gap = this.cellOf(text)
    const { cells, hashes, mask, numberBits } = this
    const number = (cells[gap]! & numberBits) - 1
    if (number < 0) return
    this.unused.push(number)
    // Cells behind the gap that a search would no longer reach move into it.
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

  /** Position of the cell of a text, or of the empty cell it would get; sets {@link last}. */
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

  /** Switches to hashing whole texts, and searches again. */
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

  /** `count`: number of cells, a power of two. */
  private resize(count: number): void {
    const { cells: before, numberBits: bitsBefore } = this
    const cells = new Int32Array(count),
      mask = count - 1
    // Numbers go up to the most texts there ever were, which may need more bits than a small table has.
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
