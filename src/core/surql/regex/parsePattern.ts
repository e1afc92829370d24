/**
 * Reads a pattern as the database's engine does (Rust's `regex`): the same texts are patterns, and mean the same.
 *
 * A pattern that is valid there but not supported here is refused with a fault that says so.
 */
import * as CharSet from "./charSet.ts"
import { type Assertion, fault, type Node } from "./pattern.ts"

/** Deepest nesting, as in the database's engine. */
const maxDepth = 250
/** Largest count of a repetition. */
const maxCount = 1000
/** Most names of properties in a pattern: a new one may take ten milliseconds. */
const maxProperties = 16

interface Flags {
  readonly i: boolean
  readonly m: boolean
  readonly s: boolean
  readonly U: boolean
}

const unsupportedFlags: { readonly [flag: string]: string } = { u: "-u", x: "x", R: "R" }

/** `[:name:]` classes, as ASCII ranges. */
const posix: { readonly [name: string]: string } = {
  alnum: "09AZaz",
  alpha: "AZaz",
  ascii: "\0\x7f",
  blank: "\t\t  ",
  cntrl: "\0\x1f\x7f\x7f",
  digit: "09",
  graph: "!~",
  lower: "az",
  print: " ~",
  punct: "!/:@[`{~",
  space: "\t\r  ",
  upper: "AZ",
  word: "09AZaz__",
  xdigit: "09AFaf"
}

const controls: { readonly [escape: string]: string } = { a: "\x07", f: "\f", n: "\n", r: "\r", t: "\t", v: "\v" }

const boundaries: { readonly [name: string]: Assertion } = {
  start: "wordStart",
  end: "wordEnd",
  "start-half": "halfStart",
  "end-half": "halfEnd"
}

const assertions: { readonly [escape: string]: Assertion } = {
  A: "textStart",
  z: "textEnd",
  b: "wordBoundary",
  B: "noWordBoundary",
  "<": "wordStart",
  ">": "wordEnd"
}

type Escape = { readonly code: number } | { readonly set: CharSet.SetNode } | { readonly assertion: Assertion }

const sequence = (parts: ReadonlyArray<Node>): Node => (parts.length === 1 ? parts[0]! : { kind: "sequence", parts })

class PatternReader {
  private readonly chars: ReadonlyArray<string>
  private readonly names = new Set<string>()
  private readonly budget = CharSet.budgetOfPattern()
  private properties = 0
  private at = 0

  constructor(text: string) {
    this.chars = Array.from(text)
  }

  whole(): Node {
    const node = this.choice({ i: false, m: false, s: false, U: false }, 0)
    return this.at < this.chars.length ? fault("a group is closed that was not opened") : node
  }

  private peek(ahead = 0): string | undefined {
    return this.chars[this.at + ahead]
  }

  private take(char: string): boolean {
    const found = this.peek() === char
    if (found) this.at++
    return found
  }

  private isNext(text: string): boolean {
    return Array.from(text).every((char, i) => this.peek(i) === char)
  }

  private takeAll(text: string): boolean {
    const found = this.isNext(text)
    if (found) this.at += text.length
    return found
  }

  private next(what: string): string {
    return this.chars[this.at++] ?? fault(`${what} has no end`)
  }

  private takeWhile(is: (char: string) => boolean): string {
    let text = ""
    for (let char = this.peek(); char !== undefined && is(char); char = this.peek()) text += this.next("")
    return text
  }

  /** Reads alternatives up to the end, or the end of the group. */
  private choice(given: Flags, depth: number): Node {
    if (depth > maxDepth) return fault(`groups lie deeper than ${maxDepth}`)
    const branches: Array<Node> = []
    let flags = given,
      parts: Array<Node> = []
    for (let char = this.peek(); char !== undefined && char !== ")"; char = this.peek()) {
      this.at++
      if (char === "|") {
        branches.push(sequence(parts))
        parts = []
      } else if (char === "(") {
        const group = this.group(flags, depth)
        if ("flags" in group) flags = group.flags
        parts.push(group.node)
      } else if (char === "*") this.repeat(parts, 0, Infinity, flags)
      else if (char === "+") this.repeat(parts, 1, Infinity, flags)
      else if (char === "?") this.repeat(parts, 0, 1, flags)
      else if (char === "{") this.counted(parts, flags)
      else parts.push(this.leaf(char, flags))
    }
    if (branches.length === 0) return sequence(parts)
    return { kind: "choice", parts: [...branches, sequence(parts)] }
  }

