/**
 * TypeScript types of backends, routes and payloads, from their OpenAPI documents (`jobs types`).
 *
 * With them a wrong route or a missing parameter does not compile. Types accept whatever the validator accepts: it
 * alone checks what TypeScript cannot (ranges, patterns, conditions). Named schemas become named types, so recursive
 * ones work.
 */
import { isMapping, type Mapping } from "../core/typeGuards.ts"
import * as Document from "./document.ts"
import type { Source } from "./run.ts"

const list = (u: unknown): ReadonlyArray<unknown> => (Array.isArray(u) ? (u as ReadonlyArray<unknown>) : [])

const pascal = (text: string): string => {
  const name = text
    .split(/[^A-Za-z0-9]+/)
    .filter((part) => part !== "")
    .map((part) => part[0]!.toUpperCase() + part.slice(1))
    .join("")
  return /^[A-Za-z]/.test(name) ? name : `T${name}`
}

const commented = (text: unknown, indent: string): string =>
  typeof text === "string" && text.trim() !== ""
    ? `${indent}/** ${text
        .trim()
        .replaceAll("*/", "* /")
        .replace(/\s*\n\s*/g, " ")} */\n`
    : ""

const union = (types: ReadonlyArray<string>): string => {
  const distinct = [...new Set(types)]
  return distinct.includes("unknown")
    ? "unknown"
    : distinct.length === 0
      ? "never"
      : distinct.length === 1
        ? distinct[0]!
        : `(${distinct.join(" | ")})`
}

const primitives: { readonly [type: string]: string } = {
  string: "string",
  number: "number",
  integer: "number",
  boolean: "boolean",
  null: "null"
}

class Generator {
  /** Type names by JSON pointer. */
  private readonly names = new Map<string, string>()
  readonly declarations: Array<string> = []

  constructor(
    private readonly document: Document.ApiDocument,
    private readonly prefix: string
  ) {}

  typeAt(pointer: string): string {
    return this.typeOf(Document.at(this.document.content, pointer), "    ")
  }

  private named(pointer: string): string {
    const known = this.names.get(pointer)
    if (known !== undefined) return known
    const target = pointer.startsWith("#") ? Document.at(this.document.content, pointer) : undefined
    if (target === undefined) return "unknown"
    const base = `${this.prefix}${pascal(pointer.split("/").at(-1) ?? "")}`
    const taken = new Set(this.names.values())
    let name = base
    for (let n = 2; taken.has(name); n++) name = `${base}${n}`
    this.names.set(pointer, name)
    const text = this.typeOf(target, "")
    this.declarations.push(
      `${commented(isMapping(target) ? target["description"] : undefined, "")}export type ${name} = ${text}\n`
    )
    return name
  }

  private typeOf(schema: unknown, indent: string): string {
    if (schema === false) return "never"
    if (!isMapping(schema)) return "unknown"
    const parts: Array<string> = []
    if (typeof schema["$ref"] === "string") parts.push(this.named(schema["$ref"]))
    if (Object.hasOwn(schema, "const")) parts.push(JSON.stringify(schema["const"]))
    else if (Array.isArray(schema["enum"])) parts.push(union(schema["enum"].map((value) => JSON.stringify(value))))
    else {
      const own = this.ownType(schema, indent)
      if (own !== undefined) parts.push(own)
    }
    for (const key of ["oneOf", "anyOf"])
      if (Array.isArray(schema[key])) parts.push(union(list(schema[key]).map((branch) => this.typeOf(branch, indent))))
    for (const branch of list(schema["allOf"])) parts.push(this.typeOf(branch, indent))
    const known = [...new Set(parts)].filter((part) => part !== "unknown")
    return known.length === 0 ? "unknown" : known.length === 1 ? known[0]! : `(${known.join(" & ")})`
  }

