/**
 * Changes of one view's result in a step (law L2): collected while the step runs, netted when it ends.
 *
 * Formula: per row, (first `before` seen, last `after` seen); equal ends cancel. So a row that a window drops and takes
 * back within one step is not announced, and nothing is announced twice. Children (rows of subqueries shown under an
 * alias) are reported as occurrences: one entry for each place where a child is added, changed or removed, so that a
 * child under two parents is counted and not overwritten. Cost: O(1) per row that moved and per child that changed.
 */
import { append } from "../../multimap.ts"
import { type Hash64, noSum } from "./hash.ts"

/** A row as a result shows it: the record, its version, and a digest of other shown content. */
export interface Shown {
  readonly key: string
  /** Identity of the row: its record's slot. */
  readonly slot?: unknown
  /** The slot has only this row, so slots tell rows apart without a look at the rows or their keys. */
  readonly isOnly?: boolean
  readonly version: number
  readonly digest: string | undefined
  /** Sum of the hashes of the child results that the row shows. */
  readonly sumHigh?: number
  readonly sumLow?: number
  /**
   * Results of the subqueries that this row shows, in the order of the aliases; undefined for a subquery that is run
   * for the row.
   */
  readonly children?: ReadonlyArray<ChildResult | undefined> | undefined
}

/** The result of a subquery as a row shows it. */
export interface ChildResult {
  /** Aliases under which the rows of this result show results of their own. */
  readonly aliases: ReadonlyArray<string>
  /** The current rows. */
  readonly shownRows: () => Iterable<Shown>
  /** The current hash: changes with the result. */
  readonly sum: Hash64
  /** The hash before the current step. */
  readonly sumBefore: () => Hash64
  /** Whether the whole result fails. */
  readonly fails: () => boolean
  /** The delta of the current step, if it changed this result. */
  readonly lastDelta: () => Delta | undefined
}

/** `[row key, version]`, as on the wire. */
type Entry = readonly [key: string, version: number]

/** A child that was added, changed or removed under one parent and alias. */
export interface ChildEntry {
  readonly alias: string
  readonly parent: string
  readonly id: string
  readonly version: number
  readonly op: "add" | "update" | "remove"
  /** For a child of a child: the aliases above its own, outermost first, joined by dots. */
  readonly within?: string
}

/** Path of a child below the main rows: all aliases that lead to it, joined by dots. */
export const pathOf = ({ alias, within }: ChildEntry): string => (within === undefined ? alias : `${within}.${alias}`)

/** The same entry as seen from the row above. */
const under = (above: string, entry: ChildEntry): ChildEntry => ({
  ...entry,
  within: entry.within === undefined ? above : `${above}.${entry.within}`
})

export interface Delta {
  readonly additions: ReadonlyArray<Entry>
  readonly updates: ReadonlyArray<Entry>
  readonly removals: ReadonlyArray<string>
  readonly subqueries: ReadonlyArray<ChildEntry>
}

interface Move {
  readonly key: string
  readonly slot: unknown
  readonly isOnly: boolean
  readonly before: Shown | undefined
  /** Version of `before` when the step began: a row object may take over a new state of its record. */
  readonly version: number
  after: Shown | undefined
  /** The only child result that changed, if nothing else of the row did. */
  child: MovedChild | undefined
  /** A child result changed: the row is reported as updated even if `before` and `after` are the same object. */
  refreshed: boolean
}

/** A child result that changed, and its position among the row's children; undefined if the row has to be searched. */
export interface MovedChild {
  readonly result: ChildResult
  readonly at: number | undefined
}

/** Positions of this result among the children of a row. */
export const placesOf = ({ children }: Shown, result: ChildResult): ReadonlyArray<number> =>
  (children ?? none).flatMap((child, i) => (child === result ? [i] : []))

/** Notes that a row that has moved in this step moves again. */
const again = (move: Move, after: Shown | undefined): void => {
  move.after = after
  move.child = undefined
}

/** Nearly every step moves one or two rows of a view; a map finds moves only above this number. */
const fewMoves = 16

/** The moves of one result in a step, and the hash of the result before the step. */
export class DeltaBuilder implements Hash64 {
  readonly high: number
  readonly low: number
  private moves: Array<Move> | undefined = undefined
  private byKey: Map<string, Move> | undefined = undefined

  constructor({ high, low } = noSum) {
    this.high = high
    this.low = low
  }

  entered(row: Shown): void {
    const move = this.find(row)
    if (move === undefined) this.add(undefined, row, 0)
    else again(move, row)
  }

