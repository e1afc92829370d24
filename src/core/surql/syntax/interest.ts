/**
 * The tables that a view can ever read (D61): those named by its query and parameters, and whether it continues from
 * there through links.
 *
 * Why so: an SSP holds only these tables, so a table missing here would be missing from a result. In doubt more tables
 * count: a path after a field may follow a link (`follows`); an id made while the query runs, or a graph step over any
 * edges, may be of any table (`all`). The walk visits every property of every node, so that a new kind of expression
 * cannot be forgotten. Cost: the size of the query.
 */
import { functions } from "../evaluate/functions.ts"
import { recordOf } from "../evaluate/paths.ts"
import { isObj, isRecordValue, type Obj, RecordId, SetValue, Table, type Value } from "../values/value.ts"
import { type Expr, type Idiom, type Part, rowParams, type Select } from "./ast.ts"

/** The tables whose changes may change the result of a query. */
export interface Interest {
  readonly tables: ReadonlySet<string>
  /** Whether the query may read the records that records of these tables link to, and further links from there. */
  readonly follows: boolean
  /** Whether the query may read any table. */
  readonly all: boolean
}

export const noInterest: Interest = { tables: new Set(), follows: false, all: false }

const noneKnown = (): boolean => false

/**
 * Calls `found` for each table that a value names or its records link to, at any depth. Skips texts whose beginning
 * `isKnown`, since their table was reported already.
 */
const eachTable = (
  value: Value,
  tell: (table: string) => void,
  isKnown: (table: string) => boolean = noneKnown
): void => {
  if (typeof value === "string") {
    // Text in the form of an id is followed like a link (D1).
    const colon = value.indexOf(":")
    const id = colon < 0 || isKnown(value.slice(0, colon)) ? undefined : recordOf(value)
    return id === undefined ? undefined : tell(id.table)
  }
  if (typeof value !== "object" || value === null) return
  if (isRecordValue(value)) return tell(value.table)
  if (value instanceof Table) return tell(value.name)
  if (Array.isArray(value)) {
    for (const item of value as ReadonlyArray<Value>) eachTable(item, tell, isKnown)
  } else if (value instanceof SetValue) {
    for (const item of value.items) eachTable(item, tell, isKnown)
  } else if (isObj(value)) for (const name in value) eachTable(value[name], tell, isKnown)
}

/** Calls `found` for each table that a record links to. */
export const eachLink = (
  doc: Obj,
  tell: (table: string) => void,
  isKnown: (table: string) => boolean = noneKnown
): void => {
  for (const name in doc) if (name !== "id") eachTable(doc[name], tell, isKnown)
}

interface Walk {
  readonly params: { readonly [name: string]: Value }
  readonly tables: Set<string>
  follows: boolean
  all: boolean
  /** The expression makes text, which may have the form of a link. */
  writes: boolean
}

const own: ReadonlySet<string> = new Set([...rowParams, "parent"])
/** Functions whose text may have the form of a link that appears in no record and no query. */
const writers = /^(?:string::|array::join$|type::string|value::|encoding::|crypto::|rand::|meta::id$|record::id$)/
/** Functions that make an id or a table from text. */
const makers: ReadonlySet<string> = new Set(["type::record", "type::thing", "type::table"])
/** Names of functions that read other records, in the form of methods. */
const readers: ReadonlySet<string> = new Set(
  [...functions.keys()]
    .filter((name) => functions.get(name)?.reads === true)
    .map((name) => name.slice(name.lastIndexOf("::") + 2))
)

/** A type that may turn text into an id: `record`, `option<record<a | b>>`. */
const typed = (w: Walk, type: string): void => {
  const links = type.match(/\brecord\b(?:\s*<([^>]*)>)?/g) ?? []
  for (const link of links) {
    const named = /<([^>]*)>/.exec(link)?.[1]
    if (named === undefined) w.all = true
    else for (const table of named.split("|")) w.tables.add(table.trim().replace(/^[`⟨]|[`⟩]$/g, ""))
  }
}

