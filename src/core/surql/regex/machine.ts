/**
 * Runs a pattern over a text, one character after the other, with all its threads at once (Pike's machine): in time
 * linear in the text, whatever the pattern.
 *
 * A back-tracking engine could be made to hang the process, because patterns come from query text and data. A program
 * is arrays of numbers, and a set of ASCII characters a table, because the machine runs for each record that is
 * filtered.
 */
import * as CharSet from "./charSet.ts"
import { type Assertion, fault, type Node, type Ranges } from "./pattern.ts"

/** Operations of instructions, and the meaning of their one or two numbers. */
const set = 0
const assertion = 1
/** Tries the first target before the second. */
const split = 2
const jump = 3
const match = 4

/** A set, and a table of its ASCII characters. */
interface CharTest {
  readonly ranges: Ranges
  readonly ascii: Uint8Array
}

const ascii = 128

class ProgramWriter {
  readonly operations: Array<number> = []
  readonly firsts: Array<number> = []
  readonly seconds: Array<number> = []
  readonly sets: Array<CharTest> = []
  readonly assertions: Array<Assertion> = []
  /** A repeated part is compiled several times, its sets once. */
  private readonly places = new Map<Ranges, number>()

  constructor(private readonly most: number) {}

  /** Adds an instruction; answers its position. */
  add(operation: number, first = 0, second = 0): number {
    if (this.end >= this.most) return fault("it is too large")
    this.operations.push(operation)
    this.firsts.push(first)
    this.seconds.push(second)
    return this.end - 1
  }

  get end(): number {
    return this.operations.length
  }

  write(node: Node): void {
    switch (node.kind) {
      case "nothing":
        return
      case "set":
        this.add(set, this.placeOf(node.ranges))
        return
      case "assertion":
        this.add(assertion, this.assertions.push(node.assertion) - 1)
        return
      case "sequence":
        for (const part of node.parts) this.write(part)
        return
      case "choice":
        this.choice(node.parts)
        return
      case "repeat":
        this.repeat(node)
    }
  }

  private placeOf(ranges: Ranges): number {
    const known = this.places.get(ranges)
    if (known !== undefined) return known
    const table = new Uint8Array(ascii)
    for (let i = 0; i < ranges.length && ranges[i]! < ascii; i += 2) table.fill(1, ranges[i]!, ranges[i + 1]! + 1)
    const place = this.sets.push({ ranges, ascii: table }) - 1
    this.places.set(ranges, place)
    return place
  }

  private choice(parts: ReadonlyArray<Node>): void {
    const jumps: Array<number> = []
    for (const part of parts.slice(0, -1)) {
      const begun = this.add(split, this.end + 1)
      this.write(part)
      jumps.push(this.add(jump))
      this.seconds[begun] = this.end
    }
    this.write(parts.at(-1)!)
    for (const at of jumps) this.firsts[at] = this.end
  }

  private repeat({ isLazy, max, min, part }: Node & { readonly kind: "repeat" }): void {
    // Repeating a part that matches only the empty text changes nothing.
    const most = isOnlyEmpty(part) ? Math.min(1, max) : max
    const least = Math.min(min, most)
    const isEndless = most === Infinity
    const exits: Array<number> = []
    const goOnAt = (onwards: number): void => void exits.push(this.add(split, onwards, onwards))
    for (let n = isEndless ? 1 : 0; n < least; n++) this.write(part)
    if (!isEndless)
      for (let n = least; n < most; n++) {
        goOnAt(this.end + 1)
        this.write(part)
      }
    else if (min === 0 && !mayBeEmpty(part)) {
      // Every round jumps back to the same split, whose order decides which of two threads that meet is preferred.
      const begun = this.end
      goOnAt(begun + 1)
      this.write(part)
      this.add(jump, begun)
    } else {
      // `x*` as `(x+)?` if `x` may match the empty text, so that an empty round is the last one.
      if (min === 0) goOnAt(this.end + 1)
      const begun = this.end
      this.write(part)
      goOnAt(begun)
    }
    for (const at of exits) (isLazy ? this.firsts : this.seconds)[at] = this.end
  }
}

const mayBeEmpty = (node: Node): boolean => {
  switch (node.kind) {
    case "set":
      return false
    case "sequence":
      return node.parts.every(mayBeEmpty)
    case "choice":
      return node.parts.some(mayBeEmpty)
    case "repeat":
      return node.min === 0 || mayBeEmpty(node.part)
    default:
      return true
  }
}

