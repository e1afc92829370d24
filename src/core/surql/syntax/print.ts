/**
 * Canonical text of a tree, in two styles: exact (the identity of a query shape) and the database's names of unnamed
 * results.
 *
 * Why so: in the exact style two trees have the same text only if they mean the same, so every operand that is an
 * operation is bracketed. The database's own text omits some brackets (`a + (b + c)` is named `a + b + c`), but clients
 * see that name.
 */

import { nameText } from "../values/names.ts"
import * as Text from "../values/text.ts"
import { splitUnion } from "../values/typeText.ts"
import { isRecordValue } from "../values/value.ts"
import type { BinaryOp, Destructured, Expr, Field, Idiom, Part, Select, Statement, Step } from "./ast.ts"

type Style = "exact" | "name"

const level: { readonly [op: string]: number } = {
  OR: 1,
  AND: 2,
  "=": 3,
  "!=": 3,
  "*=": 3,
  "?=": 3,
  "+": 5,
  "-": 5,
  "*": 6,
  "/": 6,
  "%": 6,
  "**": 7,
  "??": 8,
  "?:": 8
}

const opLevel = (op: BinaryOp): number => level[op] ?? 4

const exprLevel = (e: Expr): number => {
  switch (e.kind) {
    case "binary":
      return opLevel(e.op)
    case "unary":
    case "cast":
      return 9
    case "range":
      return 10
    case "closure":
      return 0
    case "block":
      return e.catches ? exprLevel(e.steps[0]!.value) : 12
    default:
      return 12
  }
}

const opName = (op: BinaryOp, double: boolean, style: Style): string =>
  op === "=" && double ? "==" : style === "exact" ? op : op === "IN" ? "INSIDE" : op === "NOT IN" ? "NOTINSIDE" : op

/** A record id or a range of ids, which is bracketed as an operand. */
const isRecords = (e: Expr): boolean =>
  e.kind === "record" || e.kind === "recordRange" || (e.kind === "literal" && isRecordValue(e.value))

const isUnnamedCall = (e: Expr): boolean => e.kind === "invoke" && e.fn.kind === "closure" && e.fn.defined === undefined

const bracketed = (e: Expr, min: number, style: Style): string => {
  const text = expr(e, style)
  const brackets =
    style === "exact"
      ? exprLevel(e) < 12
      : isRecords(e) || isUnnamedCall(e) || exprLevel(e) < min || (exprLevel(e) === min && (min === 3 || min === 4))
  return brackets ? `(${text})` : text
}

const rangeText = (e: Extract<Expr, { kind: "range" }>, style: Style): string => {
  const from = e.from === undefined ? "" : bracketed(e.from, 11, style) + (e.fromInclusive ? "" : ">")
  return from + ".." + (e.to === undefined ? "" : (e.toInclusive ? "=" : "") + bracketed(e.to, 11, style))
}

const ifText = (e: Extract<Expr, { kind: "if" }>, style: Style): string =>
  e.worded === true ? wordedIf(e, style) : bracedIf(e, style)

const wordedIf = (e: Extract<Expr, { kind: "if" }>, style: Style): string => {
  const chosen = (v: Expr): string => (v.kind === "subquery" ? plain(v, style) : expr(v, style))
  return (
    e.branches.map(([c, v]) => `IF ${expr(c, style)} THEN ${chosen(v)}`).join(" ELSE ") +
    (e.otherwise === undefined ? "" : ` ELSE ${chosen(e.otherwise)}`) +
    " END"
  )
}

const bracedIf = (e: Extract<Expr, { kind: "if" }>, style: Style): string =>
  e.branches.map(([c, v]) => `IF ${expr(c, style)} ${bodyText(v, style)}`).join(" ELSE ") +
  (e.otherwise === undefined ? "" : ` ELSE ${bodyText(e.otherwise, style)}`)

const bodyText = (e: Expr, style: Style): string => {
  if (e.kind !== "block" || e.catches) return `{ ${plain(e, style)} }`
  return style === "exact" ? expr(e, style) : `{\n${e.steps.map((s) => `\t${stepText(s, style)};\n`).join("")}}`
}

