/**
 * What a delta of one row costs the client on a view of 10,000 rows: the delta as it comes parsed, applied; the array
 * that is shown is made later, once for all deltas of a turn.
 *
 * Beside it the same on a plain array in the same run, since microseconds of a clock say how busy the machine was.
 */
import { applyDelta, type Delta } from "../../src/client/delta.ts"
import { RowList } from "../../src/client/rowList.ts"
import { type Judged, median } from "./load.ts"

const rows = 10_000
const deltas = 20_000
const rounds = 15
const goalMicros = 5

const rowOf = (n: number) => ({ id: `post:${n}`, title: `Post number ${n}`, likes: n, tags: ["a", "b"] })

let drawn = 0
/** All over the list, the same in every run. */
const anywhere = (): number => (drawn = (drawn * 4_801 + 7_919) % rows)

const kinds: { readonly [kind: string]: () => Delta } = {
  "a row changes": () => ({ update: [[anywhere(), rowOf(1)]] }),
  "a field changes": () => ({ patch: [[anywhere(), [[["likes"], anywhere()]]]] }) as unknown as Delta,
  "a row moves": () => ({ remove: [anywhere()], insert: [[anywhere(), rowOf(1)]] }),
  "one comes, one leaves": () => ({ remove: [rows - 1], insert: [[anywhere(), rowOf(1)]] })
}

/** The same on one array: what each delta costs where the array is what is kept. */
const plain = (list: Array<unknown>, { insert = [], patch = [], remove = [], update = [] }: Delta): void => {
  for (const at of remove) list.splice(at as number, 1)
  for (const [at, row] of insert) list.splice(at, 0, row)
  for (const [at, row] of update) list[at] = row
  for (const [at] of patch) list[at] = { ...(list[at] as object), likes: 1 }
}

const microsOf = (work: () => void): number => {
  const begun = process.cpuUsage()
  work()
  const { system, user } = process.cpuUsage(begun)
  return (system + user) / deltas
}

export const client = async (): Promise<ReadonlyArray<Judged>> => {
  console.log(
    `\n| delta of one row on ${rows} rows, CPU | client | plain array | ratio | goal | |\n|---|--:|--:|--:|--:|---|`
  )
  return Object.entries(kinds).map(([what, make]) => {
    const all = Array.from({ length: deltas }, make)
    const initial = Array.from({ length: rows }, (_, n) => rowOf(n))
    const own: Array<number> = []
    const other: Array<number> = []
    for (let round = 0; round < rounds; round++) {
      const list = new RowList(initial)
      own.push(
        microsOf(() => {
          for (const delta of all) applyDelta(list, delta)
        })
      )
      const array = [...initial]
      other.push(
        microsOf(() => {
          for (const delta of all) plain(array, delta)
        })
      )
    }
    const micros = median(own)
    console.log(
      `| ${what} | ${micros.toFixed(2)} us, at best ${Math.min(...own).toFixed(2)} | ${median(other).toFixed(2)} us | ${(micros / median(other)).toFixed(2)} | at most ${goalMicros} us | ${micros <= goalMicros ? "met" : "missed"} |`
    )
    return { ratio: micros, goal: goalMicros }
  })
}
