/**
 * Projection: from a document to an output row.
 *
 * Why so: the names are computed once; a plain `SELECT *` returns the stored document itself, without a copy. OMIT is
 * part of it, since it only edits the row.
 */
import type { Field, Idiom, Select } from "../../syntax/ast.ts"
import { aliasNames, nameOf } from "../../syntax/names.ts"
import { stepsOf } from "../../syntax/print.ts"
import { render } from "../../values/text.ts"
import type { Value } from "../../values/value.ts"
import { isObj } from "../../values/value.ts"
import { canFail, compile } from "../evaluate.ts"
import { ownText, raise } from "../failure.ts"
import { compileParts } from "../paths.ts"
import type { Compiled, Scope } from "../scope.ts"
import { spendBytes, spendSteps } from "../scope.ts"
import { removeAt, setPath } from "./shape.ts"

/** Writes one projected field into the row. */
type Put = (row: Record<string, Value>, scope: Scope) => void

/** The output names of a field: its alias, or the database's name for it. */
export const outputNames = (field: Extract<Field, { kind: "expr" }>): ReadonlyArray<string> => {
  const names = field.alias === undefined ? aliasNames(nameOf(field.expr)) : aliasNames(field.alias)
  return names.length === 0 ? ["?"] : names
}

/** `type::field('a.b')` and `type::fields([..])` read the path in their argument and are named by it. */
const dynamic = (field: Extract<Field, { kind: "expr" }>): Put | undefined => {
  const { expr, alias } = field
  if (
    alias !== undefined ||
    expr.kind !== "call" ||
    (expr.name !== "type::field" && expr.name !== "type::fields") ||
    expr.args.length !== 1
  )
    return undefined
  const argument = compile(expr.args[0]!)
  const many = expr.name === "type::fields"
  return (row, scope) => {
    const v = argument(scope)
    const paths = many
      ? Array.isArray(v)
        ? (v as ReadonlyArray<Value>)
        : raise`Incorrect arguments for function type::fields(). Argument 1 was the wrong type. Expected \`array\` but found \`${render(v)}\``
      : [v]
    for (const path of paths) {
      if (typeof path !== "string")
        raise`Incorrect arguments for function ${ownText(expr.name)}(). Argument 1 was the wrong type. Expected \`string\` but found \`${render(path)}\``
      const names = String(path).split(".")
      setPath(row, names, compileParts(names.map((name) => ({ kind: "field", name }) as const))(scope.doc, scope))
    }
  }
}

const putField = (field: Field, first: boolean): Put => {
  if (field.kind === "all") {
    return (row, scope) => {
      if (isObj(scope.doc))
        for (const key of Object.keys(scope.doc))
          setPath(row, [key], first || !Object.hasOwn(row, key) ? scope.doc[key] : row[key])
    }
  }
  const special = dynamic(field)
  if (special !== undefined) return special
  const names = outputNames(field),
    value = compile(field.expr)
  const [name] = names
  return names.length === 1 && name !== "__proto__"
    ? (row, scope) => {
        row[name!] = value(scope)
      }
    : (row, scope) => setPath(row, names, value(scope))
}

/** `*` comes first wherever it is written: aliases override stored fields. */
const inOrder = (fields: ReadonlyArray<Field>): ReadonlyArray<Field> => [
  ...fields.filter((f) => f.kind === "all").slice(0, 1),
  ...fields.filter((f) => f.kind !== "all")
]

const omitting = (project: Compiled, omit: ReadonlyArray<Idiom>): Compiled =>
  omit.length === 0
    ? project
    : (scope) => omit.reduce<Value>((row, idiom) => removeAt(row, idiom.parts), project(scope))

/** Compiles the projection of a SELECT without GROUP: `project` builds one row, `canFail` says whether it may fail. */
export const compileProjection = (select: Select): { readonly project: Compiled; readonly canFail: boolean } => {
  const fields = inOrder(select.fields)
  const [only] = fields
  const fails = fields.some((f) => f.kind === "expr" && canFail(f.expr))
  if (select.value && only !== undefined)
    return { project: only.kind === "all" ? (s) => s.doc : compile(only.expr), canFail: fails }
  if (fields.length === 1 && only?.kind === "all")
    return { project: omitting((s) => s.doc, select.omit), canFail: false }
  const steps = fields.reduce((sum, f) => sum + (f.kind === "all" ? 1 : stepsOf(f.expr)), 0)
  const puts = fields.map((f, i) => putField(f, i === 0))
  const project: Compiled = (scope) => {
    const staysWhole = only?.kind === "all" && !isObj(scope.doc)
    if (staysWhole && !fails) return scope.doc
    spendSteps(scope.budget, steps)
    spendBytes(scope.budget, 64 + 16 * puts.length)
    const row: Record<string, Value> = {}
    for (let i = 0; i < puts.length; i++) puts[i]!(row, scope)
    return staysWhole ? scope.doc : row
  }
  return { project: omitting(project, select.omit), canFail: fails }
}
