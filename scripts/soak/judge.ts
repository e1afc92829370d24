/**
 * Whether a process grows: the trend of its heap and of its processor time per change, behind its first million
 * changes.
 *
 * The trend is the median of the slopes between all pairs of minutes (Theil and Sen): a single minute in which the
 * machine was busy, or a view happened to be large, moves a mean and an end point but not this. Processor time is
 * judged beside a fixed piece of work that is measured in the same minutes (`reference.ts`).
 */

export interface Minute {
  /** Changes that this life of the process had applied by the end of the minute. */
  readonly changes: number
  /** Without what V8 keeps of code. */
  readonly heapBytes: number
  readonly cpuMicrosPerChange: number
  /** What a fixed piece of work has cost meanwhile on the same machine. */
  readonly referenceMicros: number
}

export const goals = {
  heapBytesPerMillion: 1_048_576,
  cpuPerMillion: 0.1,
  firstChanges: 1_000_000,
  fewestMinutes: 6,
  fewestChanges: 500_000
} as const

export const median = (values: ReadonlyArray<number>): number => {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** The median slope of `y` over `x`; at least two different `x`. */
export const slope = (points: ReadonlyArray<readonly [x: number, y: number]>): number =>
  median(
    points.flatMap(([x0, y0], i) =>
      points.slice(i + 1).flatMap(([x1, y1]) => (x1 === x0 ? [] : [(y1 - y0) / (x1 - x0)]))
    )
  )

export interface Verdict {
  /** In words, for the report. */
  readonly text: string
  readonly faults: ReadonlyArray<string>
}

const mebi = (bytes: number): string => (bytes / 1_048_576).toFixed(2)

/** One life of one process. */
export const judge = (name: string, life: ReadonlyArray<Minute>): Verdict => {
  const behind = life.filter(({ changes }) => changes >= goals.firstChanges)
  const spanned = behind.length === 0 ? 0 : behind.at(-1)!.changes - behind[0]!.changes
  if (behind.length < goals.fewestMinutes || spanned < goals.fewestChanges) {
    return {
      text: `${name}: growth is not judged, for ${behind.length} minutes with ${spanned} changes behind the first million are too few (${goals.fewestMinutes} with ${goals.fewestChanges})`,
      faults: []
    }
  }
  const heap = slope(behind.map(({ changes, heapBytes }) => [changes / 1e6, heapBytes]))
  const usual = median(behind.map(({ cpuMicrosPerChange }) => cpuMicrosPerChange))
  const raw = slope(behind.map(({ changes, cpuMicrosPerChange }) => [changes / 1e6, cpuMicrosPerChange])) / usual
  // A machine that is shared becomes slower and faster for everybody on it: a change is measured in pieces of the fixed
  // work.
  const inPieces = behind.map(
    ({ changes, cpuMicrosPerChange, referenceMicros }) => [changes / 1e6, cpuMicrosPerChange / referenceMicros] as const
  )
  const cpu = slope(inPieces) / median(inPieces.map(([, pieces]) => pieces))
  const faults = [
    ...(heap < goals.heapBytesPerMillion
      ? []
      : [
          `${name}: the heap grows, beside code, by ${mebi(heap)} MiB per million changes; the goal is less than ${mebi(goals.heapBytesPerMillion)}`
        ]),
    ...(cpu < goals.cpuPerMillion
      ? []
      : [
          `${name}: CPU per change, beside a fixed piece of work, grows by ${(cpu * 100).toFixed(1)} % per million changes; the goal is less than ${goals.cpuPerMillion * 100}`
        ])
  ]
  return {
    text: `${name}: heap ${mebi(heap)} MiB and CPU ${(cpu * 100).toFixed(1)} % per million changes (${(raw * 100).toFixed(1)} % by the clock of the processor), over ${behind.length} minutes and ${spanned} changes behind the first million; median ${usual.toFixed(0)} us per change`,
    faults
  }
}
