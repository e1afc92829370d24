/**
 * Documents of records, made so that all their fields lie in the object itself.
 *
 * Why: an object that is built up from `{}` keeps all but its first four fields in an array beside it, and every look
 * at a record has to load both; the engine looks at little else. What a constructor makes gets its size from the first
 * few it made, so each table has one of its own, its records being alike. All other code sees plain objects. The
 * ids they refer to are shared, so that a change finds at hand what another has named.
 */
import * as RecordIds from "./recordId.ts"
import { type Obj, RecordId, setField, type Value } from "./value.ts"

type Maker = new () => Record<string, Value>

const newMaker = (): Maker => {
  // biome-ignore lint/complexity/useArrowFunction: an arrow function constructs nothing.
  const maker = function () {} as unknown as Maker
  Object.defineProperty(maker, "prototype", { value: Object.prototype })
  return maker
}

/** Tables with a constructor of their own; a client that sends random names must not fill the memory. */
const maxMakers = 1_000
const makers = new Map<string, Maker>()
const common = newMaker()

const makerOf = (table: string): Maker => {
  const known = makers.get(table)
  if (known !== undefined) return known
  if (makers.size >= maxMakers) return common
  const maker = newMaker()
  makers.set(table, maker)
  return maker
}

/** The document of a record of this table: the fields of `content`, one of them left out perhaps, in their order. */
export const docOf = (table: string, content: Obj, without?: string): Record<string, Value> => {
  const doc = new (makerOf(table))()
  for (const name of Object.keys(content)) {
    if (name === without) continue
    const value = content[name]
    setField(doc, name, value instanceof RecordId && name !== "id" ? RecordIds.shared(value) : value)
  }
  return doc
}
