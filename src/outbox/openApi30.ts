/**
 * Converts the schemas of an OpenAPI 3.0 document to JSON Schema 2020-12, which OpenAPI 3.1 uses.
 *
 * Written by hand, because the converters on npm produce an older draft, or convert every key with a keyword's name,
 * even a property's or an example's. Only schemas that a route's body leads to are converted, references followed.
 */
type Json = { [key: string]: unknown }

const isMapping = (u: unknown): u is Json => typeof u === "object" && u !== null && !Array.isArray(u)

const each = (u: unknown): ReadonlyArray<unknown> => (Array.isArray(u) ? (u as ReadonlyArray<unknown>) : [])

/** Schemas directly inside this one. */
const inner = (schema: Json): ReadonlyArray<unknown> => [
  ...Object.values(isMapping(schema["properties"]) ? schema["properties"] : {}),
  schema["items"],
  schema["additionalProperties"],
  schema["not"],
  ...each(schema["allOf"]),
  ...each(schema["anyOf"]),
  ...each(schema["oneOf"])
]

/** `exclusiveMinimum: true` beside `minimum: 5` becomes `exclusiveMinimum: 5`. */
const bound = (
  schema: Json,
  limit: "minimum" | "maximum",
  exclusive: "exclusiveMinimum" | "exclusiveMaximum"
): void => {
  const flag = schema[exclusive]
  if (typeof flag !== "boolean") return
  delete schema[exclusive]
  if (!flag || typeof schema[limit] !== "number") return
  schema[exclusive] = schema[limit]
  delete schema[limit]
}

/** Removes `readOnly` properties from `required`: requests must not have them, only answers. */
const withoutReadOnly = (schema: Json): void => {
  const properties = schema["properties"]
  if (!isMapping(properties) || !Array.isArray(schema["required"])) return
  const isReadOnly = (name: unknown): boolean =>
    typeof name === "string" &&
    Object.hasOwn(properties, name) &&
    isMapping(properties[name]) &&
    properties[name]["readOnly"] === true
  schema["required"] = each(schema["required"]).filter((name) => !isReadOnly(name))
}

const convert = (schema: Json): void => {
  if (typeof schema["$ref"] === "string") {
    // In 3.0 keys beside a reference are ignored; in 2020-12 they would count.
    for (const key of Object.keys(schema)) if (key !== "$ref") delete schema[key]
    return
  }
  // `nullable` means nothing without a type, and an enum must list null itself.
  if (schema["nullable"] === true && typeof schema["type"] === "string") schema["type"] = [schema["type"], "null"]
  delete schema["nullable"]
  bound(schema, "minimum", "exclusiveMinimum")
  bound(schema, "maximum", "exclusiveMaximum")
  withoutReadOnly(schema)
  // Only a hint for readers and generators; the branches themselves decide.
  delete schema["discriminator"]
}

/** Converts the schemas at these pointers, and all they lead to, in place. `at` answers the value at a pointer. */
export const convertFrom = (schemas: ReadonlyArray<unknown>, at: (pointer: string) => unknown): void => {
  const seen = new Set<unknown>()
  const waiting = [...schemas]
  for (let schema = waiting.pop(); schema !== undefined || waiting.length > 0; schema = waiting.pop()) {
    if (!isMapping(schema) || seen.has(schema)) continue
    seen.add(schema)
    convert(schema)
    if (typeof schema["$ref"] === "string" && schema["$ref"].startsWith("#")) waiting.push(at(schema["$ref"]))
    waiting.push(...inner(schema))
  }
}
