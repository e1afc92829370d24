/**
 * How an SSP follows some of the tables of a scheduler's log (D61): which events are new, whether one was lost, and
 * when a table joins.
 *
 * Formula: for a joining table, state at X = pages read at positions s1 <= s2 <= ... <= sn, overlaid by its events in
 * (s1, X]; for each record the later position wins; X >= sn is the position of all other tables. So pages need no
 * frozen snapshot, and a table costs only its own size. The next event of a table reveals a lost one, because it names
 * its predecessor; the table then joins again while all others wait, so that views never show the gap. Waiting changes
 * are applied as one step at X (law L3). State: two positions per table, the records of joining tables, the events of
 * an open or waiting step. Cost: O(1) per event and per line, and one pass over a joining table.
 */
import type { Obj, RecordId } from "../surql/values/value.ts"
import type { Change } from "./change.ts"

/** The state of a record after a page or an event of the feed; `doc` is undefined if the record was deleted. */
export interface FedRecord {
  readonly id: RecordId
  readonly version: number
  readonly doc: Obj | undefined
}

/**
 * A table whose pages and events form its state at one position. `repairs`: the table is there already, and only
 * differences are corrected.
 */
interface Joined {
  readonly table: string
  readonly repairs: boolean
  readonly records: ReadonlyArray<FedRecord>
}

/**
 * A step that may be applied: first the tables that joined, which no view reads yet, then the changes up to `through`.
 */
interface Due {
  readonly joined: ReadonlyArray<Joined>
  readonly changes: ReadonlyArray<Change>
  /** Several steps are to be applied as one. */
  readonly asOne: boolean
  readonly through: number
}

/**
 * Result of receiving an event. `known`: applied already; `foreign`: its table is not followed; `lost`: its predecessor
 * never came, so the table joins again.
 */
type Taken = "taken" | "known" | "foreign" | "lost"

interface PositionedRecord extends FedRecord {
  readonly seq: number
}

class Joining {
  /** Position of the first page; undefined until it is read. */
  from: number | undefined = undefined
  /** The highest position of a page, and whether the last page was read. */
  to = 0
  isPulled = false
  /** Position through which all events of the table were received. */
  seen = 0
  /** Whether the open feed was requested with this table. */
  isOpen = false
  readonly records = new Map<string, PositionedRecord>()

  constructor(
    /** Whether nothing else is applied before this table has joined. */
    public blocks: boolean,
    readonly repairs: boolean
  ) {}

  /** Sets a record's state; the later position wins, and at equal positions page and event agree. */
  put(said: FedRecord, seq: number): void {
    const known = this.records.get(said.id.text)
    if (known === undefined || known.seq <= seq) this.records.set(said.id.text, { ...said, seq })
  }
}

interface Table {
  /** Position of the table's last event; undefined if none has come. */
  last: number | undefined
  /** Position at which the table was read. An event reveals a loss if its predecessor is later and never came. */
  base: number
  joining: Joining | undefined
}

export class TableFeed {
  private readonly tables = new Map<string, Table>()
  private readonly joiningTables = new Set<string>()
  private readonly base: number
  /** Position through which everything of the held tables was received. */
  private at: number
  private waiting: Array<Change> = []
  /** A step is open: it continues with the next event, or ends at the next watermark. */
  private isWithin = false

  /** Starts at position `at` with these tables. `isAlways`: the tables are followed though no page of them is read. */
  constructor(
    at: number,
    held: Iterable<string>,
    private readonly isAlways: (table: string) => boolean
  ) {
    this.at = this.base = at
    for (const table of held) this.tables.set(table, { last: undefined, base: at, joining: undefined })
  }

  /** Whether the table has joined and is not about to join again. */
  isHeld(table: string): boolean {
    const known = this.tables.get(table)
    return known !== undefined && known.joining === undefined
  }

  get held(): ReadonlyArray<string> {
    return [...this.tables].filter(([, { joining }]) => joining === undefined).map(([name]) => name)
  }