const invokeText = (e: Extract<Expr, { kind: "invoke" }>, style: Style): string =>
  e.fn.kind === "closure" && e.fn.defined !== undefined && style === "name"
    ? `${e.fn.defined}(${e.args.map((a) => expr(a, style)).join(", ")})`
    : invokedText(e, style)

/** A database-defined function with its definition, which tells functions of the same name apart. */
const invokedText = (e: Extract<Expr, { kind: "invoke" }>, style: Style): string =>
  `${e.fn.kind === "closure" ? (e.fn.defined ?? "") : ""}${e.fn.kind === "closure" ? `(${expr(e.fn, style)})` : expr(e.fn, style)}(${e.args.map((a) => expr(a, style)).join(", ")})`

const expr = (e: Expr, style: Style): string => {
  const list = (items: ReadonlyArray<Expr>): string => items.map((i) => expr(i, style)).join(", ")
  switch (e.kind) {
    case "literal":
      return style === "exact" ? Text.render(e.value) : Text.renderName(e.value)
    case "param":
      return e.name === "@" ? "@" : "$" + (/^\w+$/.test(e.name) ? e.name : "`" + e.name + "`")
    case "array":
      return `[${list(e.items)}]`
    case "set":
      return e.items.length === 0 ? "{,}" : e.items.length === 1 ? `{${list(e.items)},}` : `{${list(e.items)}}`
    case "object":
      return e.entries.length === 0
        ? "{  }"
        : `{ ${e.entries.map(([k, v]) => Text.objectKey(k) + ": " + expr(v, style)).join(", ")} }`
    case "record":
      return `${nameText(e.table)}:${expr(e.key, style)}`
    case "recordRange":
      return `${nameText(e.table)}:${rangeText({ ...e, kind: "range" }, style)}`
    case "unary":
      return e.op + bracketed(e.operand, e.operand.kind === "unary" && e.op !== "!" ? 10 : 9, style)
    case "binary":
      return `${bracketed(e.left, opLevel(e.op), style)} ${opName(e.op, e.double === true, style)} ${bracketed(e.right, opLevel(e.op), style)}`
    case "range":
      return rangeText(e, style)
    case "cast":
      return `<${e.type}> ${bracketed(e.operand, 9, style)}`
    case "call":
      return /^(?:math|duration|time)::[a-z0-9_]+$/.test(e.name) &&
        e.args.length === 0 &&
        style === "name" &&
        !e.name.startsWith("time")
        ? constantName(e.name)
        : `${e.name}(${list(e.args)})`
    case "closure":
      return closureText(e, style)
    case "invoke":
      return invokeText(e, style)
    case "block":
      return e.catches
        ? expr(e.steps[0]!.value, style)
        : `{ ${e.steps.map((s) => stepText(s, style) + ";").join(" ")} }`
    case "if":
      return style === "exact" ? ifText(e, style) : `(${ifText(e, style)})`
    case "subquery":
      return `(${statement(e.query, style)})`
    case "table":
      return e.name === "" ? "?" : nameText(e.name)
    case "idiom":
      return idiomText(e, style)
  }
}

/** Text without the brackets that a query and an IF have inside other expressions. */
const plain = (e: Expr, style: Style): string =>
  e.kind === "if"
    ? ifText(e, style)
    : e.kind === "subquery" && style === "name"
      ? statement(e.query, style)
      : expr(e, style)

/** The body of a closure in a name; bracketed if it begins with a path. */
const namedBody = (e: Expr): string =>
  e.kind === "block" && e.catches
    ? `{ ${plain(e.steps[0]!.value, "name")} }`
    : beginsWithPath(e)
      ? `(${expr(e, "name")})`
      : expr(e, "name")

const beginsWithPath = (e: Expr): boolean => e.kind === "idiom" || (e.kind === "binary" && beginsWithPath(e.left))

type ClosureExpr = Extract<Expr, { kind: "closure" }>

