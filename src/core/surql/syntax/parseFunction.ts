/**
 * Calls of database-defined functions: `fn::net(price)` is parsed as a call of a closure that is the definition.
 *
 * A function that cannot be inlined is refused at its call, with its name and the reason in its body.
 */
import type { Expr } from "./ast.ts"
import { type FunctionDefinition, type Inlining, repositioned } from "./definitions.ts"
import { block } from "./parseBlock.ts"
import { catchingReturn, expected, Fault, fail, open, type Parser, withNames } from "./parser.ts"
import { unionType } from "./parseType.ts"

/** Most characters of all bodies that one query may inline. */
const maxInlined = 65_536

/** Parses a whole piece of a definition. */
const piece = <A>(text: string, { depth, inlining }: Parser, read: (p: Parser) => A): A => {
  const p: Parser = { ...open(text), depth, inlining }
  const out = read(p)
  return p.token.kind === "end" ? out : expected(p, "the end of the definition")
}

/** Fewest arguments: optional ones at the end may be omitted, and are NONE. */
const required = (args: FunctionDefinition["args"]): number =>
  1 + args.findLastIndex(([, type]) => type !== "any" && !/^none \||^option</.test(type))

const arity = (least: number, most: number): string =>
  least === most
    ? `The function expects ${most} argument${most === 1 ? "" : "s"}.`
    : `The function expects ${least} to ${most} arguments.`

const closureOf = (p: Parser, definition: FunctionDefinition, at: number): Extract<Expr, { kind: "closure" }> => ({
  kind: "closure",
  at,
  params: definition.args.map(([name]) => name),
  types: definition.args.map(([, type]) => piece(type, p, unionType)),
  result: definition.returns === undefined ? undefined : piece(definition.returns, p, unionType),
  body: piece(definition.block, p, (body) => catchingReturn(body, () => withNames(body, "field", () => block(body)))),
  defined: `fn::${definition.name}`
})

/** The call of `fn::<name>` with these arguments, at offset `at`. */
export const inlinedCall = (p: Parser, name: string, args: ReadonlyArray<Expr>, at: number): Expr => {
  const { inlining } = p
  if (inlining === undefined) return fail("functions defined in a database are not supported", at)
  const full = `fn::${name}`
  const definition = inlining.definitions.functions.get(name)
  if (definition === undefined) return fail(`the function \`${full}\` does not exist`, at)
  if (!definition.open)
    return fail(`the function \`${full}\` cannot be used: PERMISSIONS of its definition keep it from some users`, at)
  if (inlining.within.includes(full)) return fail(`the function \`${full}\` cannot be used: it calls itself`, at)
  const least = required(definition.args)
  if (args.length < least || args.length > definition.args.length)
    return fail(`Incorrect arguments for function ${full}(). ${arity(least, definition.args.length)}`, at)
  inlining.length += definition.block.length
  if (inlining.length > maxInlined)
    return fail(`the functions that the query calls are longer than ${maxInlined} characters`, at)
  inlining.used.add(definition)
  return { kind: "invoke", at, fn: repositioned(during(p, inlining, definition, at), at), args }
}

/** Reports a fault in a body at the call of the function. */
const during = (p: Parser, inlining: Inlining, definition: FunctionDefinition, at: number): Expr => {
  const { within } = inlining
  const full = `fn::${definition.name}`
  inlining.within = [...within, full]
  try {
    return closureOf(p, definition, at)
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    const isTold = error.message.startsWith("the function `fn::")
    return fail(isTold ? error.message : `the function \`${full}\` cannot be used: ${error.message}`, at)
  } finally {
    inlining.within = within
  }
}