  private leaf(char: string, { i, m, s }: Flags): Node {
    const set = (of: CharSet.SetNode): Node => ({ kind: "set", ranges: CharSet.rangesOf(of, i, this.budget) })
    const between = (assertion: Assertion): Node => ({ kind: "assertion", assertion })
    if (char === ".") return set(s ? CharSet.union([], true) : CharSet.union([CharSet.range(0x0a)], true))
    if (char === "^") return between(m ? "lineStart" : "textStart")
    if (char === "$") return between(m ? "lineEnd" : "textEnd")
    if (char === "[") return set(this.bracketed(0))
    if (char !== "\\") return set(CharSet.range(char.codePointAt(0)!))
    const escape = this.escape()
    if ("assertion" in escape) return between(escape.assertion)
    return set("code" in escape ? CharSet.range(escape.code) : escape.set)
  }

  private repeat(parts: Array<Node>, min: number, max: number, { U }: Flags): void {
    const part = parts.pop()
    if (part === undefined || part.kind === "nothing") return fault("a repetition repeats nothing")
    parts.push({ kind: "repeat", part, min, max, isLazy: this.take("?") !== U })
  }

  private counted(parts: Array<Node>, flags: Flags): void {
    const count = (): number => {
      const text = this.takeWhile((char) => /[\s\d]/.test(char)).trim()
      if (!/^[0-9]+$/.test(text)) return fault("a repetition has no number")
      return Number(text) <= maxCount ? Number(text) : fault(`a repetition of more than ${maxCount} is not supported`)
    }
    const min = count()
    const max = !this.take(",") ? min : this.peek() === "}" ? Infinity : count()
    if (!this.take("}")) return fault("a repetition is not closed")
    if (min > max) return fault("a repetition ends before it begins")
    this.repeat(parts, min, max, flags)
  }

  /** Reads a group after its bracket. `flags`: the group has only flags, which apply to the rest. */
  private group(flags: Flags, depth: number): { readonly node: Node; readonly flags?: Flags } {
    let inner = flags
    if (this.peek() === "?") {
      if (["?=", "?!", "?<=", "?<!"].some((ahead) => this.isNext(ahead))) return fault("look-around is not supported")
      if (this.takeAll("?P<") || this.takeAll("?<")) this.name()
      else {
        this.at++
        const text = this.takeWhile((char) => char !== ":" && char !== ")")
        inner = flagsOf(text, flags)
        if (this.next("a group") === ")")
          return text === "" ? fault("a repetition repeats nothing") : { node: { kind: "nothing" }, flags: inner }
      }
    }
    const node = this.choice(inner, depth + 1)
    if (!this.take(")")) return fault("a group is not closed")
    // A group is a sequence of its own, so that an empty group, or a group that is a repetition, can be repeated.
    return { node: { kind: "sequence", parts: [node] } }
  }

  private name(): void {
    const name = this.takeWhile((char) => char !== ">")
    if (!this.take(">")) return fault("a group's name is not closed")
    if (!/^[_\p{Alphabetic}][_.[\]\p{Alphabetic}\p{N}]*$/u.test(name)) return fault("a group's name is not valid")
    if (this.names.has(name)) return fault("two groups have one name")
    this.names.add(name)
  }

  /** Reads an escape after its backslash. */
  private escape(): Escape {
    const char = this.next("an escape")
    if (/[0-9]/.test(char)) return fault("back-references are not supported")
    if (char === "x" || char === "u" || char === "U") return { code: this.hex({ x: 2, u: 4, U: 8 }[char]) }
    if (char === "p" || char === "P") return { set: this.property(char === "P") }
    if (char === "d" || char === "D") return { set: CharSet.property("Nd", char === "D") }
    if (char === "s" || char === "S") return { set: CharSet.union([{ kind: "named", name: "space" }], char === "S") }
    if (char === "w" || char === "W") return { set: CharSet.union([{ kind: "named", name: "word" }], char === "W") }
    const control = Object.hasOwn(controls, char) ? controls[char] : undefined
    if (control !== undefined) return { code: control.codePointAt(0)! }
    if (Object.hasOwn(assertions, char)) return { assertion: this.boundary(char) ?? assertions[char]! }
    const code = char.codePointAt(0)!
    return code < 0x80 && !/[A-Za-z<>]/.test(char) ? { code } : fault(`the escape \\${char} is not known`)
  }

