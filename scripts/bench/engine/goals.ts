/**
 * The goals of the bench, judged from the cells of one run.
 *
 * Why ratios, and of each round by itself: its two sides ran in the same minutes on the same machine, which may be half
 * as fast in the next. The middle one is judged. A goal whose cells were not run is left out.
 */
import type { Figures, RoundFigures, WorkloadName } from "./program.ts"
import type { Cell, Result } from "./table.ts"

export interface Goal {
  readonly what: string
  readonly is: string
  readonly goal: string
  readonly met: boolean
}

/** At most so much dearer at the largest size than at the smallest. */
const growth: { readonly [name in WorkloadName]?: number } = {
  W1: 1.5,
  W7: 1.5,
  W2: 2,
  W3: 2,
  W4b: 2,
  W4c: 2,
  W6: 2,
  W8: 2,
  W9: 2,
  W10: 2
}
/** At least so many times faster than the fastest correct peer at the largest size. */
const lead: { readonly [name in WorkloadName]: number } = {
  W1: 1,
  W2: 1,
  W3: 2,
  W4: 2,
  W4b: 2,
  W4c: 2,
  W6: 1,
  W7: 2,
  W8: 2,
  W9: 2,
  W10: 2
}
const onlyMedian: ReadonlyArray<keyof RoundFigures> = ["median"]
/** What the lead is judged by, where that is more than the median: one change in eight makes most of the work of W4c. */
const judgedBy: { readonly [name in WorkloadName]?: ReadonlyArray<keyof RoundFigures> } = {
  W4c: ["median", "mean", "p99"]
}
/** Of one more page of a list that has pages already. */
const pageMs = 1
const pageBytes = 16_384
/** Of a page whose rows move on by one. */
const shiftedPageMicros = 2
const bytesPerView = 2048

export const goals = (results: ReadonlyArray<readonly [Cell, Result]>): ReadonlyArray<Goal> => {
  const found: Array<Goal> = []
  for (const workload of Object.keys(lead) as ReadonlyArray<WorkloadName>) {
    const cells = results.flatMap(([cell, result]) =>
      cell.workload === workload && result.kind === "figures" ? [{ ...cell, result }] : []
    )
    const unfinished = results.flatMap(([cell, result]) =>
      cell.workload === workload && cell.peer === "ours" && result.kind !== "figures" ? [cell.size] : []
    )
    if (unfinished.length > 0)
      found.push({
        what: `${workload} runs to the end`,
        is: `not at ${unfinished.join(", ")}`,
        goal: "every size",
        met: false
      })
    const own = cells.filter(({ peer }) => peer === "ours").sort((a, b) => a.size - b.size)
    const [first, last] = [own[0], own[own.length - 1]]
    if (first === undefined || last === undefined) continue
    found.push({
      what: `${workload} results at every size`,
      is: own.every(({ result }) => result.correct) ? "the plain answer" : "wrong",
      goal: "the plain answer",
      met: own.every(({ result }) => result.correct)
    })
    const most = growth[workload]
    if (most !== undefined && first !== last)
      found.push(
        ratio(
          `${workload} median at ${last.size.toLocaleString("en")} / at ${first.size.toLocaleString("en")}`,
          ratiosOf(last.result, first.result),
          most
        )
      )
    const rivals = cells.filter(({ peer, size, result }) => peer !== "ours" && size === last.size && result.correct)
    for (const figure of judgedBy[workload] ?? onlyMedian) {
      const best = rivals.sort((a, b) => a.result[figure] - b.result[figure])[0]
      if (best !== undefined)
        found.push(
          ratio(
            `${workload} ${figure} / ${best.peer}'s at ${last.size.toLocaleString("en")}`,
            ratiosOf(last.result, best.result, figure),
            1 / lead[workload]
          )
        )
    }
    if ((workload === "W8" || workload === "W9" || workload === "W10") && first !== last)
      found.push(...furtherPages(workload, first, last))
    // Judged where a view has one row, so that little of it is rows.
    if (workload === "W1" && last.size >= 100_000) found.push(memory(last.result))
  }
  return found
}

/** What pages cost beyond the first, which builds the index that all of them share. */
const furtherPages = (
  workload: "W8" | "W9" | "W10",
  first: { readonly size: number; readonly result: Figures },
  last: { readonly size: number; readonly result: Figures }
): ReadonlyArray<Goal> => {
  const more = last.size - first.size
  const ms = (last.result.registerMs - first.result.registerMs) / more
  const bytes = (last.result.bytesPerView * last.size - first.result.bytesPerView * first.size) / more
  const { perShiftedPage: micros } = last.result
  return [
    { what: `${workload} one more page`, is: `${ms.toFixed(2)} ms`, goal: `at most ${pageMs} ms`, met: ms <= pageMs },
    {
      what: `${workload} memory of one more page`,
      is: `${bytes.toFixed(0)} B`,
      goal: `at most ${pageBytes} B`,
      met: bytes <= pageBytes
    },
    ...(micros !== undefined
      ? [
          {
            what: `${workload} each page that a change shifts`,
            is: `${micros.toFixed(1)} µs`,
            goal: `at most ${shiftedPageMicros} µs`,
            met: micros <= shiftedPageMicros
          }
        ]
      : [])
  ]
}

/** Round by round, least first. */
const ratiosOf = (over: Figures, under: Figures, figure: keyof RoundFigures = "median"): ReadonlyArray<number> =>
  over.rounds === undefined || under.rounds?.length !== over.rounds.length
    ? [over[figure] / under[figure]]
    : over.rounds.map((round, i) => round[figure] / under.rounds![i]![figure]).sort((a, b) => a - b)

const ratio = (what: string, is: ReadonlyArray<number>, most: number): Goal => {
  const middle = is[(is.length - 1) >> 1]!
  const range = is.length > 1 ? ` (${is[0]!.toFixed(2)} to ${is.at(-1)!.toFixed(2)})` : ""
  return { what, is: `${middle.toFixed(2)}${range}`, goal: `at most ${most}`, met: middle <= most }
}

const memory = (figures: Figures): Goal => ({
  what: "W1 bytes per view of one row",
  is: figures.bytesPerView.toFixed(0),
  goal: `at most ${bytesPerView}`,
  met: figures.bytesPerView <= bytesPerView
})