  left(row: Shown): void {
    const move = this.find(row)
    if (move === undefined) this.add(row, undefined, row.version)
    else again(move, undefined)
  }

  /** One row is removed and another added under the same key. */
  replaced(before: Shown, after: Shown): void {
    const move = this.find(after)
    if (move === undefined) this.add(before, after, before.version)
    else again(move, after)
  }

  /** The row is about to take over a new state of its record. */
  renewed(row: Shown): void {
    this.replaced(row, row)
  }

  /**
   * One child result of the row has changed; a step reports that once. The row may have entered a window in the same
   * step.
   */
  refreshed(row: Shown, child: MovedChild): void {
    const move = this.find(row)
    if (move === undefined) this.add(row, row, row.version, child)
    else move.refreshed = true
  }

  /** Every row that moved, with its first and its last state in this step. */
  get all(): ReadonlyArray<Readonly<Move>> {
    return this.moves ?? none
  }

  private find(row: Shown): Move | undefined {
    if (this.byKey !== undefined) return this.byKey.get(row.key)
    const { moves } = this
    if (moves === undefined) return undefined
    // Compares slots first and keys only if slots do not decide: the slot and the text of a row that was not read
    // lately are cold.
    const { isOnly = false, slot } = row
    for (let i = 0; i < moves.length; i++) {
      const move = moves[i]!
      if (move.isOnly === isOnly && (isOnly ? move.slot === slot : move.key === row.key)) return move
    }
    return undefined
  }

  /** At least one of the two states is given. */
  private add(before: Shown | undefined, after: Shown | undefined, version: number, child?: MovedChild): void {
    const { isOnly = false, key, slot } = (after ?? before)!
    const move: Move = { key, slot, isOnly, before, version, after, child, refreshed: child !== undefined }
    const moves = (this.moves = append(this.moves, move))
    if (this.byKey !== undefined) this.byKey.set(key, move)
    else if (moves.length > fewMoves) this.byKey = new Map(moves.map((other) => [other.key, other]))
  }

  /** The net effect, or undefined if there is none; `aliases` name the children. */
  finish(aliases: ReadonlyArray<string> = none): Delta | undefined {
    // Most steps fill only one of these lists, so the others are not made.
    let additions: Array<Entry> | undefined
    let updates: Array<Entry> | undefined
    let removals: Array<string> | undefined
    let subqueries: Array<ChildEntry> | undefined
    const moves = this.all
    for (let i = 0; i < moves.length; i++) {
      const { after, before, child, key, refreshed, version } = moves[i]!
      if (child !== undefined && after !== undefined) {
        updates = append(updates, [key, after.version])
        if (child.at !== undefined) subqueries = stepOf(subqueries, key, aliases[child.at]!, child.result)
        else
          for (const at of placesOf(after, child.result))
            subqueries = stepOf(subqueries, key, aliases[at]!, child.result)
        continue
      }
      if (before === undefined) {
        if (after !== undefined) additions = append(additions, [key, after.version])
      } else if (after === undefined) removals = append(removals, key)
      else if (
        refreshed ||
        after.version !== version ||
        after.digest !== before.digest ||
        after.sumHigh !== before.sumHigh ||
        after.sumLow !== before.sumLow
      )
        updates = append(updates, [key, after.version])
      if (before?.children !== undefined || after?.children !== undefined)
        subqueries = childChanges(subqueries, aliases, key, before, after)
    }
    if (additions === undefined && updates === undefined && removals === undefined && subqueries === undefined)
      return undefined
    return {
      additions: additions ?? none,
      updates: updates ?? none,
      removals: removals ?? none,
      subqueries: removalsFirst(subqueries ?? none)
    }
  }
}

const none: ReadonlyArray<never> = []

/**
 * One child may be removed under one row and be added, with another version, under the next: a client that applies the
 * entries in order must remove first.
 */
const removalsFirst = (entries: ReadonlyArray<ChildEntry>): ReadonlyArray<ChildEntry> =>
  entries.length > 1 && entries.some(({ op }, i) => op === "remove" && i > 0 && entries[i - 1]!.op !== "remove")
    ? [...entries.filter(({ op }) => op === "remove"), ...entries.filter(({ op }) => op !== "remove")]
    : entries

/** Entries so far; undefined: none. */
type Told = Array<ChildEntry> | undefined

