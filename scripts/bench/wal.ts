/**
 * The bench of the log: how long a start takes with 100,000 events in it, beside plainly reading the file.
 *
 * `walRun.ts` measures, on the built code; here its figures become lines. Seconds are given, and ratios to what reading
 * alone takes, because a machine that is busy stretches both.
 */
import { onDist } from "./language.ts"
import { type Line, median, print } from "./load.ts"

const events = 100_000
const goalSecs = 2

export const wal = (): ReadonlyArray<Line> => {
  const { empty, plain, whole } = JSON.parse(onDist("scripts/bench/walRun.ts", [String(events)])) as {
    readonly [name in "plain" | "whole" | "empty"]: ReadonlyArray<number>
  }
  const ratio = (figures: ReadonlyArray<number>): number =>
    median(figures.map((figure, round) => figure / (plain[round] ?? Number.NaN)))
  const against = "reading the file and parsing its lines"
  for (const [what, figures] of [
    ["opening a log whose events are all in the replica", whole],
    ["opening a log and applying all of it to an empty replica on disk", empty]
  ] as const) {
    console.log(
      `  ${what}, ${events} events: ${median(figures).toFixed(2)} s (rounds ${figures.map((figure) => figure.toFixed(2)).join(" ")}), ${ratio(figures).toFixed(1)} times ${against} (${median(plain).toFixed(2)} s)`
    )
  }
  const lines = [
    {
      what: `start with a log of ${events} events, seconds`,
      against: `${goalSecs} s`,
      ratio: median(whole) / goalSecs,
      goal: 1
    },
    {
      what: `start that applies ${events} events to an empty replica, seconds`,
      against: `${goalSecs} s`,
      ratio: median(empty) / goalSecs,
      goal: 1
    }
  ]
  for (const line of lines) print(line)
  return lines
}
