/**
 * What the soak takes for growth: the median trend of heap and CPU behind the first million changes.
 *
 * Why by itself: the judge must be seen to fail, and waiting an hour for a real leak is no way to see it.
 */
import { describe, expect, it } from "vitest"
import { judge, type Minute, slope } from "../../scripts/soak/judge.ts"

const mebi = 1_048_576

/** Half an hour at 100,000 changes a minute, on a heap of 60 MiB that wavers, and a change of 100 us. */
const life = (heapPerMillion: number, cpuPerMillion: number, minutes = 30): ReadonlyArray<Minute> =>
  Array.from({ length: minutes }, (_, n) => {
    const changes = (n + 1) * 100_000
    return {
      changes,
      heapBytes: (60 + (heapPerMillion * changes) / 1e6 + [0, 2, -1, 1.5, -2][n % 5]!) * mebi,
      cpuMicrosPerChange: 100 + (cpuPerMillion * 100 * changes) / 1e6 + [3, 0, -4, 9, 1][n % 5]!,
      referenceMicros: 900
    }
  })

describe("the soak's judge", () => {
  it("lets a process pass that wavers and does not grow, and one busy minute with a large heap", () => {
    const busy = life(0, 0).map((minute, n) =>
      n === 28 ? { ...minute, heapBytes: 500 * mebi, cpuMicrosPerChange: 2_000 } : minute
    )
    expect([judge("ssp", life(0, 0)).faults, judge("ssp", busy).faults]).toEqual([[], []])
  })
  it("names a heap that grows by more than 1 MiB per million changes", () => {
    expect(judge("ssp-1", life(0.5, 0)).faults).toEqual([])
    expect(judge("ssp-1", life(2, 0)).faults).toEqual([
      expect.stringMatching(/^ssp-1: the heap grows, beside code, by [12]\.\d+ MiB per million changes/)
    ])
  })
  it("names a change that becomes dearer by more than 10 % per million", () => {
    expect(judge("ssp", life(0, 0.04)).faults).toEqual([])
    expect(judge("ssp", life(0, 0.3)).faults).toEqual([
      expect.stringMatching(
        /^ssp: CPU per change, beside a fixed piece of work, grows by \d\d\.\d % per million changes/
      )
    ])
  })
  it("blames the machine, and not the process, for what becomes dearer for everything", () => {
    const slower = (minutes: ReadonlyArray<Minute>) =>
      minutes.map((minute, n) => ({
        ...minute,
        cpuMicrosPerChange: minute.cpuMicrosPerChange * (1 + n / 20),
        referenceMicros: 900 * (1 + n / 20)
      }))
    expect(judge("ssp", slower(life(0, 0))).faults).toEqual([])
    expect(judge("ssp", slower(life(0, 0.3))).faults).toHaveLength(1)
  })
  it("looks behind the first million only, and says when there is too little behind it", () => {
    const settling = life(0, 0).map((minute) =>
      minute.changes < 1e6 ? { ...minute, heapBytes: minute.changes, cpuMicrosPerChange: 5 } : minute
    )
    expect(judge("ssp", settling).faults).toEqual([])
    expect(judge("ssp", life(100, 5, 12))).toEqual({ text: expect.stringContaining("not judged"), faults: [] })
  })
  it("knows a line by its slope", () => {
    expect(
      slope([
        [0, 1],
        [1, 3],
        [2, 5],
        [3, 100],
        [4, 9],
        [5, 11],
        [6, 13]
      ])
    ).toBeCloseTo(2)
  })
})
