/**
 * Rewrites a syntax tree by copying: every expression in the scope of one row, paths and closures included.
 *
 * Why so: the engine replaces values from outside a query (constants, `$parent`) by parameters, so that queries that
 * differ only there have one shape. Statements inside (subqueries, graph steps with a SELECT) have a row of their own
 * and are not changed.
 */

import { outputNames } from "../evaluate/select/project.ts"
import type { Expr, Field, Idiom, Part, Select } from "./ast.ts"

/** The replacement of an expression, or `undefined` to look inside it. */
export type Replace = (expr: Expr) => Expr | undefined

export const rewrite = (e: Expr, replace: Replace): Expr => {
  const replaced = replace(e)
  if (replaced !== undefined) return replaced
  const go = (inner: Expr): Expr => rewrite(inner, replace)
  const optional = (inner: Expr | undefined): Expr | undefined => inner && go(inner)
  switch (e.kind) {
    case "literal":
    case "param":
    case "table":
    case "subquery":
      return e
    case "array":
    case "set":
      return { ...e, items: e.items.map(go) }
    case "object":
      return { ...e, entries: e.entries.map(([key, v]) => [key, go(v)] as const) }
    case "record":
      return { ...e, key: go(e.key) }
    case "recordRange":
    case "range":
      return { ...e, from: optional(e.from), to: optional(e.to) }
    case "unary":
    case "cast":
      return { ...e, operand: go(e.operand) }
    case "binary":
      return { ...e, left: go(e.left), right: go(e.right) }
    case "call":
      return { ...e, args: e.args.map(go) }
    case "closure":
      return { ...e, body: go(e.body) }
    case "invoke":
      return { ...e, fn: go(e.fn), args: e.args.map(go) }
    case "block":
      return { ...e, steps: e.steps.map((s) => ({ ...s, value: go(s.value) })) }
    case "if":
      return { ...e, branches: e.branches.map(([c, v]) => [go(c), go(v)] as const), otherwise: optional(e.otherwise) }
    case "idiom":
      return rewriteIdiom(e, replace)
  }
}

const rewriteIdiom = (idiom: Idiom, replace: Replace): Idiom => ({
  ...idiom,
  start: idiom.start && rewrite(idiom.start, replace),
  parts: idiom.parts.map((part) => rewritePart(part, replace))
})

const rewritePart = (p: Part, replace: Replace): Part => {
  const go = (inner: Expr): Expr => rewrite(inner, replace)
  const optional = (inner: Expr | undefined): Expr | undefined => inner && go(inner)
  switch (p.kind) {
    case "index":
      return { ...p, index: go(p.index) }
    case "where":
      return { ...p, where: go(p.where) }
    case "method":
      return { ...p, args: p.args.map(go) }
    case "destructure":
      return { ...p, entries: p.entries.map((entry) => ({ ...entry, expr: go(entry.expr) })) }
    case "graph":
      return {
        ...p,
        ranges: p.ranges.map(optional),
        where: optional(p.where),
        limit: optional(p.limit),
        start: optional(p.start)
      }
    case "recurse":
      return { ...p, target: optional(p.target), body: p.body.map((part) => rewritePart(part, replace)) }
    default:
      return p
  }
}

/** Rewrites all clauses of a SELECT that see its rows; fields keep their output names. */
export const rewriteRows = (select: Select, replace: Replace): Select => ({
  ...select,
  fields: select.fields.map((field): Field => {
    if (field.kind === "all") return field
    const expr = rewrite(field.expr, replace)
    const named =
      select.value ||
      field.alias !== undefined ||
      JSON.stringify(outputNames({ ...field, expr })) === JSON.stringify(outputNames(field))
    return {
      ...field,
      expr,
      alias: named
        ? field.alias
        : {
            kind: "idiom",
            at: field.at,
            start: undefined,
            parts: outputNames(field).map((name) => ({ kind: "field", name }))
          }
    }
  }),
  where: select.where && rewrite(select.where, replace),
  order: select.order.map((term) => ({ ...term, idiom: rewriteIdiom(term.idiom, replace) })),
  group: select.group?.map((idiom) => rewriteIdiom(idiom, replace)),
  split: select.split.map((idiom) => rewriteIdiom(idiom, replace))
})