/** Adds the changes among the children of a row that was added, removed or replaced. */
const childChanges = (
  told: Told,
  aliases: ReadonlyArray<string>,
  parent: string,
  before: Shown | undefined,
  after: Shown | undefined
): Told => {
  let out = told
  const olds = before?.children,
    nows = after?.children
  for (let i = 0; i < aliases.length; i++) {
    const old = olds?.[i],
      now = nows?.[i]
    const alias = aliases[i]!
    if (old !== undefined && old === now) out = stepOf(out, parent, alias, old)
    else if (old === undefined) out = now === undefined ? out : withAll(out, entriesNow(parent, alias, now))
    else if (now === undefined) out = withRemovals(out, entriesBefore(parent, alias, old))
    else out = exchanged(out, entriesBefore(parent, alias, old), entriesNow(parent, alias, now))
  }
  return out
}

/** Adds what the step changed in a child result that the row showed before and still shows. */
const stepOf = (told: Told, parent: string, alias: string, result: ChildResult): Told => {
  let out = told
  const delta = result.lastDelta()
  if (delta === undefined) return out
  const { additions, removals, subqueries, updates } = delta
  // Loops by index: V8 gives empty lists another kind, and `for of` over several kinds makes an iterator for each loop.
  for (let i = 0; i < removals.length; i++)
    out = append(out, { alias, parent, id: removals[i]!, version: 0, op: "remove" })
  for (let i = 0; i < additions.length; i++)
    out = append(out, { alias, parent, id: additions[i]![0], version: additions[i]![1], op: "add" })
  for (let i = 0; i < updates.length; i++)
    out = append(out, { alias, parent, id: updates[i]![0], version: updates[i]![1], op: "update" })
  for (let i = 0; i < subqueries.length; i++) out = append(out, under(alias, subqueries[i]!))
  return out
}

const withAll = (told: Told, entries: Array<ChildEntry>): Told => {
  if (told === undefined) return entries.length === 0 ? undefined : entries
  for (let i = 0; i < entries.length; i++) told.push(entries[i]!)
  return told
}

const withRemovals = (told: Told, entries: ReadonlyArray<ChildEntry>): Told => {
  let out = told
  for (let i = 0; i < entries.length; i++) out = append(out, { ...entries[i]!, op: "remove" })
  return out
}

/** Adds the differences between a result that the row showed before and the one that replaces it. */
const exchanged = (told: Told, before: Iterable<ChildEntry>, after: Iterable<ChildEntry>): Told => {
  let out = told
  const gone = new Map<string, Array<ChildEntry>>()
  for (const entry of before) {
    const name = placeOf(entry)
    const same = gone.get(name)
    if (same === undefined) gone.set(name, [entry])
    else same.push(entry)
  }
  for (const entry of after) {
    const old = gone.get(placeOf(entry))?.pop()
    if (old === undefined) out = append(out, entry)
    else if (old.version !== entry.version) out = append(out, { ...entry, op: "update" })
  }
  for (const entries of gone.values()) for (const entry of entries) out = append(out, { ...entry, op: "remove" })
  return out
}

const placeOf = (entry: ChildEntry): string => `${pathOf(entry)}\n${entry.parent}\n${entry.id}`

/** Everything that a child result shows, as additions; children of children included. */
export const entriesNow = (parent: string, alias: string, result: ChildResult): Array<ChildEntry> => {
  const out: Array<ChildEntry> = []
  for (const row of result.shownRows()) {
    out.push({ alias, parent, id: row.key, version: row.version, op: "add" })
    row.children?.forEach((child, i) => {
      if (child !== undefined)
        for (const entry of entriesNow(row.key, result.aliases[i]!, child)) out.push(under(alias, entry))
    })
  }
  return out
}

/**
 * Rows that a child result showed before the current step. The earlier version of a changed child is not known: 0 makes
 * it an update.
 */
const entriesBefore = (parent: string, alias: string, child: ChildResult): ReadonlyArray<ChildEntry> => {
  const entries = entriesNow(parent, alias, child)
  const step = stepOf(undefined, parent, alias, child)
  if (step === undefined) return entries
  const held = new Map<string, Array<ChildEntry>>()
  for (const entry of entries) {
    const same = held.get(placeOf(entry))
    if (same === undefined) held.set(placeOf(entry), [entry])
    else same.push(entry)
  }
  for (const entry of step) {
    const same = held.get(placeOf(entry))
    if (entry.op === "add") same?.pop()
    else if (entry.op === "remove") held.set(placeOf(entry), [...(same ?? none), entry])
    else if (same !== undefined && same.length > 0) same[same.length - 1] = { ...entry, version: 0 }
  }
  return [...held.values()].flat()
}

/** Whether two lists of children are the same result objects. */
export const sameResults = (a: Shown["children"], b: Shown["children"]): boolean =>
  a === b || (a !== undefined && b !== undefined && a.every((child, i) => child === b[i]))
