/**
 * The WAL's file format: how a record becomes a line, what a line must be, and what a file with bad lines means.
 *
 * A line is `<checksum> <seq> <record as JSON>`: CRC-32 of everything behind the first space, in eight lower-case
 * hexadecimal digits, so that a person can read a log with `less` and a machine knows what it reads. The first line of
 * every file, its header, is `<checksum> <JSON>` and says all of this itself; its shape stays the same for all format
 * versions.
 *
 * The decision: lines follow each other without gap or repeat. A line that is not whole is a torn tail when a crash can
 * have made it: nothing good follows, and it either has no end or lacks a whole sector, as pages do that never reached
 * the disk. Any other bad line was flushed and damaged later, perhaps after its acknowledgement, so it is never cut:
 * cutting it would give its `seq` to another record, which SSPs that have applied the first one would drop.
 */
import { Either } from "effect"
import { isCount } from "../typeGuards.ts"

/** The format written here. There are no older ones yet; newer ones are refused. */
const formatVersion = 1

export interface Header {
  /** Random id, drawn when the log is made (D5); the same in all its files. */
  readonly logId: string
  /** Files of a log are numbered from 1. */
  readonly segment: number
  /** The position before the first record of this file. */
  readonly after: number
}

/**
 * Position and offset of a record: every file has a few marks, so that a read from a position need not begin at the
 * first line.
 */
export interface Mark {
  readonly seq: number
  readonly offset: number
}

export interface WalFault {
  /** `torn`: the incomplete line of a crash, to be cut off at `offset`. `damaged`: lines once written are lost. */
  readonly kind: "torn" | "damaged"
  readonly offset: number
  /** The position expected there. */
  readonly seq: number
  readonly reason: string
}

export interface Scanned {
  /** Position of the last good record. */
  readonly last: number
  /** Offset behind the last good record. */
  readonly end: number
  readonly marks: ReadonlyArray<Mark>
  readonly fault: WalFault | undefined
}

const newline = 10
const space = 32
const zero = 48
/** Length of the checksum and the space after it. */
const prefix = 9
/** Bytes that a disk writes either completely or not at all. */
const sectorBytes = 512
const bytesPerMark = 64 * 1024

const table = Int32Array.from({ length: 256 }, (_, n) => {
  let crc = n
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1
  return crc
})

