/**
 * Transactions that write down which state they make, and a checker that says of each state shown whether the database
 * had it.
 *
 * Accounts stand in lanes. A transaction takes the next number of each of its lanes, writes accounts there, moves the
 * lane's marker (a record that has the number in its id) and leaves a row of the ledger per lane; so the ledger is
 * there exactly when the rest is, and a lane's states are its rows in order. A state of all lanes is one that the
 * database had when each lane is at one of its states, a transaction over several lanes is in all or in none, and
 * nothing is missing that was acknowledged before something shown began.
 */
import type { Surreal } from "surrealdb"
import type { Rng } from "../data/random.ts"
import { isConflict } from "../processes/surreal/sdk.ts"
import type { StreamEvent } from "./EventStream.ts"

export const lanes = 12
/** Accounts of a lane, so many that one transaction can write twenty. */
const accountsPerLane = 20

export const tables = "DEFINE TABLE account; DEFINE TABLE head; DEFINE TABLE ledger"

/** To be run once, before the first transaction. */
export const heads = `FOR $lane IN 0..${lanes} { CREATE type::record('head', $lane) SET seq = 0 }`

interface Write {
  /** Number of the account in its lane. */
  readonly account: number
  /** 0 to 999; undefined: the account is deleted. */
  readonly n: number | undefined
}

/** What a transaction writes, by lane. */
export type Plan = ReadonlyArray<{ readonly lane: number; readonly writes: ReadonlyArray<Write> }>

/** A row of the ledger. */
export interface Entry {
  readonly tx: string
  readonly lane: number
  /** 1, 2, ... in each lane, without gaps. */
  readonly seq: number
  readonly writes: ReadonlyArray<Write>
}

/** When a transaction was sent and answered, in milliseconds; an answer that never came is no answer. */
export interface Attempt {
  readonly began: number
  readonly acked: number | undefined
}

export type Ending = "commit" | "cancel" | "throw"

const transaction = (ending: Ending, sleepMs: number): string => `BEGIN;
  FOR $part IN $plan {
    LET $lane = <string> $part.lane;
    LET $seq = (UPDATE ONLY type::record('head', $part.lane) SET seq += 1 RETURN VALUE seq);
    DELETE type::record('account', 'l' + $lane + '_at_' + <string> ($seq - 1)) RETURN NONE;
    CREATE type::record('account', 'l' + $lane + '_at_' + <string> $seq) SET lane = $part.lane, n = 1000, seq = $seq RETURN NONE;
    FOR $write IN $part.writes {
      LET $id = type::record('account', 'l' + $lane + '_k' + <string> $write.account);
      IF $write.n = NONE { DELETE $id RETURN NONE } ELSE { UPSERT $id SET lane = $part.lane, n = $write.n, seq = $seq RETURN NONE }
    };
    CREATE type::record('ledger', [$part.lane, $seq]) SET tx = $tx, lane = $part.lane, seq = $seq, writes = $part.writes RETURN NONE
  };
  ${sleepMs > 0 ? `SLEEP ${sleepMs}ms;` : ""}
  ${ending === "throw" ? "THROW 'taken back';" : ""}
  ${ending === "cancel" ? "CANCEL" : "COMMIT"}`

/** Two to twenty records, the markers among them, in one to three of the lanes given. */
export const planOf = (random: Rng, among: ReadonlyArray<number>): Plan => {
  const open = [...among]
  const chosen = Array.from(
    { length: Math.min(1 + random.below(3), open.length) },
    () => open.splice(random.below(open.length), 1)[0]!
  )
  const accounts = Math.max(1, 2 + random.below(19) - chosen.length)
  return chosen.map((lane, i) => {
    const count = Math.floor(accounts / chosen.length) + (i < accounts % chosen.length ? 1 : 0)
    const first = random.below(accountsPerLane)
    return {
      lane,
      writes: Array.from({ length: count }, (_, k) => ({
        account: (first + k) % accountsPerLane,
        n: random.chance(0.25) ? undefined : random.below(1_000)
      }))
    }
  })
}

/** Sends transactions and remembers when; several writers may share one. */
export class Journal {
  readonly attempts = new Map<string, Attempt>()
  conflicts = 0

  /** Why the transaction was not carried out; undefined when it was. */
  async transact(db: Surreal, plan: Plan, ending: Ending = "commit", sleepMs = 0): Promise<string | undefined> {
    const tx = `t${this.attempts.size}`
    const began = performance.now()
    this.attempts.set(tx, { began, acked: undefined })
    const failed = await db.query(transaction(ending, sleepMs), { tx, plan }).then(
      () => undefined,
      (error: unknown) => String(error)
    )
    if (ending === "commit" && failed === undefined) this.attempts.set(tx, { began, acked: performance.now() })
    return failed
  }

