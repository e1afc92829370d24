/**
 * Our side of a comparison with the real database: the same records, our answer as the same text, and when two answers
 * agree.
 *
 * Why so: every test that compares says it the same way. The other side is database.ts.
 */
import { Either } from "effect"
import { splitLine } from "../../../kit/processes/surreal/engines.ts"
import { fromRecords } from "../../../src/core/surql/evaluate/memory.ts"
import type { Source } from "../../../src/core/surql/evaluate/scope.ts"
import { makeBudget } from "../../../src/core/surql/evaluate/scope.ts"
import { evaluate } from "../../../src/core/surql/evaluate/select/select.ts"
import { parseStatements } from "../../../src/core/surql/syntax/parse.ts"
import { render } from "../../../src/core/surql/values/text.ts"
import type { Obj, Value } from "../../../src/core/surql/values/value.ts"
import { isObj, RecordId, setField } from "../../../src/core/surql/values/value.ts"

/** The value a constant of the language stands for. */
export const constant = (text: string): Value => {
  const parsed = Either.getOrThrowWith(parseStatements(`RETURN ${text}`), (e) => new Error(`${text}: ${e.message}`))
  return Either.getOrThrowWith(
    evaluate(parsed[0]!, { source: fromRecords([]), params: {}, budget: makeBudget(1e6, "TEST") }),
    (e) => new Error(e.reason)
  )
}

/** A value as it is stored: without NONE fields, however deep. */
const stored = (v: Value): Value => {
  if (Array.isArray(v)) return (v as ReadonlyArray<Value>).map(stored)
  if (!isObj(v)) return v
  const out: Record<string, Value> = {}
  for (const key of Object.keys(v)) if (v[key] !== undefined) setField(out, key, stored(v[key]))
  return out
}

/** The same records for our side. */
export const records = (lines: ReadonlyArray<string>): ReadonlyArray<Obj> =>
  lines.map((line) => {
    const [id, body] = splitLine(line)
    const content = stored(constant(body))
    const doc: Record<string, Value> = {}
    if (isObj(content)) for (const key of Object.keys(content)) setField(doc, key, content[key])
    const key = constant(id)
    if (!(key instanceof RecordId)) throw new Error(`${id} is no record id`)
    setField(doc, "id", key)
    return doc
  })

/** Our answer, in the same text. */
export const ours = (source: Source, query: string, params: { readonly [name: string]: Value } = {}): string => {
  const parsed = parseStatements(query)
  if (Either.isLeft(parsed)) return `PARSE ${parsed.left.message}`
  const answer = evaluate(parsed.right[0]!, { source, params, budget: makeBudget(5e6, "TEST") })
  return Either.isLeft(answer) ? `ERR ${answer.left.reason}` : render([answer.right])
}

/** Equal answers; failures agree when both fail. */
export const agree = (a: string, b: string): boolean =>
  a === b || (/^(ERR|PARSE)/.test(a) && a.slice(0, 3) === b.slice(0, 3))
