/**
 * One line at the bottom of a terminal that shows the progress of long work; log lines are printed above it.
 *
 * Only if standard error is a terminal: elsewhere the log has a line every few seconds (`ports/Progress`). One per
 * process, as there is one terminal.
 */
import { Effect, Layer } from "effect"
import { bar, type Task } from "../../core/telemetry/progress.ts"
import { type Display, ProgressDisplay } from "../../ports/Progress.ts"

const everyMs = 200
/** Moves to the beginning of the line and erases it. */
const wipe = "\r\u001b[K"

export class TerminalBar {
  private text = ""

  constructor(
    private readonly write: (text: string) => void,
    private readonly columns: () => number
  ) {}

  /** Shows the oldest task, and the number of others. */
  show(tasks: ReadonlyArray<Task>): void {
    const [task, ...others] = tasks
    const more = others.length === 0 ? "" : ` (+${others.length})`
    const text = task === undefined ? "" : `${bar(task, this.columns() - more.length)}${more}`
    if (text !== "" || this.text !== "") this.write(`${wipe}${text}`)
    this.text = text
  }

  /** Prints above the bar. */
  above(print: () => void): void {
    if (this.text === "") return print()
    this.write(wipe)
    print()
    this.write(this.text)
  }
}

export const terminal = new TerminalBar(
  (text) => void process.stderr.write(text),
  () => process.stderr.columns ?? 80
)

/** A bar on a terminal; log lines elsewhere. */
export const layer = (format: "json" | "text" | undefined): Layer.Layer<never> => {
  const display: Display = { everyMs, show: (tasks) => Effect.sync(() => terminal.show(tasks)) }
  return process.stderr.isTTY && format !== "json" ? Layer.succeed(ProgressDisplay, display) : Layer.empty
}