  /** The TypeScript type that `type` and its keywords describe; undefined if they describe none. */
  private ownType(schema: Mapping, indent: string): string | undefined {
    const types = typeof schema["type"] === "string" ? [schema["type"]] : list(schema["type"]).map(String)
    if (types.length === 0)
      return isMapping(schema["properties"]) || Array.isArray(schema["required"])
        ? this.objectType(schema, indent)
        : undefined
    return union(
      types.map((type) =>
        type === "object"
          ? this.objectType(schema, indent)
          : type === "array"
            ? this.arrayType(schema, indent)
            : (primitives[type] ?? "unknown")
      )
    )
  }

  private arrayType(schema: Mapping, indent: string): string {
    const rest = schema["items"] === undefined ? "unknown" : this.typeOf(schema["items"], indent)
    const prefix = list(schema["prefixItems"])
    if (prefix.length === 0) return `ReadonlyArray<${rest}>`
    const least = typeof schema["minItems"] === "number" ? schema["minItems"] : 0
    const items = prefix.map((item, n) => `${this.typeOf(item, indent)}${n < least ? "" : "?"}`)
    return `readonly [${[...items, ...(rest === "never" ? [] : [`...ReadonlyArray<${rest}>`])].join(", ")}]`
  }

  private objectType(schema: Mapping, indent: string): string {
    const properties = isMapping(schema["properties"]) ? schema["properties"] : {}
    const required = new Set(list(schema["required"]).map(String))
    const inner = `${indent}  `
    const lines = Object.entries(properties).map(
      ([name, property]) =>
        `${commented(isMapping(property) ? property["description"] : undefined, inner)}${inner}readonly ${JSON.stringify(name)}${required.has(name) ? "" : "?"}: ${this.typeOf(property, inner)}\n`
    )
    for (const name of required)
      if (!Object.hasOwn(properties, name)) lines.push(`${inner}readonly ${JSON.stringify(name)}: unknown\n`)
    const more = schema["additionalProperties"]
    // Beside named properties an index signature would have to include their types.
    if (lines.length === 0)
      return more === false || (more === undefined && !isMapping(schema["patternProperties"]))
        ? more === false
          ? "{ readonly [name: string]: never }"
          : "{ readonly [name: string]: unknown }"
        : `{ readonly [name: string]: ${isMapping(more) && !isMapping(schema["patternProperties"]) ? this.typeOf(more, inner) : "unknown"} }`
    return `{\n${lines.join("")}${more === false || more === undefined ? "" : `${inner}readonly [name: string]: unknown\n`}${indent}}`
  }
}

/** A path such as `/users/{id}/mail` as a type; a template literal if it has parameters. */
const pathType = (path: string): string =>
  path.includes("{")
    ? `[path: \`${path.replaceAll(/[`$\\]/g, "\\$&").replaceAll(/\{[^{}]*\}/g, "${string}")}\`]`
    : JSON.stringify(path)

/** Prints one module that declares `Backends`. Unreadable documents are left out: callers ask for faults first. */
export const print = (sources: ReadonlyArray<Source>): string => {
  const declarations: Array<string> = []
  const backends = sources.flatMap(({ document, name }) => {
    const read = Document.read(document)
    if (read._tag === "Left") return []
    const generator = new Generator(read.right, pascal(name))
    const routes = read.right.routes.map(
      ({ path, schema }) =>
        `    readonly ${pathType(path)}: ${schema === undefined ? "{ readonly [name: string]: never }" : generator.typeAt(schema)}\n`
    )
    declarations.push(...generator.declarations)
    return [`  readonly ${JSON.stringify(name)}: {\n${routes.join("")}  }\n`]
  })
  return [
    "/** Backends, their routes and payloads, for `outbox<Backends>(db, ...)`. Generated from the OpenAPI documents: do not edit. */\n",
    `export interface Backends {\n${backends.join("")}}\n`,
    ...declarations.map((text) => `\n${text}`)
  ].join("")
}
