/**
 * How much memory a record takes, about, in bytes: what an operator sizes an SSP by.
 *
 * By the layout of V8 without pointer compression (Node): a head of three words and a word for each field of an object,
 * two words for a number that is no small integer, a head and its characters for a text. Text counts as one byte for
 * each character, and what several records share, such as field names, as nothing. Indexes and views are not in it.
 *
 * Not each record is weighed: an old document is cold, and a look at all of it costs more than the rest of a change.
 * Of a table's first records each is, and of later ones one in so many, in their stead. What a record counts for is
 * taken off when it goes, because documents never change: an empty table counts nothing.
 */
import { type Obj, RecordId, type Value } from "../../surql/values/value.ts"

const word = 8
/** Map, properties and elements; of an array its length beside them. */
const head = 3 * word
/** Map, hash and length of a text. */
const textHead = 2 * word
/**
 * Of the slot, which is the id in its document: what it has beside an id, and its places in the arrays of its table.
 */
const slotBytes = 8 * word

/** So many records of a table are weighed each, and of those behind them one in so many. */
const each = 256
const oneIn = 16

/** For how many records one counts, by its share. */
export const weights = [0, 1, oneIn] as const

/** How the nth record of a table shares in the figure: an index of {@link weights}. */
export const shareOf = (nth: number): 0 | 1 | 2 => (nth < each ? 1 : nth % oneIn === 0 ? 2 : 0)

const textBytes = (text: string): number => textHead + ((text.length + word - 1) & -word)

const isSmall = (value: number): boolean => (value | 0) === value

const bytesOf = (value: Value): number => {
  switch (typeof value) {
    case "string":
      return textBytes(value)
    case "number":
      return isSmall(value) ? 0 : 2 * word
    case "bigint":
      return 3 * word
    case "object":
      if (value === null) return 0
      if (value instanceof RecordId) return head + 2 * word + idBytes(value)
      if (value instanceof Uint8Array) return 2 * head + value.byteLength
      if (Array.isArray(value)) return itemsBytes(value)
      return fieldsBytes(value as Obj)
    default:
      return 0
  }
}

const idBytes = ({ raw }: RecordId): number =>
  typeof raw === "object" ? head + 2 * word + textBytes(raw.text) + bytesOf(raw.key as Value) : bytesOf(raw)

const itemsBytes = (items: ReadonlyArray<Value>): number => {
  let bytes = head + 3 * word
  for (const item of items) bytes += word + bytesOf(item)
  return bytes
}

/** Of an object, and of a typed value: its fields are values too. */
const fieldsBytes = (fields: Obj): number => {
  let bytes = head
  for (const name in fields) bytes += word + bytesOf(fields[name])
  return bytes
}

/** What a record with this content takes; nothing where there is none. */
export const recordBytes = (doc: Obj | undefined): number => (doc === undefined ? 0 : slotBytes + fieldsBytes(doc))
