/**
 * Reads the text of a composite record key (`['a', 1]`, `{ a: d'...' }`, `u'...'`) without the whole parser.
 *
 * Why so: record ids are parsed for every change, and the parser itself needs record ids; a small reader of constants
 * keeps the two apart. It accepts what the database prints, not every notation.
 */
import * as Lex from "./lex.ts"
import * as RecordIds from "./recordId.ts"
import type { RecordKey, Value } from "./value.ts"
import { setField, Uuid } from "./value.ts"

interface Reader {
  readonly text: string
  at: number
  depth: number
}

/** Result for text that is no constant. */
const wrong = Symbol("wrong")
type Read = Value | typeof wrong

const words: { readonly [word: string]: Value } = { true: true, false: false, null: null, none: undefined }

const value = (r: Reader): Read => {
  const t = Lex.next(r.text, r.at)
  r.at = t.end
  if (t.kind === "string") return t.text
  if (t.kind === "value") return t.value
  if (t.kind === "op") return composite(r, t)
  if (t.kind !== "ident" && t.kind !== "quoted" && t.kind !== "record") return wrong
  const word = t.text.toLowerCase()
  if (t.kind === "ident" && Object.hasOwn(words, word) && r.text[t.end] !== ":") return words[word]
  if (t.text === "NaN" && t.kind === "ident") return NaN
  return t.kind === "record" ? (RecordIds.parse(t.text) ?? wrong) : record(r, t)
}

const composite = (r: Reader, t: Lex.Token): Read => {
  if (t.text === "-") {
    const n = /^-\d/.test(r.text.slice(t.at, t.at + 2)) ? Lex.number(r.text, t.at, t.at) : t
    r.at = n.end
    return n.kind === "value" ? n.value : wrong
  }
  if (++r.depth > 64) return wrong
  const out = t.text === "[" ? array(r) : t.text === "{" ? object(r) : wrong
  r.depth--
  return out
}

const record = (r: Reader, t: Lex.Token): Read => {
  if (r.text[t.end] !== ":") return wrong
  const rest = /^:(?:[A-Za-z0-9_+-]+|`(?:[^`\\]|\\.)*`|⟨[^⟩]*⟩)/.exec(r.text.slice(t.end))
  if (rest !== null) {
    r.at = t.end + rest[0].length
    return RecordIds.parse(r.text.slice(t.at, r.at)) ?? wrong
  }
  r.at = t.end + 1
  const key = value(r)
  return key === wrong ? wrong : RecordIds.make(t.text, key as RecordKey)
}

const array = (r: Reader): Read => {
  const items: Array<Value> = []
  for (;;) {
    const t = Lex.next(r.text, r.at)
    if (t.text === "]" && t.kind === "op") {
      r.at = t.end
      return items
    }
    const item = value(r)
    if (item === wrong) return wrong
    items.push(item)
    if (!separator(r, "]")) return wrong
  }
}

/** Consumes a comma, or checks for the closing bracket. */
const separator = (r: Reader, close: string): boolean => {
  const t = Lex.next(r.text, r.at)
  if (t.kind === "op" && t.text === ",") r.at = t.end
  return t.kind === "op" && (t.text === "," || t.text === close)
}

const object = (r: Reader): Read => {
  const out: Record<string, Value> = {}
  for (;;) {
    const t = Lex.next(r.text, r.at)
    r.at = t.end
    if (t.kind === "op" && t.text === "}") return out
    if (t.kind !== "ident" && t.kind !== "string" && t.kind !== "value" && t.kind !== "quoted") return wrong
    const colon = Lex.next(r.text, r.at)
    if (colon.text !== ":") return wrong
    r.at = colon.end
    const item = value(r)
    if (item === wrong) return wrong
    setField(out, t.text, item)
    if (!separator(r, "}")) return wrong
  }
}

/** The key of a text, or of its beginning: an array, an object or a uuid; `undefined` for any other text. */
export const readKey = (text: string, rest: "nothing" | "anything" = "nothing"): RecordKey | undefined => {
  const r: Reader = { text, at: 0, depth: 0 }
  const key = value(r)
  if (key === wrong || (rest === "nothing" && Lex.next(text, r.at).kind !== "end")) return undefined
  return Array.isArray(key) ||
    key instanceof Uuid ||
    (typeof key === "object" && key !== null && Object.getPrototypeOf(key) === Object.prototype)
    ? (key as RecordKey)
    : undefined
}