  /** The same until no other transaction is in its way; any other failure ends it. */
  async commit(db: Surreal, plan: Plan, sleepMs = 0): Promise<void> {
    for (;;) {
      const failed = await this.transact(db, plan, "commit", sleepMs)
      if (failed === undefined) return
      if (!isConflict(failed)) throw new Error(failed)
      this.conflicts++
      await new Promise((done) => setTimeout(done, Math.random() * 4))
    }
  }

  /** The ledger as the database has it. */
  async ledger(db: Surreal): Promise<Ledger> {
    const [entries] = await db.query<[ReadonlyArray<Entry>]>("SELECT tx, lane, seq, writes FROM ledger")
    return new Ledger(entries, this.attempts)
  }
}

/** A view of accounts, and what it shows of a lane. */
export interface LedgerView {
  readonly id: string
  readonly surql: string
  readonly shows: (account: { readonly n: number }) => boolean
  readonly grouped?: true
}

const all: LedgerView = { id: "all", surql: "SELECT id, lane, n, seq FROM account", shows: () => true }

/** Markers are in all of them. */
export const ledgerViews: ReadonlyArray<LedgerView> = [
  all,
  { id: "rich", surql: "SELECT id, lane, n, seq FROM account WHERE n >= 500", shows: ({ n }) => n >= 500 },
  {
    id: "sums",
    surql: "SELECT lane, count() AS rows, math::sum(n) AS total, math::max(seq) AS seq FROM account GROUP BY lane",
    shows: () => true,
    grouped: true
  }
]

interface Account {
  readonly n: number
  readonly seq: number
}

type LaneState = ReadonlyMap<string, Account>

export type ShownRow = { readonly [field: string]: unknown }

/** What a view shows of one lane, in one text. */
interface ShownLane {
  readonly seq: number
  readonly text: string
}

const marker = /^account:l(\d+)_at_(\d+)$/
const textOf = (rows: Iterable<readonly [string, Account]>): string =>
  [...rows]
    .map(([id, { n, seq }]) => `${id}=${n}@${seq}`)
    .sort()
    .join(" ")

const laneOfId = (id: string): number => Number(/^account:l(\d+)_/.exec(id)?.[1])

export class Ledger {
  /** By lane and number; 0 is the empty one. */
  readonly #states: ReadonlyArray<Array<LaneState>>
  /** By lane and number: how far each lane is at least, for the transactions up to there. */
  readonly #needs: ReadonlyArray<Array<ReadonlyArray<number>>>
  /** By lane and number: when the last of those up to there began, and the first of those behind was acknowledged. */
  readonly #began: ReadonlyArray<Array<number>>
  readonly #acked: ReadonlyArray<Array<number>>
  /** Transactions of the ledger. */
  readonly size: number
  /** Transactions that were acknowledged and are not in the ledger, and numbers that are missing. */
  readonly faults: ReadonlyArray<string>

