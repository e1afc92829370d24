/**
 * Cuts a failing case down to one that is short enough to read: first the views, then the steps, then the records'
 * fields.
 *
 * Why by leaving things out: every subset of a case is a case. What is left fails with the same law, so that one fault
 * is not traded for another on the way. The number of runs is bounded, so a red test stays quick.
 */
import * as JsonText from "../../../src/core/jsonText.ts"
import { type Case, runCase, type Step, type Violation } from "./runCase.ts"

const law = (violation: Violation | undefined): string | undefined => violation?.what.split(/[ :\n]/, 2).join(" ")

/** Splits steps into the smallest that can be left out. */
const single = (steps: Case): Array<Step> =>
  steps.flatMap((step): Array<Step> => ("write" in step ? step.write.map((change) => ({ write: [change] })) : [step]))

type Body = { readonly [key: string]: unknown }

const without = (change: Body, name: string): Body => ({
  ...change,
  record: Object.fromEntries(Object.entries(change["record"] as Body).filter(([key]) => key !== name))
})

const changesOf = (step: Step | undefined): ReadonlyArray<unknown> =>
  step === undefined ? [] : "write" in step ? step.write : "batch" in step ? step.batch : []

const replaced = (steps: Case, at: number, by: (changes: ReadonlyArray<unknown>) => ReadonlyArray<unknown>): Case =>
  steps.map((step, i) =>
    i !== at ? step : "write" in step ? { write: by(step.write) } : "batch" in step ? { batch: by(step.batch) } : step
  )

export interface Shrunk {
  readonly steps: Case
  readonly violation: Violation
}

export const shrink = (failing: Case, found: Violation, budget = 1_000): Shrunk => {
  let runs = budget
  let best: Shrunk = { steps: single(failing).slice(0), violation: found }
  const attempt = (steps: Case): boolean => {
    if (runs-- <= 0) return false
    const violation = runCase(steps)
    if (violation === undefined || law(violation) !== law(found)) return false
    best = { steps: steps.slice(0, violation.step + 1), violation }
    return true
  }
  if (!attempt(best.steps)) return { steps: failing, violation: found }
  attempt(single(best.steps.map((step) => ("batch" in step ? { write: step.batch } : step))))
  attempt(
    best.steps.filter(
      (step) => !("watch" in step || "release" in step) || ("watch" in step ? step.watch : step.release) === found.view
    )
  )
  for (
    let size = Math.ceil(best.steps.length / 2);
    size >= 1 && runs > 0;
    size = size === 1 ? 0 : Math.ceil(size / 2)
  ) {
    for (let at = Math.max(0, best.steps.length - size); at > -size && runs > 0; at -= size)
      attempt(best.steps.filter((_, i) => i < at || i >= at + size))
  }
  for (let i = 0; i < best.steps.length && runs > 0; i++) {
    const size = changesOf(best.steps[i]!).length
    if (size > 1)
      for (let at = size - 1; at >= 0; at--)
        attempt(replaced(best.steps, i, (changes) => changes.filter((_, j) => j !== at)))
    for (let at = 0; at < changesOf(best.steps[i]).length; at++) {
      for (const name of Object.keys((changesOf(best.steps[i])[at] as Body)["record"] as Body))
        attempt(
          replaced(best.steps, i, (changes) =>
            changes.map((change, j) => (j === at ? without(change as Body, name) : change))
          )
        )
    }
  }
  shorten(() => best, attempt)
  return best
}

const clauses = [
  / FETCH [^()]*$/,
  / (LIMIT|START) \S+( (LIMIT|START) \S+)?$/,
  / ORDER BY [^()]*?(?= LIMIT| START| FETCH|$)/,
  / OMIT \S+/,
  / WHERE .*?(?= ORDER| GROUP| LIMIT| START| SPLIT|$)/
]

/** Leaves out whole clauses of the queries where it still fails. */
const shorten = (best: () => Shrunk, attempt: (steps: Case) => boolean): void => {
  for (const clause of clauses) {
    for (let i = 0; i < best().steps.length; i++) {
      const step = best().steps[i]!
      if (!("watch" in step)) continue
      const query = step.query.replace(clause, "")
      if (query !== step.query) attempt(best().steps.map((other, j) => (i === j ? { ...step, query } : other)))
    }
  }
}

/** What a red test says: the law, the view, and the case to commit to found.ts. */
export const report = ({ steps, violation }: Shrunk): string => {
  const query = steps.flatMap((step) =>
    "watch" in step && step.watch === violation.view ? [`${step.query}  ${JsonText.write(step.params ?? {})}`] : []
  )[0]
  return `${violation.what}\n  query ${query ?? "-"}\n  case\n[\n${steps.map((step) => `  ${JsonText.write(step)}`).join(",\n")}\n]`
}