  get joining(): ReadonlySet<string> {
    return this.joiningTables
  }

  get isBlocked(): boolean {
    for (const table of this.joiningTables) if (this.tables.get(table)?.joining?.blocks === true) return true
    return false
  }

  /** Number of changes that wait for the end of their step or for a table. */
  get waitingChanges(): number {
    return this.waiting.length
  }

  /** The feed to request from the scheduler: its tables, and the position to start after. */
  get asked(): { readonly tables: ReadonlyArray<string>; readonly after: number } {
    let after = this.at
    const tables: Array<string> = []
    for (const [name, { joining }] of this.tables) {
      if (joining !== undefined && joining.from === undefined) continue
      tables.push(name)
      if (joining !== undefined) after = Math.min(after, joining.seen)
    }
    return { tables, after }
  }

  /** Notes that a feed was opened with the present {@link asked}; the lines that follow are from this feed. */
  opened(): void {
    for (const table of this.joiningTables) {
      const joining = this.tables.get(table)!.joining!
      joining.isOpen = joining.from !== undefined
    }
  }

  /** Adds a table to follow. `blocks`: received changes refer to it, and must not be shown without it. */
  want(table: string, blocks: boolean): void {
    const known = this.tables.get(table)
    if (known?.joining !== undefined) known.joining.blocks ||= blocks
    if (known !== undefined) return
    this.tables.set(table, { last: undefined, base: 0, joining: new Joining(blocks, false) })
    this.joiningTables.add(table)
  }

  /** Takes a page of a joining table, as read at `seq`. True for the first page: the feed has to be requested again. */
  page(table: string, seq: number, records: ReadonlyArray<FedRecord>, attempt = this.attempt(table)): boolean {
    const known = this.tables.get(table)
    const joining = known?.joining
    if (known === undefined || joining === undefined || joining !== attempt) return false
    const isFirst = joining.from === undefined
    if (isFirst) {
      joining.from = joining.seen = known.base = seq
      known.last = undefined
    }
    joining.to = Math.max(joining.to, seq)
    for (const said of records) joining.put(said, seq)
    return isFirst
  }

  /** Notes that the last page of a joining table has been read. */
  pulled(table: string, attempt = this.attempt(table)): void {
    const joining = this.tables.get(table)?.joining
    if (joining !== undefined && joining === attempt) joining.isPulled = true
  }

  /** Token of the present reading of a joining table; a reading that began again has another one. */
  attempt(table: string): object | undefined {
    return this.tables.get(table)?.joining
  }

  /** Whether the table is joining and its last page was not read. */
  isUnread(table: string): boolean {
    return this.tables.get(table)?.joining?.isPulled === false
  }

  isKnown(table: string): boolean {
    return this.tables.has(table)
  }

  /** Whether all other tables wait for this one. */
  blocks(table: string): boolean {
    return this.tables.get(table)?.joining?.blocks === true
  }

  /** Restarts the reading of a table from its first page. */
  again(table: string): void {
    const known = this.tables.get(table)
    if (known?.joining === undefined) return
    known.joining = new Joining(known.joining.blocks, known.joining.repairs)
  }

  /** Stops following a table. */
  drop(table: string): void {
    this.tables.delete(table)
    this.joiningTables.delete(table)
  }

  /** Takes the next event, in the order of the log. */
  event(change: Change, seq: number, prev: number | undefined): Taken {
    const { table } = change.id
    // An event repeated for a joining table says nothing about other tables' positions.
    if (seq >= this.at) this.isWithin = change.position?.continues === true
    let known = this.tables.get(table)
    if (known === undefined) {
      if (!this.isAlways(table)) {
        this.moveTo(seq)
        return "foreign"
      }
      this.tables.set(table, (known = { last: undefined, base: this.base, joining: undefined }))
    }
    const { joining } = known
    if (joining?.isOpen === false) {
      this.moveTo(seq)
      return "foreign"
    }
    if (seq <= (joining?.seen ?? this.at)) {
      this.moveTo(seq)
      return "known"
    }
    if (prev !== undefined && (known.last === undefined ? prev > known.base : prev !== known.last)) {
      this.lose(table, known)
      this.moveTo(seq)
      return "lost"
    }
    known.last = seq
    if (joining !== undefined) joining.put(said(change), seq)
    else this.waiting.push(change)
    this.moveTo(seq)
    return "taken"
  }