/** CRC-32 (IEEE), as in gzip and zip. */
export const crc32 = (bytes: Uint8Array, from: number, to: number): number => {
  let crc = -1
  for (let i = from; i < to; i++) crc = table[(crc ^ bytes[i]!) & 255]! ^ (crc >>> 8)
  return ~crc >>> 0
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()
const hex = encoder.encode("0123456789abcdef")

/** Writes checksum and newline around the bytes in [at + 9, end); answers the offset behind the line. */
const seal = (bytes: Uint8Array, at: number, end: number): number => {
  const crc = crc32(bytes, at + prefix, end)
  for (let i = 0; i < 8; i++) bytes[at + i] = hex[(crc >>> (28 - 4 * i)) & 15]!
  bytes[at + 8] = space
  bytes[end] = newline
  return end + 1
}

/** Whether a record can be a line: it has no line break; JSON needs none. */
export const isOneLine = (record: string): boolean => record !== "" && !record.includes("\n")

/** Lines for records with consecutive positions from `seq` on. */
export const encodeLines = (seq: number, records: ReadonlyArray<string>): Uint8Array => {
  let most = 0
  for (const record of records) most += record.length * 3 + 32
  const bytes = new Uint8Array(most)
  let at = 0
  for (let i = 0; i < records.length; i++) {
    at = seal(
      bytes,
      at,
      at + prefix + encoder.encodeInto(`${seq + i} ${records[i]!}`, bytes.subarray(at + prefix)).written
    )
  }
  return bytes.subarray(0, at)
}

export const encodeHeader = ({ after, logId, segment }: Header): Uint8Array => {
  const text = encoder.encode(
    JSON.stringify({
      svc_wal: formatVersion,
      log_id: logId,
      segment,
      after,
      lines: "<CRC-32 of the rest of the line> <seq> <record as JSON>"
    })
  )
  const bytes = new Uint8Array(prefix + text.length + 1)
  bytes.set(text, prefix)
  seal(bytes, 0, prefix + text.length)
  return bytes
}

/** Whether [at, end) is a checksum, a space and text with that checksum. */
const isWhole = (bytes: Uint8Array, at: number, end: number): boolean => {
  if (end - at <= prefix || bytes[at + 8] !== space) return false
  const crc = crc32(bytes, at + prefix, end)
  for (let i = 0; i < 8; i++) if (bytes[at + i] !== hex[(crc >>> (28 - 4 * i)) & 15]) return false
  return true
}

/** The position of a whole line, undefined for any other. */
const seqOf = (bytes: Uint8Array, at: number, end: number): number | undefined => {
  if (!isWhole(bytes, at, end)) return undefined
  let seq = 0
  let i = at + prefix
  for (; i < end && bytes[i] !== space; i++) {
    const digit = bytes[i]! - zero
    if (digit < 0 || digit > 9) return undefined
    seq = seq * 10 + digit
  }
  return i < end && i > at + prefix && Number.isSafeInteger(seq) ? seq : undefined
}

type HeaderFault = { readonly kind: "damaged" | "newer"; readonly reason: string }

interface ReadHeader extends Header {
  /** Offset of the first record. */
  readonly end: number
}

const parseJson = (text: string): { readonly [key: string]: unknown } | undefined => {
  try {
    const json: unknown = JSON.parse(text)
    return typeof json === "object" && json !== null ? (json as { readonly [key: string]: unknown }) : undefined
  } catch {
    return undefined
  }
}

/**
 * The header at the start of a file. It is flushed before its file gets its name, so a crash does not explain a bad
 * one.
 */
export const decodeHeader = (bytes: Uint8Array): Either.Either<ReadHeader, HeaderFault> => {
  const end = bytes.indexOf(newline)
  const damaged = (reason: string) => Either.left<HeaderFault>({ kind: "damaged", reason })
  if (end < 0 || !isWhole(bytes, 0, end))
    return damaged("the first line is no header of a WAL, or its checksum is wrong")
  const json = parseJson(decoder.decode(bytes.subarray(prefix, end)))
  const version = json?.["svc_wal"]
  if (json === undefined || !isCount(version) || version < 1) return damaged("the first line is no header of a WAL")
  if (version > formatVersion)
    return Either.left({
      kind: "newer",
      reason: `written by a later version of this service (format ${version}, this one knows ${formatVersion})`
    })
  const { after, log_id: logId, segment } = json
  if (typeof logId !== "string" || !isCount(segment) || !isCount(after))
    return damaged("the header lacks log_id, segment or after")
  return Either.right({ logId, segment, after, end: end + 1 })
}

/** Whether some sector of [from, to), which ends the file, holds nothing but zeros. */
const lacksSector = (bytes: Uint8Array, from: number): boolean => {
  for (let at = from; at < bytes.length; ) {
    const end = Math.min(bytes.length, at - (at % sectorBytes) + sectorBytes)
    let i = at
    while (i < end && bytes[i] === 0) i++
    if (i === end) return true
    at = end
  }
  return false
}

/** Fault of an incomplete line at `at`. `sealed`: the file was flushed completely before the next was begun. */
const judge = (bytes: Uint8Array, at: number, end: number, seq: number, sealed: boolean): WalFault => {
  const damaged = (reason: string): WalFault => ({ kind: "damaged", offset: at, seq, reason })
  if (sealed) return damaged("the line is not what was written, in a file that was complete")
  for (let from = end + 1; end >= 0 && from < bytes.length; ) {
    const to = bytes.indexOf(newline, from)
    if (to < 0) break
    const good = seqOf(bytes, from, to)
    if (good !== undefined)
      return damaged(`the line is not what was written, and good ones follow it (seq ${good} at offset ${from})`)
    from = to + 1
  }
  const unended = bytes[bytes.length - 1] !== newline
  if (unended && isWhole(bytes, at, bytes.length - 1)) return damaged("the last line is whole but for its line break")
  if (end < 0 || lacksSector(bytes, at))
    return { kind: "torn", offset: at, seq, reason: "the last write did not reach the disk whole" }
  return damaged("the last line has its end but is not what was written")
}

/**
 * Reads the lines of a file from offset `from`; the record there comes after position `after`. Marks lie 64 KiB apart.
 * Cost: one pass; a second one from the first bad line on.
 */
export const scan = (bytes: Uint8Array, from: number, after: number, sealed: boolean): Scanned => {
  const marks: Array<Mark> = []
  let at = from
  let last = after
  let marked = -bytesPerMark
  while (at < bytes.length) {
    const end = bytes.indexOf(newline, at)
    const seq = end < 0 ? undefined : seqOf(bytes, at, end)
    if (seq === undefined) return { last, end: at, marks, fault: judge(bytes, at, end, last + 1, sealed) }
    if (seq !== last + 1) {
      const reason =
        seq > last + 1
          ? `the line holds seq ${seq}: ${seq - last - 1} before it are missing`
          : `the line holds seq ${seq}, which has been there before`
      return { last, end: at, marks, fault: { kind: "damaged", offset: at, seq: last + 1, reason } }
    }
    if (at - marked >= bytesPerMark) {
      marks.push({ seq, offset: at })
      marked = at
    }
    last = seq
    at = end + 1
  }
  return { last, end: at, marks, fault: undefined }
}

export interface WalRecord {
  readonly seq: number
  /** The record's text as it was appended. */
  readonly json: string
}

interface Page {
  readonly records: ReadonlyArray<WalRecord>
  /** Offset behind the last record read. */
  readonly end: number
  readonly fault: WalFault | undefined
}

/**
 * The complete lines of a piece of a flushed file; the piece begins at a line. An incomplete last line is left for the
 * next piece.
 */
export const readPage = (bytes: Uint8Array, after: number): Page => {
  const records: Array<WalRecord> = []
  let at = 0
  for (let end = bytes.indexOf(newline); end >= 0; end = bytes.indexOf(newline, at)) {
    const due = after + records.length + 1
    const seq = seqOf(bytes, at, end)
    if (seq !== due)
      return {
        records,
        end: at,
        fault: {
          kind: "damaged",
          offset: at,
          seq: due,
          reason: seq === undefined ? "the line is not what was written" : `the line holds seq ${seq}`
        }
      }
    records.push({ seq, json: decoder.decode(bytes.subarray(at + prefix + String(seq).length + 1, end)) })
    at = end + 1
  }
  return { records, end: at, fault: undefined }
}
