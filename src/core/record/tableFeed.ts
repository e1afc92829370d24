/**
 * How an SSP follows some of the tables of a scheduler's log (D61): which events are new, whether one was lost, and
 * when a table joins.
 *
 * Formula: for a table that joins, state at X = pages read at positions s1 <= s2 <= ... <= sn, with every event of it
 * in (s1, X] laid over them, the later position of each record winning; X >= sn, and X is where all other tables stand.
 * So pages need no snapshot that stands still, and a table costs what it holds. A lost event is noticed by the next one
 * of its table, which names the one before it; the table then joins anew while everything waits, since views have been
 * shown nothing wrong yet. What waits is applied as one step at X (law L3).
 * State kept: two positions a table, the records of tables that join, the events of a step that goes on or waits.
 * Cost: O(1) per event and per line, and one pass over a table that joins.
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

/** A step that may be applied: first tables that joined, which no view reads yet, then the changes up to `through`. */
interface Due {
  readonly joined: ReadonlyArray<Joined>
  readonly changes: ReadonlyArray<Change>
  /** The changes are one step, though they were several. */
  readonly asOne: boolean
  readonly through: number
}

/**
 * How an event was received. `known`: it is applied already; `foreign`: its table is not followed; `lost`: the event
 * before it never came, so its table joins anew.
 */
type Taken = "taken" | "known" | "foreign" | "lost"

interface PositionedRecord extends FedRecord {
  readonly seq: number
}

class Joining {
  /** Position of the first page; undefined until it is read. */
  from: number | undefined = undefined
  /** The latest position of a page, and whether the last one was read. */
  to = 0
  isPulled = false
  /** Position through which all events of the table have come. */
  seen = 0
  /** Whether the open feed was requested with this table. */
  isOpen = false
  readonly records = new Map<string, PositionedRecord>()

  constructor(
    /** Whether nothing else is applied before this table has joined. */
    public blocks: boolean,
    readonly repairs: boolean
  ) {}

  /** The later position wins; of a page and an event at the same, either. */
  put(said: FedRecord, seq: number): void {
    const known = this.records.get(said.id.text)
    if (known === undefined || known.seq <= seq) this.records.set(said.id.text, { ...said, seq })
  }
}

interface Table {
  /** Position of the table's last event; undefined if none has come. */
  last: number | undefined
  /**
   * Position at which the table was read. An event that names one behind it as its predecessor, which never came,
   * reveals a loss.
   */
  base: number
  joining: Joining | undefined
}

export class TableFeed {
  private readonly tables = new Map<string, Table>()
  private readonly joiningTables = new Set<string>()
  private readonly base: number
  /** Everything of the tables that are held has come through here. */
  private at: number
  private waiting: Array<Change> = []
  /** A step goes on with the next event, or ends at the next watermark. */
  private isWithin = false

  /** Stands at `at`, with these tables. `isAlways`: tables that are followed though no page of them is read. */
  constructor(
    at: number,
    held: Iterable<string>,
    private readonly isAlways: (table: string) => boolean
  ) {
    this.at = this.base = at
    for (const table of held) this.tables.set(table, { last: undefined, base: at, joining: undefined })
  }

  /** Joined, and not about to join anew. */
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

  /** Changes that wait: of a step that goes on, or for a table. */
  get waitingChanges(): number {
    return this.waiting.length
  }

  /** Feed to request from the scheduler: its tables, and the position to begin behind. */
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

  /** The lines from here on are of a feed that was opened with what is {@link asked} now. */
  opened(): void {
    for (const table of this.joiningTables) {
      const joining = this.tables.get(table)!.joining!
      joining.isOpen = joining.from !== undefined
    }
  }

  /** A table is wanted. `blocks`: what comes refers to it, and must not be shown without it. */
  want(table: string, blocks: boolean): void {
    const known = this.tables.get(table)
    if (known?.joining !== undefined) known.joining.blocks ||= blocks
    if (known !== undefined) return
    this.tables.set(table, { last: undefined, base: 0, joining: new Joining(blocks, false) })
    this.joiningTables.add(table)
  }

  /** Records of a joining table, as they were at `seq`. True for the first page: the feed is to be asked anew. */
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

  /** The last page has been read. */
  pulled(table: string, attempt = this.attempt(table)): void {
    const joining = this.tables.get(table)?.joining
    if (joining !== undefined && joining === attempt) joining.isPulled = true
  }

  /** The reading of a table that joins; another one once it has begun anew. */
  attempt(table: string): object | undefined {
    return this.tables.get(table)?.joining
  }

  /** A table joins, and its last page was not read. */
  isUnread(table: string): boolean {
    return this.tables.get(table)?.joining?.isPulled === false
  }

  isKnown(table: string): boolean {
    return this.tables.has(table)
  }

  /** Everything waits for this table. */
  blocks(table: string): boolean {
    return this.tables.get(table)?.joining?.blocks === true
  }

  /** Begins the reading of a table again, from its first page. */
  again(table: string): void {
    const known = this.tables.get(table)
    if (known?.joining === undefined) return
    known.joining = new Joining(known.joining.blocks, known.joining.repairs)
  }

  /** A table is followed no longer. */
  drop(table: string): void {
    this.tables.delete(table)
    this.joiningTables.delete(table)
  }

  /** An event, in the order of the log. */
  event(change: Change, seq: number, prev: number | undefined): Taken {
    const { table } = change.id
    // An event sent again for a table that joins says nothing of the other tables' positions.
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

  /** Everything of these tables through here has been sent. A step that went on ends here: the rest is of others. */
  reached(through: number): void {
    if (through >= this.at) this.isWithin = false
    this.moveTo(through)
  }

  /**
   * Takes out the step that may be applied now; undefined if there is none. It does not wait for the end of a step of
   * more than `most` changes.
   */
  due(most: number): Due | undefined {
    const isBlocked = this.isBlocked
    const joined = this.isWithin ? [] : this.areTogether(isBlocked)
    if (isBlocked && joined.length === 0) return undefined
    // Events that waited for a table that has joined anew are in its records already.
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

  /** The position of what has been given out. */
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

  /** The tables that are whole at where all others stand; where tables block, those and no others, and only all. */
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

  /** Changes of steps that are whole. */
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

/** The last of them ends its step: what would go on is of other tables, or is not waited for. */
const ended = (changes: ReadonlyArray<Change>): ReadonlyArray<Change> => {
  const last = changes[changes.length - 1]
  return last === undefined || last.position?.continues !== true ? changes : [...changes.slice(0, -1), endOfStep(last)]
}

const endOfStep = (change: Change): Change => {
  if (change.position === undefined) return change
  const { continues: _, ...position } = change.position
  return { ...change, position }
}
