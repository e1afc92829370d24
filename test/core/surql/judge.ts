/**
 * Asks both evaluators of the real database about many expressions, and outlives what an expression does to them.
 *
 * Why so: `math::fixed(1.5, 70000)` is never answered, and other arguments end the engine's process. The engines run in
 * a child process; where it ends or is silent too long, a new one is asked for a few at a time, until the expression is
 * found that does it.
 */
import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"
import { compiled } from "../../../kit/processes/compiled.ts"
import { root } from "../../../kit/rules/source.ts"

type Answers = readonly [planner: string, older: string]

/** How long expressions may take before one of them is taken to hang: a hundred take 20 ms where nothing else runs. */
const patienceMs = (expressions: number): number => 3_000 + 20 * expressions

export class Judge {
  readonly #data: string
  #child: Promise<ChildProcess>
  /** What ended the engine or held it. */
  readonly fatal: Array<string> = []

  constructor(lines: ReadonlyArray<string>, tables: ReadonlyArray<string>) {
    this.#data = JSON.stringify([lines, tables])
    this.#child = this.#start()
  }

  async #start(): Promise<ChildProcess> {
    const child = fork(await compiled("test/core/surql/judgeMain.ts"), [this.#data], {
      cwd: root,
      execArgv: [],
      stdio: ["ignore", "ignore", "pipe", "ipc"]
    })
    let said = ""
    child.stderr?.on("data", (chunk: Buffer) => (said = (said + chunk.toString("utf8")).slice(-2000)))
    await Promise.race([
      once(child, "message"),
      once(child, "exit").then(() => Promise.reject(new Error(`the engines did not start: ${said}`)))
    ])
    return child
  }

  /** Answers of the planner and of the older evaluator; none for an expression that ends the engine. */
  async ask(expressions: ReadonlyArray<string>): Promise<ReadonlyArray<Answers | undefined>> {
    if (expressions.length === 0) return []
    const child = await this.#child
    const heard = new AbortController(),
      { signal } = heard
    const quiet = (): undefined => undefined
    const answered = once(child, "message", { signal }),
      ended = once(child, "exit", { signal })
    const timer = setTimeout(() => child.kill("SIGKILL"), patienceMs(expressions.length))
    child.send([...expressions])
    const answers = await Promise.race([answered.then(([all]) => all as ReadonlyArray<Answers>), ended.then(quiet)])
    clearTimeout(timer)
    heard.abort()
    for (const other of [answered, ended]) other.catch(quiet)
    if (answers !== undefined) return answers
    this.#child = this.#start()
    if (expressions.length === 1) {
      this.fatal.push(expressions[0]!)
      return [undefined]
    }
    const size = Math.floor(Math.sqrt(expressions.length)),
      parts: Array<Answers | undefined> = []
    for (let at = 0; at < expressions.length; at += size)
      parts.push(...(await this.ask(expressions.slice(at, at + size))))
    return parts
  }

  async close(): Promise<void> {
    const child = await this.#child
    if (child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, "exit")
    child.kill("SIGKILL")
    await gone
  }
}