  private hex(digits: number): number {
    let text = ""
    if (this.take("{")) {
      text = this.takeWhile((char) => char !== "}")
      if (!this.take("}")) return fault("an escape has no end")
    } else for (let n = 0; n < digits; n++) text += this.next("an escape")
    const code = /^[0-9A-Fa-f]+$/.test(text) ? Number.parseInt(text, 16) : Infinity
    return code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff) ? fault("an escape names no character") : code
  }

  private property(isNegated: boolean): CharSet.SetNode {
    if (++this.properties > maxProperties) return fault(`more than ${maxProperties} properties are not supported`)
    const first = this.next("a property")
    if (first !== "{") return CharSet.property(first, isNegated)
    const name = this.takeWhile((char) => char !== "}")
    if (!this.take("}")) return fault("a property has no end")
    return /^\w+(?:=\w+)?$/.test(name) ? CharSet.property(name, isNegated) : fault(`\\p{${name}} is not supported`)
  }

  /** Reads `\b{start}` and its like. */
  private boundary(escape: string): Assertion | undefined {
    if (escape !== "b" || this.peek() !== "{" || !/[-A-Za-z]/.test(this.peek(1) ?? "")) return undefined
    this.at++
    const name = this.takeWhile((char) => /[-A-Za-z]/.test(char))
    if (!this.take("}") || !Object.hasOwn(boundaries, name)) return fault("a word boundary of this name is not known")
    return boundaries[name]
  }

  /** Reads a class after its bracket. */
  private bracketed(depth: number): CharSet.SetNode {
    if (depth > maxDepth) return fault(`classes lie deeper than ${maxDepth}`)
    const isNegated = this.take("^")
    let parts: Array<CharSet.SetNode> = []
    let left: { readonly set: CharSet.SetNode; readonly operator: CharSet.Operator } | undefined
    const soFar = (): CharSet.SetNode =>
      left === undefined
        ? CharSet.union(parts)
        : { kind: "operation", operator: left.operator, left: left.set, right: CharSet.union(parts) }
    while (this.take("-")) parts.push(CharSet.range(0x2d))
    if (parts.length === 0 && this.take("]")) parts.push(CharSet.range(0x5d))
    for (;;) {
      const operator = (["&&", "--", "~~"] as const).find((each) => this.takeAll(each))
      if (operator !== undefined) {
        left = { set: soFar(), operator }
        parts = []
        continue
      }
      const char = this.next("a class")
      if (char === "]") return CharSet.union([soFar()], isNegated)
      if (char === "[") parts.push(this.posixClass() ?? this.bracketed(depth + 1))
      else parts.push(this.member(char))
    }
  }

  private posixClass(): CharSet.SetNode | undefined {
    const begun = this.at
    if (this.take(":")) {
      const isNegated = this.take("^")
      const name = this.takeWhile((char) => /[a-z]/.test(char))
      const ranges = Object.hasOwn(posix, name) ? posix[name] : undefined
      if (ranges !== undefined && this.takeAll(":]")) {
        const parts = [...ranges.matchAll(/[\s\S]{2}/g)].map(([pair]) =>
          CharSet.range(pair.codePointAt(0)!, pair.codePointAt(1)!)
        )
        return CharSet.union(parts, isNegated)
      }
    }
    this.at = begun
    return undefined
  }

  /** Reads a character, a range of characters, or a named set. */
  private member(char: string): CharSet.SetNode {
    const from = this.memberPart(char)
    if (this.peek() !== "-" || this.peek(1) === "]" || this.peek(1) === "-") return from
    this.at++
    const to = this.memberPart(this.next("a class"))
    if (from.kind !== "range" || to.kind !== "range") return fault("a range in a class ends in a set")
    return from.from <= to.from ? CharSet.range(from.from, to.from) : fault("a range in a class ends before it begins")
  }

  private memberPart(char: string): CharSet.SetNode {
    if (char !== "\\") return CharSet.range(char.codePointAt(0)!)
    const escape = this.escape()
    if ("assertion" in escape) return fault("a class has an escape that is no character")
    return "code" in escape ? CharSet.range(escape.code) : escape.set
  }
}

/** Each flag at most once; flags after `-` are switched off. */
const flagsOf = (text: string, given: Flags): Flags => {
  const flags: { -readonly [flag in keyof Flags]: boolean } = { ...given }
  let value = true
  const seen = new Set<string>()
  for (const char of text) {
    if (seen.has(char)) return fault(`flags say ${char} twice`)
    seen.add(char)
    if (char === "-") value = false
    else if (char === "u" && value) continue
    else if (Object.hasOwn(unsupportedFlags, char)) return fault(`the flag ${unsupportedFlags[char]} is not supported`)
    else if (char === "i" || char === "m" || char === "s" || char === "U") flags[char] = value
    else return fault(`the flag ${char} is not known`)
  }
  return text.endsWith("-") ? fault("flags end in -") : flags
}

/** Throws `PatternFault`. */
export const parsePattern = (text: string): Node => new PatternReader(text).whole()
