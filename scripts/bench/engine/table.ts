/**
 * The table of `docs/benchmarks.md`, printed from the cells of a run.
 *
 * Why one line per workload and size and one column per peer: the two questions are how a line compares across and how
 * a column grows downwards.
 */
import type { Figures, WorkloadName } from "./program.ts"

export interface Cell {
  readonly workload: WorkloadName
  readonly size: number
  readonly peer: string
}

export type Result =
  | Figures
  | { readonly kind: "none" }
  | { readonly kind: "skipped" }
  | { readonly kind: "slow"; readonly phase: string; readonly seconds: number }
  | { readonly kind: "failed"; readonly reason: string }

export const peerNames: { readonly [peer: string]: string } = {
  ours: "this engine",
  ivm: "db-ivm, wired by hand",
  "ivm-each": "db-ivm, a pipeline per view",
  tdb: "TanStack DB",
  zero: "Zero (ZQL)",
  sqlite: "SQLite, queried again",
  requery: "the database, queried again",
  live: "the database, LIVE SELECT"
}

const titles: { readonly [name in WorkloadName]: string } = {
  W1: "W1 `author = <k>`, views",
  W2: "W2 one filter, rows",
  W3: "W3 newest 20 of, rows",
  W4: "W4 threads with author and last ten comments, comments",
  W6: "W6 count and sum by group, rows",
  W7: "W7 newest 10 by author, views",
  W4b: "W4b the ten newest threads of W4, comments",
  W4c: "W4c the same, where threads come and go, comments",
  W8: "W8 pages of one list, pages",
  W9: "W9 pages below a score, pages",
  W10: "W10 newest 50 of 20 channels, lists"
}

const digits = (value: number): string => value.toFixed(value < 10 ? 1 : 0)

const micros = (value: number): string => (value < 1000 ? digits(value) : `${digits(value / 1000)} ms`)

const shown = (workload: WorkloadName, result: Result | undefined): string => {
  if (result === undefined) return ""
  if (result.kind === "none") return "–"
  if (result.kind === "failed") return "failed"
  if (result.kind === "slow") return `${result.phase} > ${result.seconds} s`
  if (result.kind === "skipped") return "too slow"
  const mean = workload === "W4c" ? `, mean ${micros(result.mean)}` : ""
  return `${micros(result.median)} / ${micros(result.p99)}${mean}${result.correct ? "" : " **wrong**"}`
}

const lookup =
  (results: ReadonlyArray<readonly [Cell, Result]>) =>
  (workload: string, size: number, peer: string): Result | undefined =>
    results.find(([cell]) => cell.workload === workload && cell.size === size && cell.peer === peer)?.[1]

const row = (cells: ReadonlyArray<string>): string => `| ${cells.join(" | ")} |`

/** Median and 99th percentile per change, and W5: what it takes to get there. */
export const tables = (results: ReadonlyArray<readonly [Cell, Result]>): string => {
  const find = lookup(results)
  const peers = Object.keys(peerNames).filter((peer) => results.some(([cell]) => cell.peer === peer))
  const sizes = [...new Map(results.map(([cell]) => [`${cell.workload} ${cell.size}`, cell] as const)).values()]
  const lines = [
    row(["µs per change, median / p99", ...peers.map((peer) => peerNames[peer]!)]),
    row(["---", ...peers.map(() => "--:")])
  ]
  for (const { workload, size } of sizes)
    lines.push(
      row([
        `${titles[workload]} ${size.toLocaleString("en")}`,
        ...peers.map((peer) => shown(workload, find(workload, size, peer)))
      ])
    )
  return [...lines, ...setUp(results, peers)].join("\n")
}

/** W5: load and registration, read off the largest cells. */
const setUp = (
  results: ReadonlyArray<readonly [Cell, Result]>,
  peers: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const find = lookup(results)
  const largest = (workload: WorkloadName): number =>
    Math.max(0, ...results.filter(([cell]) => cell.workload === workload).map(([cell]) => cell.size))
  const line = (
    title: string,
    workload: WorkloadName,
    size: number,
    show: (figures: Figures) => string
  ): ReadonlyArray<string> =>
    size === 0
      ? []
      : [
          row([
            title,
            ...peers.map((peer) => {
              const result = find(workload, size, peer)
              return result?.kind === "figures" ? show(result) : ""
            })
          ])
        ]
  const ms = (value: number): string => `${value.toFixed(0)} ms`
  return [
    ...line(`W5 load ${largest("W2").toLocaleString("en")} rows`, "W2", largest("W2"), ({ loadMs }) => ms(loadMs)),
    ...(["W2", "W3", "W4", "W4b", "W4c", "W6"] as const).flatMap((workload) =>
      line(
        `W5 register ${workload} over ${largest(workload).toLocaleString("en")} rows`,
        workload,
        largest(workload),
        ({ registerMs }) => ms(registerMs)
      )
    ),
    ...(["W1", "W7", "W8", "W9", "W10"] as const).flatMap((workload) =>
      line(
        `W5 register ${largest(workload).toLocaleString("en")} views of ${workload}`,
        workload,
        largest(workload),
        ({ registerMs }) => ms(registerMs)
      )
    ),
    ...line(
      `JavaScript heap per view of W1 at ${largest("W1").toLocaleString("en")}`,
      "W1",
      largest("W1"),
      ({ bytesPerView }) => `${bytesPerView.toFixed(0)} B`
    )
  ]
}
