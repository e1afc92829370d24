/**
 * The schemas of an OpenAPI 3.0 document as JSON Schema 2020-12, which OpenAPI 3.1 uses: where the two differ, nothing
 * else.
 *
 * By hand, because the converters on npm write an older draft, or take every key of that name for the keyword, also
 * where it is the name of a property or lies in an example. Here only what a route's body leads to is touched, from
 * schema to schema, references followed.
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

/** `exclusiveMinimum: true` beside `minimum: 5` is `exclusiveMinimum: 5`. */
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

/**
 * Removes `readOnly` properties from `required`: a request must not send them, so they are required of answers only.
 */
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
    // Whatever stands beside a reference has no meaning in 3.0, and would have one here.
    for (const key of Object.keys(schema)) if (key !== "$ref") delete schema[key]
    return
  }
  // Without a type beside it `nullable` says nothing, and an enum that does not list null rules it out.
  if (schema["nullable"] === true && typeof schema["type"] === "string") schema["type"] = [schema["type"], "null"]
  delete schema["nullable"]
  bound(schema, "minimum", "exclusiveMinimum")
  bound(schema, "maximum", "exclusiveMaximum")
  withoutReadOnly(schema)
  // A hint for readers and generators; the branches themselves decide.
  delete schema["discriminator"]
}

/**
 * Changes the schemas at these places, and all they lead to, in the document itself. `at` answers what a reference
 * leads to.
 */
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