  /**
   * Takes a watermark: everything of the tables through `through` was sent. An open step ends here, since its rest
   * belongs to other tables.
   */
  reached(through: number): void {
    if (through >= this.at) this.isWithin = false
    this.moveTo(through)
  }

  /**
   * Removes and answers the next step to apply; undefined if there is none. A step of more than `most` changes is not
   * completed first.
   */
  due(most: number): Due | undefined {
    const isBlocked = this.isBlocked
    const joined = this.isWithin ? [] : this.areTogether(isBlocked)
    if (isBlocked && joined.length === 0) return undefined
    // Events that waited for a table to join again are in its records already.
    const came = isBlocked ? this.waiting.splice(0) : this.whole(most)
    const changes =
      joined.length === 0 ? came : came.filter(({ id }) => joined.every(({ table }) => table !== id.table))
    for (const { table } of joined) {
      const known = this.tables.get(table)!
      known.joining = undefined
      this.joiningTables.delete(table)
    }
    if (joined.length === 0 && changes.length === 0 && this.told === this.standsAt) return undefined
    this.told = this.standsAt
    return { joined, changes, asOne: isBlocked, through: this.told }
  }

  /** Position of the last step that `due` returned. */
  private told = -1

  /** Position of the changes answered so far. */
  private get standsAt(): number {
    const first = this.waiting[0]?.position
    return first === undefined ? this.at : first.seq - 1
  }

  private moveTo(seq: number): void {
    if (seq > this.at) this.at = seq
    for (const table of this.joiningTables) {
      const joining = this.tables.get(table)!.joining!
      if (joining.isOpen && seq > joining.seen) joining.seen = seq
    }
  }

  private lose(table: string, known: Table): void {
    known.last = undefined
    known.joining = new Joining(true, known.joining === undefined || known.joining.repairs)
    this.joiningTables.add(table)
  }

  /**
   * The joining tables that are complete at the position of all others; while tables block, exactly these, and only all
   * of them.
   */
  private areTogether(isBlocked: boolean): ReadonlyArray<Joined> {
    if (this.joiningTables.size === 0) return []
    const joined: Array<Joined> = []
    for (const table of this.joiningTables) {
      const joining = this.tables.get(table)!.joining!
      const isWhole = joining.isPulled && this.at >= joining.to && joining.seen === this.at
      if (isWhole) joined.push({ table, repairs: joining.repairs, records: [...joining.records.values()] })
      else if (isBlocked && joining.blocks) return []
    }
    return joined
  }

  /** Changes of complete steps. */
  private whole(most: number): ReadonlyArray<Change> {
    if (!this.isWithin) return ended(this.waiting.splice(0))
    let end = this.waiting.length
    while (end > 0 && this.waiting[end - 1]!.position?.continues === true) end--
    return ended(this.waiting.splice(0, this.waiting.length - end > most ? this.waiting.length : end))
  }
}

const said = ({ doc, id, op, version }: Change): FedRecord => ({
  id,
  version: version ?? 1,
  doc: op === "DELETE" ? undefined : doc
})

/** Marks the last change as the end of its step: the rest belongs to other tables, or is not awaited. */
const ended = (changes: ReadonlyArray<Change>): ReadonlyArray<Change> => {
  const last = changes[changes.length - 1]
  return last === undefined || last.position?.continues !== true ? changes : [...changes.slice(0, -1), endOfStep(last)]
}

const endOfStep = (change: Change): Change => {
  if (change.position === undefined) return change
  const { continues: _, ...position } = change.position
  return { ...change, position }
}