const closureText = (e: ClosureExpr, style: Style, bodyOf: (e: Expr) => string = namedBody): string => {
  const params = e.params.map(
    (p, i) => "$" + p + (e.types[i] !== undefined ? ": " + typeText(e.types[i]!) : style === "name" ? ": any" : "")
  )
  const head = `|${params.join(", ")}|`
  if (e.result === undefined) return `${head} ${style === "name" ? bodyOf(e.body) : expr(e.body, style)}`
  const body = plain(e.body, style)
  return `${head} -> ${e.result} ${e.body.kind === "block" && !e.body.catches ? body : `{ ${body} }`}`
}

/** After a colon a union needs brackets, or its `|` would end the parameters. */
const typeText = (type: string): string => (splitUnion(type).length > 1 ? `<${type}>` : type)

const stepText = (s: Step, style: Style): string =>
  s.name === undefined
    ? plain(s.value, style)
    : `LET $${s.name}${s.type === undefined ? "" : ": " + s.type} = ${expr(s.value, style)}`

/** `math::pi` is named `math::PI`. */
const constantName = (name: string): string => name.replace(/::(.*)$/, (_, last: string) => "::" + last.toUpperCase())

const fieldName = (name: string): string =>
  /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : "`" + name.replaceAll("\\", "\\\\").replaceAll("`", "\\`") + "`"

const entryText = (d: Destructured, style: Style): string => {
  if (d.aliased) return `${fieldName(d.name)}: ${expr(d.expr, style)}`
  return d.expr.kind === "idiom" ? idiomText(d.expr, style) : d.name
}

/** The text of a graph step: `->likes`, `<-(a, b WHERE c)`. */
export const graphText = (p: Extract<Part, { kind: "graph" }>, style: Style = "exact"): string => {
  const arrow = p.direction === "out" ? "->" : p.direction === "in" ? "<-" : "<->"
  const tables =
    p.tables.length === 0
      ? "?"
      : p.tables
          .map(
            (t, i) =>
              (p.ranges[i] === undefined ? nameText(t) : expr(p.ranges[i]!, style)) +
              (p.fields[i] === undefined ? "" : ` FIELD ${fieldName(p.fields[i]!)}`)
          )
          .join(", ")
  const alias = p.alias === undefined ? "" : ` AS ${idiomText(p.alias, style)}`
  if (p.query !== undefined) return `${arrow}(${selectText(p.query, style)}${alias})`
  const brackets = p.tables.length > 1 || alias !== "" || p.fields[0] !== undefined || tables.endsWith("..")
  const clauses =
    (p.where === undefined ? "" : ` WHERE ${expr(p.where, style)}`) +
    (p.limit === undefined ? "" : ` LIMIT ${expr(p.limit, style)}`) +
    (p.start === undefined ? "" : ` START ${expr(p.start, style)}`)
  return !brackets && (clauses === "" || (style === "name" && p.where === undefined))
    ? arrow + tables
    : `${arrow}(${tables}${clauses}${alias})`
}

const recurseText = (p: Extract<Part, { kind: "recurse" }>, style: Style): string => {
  const depth = p.max === p.min ? String(p.min) : `${p.min}..${p.max ?? ""}`
  const mode =
    p.mode === "plain"
      ? ""
      : "+" + p.mode + (p.target === undefined ? "" : "=" + expr(p.target, style)) + (p.inclusive ? "+inclusive" : "")
  return `.{${depth}${mode}}` + (p.body.length === 0 ? "" : `(${p.body.map((b) => partText(b, style)).join("")})`)
}

const partText = (p: Part, style: Style): string => {
  switch (p.kind) {
    case "field":
      return "." + fieldName(p.name)
    case "index":
      return `[${expr(p.index, style)}]`
    case "all":
      return ".*"
    case "last":
      return "[$]"
    case "flatten":
      return style === "name" ? "…" : "..."
    case "optional":
      return ".?"
    case "where":
      return `[WHERE ${plain(p.where, style)}]`
    case "method":
      return `.${p.name}(${p.args.map((a) => expr(a, style)).join(", ")})`
    case "destructure":
      return `.{ ${p.entries.map((d) => entryText(d, style)).join(", ")} }`
    case "graph":
      return graphText(p, style)
    case "recurse":
      return recurseText(p, style)
    case "repeat":
      return ".@"
  }
}

