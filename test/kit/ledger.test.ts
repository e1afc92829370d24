/**
 * The checker of the ledger finds what it is there for: each kind of wrong state, made from a right one.
 *
 * Why: a checker that finds nothing in a campaign says something only when it is known to find things.
 */
import { expect, it } from "vitest"
import { type Entry, Ledger, ledgerViews, type ShownRow, Sightings, streamFaults } from "../../kit/checks/ledger.ts"

const [all, rich, sums] = ledgerViews as [(typeof ledgerViews)[0], (typeof ledgerViews)[0], (typeof ledgerViews)[0]]

/** t1 writes lane 0; t2 lanes 0 and 1; t3 deletes in lane 1. */
const entries: ReadonlyArray<Entry> = [
  {
    tx: "t1",
    lane: 0,
    seq: 1,
    writes: [
      { account: 0, n: 5 },
      { account: 1, n: 600 }
    ]
  },
  { tx: "t2", lane: 0, seq: 2, writes: [{ account: 0, n: 700 }] },
  {
    tx: "t2",
    lane: 1,
    seq: 1,
    writes: [
      { account: 3, n: 8 },
      { account: 4, n: 9 }
    ]
  },
  { tx: "t3", lane: 1, seq: 2, writes: [{ account: 4, n: undefined }] }
]
const attempts = new Map([
  ["t1", { began: 0, acked: 10 }],
  ["t2", { began: 20, acked: 30 }],
  ["t3", { began: 40, acked: 50 }],
  ["cancelled", { began: 41, acked: undefined }]
])
const ledger = new Ledger(entries, attempts)

const row = (id: string, n: number, seq: number): ShownRow => ({ id: `account:${id}`, n, seq })
const lane0 = [
  [row("l0_at_1", 1_000, 1), row("l0_k0", 5, 1), row("l0_k1", 600, 1)],
  [row("l0_at_2", 1_000, 2), row("l0_k0", 700, 2), row("l0_k1", 600, 1)]
] as const
const lane1 = [
  [row("l1_at_1", 1_000, 1), row("l1_k3", 8, 1), row("l1_k4", 9, 1)],
  [row("l1_at_2", 1_000, 2), row("l1_k3", 8, 1)]
] as const
const states = [[], lane0[0], [...lane0[1], ...lane1[0]], [...lane0[1], ...lane1[1]]] as const

const faultsOf = (rows: ReadonlyArray<ShownRow>, view = all): string => ledger.check(view, rows).faults.join("; ")

it("L3 D44 the ledger's checker takes every state that the database had, in each of the views", () => {
  expect(ledger.faults).toEqual([])
  for (const rows of states) {
    expect(faultsOf(rows)).toBe("")
    expect(
      faultsOf(
        rows.filter(({ n }) => Number(n) >= 500),
        rich
      )
    ).toBe("")
  }
  expect(
    faultsOf(
      [
        { lane: 0, rows: 3, total: 2_300, seq: 2 },
        { lane: 1, rows: 2, total: 1_008, seq: 2 }
      ],
      sums
    )
  ).toBe("")
})

