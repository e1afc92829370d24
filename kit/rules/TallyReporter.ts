/**
 * The closing line of a test run: `N passed, N failed`, and `, N skipped` when there are any, alone on its line.
 *
 * Why: the runner's own summary is made for eyes, and a build that reads it needs one plain line. A file that does not
 * load, a hook that fails and an error outside every test count as failures, so that the line never says less than
 * the exit code. It is written when the process exits, because nothing must come after it.
 */
import { writeSync } from "node:fs"
import type { Reporter, TestModule, TestSuite } from "vitest/node"

interface Tally {
  passed: number
  failed: number
  skipped: number
}

/** Tests by outcome, plus one failure per file or suite that failed without a failing test of its own. */
export const tally = (modules: ReadonlyArray<TestModule>, strayErrors: number): Tally => {
  const sum: Tally = { passed: 0, failed: strayErrors, skipped: 0 }
  for (const module of modules) {
    for (const test of module.children.allTests()) {
      const state = test.result().state
      if (state === "passed") sum.passed += 1
      else if (state === "failed") sum.failed += 1
      else sum.skipped += 1
    }
    sum.failed += brokenSuites(module)
  }
  return sum
}

const brokenSuites = (suite: TestModule | TestSuite): number => {
  let broken = suite.errors().length > 0 ? 1 : 0
  for (const inner of suite.children.suites()) broken += brokenSuites(inner)
  return broken
}

export const line = ({ passed, failed, skipped }: Tally): string =>
  `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`

export class TallyReporter implements Reporter {
  #closing: string | undefined

  onInit(): void {
    process.once("exit", () => {
      if (this.#closing !== undefined) writeSync(1, `\n${this.#closing}\n`)
    })
  }

  onTestRunEnd(modules: ReadonlyArray<TestModule>, unhandledErrors: ReadonlyArray<unknown>): void {
    this.#closing = line(tally(modules, unhandledErrors.length))
  }
}
