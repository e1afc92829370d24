/**
 * `npm --prefix scripts/bench/engine run ids`: what a change costs where ids are texts as the database makes them,
 * beside counted ones.
 *
 * Why in one process and in turns: the machine's speed changes by the minute, and the goal is a ratio. Both engines
 * hold all their records throughout, so that each finds the other's in the caches. A change is what `bench` times of
 * this engine: the reading of JSON is not in it. `--check` exits 1 where a figure is above its goal.
 */

import { judged } from "../judged.ts"
import { databaseKey } from "../keys.ts"
import { ours } from "../peers/ours.ts"
import { type Answer, inputsAtOnce, type WorkloadName } from "../program.ts"
import { canonical, workload } from "../workloads.ts"

const goalRatio = 1.2
const warmUp = 30_000
const timed = 60_000
const inTurn = 500

const cases: ReadonlyArray<readonly [WorkloadName, size: number]> = [
  ["W1", 100_000],
  ["W2", 100_000],
  ["W3", 100_000],
  ["W4", 10_000],
  ["W7", 10_000]
]

const median = (figures: Array<number>): number => figures.sort((a, b) => a - b)[figures.length >> 1]!

/** The row of each key that was made. */
const numbers = new Map<string, number>()

const keyOf = (row: number): string => {
  const key = databaseKey(row)
  numbers.set(key, row)
  return key
}

/** A result with the numbers of its keys in their place. */
const counting = (result: Answer): Answer =>
  JSON.parse(
    JSON.stringify(result).replace(/"([a-z][a-z0-9]{19})"/g, (text, key: string) => String(numbers.get(key) ?? text))
  )

const run = (name: WorkloadName, size: number, textFirst: boolean): ReadonlyArray<number> => {
  const work = workload(name, size, { rows: 1_000_000, history: warmUp + timed })
  const counted = ours(work),
    text = ours(work, keyOf)
  const programs = textFirst ? [text, counted] : [counted, text]
  for (const program of programs) {
    program.load()
    program.register()
  }
  const took = new Map(programs.map((program) => [program, [] as Array<number>]))
  for (let at = 0; at < work.changes.length; at += inTurn)
    for (const program of (at / inTurn) % 2 === 0 ? programs : [...programs].reverse())
      for (let from = at; from < at + inTurn; from += inputsAtOnce) {
        const inputs = work.changes.slice(from, from + inputsAtOnce).map(program.prepare)
        for (const input of inputs) {
          const begun = process.hrtime.bigint()
          program.apply(input)
          const nanos = Number(process.hrtime.bigint() - begun)
          if (at >= warmUp) took.get(program)!.push(nanos)
        }
      }
  for (let view = 0; view < Math.min(work.views, 100); view++) {
    const [is, other] = [text, counted].map((program) => canonical(counting(program.result(view)), work.ordered))
    if (is !== other) throw new Error(`${name}: view ${view} shows ${is} beside ${other}`)
  }
  return [counted, text].map((program) => median(took.get(program)!) / 1000)
}

for (const [name, size] of cases) {
  const runs = [false, true].map((textFirst) => run(name, size, textFirst))
  const ratios = runs.map(([counted, text]) => text! / counted!)
  const ratio = Math.sqrt(ratios[0]! * ratios[1]!)
  const shown = runs.map(([counted, text]) => `${counted!.toFixed(2)} and ${text!.toFixed(2)}`).join(", ")
  const verdict = judged(ratio <= goalRatio)
  console.log(`| ${name} ${size} | ${shown} µs | ${ratio.toFixed(2)} | at most ${goalRatio} | ${verdict} |`)
}
