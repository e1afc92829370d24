/**
 * Makes documents of records whose fields all lie in the object itself.
 *
 * Why: an object built from `{}` keeps all but its first four fields in a separate array, and reading a record then
 * loads both. V8 sizes a constructor's objects by the first few it made, so each table has its own constructor: its
 * records are alike. Other code sees plain objects. Ids in the documents are shared, so that a change finds the id
 * objects of earlier ones in the cache.
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

/** Most tables with a constructor of their own; a client that sends random names must not fill the memory. */
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

/** The document of a record of this table: the fields of `content` in their order, except `without`. */
export const docOf = (table: string, content: Obj, without?: string): Record<string, Value> => {
  const doc = new (makerOf(table))()
  for (const name of Object.keys(content)) {
    if (name === without) continue
    const value = content[name]
    setField(doc, name, value instanceof RecordId && name !== "id" ? RecordIds.sharedId(value) : value)
  }
  return doc
}
