/**
 * Runs a pattern over a text, one character after the other, with all its threads at once (Pike's machine): in time
 * linear in the text, whatever the pattern.
 *
 * For what RE2 cannot say: boundaries of words that are not of ASCII alone. Which characters a set has is asked of the
 * caller, once for each character.
 */
import { type Assertion, fault, type Node } from "./pattern.ts"

type Instruction =
  | { readonly kind: "set"; readonly has: (character: string) => boolean }
  | { readonly kind: "assertion"; readonly assertion: Assertion }
  /** The first is tried before the second. */
  | { readonly kind: "split"; first: number; second: number }
  | { readonly kind: "jump"; to: number }
  | { readonly kind: "match" }

export interface Program {
  readonly instructions: ReadonlyArray<Instruction>
}

class ProgramWriter {
  readonly instructions: Array<Instruction> = []

  constructor(
    private readonly most: number,
    private readonly memberOf: (text: string) => (character: string) => boolean
  ) {}

  add<I extends Instruction>(instruction: I): I {
    if (this.instructions.length >= this.most) return fault("it is too large")
    this.instructions.push(instruction)
    return instruction
  }

  private get end(): number {
    return this.instructions.length
  }

  write(node: Node): void {
    switch (node.kind) {
      case "nothing":
        return
      case "set":
        this.add({ kind: "set", has: this.memberOf(node.ignoresCase ? `(?i:${node.text})` : node.text) })
        return
      case "assertion":
        this.add({ kind: "assertion", assertion: node.assertion })
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

  private choice(parts: ReadonlyArray<Node>): void {
    const ends = parts.map((part, i) => {
      if (i === parts.length - 1) return this.write(part)
      const split = this.add({ kind: "split", first: this.end + 1, second: 0 })
      this.write(part)
      const jump = this.add({ kind: "jump", to: 0 })
      split.second = this.end
      return jump
    })
    for (const jump of ends) if (jump !== undefined) jump.to = this.end
  }

  private repeat({ isLazy, max, min, part }: Node & { readonly kind: "repeat" }): void {
    const isEndless = max === Infinity
    for (let n = isEndless ? 1 : 0; n < min; n++) this.write(part)
    const exits: Array<() => void> = []
    const split = (onwards: number): void => {
      const made = this.add({ kind: "split", first: onwards, second: onwards })
      exits.push(() => {
        if (isLazy) made.first = this.end
        else made.second = this.end
      })
    }
    if (isEndless) {
      // `x*` as `(x+)?`, so that a round that reads nothing is the last one.
      if (min === 0) split(this.end + 1)
      const begun = this.end
      this.write(part)
      split(begun)
    } else
      for (let n = min; n < max; n++) {
        split(this.end + 1)
        this.write(part)
      }
    for (const exit of exits) exit()
  }
}

/** `memberOf`: a test of one character by the text of a set. Throws `PatternFault` beyond so many instructions. */
export const programOf = (
  node: Node,
  most: number,
  memberOf: (text: string) => (character: string) => boolean
): Program => {
  const writer = new ProgramWriter(most, memberOf)
  writer.write(node)
  writer.add({ kind: "match" })
  return writer
}

const word = /^[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]/u

const isWord = (character: string | undefined): boolean => character !== undefined && word.test(character)

const holds = (assertion: Assertion, before: string | undefined, after: string | undefined): boolean => {
  switch (assertion) {
    case "textStart":
      return before === undefined
    case "textEnd":
      return after === undefined
    case "lineStart":
      return before === undefined || before === "\n"
    case "lineEnd":
      return after === undefined || after === "\n"
    case "wordBoundary":
      return isWord(before) !== isWord(after)
    case "noWordBoundary":
      return isWord(before) === isWord(after)
    case "wordStart":
      return !isWord(before) && isWord(after)
    case "wordEnd":
      return isWord(before) && !isWord(after)
    case "halfStart":
      return !isWord(before)
    case "halfEnd":
      return !isWord(after)
  }
}

/** Threads in the order of their preference: an instruction, and where its match began. */
class Threads {
  readonly at: Array<number> = []
  readonly from: Array<number> = []
  private readonly seen: Uint32Array
  private round = 0

  constructor(size: number) {
    this.seen = new Uint32Array(size)
  }

  clear(): void {
    this.at.length = this.from.length = 0
    this.round++
  }

  /** Follows what reads no character. */
  add(instructions: ReadonlyArray<Instruction>, first: number, from: number, before?: string, after?: string): void {
    const open = [first]
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      if (this.seen[at] === this.round) continue
      this.seen[at] = this.round
      const instruction = instructions[at]!
      if (instruction.kind === "jump") open.push(instruction.to)
      else if (instruction.kind === "split") open.push(instruction.second, instruction.first)
      else if (instruction.kind === "assertion") {
        if (holds(instruction.assertion, before, after)) open.push(at + 1)
      } else {
        this.at.push(at)
        this.from.push(from)
      }
    }
  }
}

/** The first match at `begin` or later, the one that is preferred there; positions count characters. */
export const find = (
  { instructions }: Program,
  characters: ReadonlyArray<string>,
  begin: number
): readonly [from: number, to: number] | undefined => {
  let now = new Threads(instructions.length),
    next = new Threads(instructions.length),
    found: readonly [number, number] | undefined
  now.clear()
  for (let i = begin; i <= characters.length; i++) {
    if (found === undefined) now.add(instructions, 0, i, characters[i - 1], characters[i])
    else if (now.at.length === 0) break
    next.clear()
    for (const [n, at] of now.at.entries()) {
      const instruction = instructions[at]!
      if (instruction.kind === "match") {
        found = [now.from[n]!, i]
        break
      }
      const character = characters[i]
      if (instruction.kind === "set" && character !== undefined && instruction.has(character))
        next.add(instructions, at + 1, now.from[n]!, character, characters[i + 1])
    }
    ;[now, next] = [next, now]
  }
  return found
}
