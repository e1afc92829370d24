/**
 * Approximate memory of a record in bytes: the figure that operators size an SSP by.
 *
 * By the layout of V8 without pointer compression (Node): a head of three words and a word for each field of an object,
 * two words for a number that is no small integer, a head and its characters for a text. Text counts one byte for each
 * character; what several records share, such as field names, counts nothing. Indexes and views are not included.
 *
 * Not every record is measured: an old document is cold, and walking it costs more than the rest of a change. The first
 * records of a table are measured each, and later ones by sample, one in `oneIn` counted for all of them. A record's
 * share is subtracted when it goes, because documents never change: an empty table counts nothing.
 */
import { type Obj, RecordId, type Value } from "../../surql/values/value.ts"

const word = 8
/** Map, properties and elements of an object; an array has its length beside them. */
const head = 3 * word
/** Map, hash and length of a text. */
const textHead = 2 * word
/** The slot of a record, which is the id in its document too, with its places in the arrays of the table. */
const slotBytes = 8 * word

/** The first records of a table, which are measured each. */
const each = 256
const oneIn = 16

/** How many records one record counts for, by its share. */
export const shareWeights = [0, 1, oneIn] as const

/** Share of the nth record of a table in the estimate: an index of {@link shareWeights}. */
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

/** Bytes of an object's fields, and of a typed value's, whose fields are values too. */
const fieldsBytes = (fields: Obj): number => {
  let bytes = head
  for (const name in fields) bytes += word + bytesOf(fields[name])
  return bytes
}

/** Bytes of a record with this content; 0 without content. */
export const recordBytes = (doc: Obj | undefined): number => (doc === undefined ? 0 : slotBytes + fieldsBytes(doc))