/** A path starts without the dot of its first field. */
const idiomText = (i: Idiom, style: Style): string => {
  const parts = i.parts.map((p) => partText(p, style)).join("")
  if (i.start === undefined) return parts.replace(/^\.(?![.{])/, "")
  const start = expr(i.start, style)
  const bare =
    ["param", "call", "array", "object", "subquery"].includes(i.start.kind) ||
    (style === "name" &&
      (["set", "if", "idiom"].includes(i.start.kind) || (i.start.kind === "block" && !i.start.catches))) ||
    (i.start.kind === "literal" && (style === "name" ? !isRecords(i.start) : !start.includes(":")))
  return (bare ? start : `(${start})`) + parts
}

const fieldText = (f: Field, style: Style): string =>
  f.kind === "all" ? "*" : expr(f.expr, style) + (f.alias === undefined ? "" : " AS " + idiomText(f.alias, style))

const selectText = (s: Select, style: Style): string => {
  const e = (x: Expr): string => expr(x, style)
  const idioms = (list: ReadonlyArray<Idiom>): string => list.map((i) => idiomText(i, style)).join(", ")
  let out = `SELECT ${s.value ? "VALUE " : ""}${s.fields.map((f) => fieldText(f, style)).join(", ")}`
  if (s.omit.length > 0) out += " OMIT " + idioms(s.omit)
  out += ` FROM ${s.only ? "ONLY " : ""}${s.from.map(e).join(", ")}`
  if (s.where !== undefined) out += " WHERE " + e(s.where)
  if (s.split.length > 0) out += " SPLIT ON " + idioms(s.split)
  if (s.group !== undefined) out += s.group.length === 0 ? " GROUP ALL" : " GROUP BY " + idioms(s.group)
  if (s.order.length > 0)
    out +=
      " ORDER BY " +
      s.order
        .map(
          (o) =>
            idiomText(o.idiom, style) +
            (o.collate ? " COLLATE" : "") +
            (o.numeric ? " NUMERIC" : "") +
            (o.descending ? " DESC" : "")
        )
        .join(", ")
  if (s.limit !== undefined) out += " LIMIT " + e(s.limit)
  if (s.start !== undefined) out += " START " + e(s.start)
  if (s.fetch.length > 0) out += " FETCH " + idioms(s.fetch)
  return out
}

const statement = (s: Statement, style: Style): string => {
  switch (s.kind) {
    case "select":
      return selectText(s, style)
    case "return":
      return (
        "RETURN " +
        expr(s.value, style) +
        (s.fetch.length === 0 ? "" : " FETCH " + s.fetch.map((i) => idiomText(i, style)).join(", "))
      )
    case "infoDb":
      return "INFO FOR DB"
    case "infoTable":
      return "INFO FOR TABLE " + nameText(s.table)
  }
}

const isStatement = (node: Expr | Statement): node is Statement =>
  node.kind === "select" || node.kind === "return" || node.kind === "infoDb" || node.kind === "infoTable"

/** Canonical text of an expression or statement; equal exactly for trees that mean the same by syntax. */
export const print = (node: Expr | Statement): string =>
  isStatement(node) ? statement(node, "exact") : expr(node, "exact")

/** The database's own text of an expression, as it names an unnamed result. */
export const printName = (node: Expr): string => plain(node, "name")

/** The database's own text of a closure as a value. */
export const printClosure = (node: ClosureExpr): string => closureText(node, "name", (body) => plain(body, "name"))

/** Fewest steps of evaluating an expression: by its length, since a repeated expression may be as long as the query. */
export const stepsOf = (node: Expr): number => 1 + (print(node).length >> 5)
