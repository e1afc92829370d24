/**
 * Pages know their records by numbers of a table: ids of every kind come, go and come again, deleted ones are forgotten
 * and their numbers given to others, in steps of one write and of many.
 */
import { expect } from "vitest"
import { type Rng, runs, seeded } from "../../../kit/data/random.ts"
import { Engine } from "../../../src/core/ivm/engine.ts"
import { compareRecords } from "../../../src/core/surql/values/order.ts"
import * as Ids from "../../../src/core/surql/values/recordId.ts"
import { change, Desk, type Watching } from "./desk.ts"

interface Row {
  readonly id: string
  readonly list: number
  readonly at: number
  readonly kind: number
}

const byId = (a: Row, b: Row): number => compareRecords(Ids.parse(a.id)!, Ids.parse(b.id)!)

/** Counts, most of which come out of order and are counted later, texts, and keys that are neither. */
const someId = (random: Rng, table: string): string => {
  const n = random.below(90)
  const key = random.pick([`${n * random.pick([1, 1, 4])}`, `x${n}`, `[${n % 7}]`, `${5_000_000_000 + n}`])
  return `${table}:${key}`
}

const pages: ReadonlyArray<readonly [page: string, lists: ReadonlyArray<number>, kinds: number, start: number]> = [
  ["list = 0 ORDER BY at DESC LIMIT 6", [0], 4, 0],
  ["list = 0 ORDER BY at DESC LIMIT 6 START 5", [0], 4, 5],
  ["list = 1 AND kind != 3 ORDER BY at DESC LIMIT 6", [1], 3, 0],
  ["list IN [0, 1] ORDER BY at DESC LIMIT 6", [0, 1], 4, 0]
]

const shows = (rows: Iterable<Row>, [, lists, kinds, start]: (typeof pages)[number]): ReadonlyArray<string> =>
  [...rows]
    .filter(({ kind, list }) => lists.includes(list) && kind < kinds)
    .sort((a, b) => b.at - a.at || byId(a, b))
    .slice(start, start + 6)
    .map(({ id }) => id)

// The second table is one of the service's own: what is deleted there is forgotten at once.
for (const table of ["t", "_svc_job"])
  seeded(
    `L1 L2 pages of ${table} show records of every kind of id, whatever is forgotten meanwhile`,
    "test/core/ivm/pageIds.test.ts",
    (random) => {
      for (let run = 0; run < runs(5); run++) {
        const on = new Desk(new Engine({ maxTombstones: random.pick([0, 3, 40]) }))
        const rows = new Map<string, Row>()
        const write = (id: string): unknown => {
          const before = rows.get(id)
          if (before !== undefined && random.chance(0.5)) {
            rows.delete(id)
            return change(id, undefined)
          }
          const { at, kind, list } = {
            list: random.below(2),
            at: random.below(30),
            kind: random.below(4),
            ...(random.chance(0.3) && before)
          }
          rows.set(id, { id, list, at, kind })
          return change(id, { list, at, kind }, before === undefined ? "CREATE" : "UPDATE")
        }
        const watched: Array<Watching> = []
        const shown: Array<ReadonlyArray<string>> = []
        for (let step = 0; step < 150; step++) {
          const ids = new Set(
            Array.from({ length: random.chance(0.4) ? 1 + random.below(20) : 1 }, () => someId(random, table))
          )
          on.sendAll(Array.from(ids, write))
          if (step === 30)
            for (const [i, [page]] of pages.entries()) {
              watched.push(on.watch(`SELECT * FROM ${table} WHERE ${page}`))
              shown[i] = watched[i]!.keys()
            }
          for (const [i, view] of watched.entries()) {
            const wanted = shows(rows.values(), pages[i]!)
            expect(view.keys(), `step ${step}: ${pages[i]![0]}`).toEqual(wanted)
            const then = shown[i]!,
              { additions = [], removals = [] } = view.delta() ?? {}
            if (step > 30)
              expect([additions.map(([id]) => id).sort(), [...removals].sort()], `delta of step ${step}`).toEqual([
                wanted.filter((id) => !then.includes(id)).sort(),
                then.filter((id) => !wanted.includes(id)).sort()
              ])
            shown[i] = wanted
          }
        }
      }
    }
  )
