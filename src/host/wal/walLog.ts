/**
 * One open WAL: the only writer of its files, which makes many waiting appends durable with one write and one
 * fdatasync.
 *
 * Every change of a file is an entry of one queue, so their order is fixed: write -> fdatasync -> positions move ->
 * answer. When a write or a flush fails, all appends in it fail, and the handle is never used again: the operating
 * system may have forgotten bytes that it could not write. The file is opened anew, its end checked and unflushed bytes
 * cut off, at once if that works, else before the next append; until then every append fails. No timers: each append
 * tries, so the log works as soon as the disk does.
 */

import { dirname } from "node:path"
import { Either } from "effect"
import { firstWhere } from "../../core/bisect.ts"
import * as Format from "../../core/wal/walFormat.ts"
import { GroupCommit } from "../../node/work/groupCommit.ts"
import { recordsDropped, WalFailed } from "../../ports/Wal.ts"
import type { FileLock } from "../process/fileLock.ts"
import type { WalDisk, WalHandle } from "./walDisk.ts"
import * as Segments from "./walSegments.ts"

/** Size at which a file is complete, in bytes. */
export const defaultSegmentBytes = 32 * 1024 * 1024
/** Text taken into one write, and text that may wait, in UTF-16 units. */
const maxBatchLength = 4 * 1024 * 1024
const maxWaitingLength = 128 * 1024 * 1024
/** Read at once, in bytes. */
const pageBytes = 256 * 1024
const tooShort = "the file is shorter than what was flushed"

type Done<A> = (result: Either.Either<A, WalFailed>) => void

interface Append {
  readonly records: ReadonlyArray<string>
  readonly length: number
  readonly done: Done<number>
}

/** Position of a reader. */
export interface Cursor {
  /** The reader wants the records behind `from` up to `upTo`. */
  readonly from: number
  readonly upTo: number
  /** The position last read, at most `from` at first, and the offset behind it in file number `segment`. */
  readonly at: { readonly segment: number; readonly offset: number; readonly after: number } | undefined
}

export class WalLog {
  readonly logId: string
  private readonly segments: Array<Segments.Segment>
  /** Undefined: the file must be opened and its end checked before the next write. */
  private handle: WalHandle | undefined
  /** Set if names have changed and may not be on the disk. */
  private unsyncedFolder = true
  /**
   * Appends that arrive while a flush is under way share the next one. No append waits for later ones: the scheduler,
   * which appends most, has gathered a batch already.
   */
  private readonly group = new GroupCommit<Append>({
    sizeOf: ({ length }) => length,
    maxPending: maxWaitingLength,
    maxBatch: maxBatchLength,
    maxGathering: 0,
    next: (run) => run(),
    commit: (batch, done) => void this.commit(batch).then(done)
  })
  private closed = false

  private constructor(
    private readonly disk: WalDisk,
    private readonly path: string,
    private readonly lock: FileLock,
    private readonly segmentBytes: number,
    loaded: Segments.LoadedWal
  ) {
    this.logId = loaded.logId
    this.segments = [...loaded.segments]
  }

  /** Takes the lock, checks all files, cuts a torn tail; creates a log if there is none. */
  static async open(
    disk: WalDisk,
    path: string,
    newLogId: () => string,
    segmentBytes: number
  ): Promise<{ readonly log: WalLog; readonly tail: Segments.CutTail | undefined }> {
    await disk.makeFolder(dirname(path))
    const lockPath = `${path}.lock`
    const lock = await disk.lock(lockPath)
    if (lock === undefined)
      throw new WalFailed({
        reason: "locked",
        file: lockPath,
        message: `${path}: another process has this WAL open (it holds ${lockPath})`
      })
    try {
      const loaded = (await Segments.load(disk, path)) ?? { logId: newLogId(), segments: [], tail: undefined }
      const log = new WalLog(disk, path, lock, segmentBytes, loaded)
      await log.ready()
      return { log, tail: loaded.tail }
    } catch (error) {
      await lock.release()
      throw error
    }
  }

  private get active(): Segments.Segment {
    return this.segments.at(-1)!
  }

  get lastSeq(): number {
    return this.active.last
  }

  get keptAfter(): number {
    return this.segments[0]!.after
  }

