/**
 * `object::*`.
 *
 * Why so: keys come out sorted, as the database keeps them; later keys win.
 */
import { raise } from "../evaluate/failure.ts"
import { exactKind } from "../evaluate/methods.ts"
import { sortedKeys } from "../values/order.ts"
import { render, toText } from "../values/text.ts"
import type { Obj, Value } from "../values/value.ts"
import { field, setField } from "../values/value.ts"
import type { Table } from "./define.ts"
import { define } from "./define.ts"

const fromEntries = (entries: ReadonlyArray<Value>): Obj => {
  const out: Record<string, Value> = {}
  for (const entry of entries) {
    if (!Array.isArray(entry) || entry.length !== 2)
      return raise`Incorrect arguments for function object::from_entries(). Expected entries, found ${exactKind(entry)}`
    const [key, value] = entry as ReadonlyArray<Value>
    setField(out, toText(key), value)
  }
  return out
}

const remove = (o: Obj, targets: Value): Obj => {
  const keys = Array.isArray(targets) ? (targets as ReadonlyArray<Value>) : [targets]
  for (const key of keys)
    if (typeof key !== "string")
      raise`Incorrect arguments for function object::remove(). '${render(key)}' cannot be used as a key. Please use a string instead.`
  const out: Record<string, Value> = {}
  for (const key of Object.keys(o)) if (!keys.includes(key)) setField(out, key, o[key])
  return out
}

const extend = (a: Obj, b: Obj): Obj => fromEntries([...Object.entries(a), ...Object.entries(b)])

export const object: Table = {
  "object::entries": define<[Obj]>(["object"], ([o]) => sortedKeys(o).map((k) => [k, field(o, k)])),
  "object::extend": define<[Obj, Obj]>(["object", "object"], ([a, b]) => extend(a, b)),
  "object::from_entries": define<[ReadonlyArray<Value>]>(["array"], ([a]) => fromEntries(a)),
  "object::is_empty": define<[Obj]>(["object"], ([o]) => Object.keys(o).length === 0),
  "object::keys": define<[Obj]>(["object"], ([o]) => sortedKeys(o)),
  "object::len": define<[Obj]>(["object"], ([o]) => Object.keys(o).length),
  "object::remove": define<[Obj, Value]>(["object", "any"], ([o, targets]) => remove(o, targets)),
  "object::values": define<[Obj]>(["object"], ([o]) => sortedKeys(o).map((k) => field(o, k)))
}
