/**
 * Fields that a schema file declares (`DEFINE FIELD ... TYPE ...`, ends of relations), as TypeScript types of their
 * JSON.
 *
 * Types that JSON cannot tell apart are all `string`: datetime, duration, uuid and decimal. A number that is not finite
 * comes as null, which no type mentions. Undeclared fields are `unknown`.
 */

/** A TypeScript type. `isOptional`: the field may be absent, as any unknown field may. */
export interface TsType {
  readonly text: string
  readonly isOptional: boolean
}

/** Type of an undeclared field. */
export const unknown: TsType = { text: "unknown", isOptional: true }
/** A required field of this type; `unknown` stays optional. */
export const known = (text: string): TsType => ({ text, isOptional: text === "unknown" })

/** A field with the fields below it; `*` stands for the items of an array. */
export interface FieldNode {
  type: string | undefined
  readonly below: Map<string, FieldNode>
}

/** Declared fields by table. */
export type Tables = ReadonlyMap<string, FieldNode>

const node = (): FieldNode => ({ type: undefined, below: new Map() })

const plainName = /^[A-Za-z_]\w*$/

const unquoted = (name: string): string => name.replace(/^[`⟨](.*)[`⟩]$/s, "$1")

/** A property's name as TypeScript has it. */
export const property = (name: string): string => (plainName.test(name) ? name : JSON.stringify(name))

