/** Reads the answers of `INFO FOR ... STRUCTURE`: lists of objects with a name. */
import { isObj, type Obj, type Value } from "../surql/values/value.ts"

/** One definition, with its own properties under `definition`. */
interface Definition {
  readonly name: string
  readonly definition: Obj
}

/** Definitions of one kind; empty if the answer is not that of the statement. */
export const definitionsOf = (
  info: Value | undefined,
  kind: "namespaces" | "databases" | "tables" | "fields" | "events" | "functions" | "params"
): ReadonlyArray<Definition> => {
  const found = isObj(info) ? info[kind] : undefined
  return Array.isArray(found)
    ? (found as ReadonlyArray<Value>).flatMap((definition) =>
        isObj(definition) && typeof definition["name"] === "string" ? [{ name: definition["name"], definition }] : []
      )
    : []
}
