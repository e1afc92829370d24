/**
 * Feeds of tables from seeds: both ends over a log with steps, connections that end at any byte, events that get lost,
 * tables that come and go; what the reader holds is at every moment what the log says at its position.
 */
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import { type Rng, runs, seeded } from "../../../kit/data/random.ts"
import * as Change from "../../../src/core/record/change.ts"
import * as Event from "../../../src/core/record/event.ts"
import * as FeedLines from "../../../src/core/record/feedLines.ts"
import { type Entry, FeedWriter, mostSkipped } from "../../../src/core/record/feedWriter.ts"
import { TableFeed } from "../../../src/core/record/tableFeed.ts"

const file = "test/core/record/tableFeed.test.ts"
const names = ["a", "b", "c", "d", "e"]
const logId = "log"

interface Logged {
  readonly table: string
  readonly key: number
  /** Undefined: deleted. */
  readonly n: number | undefined
  readonly continues: boolean
}

/** A log, and the tables as they stand at each position. */
class Log {
  readonly events: Array<Logged> = []
  private readonly last = new Map<string, number>()
  private readonly entries: Array<Entry> = []

  append(event: Logged): void {
    const seq = this.events.push(event)
    const { continues, key, n, table } = event
    const line = Event.toLine(
      { table, id: `${table}:${key}`, record: { n } },
      n === undefined ? "DELETE" : "UPDATE",
      seq,
      undefined,
      continues
    )
    const forwarded = Event.forwardedLine(line, seq, logId, 1)
    this.entries.push({ table, continues, line: FeedLines.eventLine(forwarded, this.last.get(table) ?? 0) })
    this.last.set(table, seq)
  }

  entry(seq: number): Entry {
    return this.entries[seq - 1]!
  }

  at(table: string, seq: number): ReadonlyMap<number, number> {
    const found = new Map<number, number>()
    for (const event of this.events.slice(0, seq)) {
      if (event.table !== table) continue
      if (event.n === undefined) found.delete(event.key)
      else found.set(event.key, event.n)
    }
    return found
  }
}

/** What a reader has applied. */
class Reader {
  readonly tables = new Map<string, Map<number, number>>()
  readonly counts = { joined: 0, repaired: 0, lost: 0, reopened: 0, steps: 0, dropped: 0, blocked: 0 }
  at = 0
  feed: TableFeed
  private readonly log: Log

  constructor(log: Log, at: number, held: ReadonlyArray<string>) {
    this.log = log
    this.at = at
    for (const table of held) this.tables.set(table, new Map(log.at(table, at)))
    this.feed = new TableFeed(at, held, () => false)
  }

  line(text: string): void {
    if (text === "") return
    const read = FeedLines.read(text)
    if (typeof read === "string") throw new Error(`${read}: ${text}`)
    if (!("table" in read)) this.feed.reached(read.through)
    else {
      const change = Either.getOrThrow(Change.decodeChange(read.json))
      if (this.feed.event(change, read.seq, read.prev) === "lost") this.counts.lost++
    }
  }

  /** Applies what is due and checks that it is what the log says there. */
  apply(): void {
    for (let due = this.feed.due(1000); due !== undefined; due = this.feed.due(1000)) {
      for (const { records, repairs, table } of due.joined) {
        this.counts[repairs ? "repaired" : "joined"]++
        const found = new Map<number, number>()
        for (const { doc, id } of records) if (doc !== undefined) found.set(id.key as number, doc["n"] as number)
        this.tables.set(table, found)
      }
      if (due.asOne) this.counts.blocked++
      for (const { doc, id, op } of due.changes) {
        const table = this.tables.get(id.table)!
        if (op === "DELETE") table.delete(id.key as number)
        else table.set(id.key as number, doc["n"] as number)
      }
      if (due.changes.length > 1) this.counts.steps++
      expect(due.through).toBeGreaterThanOrEqual(this.at)
      this.at = due.through
      for (const [table, records] of this.tables)
        if (this.feed.isHeld(table)) expect([table, records]).toEqual([table, this.log.at(table, this.at)])
      // No step is shown in part.
      if (this.at > 0 && this.feed.held.length > 0) {
        const last = this.log.events[this.at - 1]!
        const ofHeld = (seq: number): boolean => this.feed.isHeld(this.log.events[seq - 1]?.table ?? "")
        let end = this.at
        while (this.log.events[end - 1]?.continues === true && end < this.log.events.length) end++
        if (last.continues && ofHeld(this.at))
          for (let seq = this.at + 1; seq <= end; seq++) expect([seq, ofHeld(seq)]).toEqual([seq, false])
      }
    }
  }
}

/** One connection: the bytes that the writer makes of the log, as far as it has come. */
class Connection {
  private readonly writer: FeedWriter
  private readonly cutter = new FeedLines.LineCutter(100_000)
  private readonly log: Log
  private readonly reader: Reader

  constructor(log: Log, reader: Reader) {
    const { after, tables } = reader.feed.asked
    this.log = log
    this.reader = reader
    this.writer = new FeedWriter(after, (table) => tables.includes(table), logId, 1)
    reader.feed.opened()
    reader.counts.reopened++
    this.end()
  }

