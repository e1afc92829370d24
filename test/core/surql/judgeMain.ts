/**
 * Both evaluators of the real database in a process of their own, for {@link ./judge.ts}: it gets expressions, and
 * sends their answers.
 *
 * Why so: some arguments make the engine end its process, or hold it for minutes; the tests must outlive both.
 */
import { start } from "../../../kit/processes/surreal/engines.ts"

const [lines, tables] = JSON.parse(process.argv[2] ?? "[[], []]") as readonly [
  ReadonlyArray<string>,
  ReadonlyArray<string>
]
const engines = await start()
await engines.load(lines, tables)
process.on(
  "message",
  (expressions: ReadonlyArray<string>) => void engines.askMany(expressions).then((answers) => process.send?.(answers))
)
process.on("disconnect", () => process.exit())
process.send?.("ready")
