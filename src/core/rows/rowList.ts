/**
 * The rows of one view as its followers have them: each as JSON text, in order, so that a change is reported as rows
 * and positions (D50).
 *
 * State: the text of each shown row, kept while a stream follows the view. A view that can rank single rows (`Ranking`)
 * is asked only for touched ones: O(log n) each. For others (windows, groups, recomputed queries) the order is read
 * again: O(rows shown), and only touched rows are evaluated.
 */
import type { RankedRow, Ranking, ResultRow, View } from "../ivm/view/view.ts"
import * as JsonText from "../jsonText.ts"
import { longestRun } from "../longestRun.ts"
import type { Slices } from "../surql/evaluate/scope.ts"
import { toJson } from "../surql/values/json.ts"
import { bytesWritten } from "../surql/written/paid.ts"
import { ChunkedList, type ListItem } from "./chunkedList.ts"
import { changesOf, type Json } from "./rowChanges.ts"

interface Item extends ListItem<Item> {
  readonly key: string
  /** Values by which the view ranks the row; undefined if it ranks no single rows. */
  ranked: RankedRow | undefined
  text: string
}

/** A change of the list, each row as JSON text; positions from 0. */
export interface RowsDelta {
  /** Positions in the old list, descending. */
  readonly remove: ReadonlyArray<number>
  /** Positions in the new list, ascending, with the row. */
  readonly insert: ReadonlyArray<readonly [position: number, row: string]>
  /** Positions in the new list, with the row there now. */
  readonly update: ReadonlyArray<readonly [position: number, row: string]>
  /** Positions in the new list, with the changes of the row by path (`changesOf`). */
  readonly patch: ReadonlyArray<readonly [position: number, changes: string]>
}

/** Keys of the rows that a step has touched, and whether each is shown now. */
type TouchedRows = ReadonlyMap<string, boolean>

/** A shorter row is sent whole, and so is a row whose changes take more than this share of it. */
const smallRow = 256
const smallPart = 0.5

/** Characters, and rows, read between two pauses. */
const charsPerSlice = 262_144
const rowsPerSlice = 1_024

/** The texts exceed the limit. */
export class TooLarge extends Error {}

export class RowList {
  /** Sum of the characters of all texts. */
  chars = 0
  private items = new ChunkedList<Item>()
  private readonly byKey = new Map<string, Item>()
  private readonly ranking: Ranking | undefined
  private readonly patchFrom: number

  /**
   * `mostBytes`: limit for all rows; beyond it calls throw {@link TooLarge}. Rows of fewer characters than `patchFrom`
   * are sent whole.
   */
  constructor(
    private readonly view: View,
    private readonly mostBytes: number,
    patchFrom = smallRow
  ) {
    this.ranking = view.ranking
    this.patchFrom = patchFrom
  }

  get size(): number {
    return this.items.size
  }

  *texts(): Iterable<string> {
    for (const { text } of this.items) yield text
  }

  /** Reads the view whole, with pauses in which it must not change. */
  *fill(): Slices<void> {
    yield* this.view.arrange()
    const items: Array<Item> = []
    let pauseAt = charsPerSlice
    for (const row of this.view.each()) {
      const item = this.itemOf(row, this.ranking?.of(row.key))
      items.push(item)
      this.byKey.set(item.key, item)
      if (this.chars < pauseAt && items.length % rowsPerSlice !== 0) continue
      pauseAt = this.chars + charsPerSlice
      yield
    }
    this.items = new ChunkedList(items)
  }

  /** Updates the list after one or more steps; answers the change. */
  turn(touched: TouchedRows): RowsDelta {
    const update: Array<[Item, before: string]> = []
    const moved =
      this.ranking === undefined ? this.readAgain(touched, update) : this.rank(this.ranking, touched, update)
    const told = { update: [] as Array<[number, string]>, patch: [] as Array<[number, string]> }
    for (const [item, before] of update) {
      const changes = item.text.length < this.patchFrom ? undefined : patchOf(before, item.text)
      const position = this.items.positionOf(item)
      if (changes === undefined) told.update.push([position, item.text])
      else told.patch.push([position, changes])
    }
    return { ...moved, ...told }
  }