const isOnlyEmpty = (node: Node): boolean => {
  switch (node.kind) {
    case "set":
      return false
    case "sequence":
    case "choice":
      return node.parts.every(isOnlyEmpty)
    case "repeat":
      return node.max === 0 || isOnlyEmpty(node.part)
    default:
      return true
  }
}

/** The only text that a node matches; undefined if there are several, or none. */
const exactly = (node: Node): string | undefined => {
  if (node.kind === "set")
    return node.ranges.length === 2 && node.ranges[0] === node.ranges[1]
      ? String.fromCodePoint(node.ranges[0]!)
      : undefined
  if (node.kind !== "sequence") return undefined
  const parts = node.parts.map(exactly)
  return parts.includes(undefined) ? undefined : parts.join("")
}

/** Texts that every match contains, in this order: they rule out most texts that do not match. */
const required = (node: Node): ReadonlyArray<string> => {
  if (node.kind === "repeat") return node.min === 0 ? [] : required(node.part)
  if (node.kind !== "sequence") return [exactly(node) ?? ""].filter((text) => text !== "")
  const texts: Array<string> = []
  let run = ""
  for (const part of node.parts) {
    const exact = exactly(part)
    if (exact !== undefined) {
      run += exact
      continue
    }
    texts.push(run, ...required(part))
    run = ""
  }
  return [...texts, run].filter((text) => text !== "")
}

/** Whether a match can only begin at the start of the text. */
const isAnchored = (node: Node | undefined): boolean => {
  switch (node?.kind) {
    case "assertion":
      return node.assertion === "textStart"
    case "sequence":
      return isAnchored(node.parts.find(({ kind }) => kind !== "nothing"))
    case "choice":
      return node.parts.every(isAnchored)
    case "repeat":
      return node.min > 0 && isAnchored(node.part)
    default:
      return false
  }
}

/** Whether an assertion holds between two characters; -1: an end of the text. */
const holds = (asked: Assertion, before: number, after: number): boolean => {
  switch (asked) {
    case "textStart":
      return before < 0
    case "textEnd":
      return after < 0
    case "lineStart":
      return before < 0 || before === 10
    case "lineEnd":
      return after < 0 || after === 10
    case "wordBoundary":
      return CharSet.isWord(before) !== CharSet.isWord(after)
    case "noWordBoundary":
      return CharSet.isWord(before) === CharSet.isWord(after)
    case "wordStart":
      return !CharSet.isWord(before) && CharSet.isWord(after)
    case "wordEnd":
      return CharSet.isWord(before) && !CharSet.isWord(after)
    case "halfStart":
      return !CharSet.isWord(before)
    case "halfEnd":
      return !CharSet.isWord(after)
  }
}

/** Threads in order of preference: an instruction, and where the match began. */
class Threads {
  readonly at: Int32Array
  readonly from: Int32Array
  readonly seen: Uint32Array
  count = 0
  round = 0

  constructor(size: number) {
    this.at = new Int32Array(size)
    this.from = new Int32Array(size)
    this.seen = new Uint32Array(size)
  }

  clear(): void {
    this.count = 0
    if (++this.round === 2 ** 32) {
      this.round = 1
      this.seen.fill(0)
    }
  }
}

/** The code point that ends before a position; -1 at the start. */
const codeBefore = (text: string, at: number): number => {
  if (at === 0) return -1
  const wide = at > 1 ? text.codePointAt(at - 2)! : 0
  return wide > 0xffff ? wide : text.charCodeAt(at - 1)
}

/** The code point at a position; -1 at the end. */
const codeAt = (text: string, at: number): number => (at < text.length ? text.codePointAt(at)! : -1)

export class Program {
  private readonly operations: Uint8Array
  private readonly firsts: Int32Array
  private readonly seconds: Int32Array
  private readonly sets: ReadonlyArray<CharTest>
  private readonly assertions: ReadonlyArray<Assertion>
  /** ASCII characters that a match may begin with; undefined if it may begin with an empty match or an assertion. */
  private readonly beginnings: Uint8Array | undefined
  private readonly required: ReadonlyArray<string>
  private readonly isAnchored: boolean
  /** Thread lists, reused from run to run. */
  private now: Threads
  private next: Threads
  private readonly open: Int32Array