  /** Size of all files. */
  get bytes(): number {
    return this.segments.reduce((sum, { size }) => sum + size, 0)
  }

  /** Adds records; `done` is called once, with the position of the last one when all are flushed. */
  submit(records: ReadonlyArray<string>, done: Done<number>): void {
    const length = records.reduce((sum, record) => sum + record.length, 0)
    if (this.closed) return done(Either.left(this.closedError()))
    if (this.group.submit({ records, length, done })) return
    done(
      Either.left(
        new WalFailed({
          reason: "overloaded",
          file: this.path,
          message: `${this.path}: ${this.group.waiting} characters are waiting for the disk, the limit is ${maxWaitingLength}`
        })
      )
    )
  }

  dropBefore(seq: number): Promise<void> {
    return this.alone(() => this.drop(seq))
  }

  /** Ends waiting work, then closes the files. */
  async close(): Promise<void> {
    if (this.closed) return
    const closing = this.alone(() => this.letGo())
    this.closed = true
    await closing
    await this.lock.release()
  }

  /** The next records of a reader. */
  async page({
    at,
    from: wanted,
    upTo
  }: Cursor): Promise<{ readonly records: ReadonlyArray<Format.WalRecord>; readonly next: Cursor }> {
    const after = Math.max(wanted, at?.after ?? 0)
    if (after < this.keptAfter) throw recordsDropped(after, this.keptAfter)
    const segment = this.segments.find(({ last }) => last > after)!
    const from = at?.segment === segment.number ? at : placeOf(segment, after)
    const { size } = segment
    for (let length = pageBytes; ; length *= 2) {
      const bytes = await this.readPiece(segment, from.offset, Math.min(length, size - from.offset), after)
      const page = Format.readPage(bytes, from.after)
      if (page.fault !== undefined)
        throw Segments.faultIn(segment.path, { ...page.fault, offset: from.offset + page.fault.offset })
      const read = page.records.at(-1)?.seq
      if (read === undefined && from.offset + length >= size)
        throw Segments.faultIn(segment.path, {
          kind: "damaged",
          offset: from.offset,
          seq: from.after + 1,
          reason: tooShort
        })
      if (read === undefined) continue
      const records = page.records.filter(({ seq }) => seq > wanted && seq <= upTo)
      return {
        records,
        next: { from: wanted, upTo, at: { segment: segment.number, offset: from.offset + page.end, after: read } }
      }
    }
  }

  private async readPiece(
    segment: Segments.Segment,
    offset: number,
    length: number,
    after: number
  ): Promise<Uint8Array> {
    for (;;) {
      const { path } = segment
      let handle: WalHandle
      try {
        handle = await this.disk.open(path, "read")
      } catch (error) {
        if (after < this.keptAfter) throw recordsDropped(after, this.keptAfter)
        if (segment.path !== path) continue
        throw error
      }
      try {
        // The file may have been renamed before it was opened, and another may have its name.
        if (segment.path === path) return await handle.read(offset, length)
      } finally {
        await handle.close()
      }
    }
  }

  private closedError(): WalFailed {
    return new WalFailed({ reason: "closed", file: this.path, message: `${this.path}: the WAL is closed` })
  }

  private alone(run: () => Promise<void>): Promise<void> {
    if (this.closed) return Promise.reject(this.closedError())
    return new Promise((resolve, reject) => this.group.alone((done) => void run().then(resolve, reject).then(done)))
  }

  private async commit(batch: ReadonlyArray<Append>): Promise<void> {
    const records = batch.length === 1 ? batch[0]!.records : batch.flatMap((append) => append.records)
    const from = this.lastSeq
    let failed: WalFailed | undefined
    try {
      if (records.length > 0) await this.write(records)
    } catch (error) {
      failed = Segments.failure(this.path, error)
      await this.mend()
    }
    let seq = from
    for (const append of batch) {
      seq += append.records.length
      append.done(failed === undefined ? Either.right(seq) : Either.left(failed))
    }
  }