const made = (w: Walk, name: string, args: ReadonlyArray<Expr>): void => {
  const [first] = args
  const given = first?.kind === "literal" ? first.value : first?.kind === "param" ? w.params[first.name] : undefined
  const text = typeof given === "string" ? given : undefined
  if (given instanceof RecordId || given instanceof Table) return
  // `type::record("user:1")` names the record; with two arguments the first is the table.
  if (text === undefined || (name !== "type::table" && args.length === 1 && !text.includes(":"))) w.all = true
  else w.tables.add((args.length === 1 && name !== "type::table" ? text.slice(0, text.indexOf(":")) : text).trim())
}

/** A path that continues after a value that may be a link. */
const path = (w: Walk, { parts, start }: Idiom): void => {
  let isDoc = start === undefined || (start.kind === "param" && own.has(start.name))
  for (const part of parts) {
    switch (part.kind) {
      case "field":
      case "all":
      case "destructure":
      case "where":
        if (!isDoc) w.follows = true
        if (part.kind !== "where") isDoc = false
        break
      case "method":
        w.writes = true
        if (readers.has(part.name)) w.follows = true
        if (/record|thing|table/.test(part.name)) w.all = true
        isDoc = false
        break
      case "graph":
        // The value consists of records of the named tables.
        isDoc = true
        break
      case "recurse":
      case "repeat":
        w.follows = true
        isDoc = false
        break
      default:
    }
  }
}

const graph = (w: Walk, part: Extract<Part, { readonly kind: "graph" }>): void => {
  if (part.tables.length === 0) w.all = true
  for (const table of part.tables) w.tables.add(table)
}

const isNode = (value: unknown): value is { readonly kind: string } =>
  typeof value === "object" && value !== null && "kind" in value && typeof value.kind === "string"

const known = (w: Walk, node: { readonly kind: string }): void => {
  const it = node as Expr | Part | Select
  switch (it.kind) {
    case "literal":
      return eachTable(it.value, (table) => w.tables.add(table))
    case "table":
      return void w.tables.add(it.name)
    case "record":
    case "recordRange":
      return void w.tables.add(it.table)
    case "param":
      return void eachTable(w.params[it.name], (table) => w.tables.add(table))
    case "binary":
      if (it.op === "+") w.writes = true
      return
    case "cast":
      if (it.type.includes("string")) w.writes = true
      return typed(w, it.type)
    case "closure":
      for (const type of [...it.types, it.result]) if (type !== undefined) typed(w, type)
      return
    case "block":
      for (const { type } of it.steps) if (type !== undefined) typed(w, type)
      return
    case "call":
      if (writers.test(it.name)) w.writes = true
      if (makers.has(it.name)) made(w, it.name, it.args)
      else if (functions.get(it.name)?.reads === true) w.follows = true
      return
    case "idiom":
      return path(w, it)
    case "graph":
      return graph(w, it)
    case "select":
      if (it.fetch.length > 0 || it.from.some(isComputed)) w.follows = true
      return
    default:
  }
}

/** A source known only at run time may be any ids in records. */
const isComputed = (source: Expr): boolean =>
  source.kind === "array"
    ? source.items.some(isComputed)
    : !["table", "literal", "record", "recordRange", "param", "call"].includes(source.kind)

const walk = (w: Walk, value: unknown): void => {
  if (Array.isArray(value)) {
    for (const item of value) walk(w, item)
    return
  }
  if (typeof value !== "object" || value === null) return
  if (isNode(value)) {
    known(w, value)
    // Values of the language are no syntax nodes.
    if (value.kind === "literal") return
  }
  for (const part of Object.values(value)) walk(w, part)
}

/** The interest of a query with its parameters, database-defined ones included. */
export const interestOf = (select: Select, params: { readonly [name: string]: Value }): Interest => {
  const w: Walk = { params, tables: new Set(), follows: false, all: false, writes: false }
  walk(w, select)
  return { tables: w.tables, follows: w.follows, all: w.all || (w.follows && w.writes) }
}