  /** Throws `PatternFault` if the program has more than `most` instructions. */
  constructor(node: Node, most: number) {
    const writer = new ProgramWriter(most)
    writer.write(node)
    writer.add(match)
    this.operations = Uint8Array.from(writer.operations)
    this.firsts = Int32Array.from(writer.firsts)
    this.seconds = Int32Array.from(writer.seconds)
    this.sets = writer.sets
    this.assertions = writer.assertions
    this.now = new Threads(this.size)
    this.next = new Threads(this.size)
    this.open = new Int32Array(2 * this.size)
    this.beginnings = this.begins()
    this.required = required(node)
    this.isAnchored = isAnchored(node)
  }

  /** Number of instructions. */
  private get size(): number {
    return this.operations.length
  }

  /** Work per character of a text, in instructions: an assertion about words counts as three. */
  get work(): number {
    return this.size + 2 * this.assertions.filter((asked) => !/^(?:text|line)/.test(asked)).length
  }

  private begins(): Uint8Array | undefined {
    const table = new Uint8Array(ascii)
    this.now.clear()
    this.follow(this.now, 0, 0, undefined, 0)
    for (const place of this.now.at.subarray(0, this.now.count)) {
      if (this.operations[place] !== set) return undefined
      const { ascii: there } = this.sets[this.firsts[place]!]!
      for (let code = 0; code < ascii; code++) table[code]! |= there[code]!
    }
    return table
  }

  /** Adds a thread, and follows the instructions that read no character; without `before` it stops at assertions. */
  private follow(threads: Threads, first: number, from: number, before: number | undefined, after: number): void {
    const { firsts, open, operations, seconds } = this
    const { at: ats, from: froms, round, seen } = threads
    let count = 0
    open[count++] = first
    while (count > 0) {
      const at = open[--count]!
      if (seen[at] === round) continue
      seen[at] = round
      const operation = operations[at]!
      if (operation === jump) open[count++] = firsts[at]!
      else if (operation === split) {
        open[count++] = seconds[at]!
        open[count++] = firsts[at]!
      } else if (operation === assertion && before !== undefined) {
        if (holds(this.assertions[firsts[at]!]!, before, after)) open[count++] = at + 1
      } else {
        ats[threads.count] = at
        froms[threads.count++] = from
      }
    }
  }

  /** The first match at `begin` or later; of several the preferred one. Cost: length of the text times instructions. */
  find(text: string, begin: number): readonly [from: number, to: number] | undefined {
    if ((this.isAnchored && begin > 0) || !this.hasRequired(text, begin)) return undefined
    const { beginnings, firsts, operations, sets } = this
    let { next, now } = this
    let from = -1,
      to = -1,
      at = begin
    now.clear()
    for (let before = codeBefore(text, at), here = codeAt(text, at); ; ) {
      if (from < 0) {
        if (now.count === 0) {
          if (this.isAnchored && at > 0) return undefined
          const begins = this.beginning(text, at)
          if (begins > at) {
            at = begins
            before = codeBefore(text, at)
            here = codeAt(text, at)
          }
        }
        if (beginnings === undefined || here >= ascii || beginnings[here] === 1) this.follow(now, 0, at, before, here)
      }
      if (now.count === 0 && (from >= 0 || here < 0)) break
      const end = at + (here > 0xffff ? 2 : 1)
      const after = codeAt(text, end)
      next.clear()
      for (let n = 0; n < now.count; n++) {
        const place = now.at[n]!
        if (operations[place] === match) {
          from = now.from[n]!
          to = at
          break
        }
        if (here < 0) continue
        const test = sets[firsts[place]!]!
        if (here < ascii ? test.ascii[here] === 1 : CharSet.has(test.ranges, here))
          this.follow(next, place + 1, now.from[n]!, here, after)
      }
      ;[now, next] = [next, now]
      if (here < 0) break
      before = here
      here = after
      at = end
    }
    return from < 0 ? undefined : [from, to]
  }

  private hasRequired(text: string, begin: number): boolean {
    let at = begin
    for (const each of this.required) {
      const found = text.indexOf(each, at)
      if (found < 0) return false
      at = found + each.length
    }
    return true
  }

  /** Next position where a match may begin; the end of the text if there is none. */
  private beginning(text: string, from: number): number {
    const { beginnings } = this
    let at = from
    if (beginnings !== undefined)
      for (; at < text.length; at++) {
        const code = text.charCodeAt(at)
        if (code >= ascii || beginnings[code] === 1) break
      }
    return at
  }
}