  private async write(records: ReadonlyArray<string>): Promise<void> {
    this.checkLock()
    await this.ready()
    if (this.active.size >= this.segmentBytes) await this.roll()
    const { active } = this
    const bytes = Format.encodeLines(active.last + 1, records)
    await this.handle!.write(bytes, active.size)
    await this.handle!.sync()
    if (active.size + bytes.length - (active.marks.at(-1)?.offset ?? 0) >= pageBytes || active.marks.length === 0)
      active.marks.push({ seq: active.last + 1, offset: active.size })
    active.last += records.length
    active.size += bytes.length
  }

  private checkLock(): void {
    if (!this.lock.held())
      throw new WalFailed({
        reason: "locked",
        file: this.path,
        message: `${this.path}: ${this.path}.lock is ours no longer: the folder was changed from outside, or another process has taken the WAL over`
      })
  }

  /**
   * After a fault: cuts off records whose callers were told that they are not written. If that fails too, the next
   * append tries again.
   */
  private async mend(): Promise<void> {
    await this.letGo()
    // A repair that fails here is tried again, and reported, by the next append.
    if (this.lock.held()) await this.ready().catch(() => {})
  }

  /** Closes a handle; a failure does not affect flushed bytes. */
  private async letGo(): Promise<void> {
    const { handle } = this
    this.handle = undefined
    await handle?.close().catch(() => {})
  }

  /** Makes sure that the growing file exists, ends with the flushed bytes, and that its name is on the disk. */
  private async ready(): Promise<void> {
    if (this.segments.length === 0 || this.active.path !== this.path) await this.begin()
    if (this.handle === undefined) this.handle = await this.reopen()
    if (!this.unsyncedFolder) return
    await this.disk.syncFolder(dirname(this.path))
    this.unsyncedFolder = false
  }

  private async reopen(): Promise<WalHandle> {
    const { active } = this
    const handle = await this.disk.open(active.path, "write")
    try {
      const from = placeOf(active, active.last)
      const scanned = Format.scan(await handle.read(from.offset, active.size - from.offset), 0, from.after, true)
      if (scanned.last !== active.last)
        throw Segments.faultIn(active.path, {
          kind: "damaged",
          offset: from.offset + scanned.end,
          seq: scanned.last + 1,
          reason: scanned.fault?.reason ?? tooShort
        })
      await handle.truncate(active.size)
      await handle.sync()
      return handle
    } catch (error) {
      await handle.close()
      throw error
    }
  }

  /** Creates the next growing file if there is none. */
  private async begin(): Promise<void> {
    const before = this.segments.at(-1)
    const next = await Segments.make(this.disk, this.path, this.logId, (before?.number ?? 0) + 1, before?.last ?? 0)
    this.unsyncedFolder = true
    this.disk.rename(Segments.unnamedPath(this.path), this.path)
    this.segments.push(next)
  }

  /** Gives the growing file its number and begins the next one. */
  private async roll(): Promise<void> {
    const { active } = this
    const next = await Segments.make(this.disk, this.path, this.logId, active.number + 1, active.last)
    await this.letGo()
    const numbered = Segments.sealedPath(this.path, active.number)
    this.unsyncedFolder = true
    this.disk.rename(this.path, numbered)
    active.path = numbered
    this.disk.rename(Segments.unnamedPath(this.path), this.path)
    this.segments.push(next)
    await this.ready()
  }

  /**
   * Drops files from the oldest on, each durably before the next, so that the rest has no gap whenever the process
   * ends.
   */
  private async drop(seq: number): Promise<void> {
    this.checkLock()
    await this.dropSealed(seq)
    if (this.active.last >= seq || this.active.last === this.active.after) return
    await this.ready()
    await this.roll()
    await this.dropSealed(seq)
  }

  private async dropSealed(seq: number): Promise<void> {
    while (this.segments.length > 1 && this.segments[0]!.last < seq) {
      await this.disk.remove(this.segments[0]!.path)
      this.segments.shift()
      this.unsyncedFolder = true
      await this.ready()
    }
  }
}

/** A known line at or before the one behind `after`: its offset, and the position before it. */
const placeOf = (segment: Segments.Segment, after: number): { readonly offset: number; readonly after: number } => {
  const { marks } = segment
  const mark = marks[firstWhere(marks.length, (at) => marks[at]!.seq > after) - 1] ?? marks[0]
  return mark === undefined
    ? { offset: segment.size, after: segment.after }
    : { offset: mark.offset, after: mark.seq - 1 }
}
