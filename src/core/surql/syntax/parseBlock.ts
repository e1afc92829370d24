/**
 * Blocks: `{ LET $a = 1; IF $a { RETURN 2 }; $a + 1 }`.
 *
 * Why so: a block of one expression is that expression, so that the usual `IF c { a }` costs nothing. Loops, THROW and
 * writes are refused at their place.
 */
import type { Expr, Step } from "./ast.ts"
import { inherited } from "./parseExpression.ts"
import type { Parser } from "./parser.ts"
import { advance, eatOp, expected, expectOp, fail, isOp, isWord, nested, peek } from "./parser.ts"
import { unionType } from "./parseType.ts"

/** Parameters that the database sets itself. */
const reserved: ReadonlySet<string> = new Set([
  "access",
  "after",
  "auth",
  "before",
  "event",
  "input",
  "parent",
  "request",
  "self",
  "session",
  "this",
  "token",
  "value"
])

/** Statements of blocks that the database has and this parser refuses: they loop, or fail on purpose. */
const refused: ReadonlySet<string> = new Set(["FOR", "THROW", "BREAK", "CONTINUE"])

const step = (p: Parser): Step => {
  const word = p.token.kind === "ident" ? p.token.text.toUpperCase() : ""
  const after = peek(p)
  if (p.token.kind === "param" && after.kind === "op" && after.text === "=")
    fail("a parameter is set with LET", p.token.at)
  if (refused.has(word) && (after.kind !== "op" || after.text === ";" || after.text === "}"))
    fail(`${word} is not supported in a block; LET, RETURN, IF and expressions are`, p.token.at)
  if (!isWord(p, "LET") || after.kind !== "param") return { name: undefined, type: undefined, value: inherited(p) }
  advance(p)
  const name = advance(p)
  if (reserved.has(name.text)) fail(`\`$${name.text}\` cannot be set`, name.at)
  const type = eatOp(p, ":") ? unionType(p) : undefined
  expectOp(p, "=")
  return { name: name.text, type, value: inherited(p) }
}

/** The remaining steps up to the `}`, which is consumed. */
export const blockOf = (p: Parser, at: number, first: ReadonlyArray<Step>): Expr =>
  nested(p, () => {
    const steps = [...first]
    for (;;) {
      if (steps.length > 0 && !isOp(p, "}") && !isOp(p, ";")) expected(p, "`;` or `}`")
      while (eatOp(p, ";"));
      if (eatOp(p, "}")) break
      steps.push(step(p))
    }
    const [only] = steps
    return steps.length === 1 && only!.name === undefined ? only!.value : { kind: "block", at, steps, catches: false }
  })

/** `{ steps }`, at a place where no object is possible. */
export const block = (p: Parser): Expr => {
  const at = expectOp(p, "{").at
  return blockOf(p, at, [])
}
