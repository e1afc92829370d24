/**
 * Evaluates the queries it is sent, over the built modules, in a process whose heap is as small as its parent has made it.
 *
 * Why plain: a loader for TypeScript would take more of the heap than what is measured.
 */
import { Either } from "effect"
import { fromRecords } from "../../dist/core/surql/evaluate/memory.js"
import { parseStatements } from "../../dist/core/surql/syntax/parse.js"
import * as RecordIds from "../../dist/core/surql/values/recordId.js"
import { drain, limits, queryBudget } from "../../dist/core/surql/evaluate/scope.js"
import { evaluateSliced } from "../../dist/core/surql/evaluate/select/select.js"

const tags = Array.from({ length: 200 }, (_, k) => k)
/** The graph of `attacks/doubling.ts`. */
const layered = Array.from({ length: 24 }, (_, i) => {
  const id = RecordIds.make("p", i), next = RecordIds.make("p", i + 1)
  const edge = (k) => ({ id: RecordIds.make("k", 2 * i + k), in: id, out: next })
  return [{ id, n: i, l: [next, next], t: `p:[${i},[1,2,3]]` }, edge(0), edge(1)]
}).flat()
const source = fromRecords([
  ...Array.from({ length: 200 }, (_, i) => ({ id: RecordIds.make("t", i), n: i, tags: [...tags] })),
  ...layered
])

const outcome = (query) => {
  const parsed = parseStatements(query)
  if (Either.isLeft(parsed)) return "refused"
  const answers = parsed.right.map((statement) => drain(evaluateSliced(statement, { source, params: {}, budget: queryBudget(), maxRows: limits.queryRows.value })))
  const failed = answers.find(Either.isLeft)
  return failed === undefined ? "answered" : failed.left.reason.slice(0, 1000)
}

process.on("message", (query) => process.send(outcome(query)))
process.on("disconnect", () => process.exit())
process.send("ready")