  private end(): void {
    if (this.writer.looked < this.log.events.length) return
    this.writer.atEnd()
    this.send(this.writer.watermark())
  }

  /** Sends on, in pieces; `lost`: how likely a line is left out. False: cut within a line. */
  pump(random: Rng, lost: number): boolean {
    let text = ""
    const most = this.writer.looked + random.below(12)
    while (this.writer.looked < Math.min(most, this.log.events.length)) {
      const line = this.writer.take(this.log.entry(this.writer.looked + 1))
      if (line === "" || line.startsWith('{"through"') || !random.chance(lost)) text += line
    }
    if (this.writer.looked === this.log.events.length) this.writer.atEnd()
    if (random.chance(0.3)) text += this.writer.watermark()
    const isCut = text.length > 0 && random.chance(0.1)
    if (isCut) text = text.slice(0, random.below(text.length))
    while (text.length > 0) {
      const size = 1 + random.below(200)
      this.send(text.slice(0, size))
      text = text.slice(size)
      if (random.chance(0.5)) this.reader.apply()
    }
    return !isCut
  }

  private send(text: string): void {
    for (const line of this.cutter.push(text)!) this.reader.line(line)
  }
}

/** Pages of one joining table, each read a little later than the one before. */
class Pull {
  readonly table: string
  private next = 0
  private readonly log: Log

  constructor(log: Log, table: string) {
    this.log = log
    this.table = table
  }

  /** Reads one page as the table is at a position; `first`: the feed must be asked anew; `done`: it was the last. */
  read(reader: Reader, seq: number): { readonly first: boolean; readonly done: boolean } {
    const size = 4
    const all = [...this.log.at(this.table, seq)].sort(([a], [b]) => a - b).filter(([key]) => key >= this.next)
    const page = all.slice(0, size)
    const said = page.map(([key, n]) => {
      const change = Either.getOrThrow(
        Change.decodeChange({ table: this.table, op: "UPDATE", id: `${this.table}:${key}`, record: { n } })
      )
      return { id: change.id, version: 1, doc: change.doc }
    })
    const first = reader.feed.page(this.table, seq, said)
    const done = page.length < size
    if (done) reader.feed.pulled(this.table)
    else this.next = page.at(-1)![0] + 1
    return { first, done }
  }
}

const day = (random: Rng, lost: number): Reader["counts"] => {
  const log = new Log()
  let n = 0
  const write = (): void => {
    const length = random.chance(0.3) ? 2 + random.below(4) : 1
    for (let i = 0; i < length; i++)
      log.append({
        table: random.pick(names),
        key: random.below(12),
        n: random.chance(0.2) ? undefined : ++n,
        continues: i < length - 1
      })
  }
  for (let i = 0; i < 20; i++) write()
  const reader = new Reader(log, log.events.length, ["a", "b"])
  let connection = new Connection(log, reader)
  let pulls: Array<Pull> = []
  /** Where the last page was read: later ones are read there or behind. */
  let read = reader.at
  const round = (lost: number): void => {
    if (!connection.pump(random, lost)) connection = new Connection(log, reader)
    reader.apply()
    for (const table of reader.feed.joining)
      if (!pulls.some((pull) => pull.table === table)) pulls.push(new Pull(log, table))
    pulls = pulls.filter(({ table }) => reader.feed.joining.has(table))
    const pull = pulls.length === 0 ? undefined : random.pick(pulls)
    if (pull === undefined) return
    // A snapshot may be frozen for a while.
    if (random.chance(0.6)) read = Math.max(read, log.events.length)
    const { done, first } = pull.read(reader, read)
    if (first) connection = new Connection(log, reader)
    if (done) pulls = pulls.filter((each) => each !== pull)
    reader.apply()
  }
  for (let i = 0; i < 150; i++) {
    if (random.chance(0.7)) write()
    if (random.chance(0.08)) {
      const table = random.pick(names)
      reader.feed.want(table, random.chance(0.3))
    } else if (random.chance(0.04) && !reader.feed.isBlocked) {
      const table = random.pick(reader.feed.held)
      if (reader.feed.held.length > 1 && reader.feed.waitingChanges === 0) {
        reader.feed.drop(table)
        reader.tables.delete(table)
        reader.counts.dropped++
        connection = new Connection(log, reader)
      }
    }
    round(lost)
  }
  // A lost tail is found by the next event of its table.
  for (const table of names) log.append({ table, key: 0, n: ++n, continues: false })
  for (let i = 0; i < 200 && (reader.at < log.events.length || reader.feed.joining.size > 0); i++) {
    round(0)
    if (random.chance(0.3)) connection = new Connection(log, reader)
  }
  expect(reader.at).toBe(log.events.length)
  expect([...reader.feed.joining]).toEqual([])
  return reader.counts
}

