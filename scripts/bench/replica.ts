/**
 * The bench of the replica: what it costs to pull a table from it, beside a plain SQLite table read in the same chunks
 * and written as JSON, and what a commit costs.
 *
 * `replicaRun.ts` measures, on the built code, 100,000 records or (`--full`) a million; here its figures become lines
 * with a goal.
 */
import { onDist } from "./language.ts"
import { type Line, median, print } from "./load.ts"

interface Figures {
  readonly name: string
  /** CPU microseconds per record, one figure per round. */
  readonly figures: ReadonlyArray<number>
  readonly wallMicros: ReadonlyArray<number>
}

const goal = 3

export const replica = (): ReadonlyArray<Line> => {
  const records = process.argv.includes("--full") ? 1_000_000 : 100_000
  const { commits, plain, pulls } = JSON.parse(onDist("scripts/bench/replicaRun.ts", [String(records)])) as {
    readonly plain: Figures
    readonly pulls: ReadonlyArray<Figures>
    readonly commits: ReadonlyArray<Figures>
  }
  console.log(`  ${records} records`)
  for (const { figures, name, wallMicros } of [plain, ...pulls, ...commits]) {
    console.log(
      `    ${name.padEnd(66)} ${median(figures).toFixed(2).padStart(7)} us CPU, ${median(wallMicros).toFixed(2).padStart(7)} us wall per record, rounds ${figures.map((figure) => figure.toFixed(1)).join(" ")}`
    )
  }
  const lines = pulls.map(({ figures, name }) => ({
    what: name,
    against: plain.name,
    ratio: median(figures.map((figure, round) => figure / (plain.figures[round] ?? Number.NaN))),
    goal
  }))
  for (const line of lines) print(line)
  return lines
}
