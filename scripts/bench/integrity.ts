/**
 * The bench of the trees of records (D41): all hashes of a table, and those that a thousand changes ask for, beside a
 * native hash of each record's text.
 *
 * `integrityRun.ts` measures, on the built code, 100,000 records or (`--full`) a million; here its figures become lines
 * with a goal.
 */
import { onDist } from "./language.ts"
import { type Line, median, print } from "./load.ts"

/** A changed record takes the hashes of its bucket, 16 records of a million, and of the nodes above. */
const goals = { whole: 3, changed: 20 }

export const integrity = (): ReadonlyArray<Line> => {
  const records = process.argv.includes("--full") ? 1_000_000 : 100_000
  const figures = JSON.parse(onDist("scripts/bench/integrityRun.ts", [String(records)])) as {
    readonly [name in "plain" | "whole" | "changed"]: ReadonlyArray<number>
  }
  const against = "SHA-256 of its text"
  const lines = (["whole", "changed"] as const).map((name) => ({
    what: `hashes of ${records} records, ${name === "whole" ? "each" : "a changed one"}`,
    against,
    ratio: median(figures[name].map((figure, round) => figure / figures.plain[round]!)),
    goal: goals[name]
  }))
  for (const [name, own] of Object.entries(figures))
    console.log(
      `    ${name.padEnd(10)} ${median(own).toFixed(1)} us CPU, rounds ${own.map((us) => us.toFixed(1)).join(" ")}`
    )
  for (const line of lines) print(line)
  return lines
}