describe("a reader of some tables", () => {
  const seen = { joined: 0, repaired: 0, lost: 0, reopened: 0, steps: 0, dropped: 0, blocked: 0 }
  const add = (counts: typeof seen): void => {
    for (const key of Object.keys(seen) as Array<keyof typeof seen>) seen[key] += counts[key]
  }
  seeded("holds at every position what the log says there, steps whole, whatever breaks", file, (random) => {
    for (let i = 0; i < runs(50); i++) add(day(random, 0))
    expect(seen.lost).toBe(0)
    for (const key of ["joined", "reopened", "steps", "dropped", "blocked"] as const)
      expect([key, seen[key] > 20]).toEqual([key, true])
  })
  seeded("notices an event that was lost by the next one of its table, and is right behind it", file, (random) => {
    let found = 0
    for (let i = 0; i < runs(50); i++) {
      const counts = lossy(random)
      found += counts.repaired
    }
    expect(found).toBeGreaterThan(20)
  })
})

/** As `day`, but what is applied before a loss is noticed is not compared: only what stands at the end. */
const lossy = (random: Rng): Reader["counts"] => {
  const log = new Log()
  let n = 0
  const write = (): void => log.append({ table: random.pick(names), key: random.below(12), n: ++n, continues: false })
  for (let i = 0; i < 20; i++) write()
  const reader = new Reader(log, log.events.length, ["a", "b", "c"])
  const apply = reader.apply.bind(reader)
  let isChecked = false
  reader.apply = () => {
    if (isChecked) return apply()
    for (let due = reader.feed.due(1000); due !== undefined; due = reader.feed.due(1000)) {
      for (const { records, repairs, table } of due.joined) {
        if (repairs) reader.counts.repaired++
        reader.tables.set(
          table,
          new Map(records.flatMap(({ doc, id }) => (doc === undefined ? [] : [[id.key as number, doc["n"] as number]])))
        )
      }
      for (const { doc, id } of due.changes) reader.tables.get(id.table)!.set(id.key as number, doc["n"] as number)
      reader.at = due.through
    }
  }
  let connection = new Connection(log, reader)
  const round = (lost: number): void => {
    if (!connection.pump(random, lost)) connection = new Connection(log, reader)
    reader.apply()
    for (const table of [...reader.feed.joining]) {
      const pull = new Pull(log, table)
      for (let step = { first: false, done: false }; !step.done; ) {
        step = pull.read(reader, log.events.length)
        if (step.first) connection = new Connection(log, reader)
      }
      reader.apply()
    }
  }
  for (let i = 0; i < 60; i++) {
    write()
    round(0.1)
  }
  for (const table of names) log.append({ table, key: 0, n: ++n, continues: false })
  for (let i = 0; i < 50; i++) round(0)
  expect([reader.at, [...reader.feed.joining]]).toEqual([log.events.length, []])
  isChecked = true
  for (const table of ["a", "b", "c"])
    expect([table, reader.tables.get(table)]).toEqual([table, log.at(table, log.events.length)])
  return reader.counts
}

describe("a writer of some tables", () => {
  const entry = (table: string, continues = false): Entry => ({ table, continues, line: `${table}\n` })
  const writer = (): FeedWriter => new FeedWriter(0, (table) => table === "a", logId, 1)

  it("writes a watermark after so many positions that it passed over, and none before", () => {
    const feed = writer()
    feed.take(entry("b"))
    const written = Array.from({ length: mostSkipped }, () => feed.take(entry("b")))
    expect(written.slice(0, -1).join("")).toBe("")
    expect(JSON.parse(written.at(-1)!)).toEqual({ through: mostSkipped + 1, log_id: logId, epoch: 1 })
    expect(feed.watermark()).toBe("")
  })
  it("ends a step of its reader where the end is of another table, and says nothing within one", () => {
    const feed = writer()
    feed.take(entry("a"))
    expect(feed.take(entry("a", true))).toBe("a\n")
    expect(feed.take(entry("b", true))).toBe("")
    expect(feed.watermark()).toBe("")
    expect(feed.beat()).toBe("\n")
    expect(JSON.parse(feed.take(entry("b")))).toMatchObject({ through: 4 })
  })
  it("counts what it passed over as applied, once the reader has applied what was written before", () => {
    const feed = writer()
    feed.take(entry("a"))
    feed.take(entry("b"))
    expect(feed.appliedAt(0)).toBe(0)
    expect(feed.appliedAt(1)).toBe(2)
  })
})

describe("lines", () => {
  it("are whole, whatever pieces they come in, and too long a one is none", () => {
    const cutter = new FeedLines.LineCutter(10)
    expect(cutter.push("abc")).toEqual([])
    expect(cutter.push("d\n\nx")).toEqual(["abcd", ""])
    expect(cutter.push("yz\n12345678901")).toBeUndefined()
  })
  it("are refused with a reason where they are none of a feed", () => {
    for (const line of ["{", "[]", "{}", '{"through":-1}', '{"table":"a","seq":"1"}', '{"table":"a","seq":3,"prev":3}'])
      expect(typeof FeedLines.read(line)).toBe("string")
  })
})
