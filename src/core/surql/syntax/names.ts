/**
 * The path under which an unnamed projected expression is shown.
 *
 * Why so: clients read results by these names, so they are the database's: a path keeps its fields and graph steps and
 * loses indexes, filters and methods; a call is its function's name; anything else its own text.
 */
import type { Expr, Idiom, Part } from "./ast.ts"
import { graphText, printName } from "./print.ts"

const path = (at: number, names: ReadonlyArray<string>): Idiom => ({
  kind: "idiom",
  at,
  start: undefined,
  parts: names.map((name) => ({ kind: "field", name }))
})

/** Names of the visible parts of a path. */
const shown = (parts: ReadonlyArray<Part>): Array<string> => {
  const names: Array<string> = []
  for (const part of parts) {
    if (part.kind === "field") names.push(part.name)
    else if (part.kind === "graph") names.push(graphText(part, "name"))
  }
  return names
}

/** The path of an alias, without indexes and the like. */
export const aliasNames = (idiom: Idiom): Array<string> => shown(idiom.parts)

/** The database parses the text that names a result as a path, unless it obviously is none. */
const asPath = (text: string): ReadonlyArray<string> => (/[([{ ]/.test(text) ? [text] : text.split("."))

/** The path of an unnamed expression. */
export const nameOf = (expr: Expr): Idiom => {
  switch (expr.kind) {
    case "param":
      return path(expr.at, [expr.name])
    case "call":
      return path(expr.at, [
        expr.args.length === 0 && /^(math|duration)::/.test(expr.name) ? printName(expr) : expr.name
      ])
    case "invoke":
      return path(expr.at, [
        expr.fn.kind === "closure" && expr.fn.defined !== undefined ? expr.fn.defined : printName(expr)
      ])
    case "block":
      return expr.catches ? nameOf(expr.steps[0]!.value) : path(expr.at, [printName(expr)])
    case "idiom": {
      const alias = expr.parts.find((p) => p.kind === "graph" && p.alias !== undefined)
      if (alias?.kind === "graph" && alias.alias !== undefined) return alias.alias
      const names = shown(expr.parts)
      // Before graph steps only a path of this row is shown.
      if (expr.start === undefined || expr.parts.some((p) => p.kind === "graph")) return path(expr.at, names)
      if (expr.start.kind === "param" && expr.start.name === "@")
        return path(expr.at, names.length === 0 ? [""] : names)
      if (expr.start.kind === "param") return path(expr.at, ["$" + expr.start.name, ...names])
      return path(expr.at, asPath(printName({ ...expr, parts: expr.parts.filter((p) => p.kind === "field") })))
    }
    default:
      return path(expr.at, [printName(expr)])
  }
}