/** The text without comments; signs within string literals are no comments. */
const uncommented = (text: string): string =>
  text.replace(
    /("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\/\*[\s\S]*?\*\/|(?:--|#|\/\/)[^\n]*/g,
    (_, kept?: string) => kept ?? " "
  )

const stepsOf = (path: string): ReadonlyArray<string> =>
  (path.replaceAll("[*]", ".*").match(/`[^`]*`|⟨[^⟩]*⟩|[^.]+/g) ?? []).map(unquoted)

const typeEnds = /\s+(?:DEFAULT|VALUE|ASSERT|READONLY|REFERENCE|COMMENT|PERMISSIONS|FLEXIBLE|COMPUTED)\b|$/i

/** The fields that a file of definitions declares, by table. */
export const declaredIn = (schema: string): Tables => {
  const text = uncommented(schema)
  const tables = new Map<string, FieldNode>()
  const declare = (table: string, path: string, type: string): void => {
    const name = unquoted(table)
    let at = tables.get(name) ?? node()
    tables.set(name, at)
    for (const step of stepsOf(path)) {
      const next = at.below.get(step) ?? node()
      at.below.set(step, next)
      at = next
    }
    at.type = type.trim()
  }
  /** Pattern for the rest of a statement; a `;` within a string literal does not end it. */
  const rest = `((?:"(?:[^"\\\\]|\\\\.)*"|'(?:[^'\\\\]|\\\\.)*'|[^;])*)`
  const name = "(`[^`]+`|⟨[^⟩]+⟩|\\w+)"
  const how = "(?:IF\\s+NOT\\s+EXISTS\\s+|OVERWRITE\\s+)?"
  const field = new RegExp(`\\bDEFINE\\s+FIELD\\s+${how}(\\S+)\\s+ON\\s+(?:TABLE\\s+)?${name}${rest}`, "gi")
  for (const [, path, table, said] of text.matchAll(field)) {
    const [, type = "any"] = /\bTYPE\s+([\s\S]+)/i.exec(said!) ?? []
    declare(table!, path!, type.slice(0, typeEnds.exec(type)!.index))
  }
  const relation = new RegExp(`\\bDEFINE\\s+TABLE\\s+${how}${name}[^;]*?\\bTYPE\\s+RELATION\\b${rest}`, "gi")
  for (const [, table, said] of text.matchAll(relation))
    for (const [end, words] of [
      ["in", "IN|FROM"],
      ["out", "OUT|TO"]
    ] as const) {
      const [, to] = new RegExp(`\\b(?:${words})\\s+(\\w+(?:\\s*\\|\\s*\\w+)*)`, "i").exec(said!) ?? []
      declare(table!, end, to === undefined ? "record" : `record<${to}>`)
    }
  return tables
}

/** Splits at a sign outside of brackets and string literals. */
const split = (text: string, by: string): ReadonlyArray<string> => {
  const parts = [""]
  let depth = 0
  for (const [piece] of text.matchAll(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[\s\S]/g)) {
    if ("<{[(".includes(piece)) depth++
    else if (">}])".includes(piece)) depth--
    if (piece === by && depth === 0) parts.push("")
    else parts[parts.length - 1] += piece
  }
  return parts.map((part) => part.trim()).filter((part) => part !== "")
}

const plain: { readonly [type: string]: string } = {
  bool: "boolean",
  int: "number",
  float: "number",
  number: "unknown",
  decimal: "string",
  string: "string",
  datetime: "string",
  duration: "string",
  uuid: "string",
  null: "null",
  true: "true",
  false: "false",
  bytes: "ReadonlyArray<number>",
  array: "ReadonlyArray<unknown>",
  set: "ReadonlyArray<unknown>",
  object: "{ readonly [field: string]: unknown }",
  record: "`${string}:${string}`"
}

/** Union of some types, each once; `unknown` absorbs the others. */
export const union = (types: ReadonlyArray<string>): string => {
  const distinct = [...new Set(types)]
  return distinct.length === 0 || distinct.includes("unknown") ? "unknown" : distinct.join(" | ")
}

/** Type of an array. */
export const listOf = (item: string): string => `ReadonlyArray<${item}>`

/** Type of the id of a table's record. */
export const recordOf = (table: string): string => (plainName.test(table) ? `\`${table}:\${string}\`` : "string")

/** A property of an object. */
export const line = (name: string, { isOptional, text }: TsType): string =>
  `readonly ${property(name)}${isOptional ? "?" : ""}: ${text}`

/** Type of an object with these properties. */
export const objectOf = (lines: ReadonlyArray<string>): string => `{ ${lines.join("; ")} }`

/** Type of an array's item: an absent one comes as null. */
export const itemOf = ({ isOptional, text }: TsType): string => (isOptional ? union([text, "null"]) : text)

const objectBelow = (below: FieldNode["below"]): string =>
  objectOf([...below].map(([name, field]) => line(name, typeOf(field))))

/** One alternative of a type; undefined for one that means absence. */
const alternative = (text: string, below: FieldNode["below"]): string | undefined => {
  const [, generic, inner = ""] = /^(\w+)\s*<([\s\S]*)>$/.exec(text) ?? []
  const items = below.get("*")
  if (/^none$/i.test(text)) return undefined
  if (/^object$/i.test(text) && below.size > 0) return objectBelow(below)
  if (generic !== undefined && /^(?:array|set)$/i.test(generic)) {
    const item = split(inner, ",")[0] ?? ""
    return listOf(itemOf(items?.type === undefined ? typed(item, items?.below ?? new Map()) : typeOf(items)))
  }
  if (/^(?:array|set)$/i.test(text) && items !== undefined) return listOf(itemOf(typeOf(items)))
  if (generic?.toLowerCase() === "record") return union(split(inner, "|").map((table) => recordOf(unquoted(table))))
  if (/^['"]/.test(text)) return JSON.stringify(text.slice(1, -1))
  if (/^-?\d+(?:\.\d+)?$/.test(text)) return text
  return plain[text.toLowerCase()] ?? "unknown"
}

/** A declared type in TypeScript, with the fields declared below it. */
export const typed = (text: string, below: FieldNode["below"] = new Map()): TsType => {
  const [, optional] = /^option\s*<([\s\S]*)>$/i.exec(text) ?? []
  if (optional !== undefined && split(text, "|").length === 1)
    return { text: typed(optional, below).text, isOptional: true }
  const parts = split(text, "|").map((part) =>
    /^option\s*</i.test(part) ? [typed(part, below).text, undefined] : [alternative(part, below)]
  )
  const all = parts.flat()
  const present = known(union(all.filter((part) => part !== undefined)))
  return all.includes(undefined) ? { ...present, isOptional: true } : present
}

/** The type of a declared field. */
export const typeOf = ({ below, type }: FieldNode): TsType =>
  type === undefined ? (below.size === 0 || below.has("*") ? unknown : known(objectBelow(below))) : typed(type, below)

/** Tables that a type links to, if it allows nothing but links and absence. */
export const linkedBy = (type: string | undefined): ReadonlyArray<string> => {
  const [, inner = type] = /^option\s*<([\s\S]*)>$/i.exec(type ?? "") ?? []
  const [, tables] = /^record\s*<([^<>]*)>$/i.exec(inner ?? "") ?? []
  return tables === undefined ? [] : split(tables, "|").map(unquoted)
}
