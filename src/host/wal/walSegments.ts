/**
 * The files of a WAL: their names, how one is created, and how all of them are read and checked when the log is opened
 * or verified.
 *
 * `<name>` is the growing file; `<name>.<n>` are complete ones, in order. Every header names the log, the number of its
 * file and the position before it, so that a missing, foreign or misplaced file is noticed.
 */

import { basename, dirname } from "node:path"
import { Either } from "effect"
import * as Format from "../../core/wal/walFormat.ts"
import { WalFailed, type WalReason } from "../../ports/Wal.ts"
import { codeOf } from "../process/fileLock.ts"
import type { WalDisk } from "./walDisk.ts"

export interface Segment {
  readonly number: number
  /** Changes once, when the file is complete and gets its number. */
  path: string
  readonly after: number
  /** Position of the last flushed record, and the offset behind it. */
  last: number
  size: number
  readonly marks: Array<Format.Mark>
}

/** The part cut off the end of a log. */
export interface CutTail {
  readonly file: string
  readonly offset: number
  readonly bytes: number
}

export interface LoadedWal {
  readonly logId: string
  /**
   * The files in order. The last one is the growing one, unless the process crashed between creating it and renaming
   * the one before.
   */
  readonly segments: ReadonlyArray<Segment>
  readonly tail: CutTail | undefined
}

const describe = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const noRoom: ReadonlyArray<unknown> = ["ENOSPC", "EDQUOT", "EFBIG"]

/** Any error as an error of the log. */
export const failure = (file: string, error: unknown): WalFailed => {
  if (error instanceof WalFailed) return error
  const full = noRoom.includes(codeOf(error))
  const message = full
    ? `${file}: no room on the disk (${describe(error)}); nothing is lost, the WAL goes on by itself as soon as there is room`
    : `${file}: ${describe(error)}`
  return new WalFailed({ reason: full ? "full" : "failed", message, file, cause: error })
}

const located = (reason: WalReason, file: string, offset: number, seq: number, what: string): WalFailed =>
  new WalFailed({ reason, file, offset, seq, message: `${file}, offset ${offset}, seq ${seq}: ${what}` })

export const faultIn = (file: string, { offset, reason, seq }: Format.WalFault): WalFailed =>
  located("damaged", file, offset, seq, `the WAL is damaged: ${reason}`)

export const sealedPath = (path: string, number: number): string => `${path}.${number}`
/** Name under which a file is created; a file that a crash left there holds no record. */
export const unnamedPath = (path: string): string => `${path}.new`

/** Reads a whole file. */
const readAll = async (disk: WalDisk, path: string): Promise<Uint8Array> => {
  const handle = await disk.open(path, "read")
  try {
    return await handle.read(0, await handle.size())
  } finally {
    await handle.close()
  }
}

/** Creates an empty file with its header under {@link unnamedPath}, flushed. */
export const make = async (
  disk: WalDisk,
  path: string,
  logId: string,
  number: number,
  after: number
): Promise<Segment> => {
  const header = Format.encodeHeader({ logId, segment: number, after })
  const handle = await disk.open(unnamedPath(path), "create")
  try {
    await handle.write(header, 0)
    await handle.sync()
  } finally {
    await handle.close()
  }
  return { number, path, after, last: after, size: header.length, marks: [] }
}

/** Numbers of the complete files, in order, and whether there is a growing one. */
export const namesOf = async (
  disk: WalDisk,
  path: string
): Promise<{ readonly numbers: ReadonlyArray<number>; readonly active: boolean }> => {
  const own = basename(path)
  const names = await disk.list(dirname(path))
  const numbers = names
    .filter((name) => name.startsWith(`${own}.`) && /^[1-9]\d*$/.test(name.slice(own.length + 1)))
    .map((name) => Number(name.slice(own.length + 1)))
  return { numbers: numbers.sort((a, b) => a - b), active: names.includes(own) }
}

/** Checks one file against the one before it. */
const loadOne = async (
  disk: WalDisk,
  file: string,
  before: Segment | undefined,
  logId: string | undefined,
  number: number | undefined
) => {
  const bytes = await readAll(disk, file)
  const due = (before?.last ?? 0) + 1
  const read = Format.decodeHeader(bytes)
  if (Either.isLeft(read))
    throw located(
      read.left.kind,
      file,
      0,
      due,
      read.left.kind === "newer" ? read.left.reason : `the WAL is damaged: ${read.left.reason}`
    )
  const header = read.right
  const wrong = (what: string): WalFailed => located("damaged", file, 0, due, `the WAL is damaged: ${what}`)
  if (logId !== undefined && header.logId !== logId)
    throw wrong(`the file belongs to log ${header.logId}, those before it to ${logId}`)
  if (number !== undefined && header.segment !== number) throw wrong(`the file says it is number ${header.segment}`)
  if (before !== undefined && header.segment !== before.number + 1)
    throw wrong(`file number ${header.segment} follows number ${before.number}`)
  if (before !== undefined && header.after !== before.last)
    throw wrong(`the file begins behind seq ${header.after}, the one before it ends at ${before.last}`)
  const scanned = Format.scan(bytes, header.end, header.after, number !== undefined)
  if (scanned.fault?.kind === "damaged") throw faultIn(file, scanned.fault)
  const segment: Segment = {
    number: header.segment,
    path: file,
    after: header.after,
    last: scanned.last,
    size: scanned.end,
    marks: [...scanned.marks]
  }
  const tail: CutTail | undefined =
    scanned.fault === undefined ? undefined : { file, offset: scanned.end, bytes: bytes.length - scanned.end }
  return { segment, tail, logId: header.logId }
}

/**
 * Reads and checks all files, changing none; undefined if there is no log. Throws {@link WalFailed} at the first fault.
 */
export const load = async (disk: WalDisk, path: string): Promise<LoadedWal | undefined> => {
  const { active, numbers } = await namesOf(disk, path)
  const segments: Array<Segment> = []
  let logId: string | undefined
  let tail: CutTail | undefined
  const files = numbers.map((number) => ({ file: sealedPath(path, number), number: number as number | undefined }))
  if (active) files.push({ file: path, number: undefined })
  for (const { file, number } of files) {
    const loaded = await loadOne(disk, file, segments.at(-1), logId, number)
    segments.push(loaded.segment)
    logId = loaded.logId
    tail = loaded.tail
  }
  return logId === undefined ? undefined : { logId, segments, tail }
}