  constructor(entries: ReadonlyArray<Entry>, attempts: ReadonlyMap<string, Attempt> = new Map()) {
    const faults: Array<string> = []
    const places = new Map<string, Array<Entry>>()
    for (const entry of entries) places.set(entry.tx, [...(places.get(entry.tx) ?? []), entry])
    this.size = places.size
    for (const [tx, { acked }] of attempts)
      if (acked !== undefined && !places.has(tx)) faults.push(`${tx} was acknowledged and is gone`)
    const byLane = Array.from({ length: lanes }, (_, lane) =>
      entries.filter((entry) => entry.lane === lane).toSorted((a, b) => a.seq - b.seq)
    )
    this.#states = byLane.map((list) => {
      const states: Array<LaneState> = [new Map()]
      list.forEach(({ lane, seq, writes }, i) => {
        if (seq !== i + 1) faults.push(`lane ${lane} has ${seq} in place ${i + 1}`)
        states.push(after(states[i]!, lane, seq, writes))
      })
      return states
    })
    this.#needs = byLane.map((list) => {
      const needs: Array<ReadonlyArray<number>> = [Array.from({ length: lanes }, () => 0)]
      list.forEach(({ tx }, i) => {
        const need = [...needs[i]!]
        for (const { lane, seq } of places.get(tx)!) need[lane] = Math.max(need[lane]!, seq)
        needs.push(need)
      })
      return needs
    })
    this.#began = byLane.map((list) => {
      const began = [-Infinity]
      list.forEach(({ tx }, i) => began.push(Math.max(began[i]!, attempts.get(tx)?.began ?? -Infinity)))
      return began
    })
    this.#acked = byLane.map((list) => {
      const acked = Array.from({ length: list.length + 1 }, () => Infinity)
      for (let i = list.length - 1; i >= 0; i--)
        acked[i] = Math.min(acked[i + 1]!, attempts.get(list[i]!.tx)?.acked ?? Infinity)
      return acked
    })
    this.faults = faults
  }

  /** How far each lane is at the end. */
  get end(): ReadonlyArray<number> {
    return this.#states.map((states) => states.length - 1)
  }

  /** What is wrong with the rows that a view showed at one moment; `before` is how far its lanes were before. */
  check(view: LedgerView, rows: ReadonlyArray<ShownRow>, before: ReadonlyArray<number> = []): Checked {
    const faults: Array<string> = []
    const reached = Array.from({ length: lanes }, () => 0)
    for (const [lane, { seq, text }] of view.grouped ? ofGroups(rows) : ofRows(rows, faults)) {
      reached[lane] = seq
      const state = this.#states[lane]?.[seq]
      if (state === undefined) faults.push(`lane ${lane} is at ${seq}, which was never committed`)
      else if (text !== expected(view, state))
        faults.push(`lane ${lane} at ${seq} is torn: ${differing(text, expected(view, state))}`)
    }
    return { reached, faults: [...faults, ...this.order(reached, before)].map((fault) => `${view.id}: ${fault}`) }
  }

  /** What is wrong with how far the lanes are, seen together. */
  order(reached: ReadonlyArray<number>, before: ReadonlyArray<number>): ReadonlyArray<string> {
    const faults: Array<string> = []
    let began = -Infinity,
      acked = Infinity
    for (const [lane, seq] of reached.entries()) {
      if (seq < (before[lane] ?? 0)) faults.push(`lane ${lane} went back from ${before[lane]} to ${seq}`)
      for (const [other, needed] of (this.#needs[lane]?.[seq] ?? []).entries())
        if (reached[other]! < needed)
          faults.push(`lane ${lane} is at ${seq} and lane ${other}, of the same transaction, not at ${needed}`)
      began = Math.max(began, this.#began[lane]?.[seq] ?? -Infinity)
      acked = Math.min(acked, this.#acked[lane]?.[seq] ?? Infinity)
    }
    if (began > acked) faults.push(`a transaction is shown that began ${began - acked} ms after one that is not`)
    return faults
  }

  /** Ids of the view's rows that differ between two states of the lanes. */
  between(from: ReadonlyArray<number>, to: ReadonlyArray<number>): ReadonlySet<string> {
    const ids = new Set<string>()
    for (const [lane, states] of this.#states.entries()) {
      const [old, now] = [states[from[lane]!], states[to[lane]!]]
      for (const [id, { n, seq }] of now ?? []) {
        const known = old?.get(id)
        if (known?.n !== n || known.seq !== seq) ids.add(id)
      }
      for (const id of old?.keys() ?? []) if (now?.has(id) !== true) ids.add(id)
    }
    return ids
  }

  /** Ids of all rows in a state of the lanes. */
  ids(at: ReadonlyArray<number>): ReadonlySet<string> {
    return new Set(this.#states.flatMap((states, lane) => [...(states[at[lane]!]?.keys() ?? [])]))
  }
}

export interface Checked {
  readonly reached: ReadonlyArray<number>
  readonly faults: ReadonlyArray<string>
}

const after = (state: LaneState, lane: number, seq: number, writes: ReadonlyArray<Write>): LaneState => {
  const next = new Map(state)
  next.delete(`account:l${lane}_at_${seq - 1}`)
  next.set(`account:l${lane}_at_${seq}`, { n: 1_000, seq })
  for (const { account, n } of writes)
    if (n === undefined || n === null) next.delete(`account:l${lane}_k${account}`)
    else next.set(`account:l${lane}_k${account}`, { n, seq })
  return next
}

const expected = (view: LedgerView, state: LaneState): string => {
  const shown = [...state].filter(([, account]) => view.shows(account))
  return view.grouped ? `${shown.length} rows, ${shown.reduce((sum, [, { n }]) => sum + n, 0)}` : textOf(shown)
}

/** What only one of two texts has. */
const differing = (shown: string, expected: string): string => {
  const only = (one: string, other: string): string => {
    const known = new Set(other.split(" "))
    return one
      .split(" ")
      .filter((word) => !known.has(word))
      .join(" ")
  }
  return `shown ${only(shown, expected) || "nothing more"}, in the ledger ${only(expected, shown) || "nothing more"}`
}

const ofRows = (rows: ReadonlyArray<ShownRow>, faults: Array<string>): ReadonlyMap<number, ShownLane> => {
  const byLane = new Map<number, Array<readonly [string, Account]>>()
  for (const { id, n, seq } of rows) {
    const lane = laneOfId(String(id))
    byLane.set(lane, [...(byLane.get(lane) ?? []), [String(id), { n: Number(n), seq: Number(seq) }]])
  }
  return new Map(
    [...byLane].map(([lane, list]) => {
      const markers = list.flatMap(([id]) => marker.exec(id)?.[2] ?? [])
      if (markers.length !== 1) faults.push(`lane ${lane} has ${markers.length} markers: ${markers.join()}`)
      return [lane, { seq: Number(markers[0] ?? 0), text: textOf(list) }]
    })
  )
}

const ofGroups = (rows: ReadonlyArray<ShownRow>): ReadonlyMap<number, ShownLane> =>
  new Map(
    rows.map(({ lane, rows: count, seq, total }) => [
      Number(lane),
      { seq: Number(seq), text: `${Number(count)} rows, ${Number(total)}` }
    ])
  )

/** What one client saw of one view, as texts, and only what differs from what it saw just before. */
export class Sightings {
  readonly #view: LedgerView
  readonly #texts: Array<string> = []
  readonly #when: Array<string> = []

  constructor(view: LedgerView) {
    this.#view = view
  }

  get size(): number {
    return this.#texts.length
  }

  /** `when`, in words, is put before what is wrong with it. */
  saw(rows: ReadonlyArray<ShownRow>, when?: string): void {
    const text = JSON.stringify(rows)
    if (text === this.#texts.at(-1)) return
    this.#texts.push(text)
    this.#when.push(when === undefined ? "" : `${when}: `)
  }

  /** What is wrong with any of it; the last state must be the ledger's last. */
  faults(ledger: Ledger): ReadonlyArray<string> {
    const faults: Array<string> = []
    let before: ReadonlyArray<number> = []
    for (const [i, text] of this.#texts.entries()) {
      const checked = ledger.check(this.#view, JSON.parse(text) as ReadonlyArray<ShownRow>, before)
      faults.push(...checked.faults.map((fault) => `${this.#when[i]}${fault}`))
      before = checked.reached
    }
    if (before.join() !== ledger.end.join())
      faults.push(`${this.#view.id}: at the end at ${before.join()}, the ledger at ${ledger.end.join()}`)
    return faults
  }
}

interface StreamDelta {
  readonly additions: ReadonlyArray<readonly [string, number]>
  readonly updates: ReadonlyArray<readonly [string, number]>
  readonly removals: ReadonlyArray<string>
}

const reachedBy = (ids: Iterable<string>): ReadonlyArray<number> => {
  const reached = Array.from({ length: lanes }, () => 0)
  for (const id of ids) {
    const found = marker.exec(id)
    if (found !== null) reached[Number(found[1])] = Number(found[2])
  }
  return reached
}

/**
 * What is wrong with the events of a stream of the view `all`, which was opened with lanes where `before` says: each
 * state has the rows of a state of the ledger, and each delta names exactly what differs between two.
 */
export const streamFaults = (
  ledger: Ledger,
  events: ReadonlyArray<StreamEvent>,
  before: ReadonlyArray<number> = []
): Checked => {
  const faults: Array<string> = []
  const ids = new Set<string>()
  let reached = before
  for (const { data, event } of events) {
    const touched = new Set<string>()
    if (event === "snapshot") {
      ids.clear()
      for (const { id } of data["result_data"] as ReadonlyArray<ShownRow>) ids.add(String(id))
    } else if (event === "delta") {
      const { additions, removals, updates } = data as unknown as StreamDelta
      for (const id of removals) {
        touched.add(id)
        if (!ids.delete(id)) faults.push(`stream: ${id} goes and was not there`)
      }
      for (const [id] of [...additions, ...updates]) {
        touched.add(id)
        ids.add(id)
      }
    } else continue
    const now = reachedBy(ids)
    faults.push(...ledger.order(now, reached).map((fault) => `stream: ${fault}`))
    if (!same(ids, ledger.ids(now))) faults.push(`stream: other rows than the ledger has at ${now.join()}`)
    if (event === "delta" && !same(touched, ledger.between(reached, now)))
      faults.push(`stream: a delta from ${reached.join()} to ${now.join()} names ${[...touched].join(" ")}`)
    reached = now
  }
  return { reached, faults }
}

const same = (one: ReadonlySet<string>, other: ReadonlySet<string>): boolean =>
  one.size === other.size && [...one].every((id) => other.has(id))