it("L3 D44 the ledger's checker names a torn state, one that was never committed and one that is out of order", () => {
  const wrong: ReadonlyArray<readonly [string, ReadonlyArray<ShownRow>, RegExp]> = [
    ["one record of a transaction without the other", [...lane0[0].slice(0, 2)], /lane 0 at 1 is torn/],
    ["one record of the next transaction", [lane0[0][0], lane0[1][1], lane0[0][2]], /lane 0 at 1 is torn/],
    ["a deletion without its transaction", [...lane0[1], ...lane1[0].slice(0, 2)], /lane 1 at 1 is torn/],
    ["one lane of a transaction over two", lane0[1], /lane 0 is at 2 and lane 1, of the same transaction, not at 1/],
    ["the other lane of it", [...lane0[0], ...lane1[0]], /lane 1 is at 1 and lane 0, of the same transaction/],
    ["two markers", [...lane0[0], lane0[1][0]], /lane 0 has 2 markers/],
    ["accounts without a marker", [row("l0_k0", 5, 1)], /lane 0 has 0 markers/],
    ["what was not committed", [row("l0_at_3", 1_000, 3), ...lane0[1].slice(1)], /lane 0 is at 3, .*never committed/],
    ["a value that was not", [lane0[0][0], row("l0_k0", 6, 1), lane0[0][2]], /lane 0 at 1 is torn/]
  ]
  for (const [what, rows, fault] of wrong) expect(faultsOf(rows), what).toMatch(fault)
  expect(faultsOf([{ lane: 0, rows: 3, total: 2_301, seq: 2 }], sums)).toMatch(/lane 0 at 2 is torn/)
  expect(ledger.check(all, states[1], [2]).faults.join()).toMatch(/lane 0 went back from 2 to 1/)
  const apart = new Ledger(
    [
      { tx: "a", lane: 0, seq: 1, writes: [] },
      { tx: "b", lane: 1, seq: 1, writes: [] }
    ],
    new Map([
      ["a", { began: 0, acked: 10 }],
      ["b", { began: 20, acked: 30 }]
    ])
  )
  expect(apart.check(all, [row("l1_at_1", 1_000, 1)]).faults.join()).toMatch(/began 10 ms after one that is not/)
  expect(apart.check(all, [row("l0_at_1", 1_000, 1)]).faults).toEqual([])
})

it("L3 D44 the ledger's checker names what is lost: a transaction, a number, the last state", () => {
  expect(new Ledger(entries, new Map([...attempts, ["t4", { began: 60, acked: 61 }]])).faults).toEqual([
    "t4 was acknowledged and is gone"
  ])
  expect(new Ledger(entries.slice(1), attempts).faults.join()).toMatch(/t1 was acknowledged.*lane 0 has 2 in place 1/)
  const seen = new Sightings(all)
  for (const rows of states.slice(0, 3)) seen.saw(rows)
  expect(seen.faults(ledger).join()).toMatch(/at the end at 2,1,.*the ledger at 2,2,/)
  seen.saw(states[3])
  expect([seen.faults(ledger), seen.size]).toEqual([[], 4])
})

const event = (name: string, data: object) => ({ event: name, id: undefined, data: data as ShownRow })
const delta = (additions: ReadonlyArray<string>, updates: ReadonlyArray<string>, removals: ReadonlyArray<string>) => {
  const versions = (ids: ReadonlyArray<string>) => ids.map((id) => [`account:${id}`, 1])
  return event("delta", {
    additions: versions(additions),
    updates: versions(updates),
    removals: removals.map((id) => `account:${id}`)
  })
}

it("L3 D44 the ledger's checker of streams takes deltas between states and names others", () => {
  const snapshot = event("snapshot", { result_data: lane0[0] })
  const second = delta(["l0_at_2", "l1_at_1", "l1_k3", "l1_k4"], ["l0_k0"], ["l0_at_1"])
  const third = delta(["l1_at_2"], [], ["l1_at_1", "l1_k4"])
  const faults = (...events: ReadonlyArray<ReturnType<typeof event>>): string =>
    streamFaults(ledger, events).faults.join("; ")
  expect(faults(snapshot, second, third)).toBe("")
  expect(faults(snapshot, delta(["l0_at_2", "l1_at_1", "l1_k3", "l1_k4"], [], ["l0_at_1"]))).toMatch(/names account/)
  expect(faults(snapshot, delta(["l0_at_2"], ["l0_k0"], ["l0_at_1"]))).toMatch(/of the same transaction/)
  expect(faults(snapshot, second, delta(["l1_at_2"], [], ["l1_at_1"]))).toMatch(/other rows than the ledger/)
  expect(faults(snapshot, third)).toMatch(/goes and was not there/)
})