  private rank(ranking: Ranking, touched: TouchedRows, update: Array<[Item, string]>) {
    const gone: Array<Item> = []
    const come: Array<Item> = []
    for (const [key, isShown] of touched) {
      const item = this.byKey.get(key)
      const row = isShown ? ranking.of(key) : undefined
      if (item?.ranked !== undefined && row !== undefined && ranking.compare(item.ranked, row) === 0)
        this.renew(item, row, row, update)
      else {
        if (item !== undefined) gone.push(item)
        if (row !== undefined) come.push(this.itemOf(row, row))
      }
    }
    const remove = this.takeOut(gone)
    for (const item of gone) this.byKey.delete(item.key)
    for (const item of come) {
      this.items.insert(
        this.items.firstWhere((other) => ranking.compare(other.ranked!, item.ranked!) >= 0),
        item
      )
      this.byKey.set(item.key, item)
    }
    return { remove, insert: this.placed(come) }
  }

  /** Reads the order of the rows, and evaluates new and touched ones. */
  private readAgain(touched: TouchedRows, update: Array<[Item, string]>) {
    const before = [...this.items]
    const rows = this.view.rows()
    const places = new Map(before.map(({ key }, place) => [key, place]))
    const common = rows.flatMap(({ key }, at) => {
      const place = places.get(key)
      return place === undefined ? [] : [[place, at] as const]
    })
    const kept = new Set(longestRun(common.map(([place]) => place)).map((i) => common[i]![1]))
    const stays = new Set<Item>()
    const come: Array<readonly [at: number, row: ResultRow, item: Item | undefined]> = []
    rows.forEach((row, at) => {
      const place = places.get(row.key)
      const item = place === undefined ? undefined : before[place]!
      if (item === undefined || !kept.has(at)) come.push([at, row, item])
      else {
        stays.add(item)
        if (touched.has(row.key)) this.renew(item, row, undefined, update)
      }
    })
    const gone = before.filter((item) => !stays.has(item))
    const remove = this.takeOut(gone)
    for (const { key } of gone) this.byKey.delete(key)
    const items = come.map(([at, row, old]) => {
      // A row that only moved keeps its text.
      const item = old !== undefined && !touched.has(row.key) ? this.again(old) : this.itemOf(row, undefined)
      this.items.insert(at, item)
      this.byKey.set(item.key, item)
      return item
    })
    return { remove, insert: this.placed(items) }
  }

  /** Removes items; answers their old positions, descending. */
  private takeOut(gone: ReadonlyArray<Item>): ReadonlyArray<number> {
    const positions = gone.map((item) => this.items.positionOf(item)).sort((a, b) => b - a)
    for (const position of positions) this.chars -= this.items.removeAt(position).text.length
    return positions
  }

  private placed(come: ReadonlyArray<Item>): RowsDelta["insert"] {
    return come.map((item) => [this.items.positionOf(item), item.text] as const).sort(([a], [b]) => a - b)
  }

  private again(item: Item): Item {
    this.chars += item.text.length
    return item
  }

  private itemOf(row: ResultRow, ranked: RankedRow | undefined): Item {
    const text = this.textOf(row, this.chars)
    this.chars += text.length
    return { key: row.key, ranked, text, chunk: undefined }
  }

  private renew(
    item: Item,
    row: ResultRow,
    ranked: RankedRow | undefined,
    update: Array<[item: Item, before: string]>
  ): void {
    const before = item.text
    item.ranked = ranked
    const text = this.textOf(row, this.chars - before.length)
    if (text === before) return
    item.text = text
    this.chars += text.length - before.length
    update.push([item, before])
  }

  private textOf(row: ResultRow, beside: number): string {
    const value = row.value()
    const left = this.mostBytes - beside
    if (bytesWritten(value, left) > left) throw new TooLarge()
    return JsonText.write(toJson(value))
  }
}

/** The changes as JSON, if they are much shorter than the row. */
const patchOf = (before: string, now: string): string | undefined => {
  const changes = JsonText.write(changesOf(JsonText.parse(before) as Json, JsonText.parse(now) as Json))
  return changes.length < now.length * smallPart ? changes : undefined
}
