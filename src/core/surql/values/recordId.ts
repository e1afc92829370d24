/**
 * Record ids: making them, and reading them from text.
 *
 * Parsing is as strict as the database's grammar, with a lenient variant for feeds that do not escape.
 */
import { skipBlanks } from "./lex.ts"
import { readKey } from "./literal.ts"
import { unescape } from "./names.ts"
import { compareKeys as orderKeys } from "./order.ts"
import { recordText } from "./text.ts"
import type { RecordKey } from "./value.ts"
import { int, RecordId } from "./value.ts"

/** The record id of a table and a key. */
export const make = (table: string, key: RecordKey): RecordId => {
  const known = typeof key === "bigint" ? int(key) : key
  if (typeof known === "number") return new RecordId(table, known + 0)
  const text = recordText(table, known)
  return new RecordId(table, typeof known === "string" ? text : { key: known, text })
}

const bare = /^[A-Za-z0-9_]+$/
const digits = /^[+-]?\d+$/

/** Text of digits as an int key; beyond 64 bits it stays a string, as in the database. */
export const intKey = (text: string): number | bigint | string => {
  if (text.length < 16) return Number(text) + 0
  const value = BigInt(text.startsWith("+") ? text.slice(1) : text)
  return value >= -9223372036854775808n && value <= 9223372036854775807n ? int(value) : text
}

/** A quoted name at the start of `text`: its content and the rest; `undefined` for any other start. */
const delimited = (text: string): readonly [string, string] | undefined => {
  const close = text[0] === "`" ? "`" : text[0] === "⟨" ? "⟩" : ""
  if (close === "") return undefined
  let i = 1
  while (i < text.length && text[i] !== close) i += text[i] === "\\" ? 2 : 1
  if (i >= text.length) return undefined
  const inner = unescape(text.slice(1, i))
  return inner === undefined ? undefined : [inner, text.slice(i + 1)]
}

const parseKey = (text: string): RecordKey | undefined => {
  if (bare.test(text)) return digits.test(text) ? intKey(text) : text
  const first = text[0]
  if (first === "`" || first === "⟨") {
    const name = delimited(text)
    return name !== undefined && name[1] === "" ? name[0] : undefined
  }
  if (first === "-" || first === "+") return digits.test(text) ? intKey(text) : undefined
  return first === "[" || first === "{" || first === "u" ? readKey(text) : undefined
}

/** The table and the text of the key; `undefined` when the text does not start like a record id. */
const splitId = (text: string): readonly [string, string] | undefined => {
  const first = text[0]
  if (first === "`" || first === "⟨") {
    const name = delimited(text)
    return name === undefined || name[1][0] !== ":" ? undefined : [name[0], name[1].slice(1)]
  }
  const colon = text.indexOf(":")
  if (colon < 1) return undefined
  const table = text.slice(0, colon)
  return bare.test(table) ? [table, text.slice(colon + 1)] : undefined
}

/** Most names cached: a client that sends random names must not fill the memory. */
const maxNames = 1_000
const names = new Map<string, string>()

/** The interned name of a table: every record id has it, and identical strings compare at once. */
const interned = (table: string): string => {
  const known = names.get(table)
  if (known !== undefined) return known
  if (names.size < maxNames) names.set(table, table)
  return table
}

/** Parses the database's whole text of a record id; `undefined` for any other text. */
export const parse = (text: string): RecordId | undefined => {
  const parts = splitId(text)
  if (parts === undefined) return undefined
  const key = parseKey(parts[1])
  if (key === undefined) return undefined
  const table = interned(parts[0])
  if (typeof key === "number") return new RecordId(table, key)
  // The canonical text is stored: a concatenated one would stay in pieces until it is read.
  const canonical = recordText(table, key),
    kept = canonical === text ? text : canonical
  return new RecordId(table, typeof key === "string" ? kept : { key, text: kept })
}

const beginning =
  /^([A-Za-z_][A-Za-z0-9_]*|`[^`\\]*`|⟨[^⟩\\]*⟩)\s*:\s*(?:([+-]\d+|[A-Za-z0-9_]+|`[^`\\]*`|⟨[^⟩\\]*⟩)|(?=[[{]))/

/**
 * Parses what the language accepts as a record id: white space and comments before it are skipped, and so is text after
 * its key, as in the database. A table name does not begin with a digit.
 */
export const parseWritten = (text: string): RecordId | undefined => {
  const from = skipBlanks(text, 0),
    written = from < 0 ? "" : text.slice(from).trimEnd()
  if (/^\d/.test(written)) return undefined
  const whole = parse(written),
    m = whole === undefined ? beginning.exec(written) : null
  if (m === null) return whole
  const table = `${m[1]}:`,
    behind = written.slice(m[0].length),
    composite =
      m[2] === undefined || (m[2] === "u" && /^['"]/.test(behind))
        ? readKey((m[2] ?? "") + behind, "anything")
        : undefined
  if (composite !== undefined) return make(splitId(table)![0], composite)
  // A key that begins as a uuid must be a whole one, or the text is no id.
  if (m[2] === undefined || (m[2] === "u" && /^['"]/.test(behind))) return undefined
  if (!/^[+-]/.test(m[2])) return parse(table + m[2])
  // A negative number followed by other characters is text, and so is one with too many digits.
  const key = m[2].startsWith("-") && /^(?:[A-Za-z]|\.\d)/.test(behind) ? m[2] : intKey(m[2])
  return make(splitId(table)![0], typeof key === "string" ? key.replace("+", "") : key)
}

/** Ids by table and key. */
type Shared = Map<string, Map<number | string, RecordId>>

/** Most ids in each of two halves; the older half is dropped when the newer one is full. */
const maxShared = 65_536
let newer: Shared = new Map()
let older: Shared = newer
let remembered = 0

/**
 * The id object of an equal id seen recently: records that refer to one record then share one object, which is in the
 * cache when the next change names it, and is not compared.
 */
export const sharedId = (id: RecordId): RecordId => {
  const { raw, table } = id,
    told = typeof raw === "object" ? raw.text : raw
  const known = newer.get(table)?.get(told)
  if (known !== undefined) return known
  // A stored record's id is a slot, which must not be held longer than the record; a plain id is made instead.
  const one = older.get(table)?.get(told) ?? (id.constructor === RecordId ? id : new RecordId(table, raw))
  if (remembered++ >= maxShared) {
    older = newer
    newer = new Map()
    remembered = 1
  }
  const ofTable = newer.get(table)
  if (ofTable === undefined) newer.set(table, new Map([[told, one]]))
  else ofTable.set(told, one)
  return one
}

/**
 * As {@link parse}, but a key that does not parse is taken as a string key as it stands (`person:a-b`), unless it
 * starts like an escaped or composite one.
 */
export const parseLenient = (text: string): RecordId | undefined => {
  const strict = parse(text)
  if (strict !== undefined) return strict
  const colon = text.indexOf(":")
  const parts =
    splitId(text) ??
    (colon > 0 && !/[`⟨]/.test(text[0]!) ? ([text.slice(0, colon), text.slice(colon + 1)] as const) : undefined)
  if (parts === undefined || parts[1] === "" || /^[`⟨[{]/.test(parts[1])) return undefined
  return make(parts[0], parts[1])
}

/** Order of record keys: ints < strings < uuids < arrays < objects. */
export const compareKeys = (a: RecordKey, b: RecordKey): number => orderKeys(a, b)
