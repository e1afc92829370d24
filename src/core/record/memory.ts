/**
 * When a process has no room for more in its heap, and which changes it accepts even then (D43).
 *
 * Judged by the heap in use right after a full collection, because any other figure counts garbage too. Two bounds, so
 * that a heap near the limit does not switch with each collection.
 */

import { encode } from "../surql/values/encode.ts"
import type { Obj, RecordId } from "../surql/values/value.ts"
import type { Change } from "./change.ts"
import { stretchBytes } from "./reconcile.ts"

/** The heap is full from this share of its limit on, and has room again below the second. */
const fullFrom = 0.85
const roomBelow = 0.8
/** A start that loads goes on up to this share: records accepted below {@link fullFrom} must be loadable again. */
const loadableUpTo = 0.92

const memorySetting = "SVC_MAX_MEMORY"

export interface Memory {
  /** Bytes in use after the last full collection. */
  readonly usedBytes: number
  readonly limitBytes: number
  readonly isFull: boolean
}

/** A process whose heap is not watched always has room. */
export const unwatched: Memory = { usedBytes: 0, limitBytes: Infinity, isFull: false }

/** The state after a collection that left this many bytes in use. */
export const afterCollection = ({ isFull, limitBytes }: Memory, usedBytes: number): Memory => ({
  usedBytes,
  limitBytes,
  isFull: usedBytes >= limitBytes * (isFull ? roomBelow : fullFrom)
})

/** Whether a start that loads may go on, with this many more bytes to come. */
export const isLoadable = ({ limitBytes, usedBytes }: Memory, comingBytes = 0): boolean =>
  usedBytes + comingBytes <= limitBytes * loadableUpTo

/**
 * Whether one view takes more than half of the room that a start has for views. `besideBytes`: in use before the first
 * view; `beforeBytes`: before this one.
 */
export const isMostOfRoom = ({ limitBytes, usedBytes }: Memory, besideBytes: number, beforeBytes: number): boolean =>
  usedBytes - beforeBytes > (limitBytes * loadableUpTo - besideBytes) / 2

/** Whether a running service may load more data that it keeps: the heap must not become full by it. */
export const isHoldable = ({ limitBytes, usedBytes }: Memory, comingBytes: number): boolean =>
  usedBytes + comingBytes < limitBytes * fullFrom

/**
 * Memory of a stretch of records on its way from a database, in multiples of its text, beside the records themselves:
 * read ahead, as changes, as text for the service's own store, and not yet collected.
 */
export const inFlightFactor = 6

/** Most bytes that a reader of many records has in flight beside the records themselves: two stretches. */
const reading = 2 * inFlightFactor * stretchBytes

/** Whether a running service may read a further stretch of records that it will not keep. */
export const isReadable = (memory: Memory): boolean => isLoadable(memory, reading)

/** Largest text read in one step: a database sends no more in one message. */
const largestStep = 64 * 2 ** 20

/**
 * Bytes of text that a running service may read from a database in one step: half of the room in the heap is enough for
 * it in flight.
 */
export const stepBytes = ({ limitBytes, usedBytes }: Memory): number =>
  Math.min(largestStep, Math.max(stretchBytes, Math.floor((limitBytes * fullFrom - usedBytes) / (2 * inFlightFactor))))

/** Upper limit of the heap in bytes: V8's limit, or a share of the machine's memory if that is less. */
export const limitOf = (heapBytes: number, machineBytes: number, percent: number): number =>
  Math.min(heapBytes, Math.floor((machineBytes * percent) / 100))

/**
 * Memory of the container by its limit files (cgroup v2: `max` or bytes; v1: bytes, a huge number for none), or the
 * machine's if that is less.
 */
export const machineBytesOf = (limits: ReadonlyArray<string>, totalBytes: number): number =>
  limits.reduce((least, text) => {
    const bytes = /^\d+$/.test(text.trim()) ? Number(text) : Infinity
    return bytes > 0 && bytes < least ? bytes : least
  }, totalBytes)

const mebibytes = (bytes: number): string => `${Math.round(bytes / 2 ** 20)} MiB`

/**
 * Changes that a server with a full heap still accepts: a scheduler's records are on disk, so it cannot tell which
 * updates grow.
 */
type Taken = "deletes" | "deletes and updates that do not grow"

/** Message of the refusal of changes that grow. */
export const fullMessage = ({ limitBytes, usedBytes }: Memory, taken: Taken): string =>
  `${mebibytes(usedBytes)} of memory are in use, new data is taken again below ${mebibytes(limitBytes * roomBelow)} (it is refused from 85 % of the heap's limit of ${mebibytes(limitBytes)} on, ${memorySetting}); ${taken} are taken`

/** Message that many records are not read now; `work`, such as a compare, continues when there is room. */
export const noRoomToRead = ({ limitBytes, usedBytes }: Memory, work: string): string =>
  `${mebibytes(usedBytes)} of memory are in use, ${work} below ${mebibytes(limitBytes * loadableUpTo - reading)} (the heap's limit is ${mebibytes(limitBytes)}, ${memorySetting})`

/** V8's limit is far below the container's memory if it is less than this share of what the heap may have. */
const farBelow = 0.6

/**
 * Warning at start about a heap that V8 keeps far below its share of a container's memory; undefined if it does not.
 */
export const unusedMemory = (heapBytes: number, containerBytes: number, percent: number): string | undefined => {
  const share = Math.floor((containerBytes * percent) / 100)
  return heapBytes >= share * farBelow
    ? undefined
    : `the heap may take ${mebibytes(heapBytes)}, though ${memorySetting} allows ${mebibytes(share)} of the container's ${mebibytes(containerBytes)}: start with NODE_OPTIONS=--max-old-space-size=${Math.floor(share / 2 ** 20)}`
}

/**
 * Message of a start that ends because the heap is full, with this many records or other units loaded. `besideBytes`:
 * bytes in use before the first of them.
 */
export const notLoadable = (memory: Memory, loaded: number, all: number, unit = "records", besideBytes = 0): string => {
  const taken = Math.max(0, memory.usedBytes - besideBytes)
  const needed = (besideBytes + taken * (all / Math.max(1, loaded))) / fullFrom
  const beside = besideBytes > 0 ? ` beside ${mebibytes(besideBytes)} of other data` : ""
  return `the heap's limit of ${mebibytes(memory.limitBytes)} is too small for what is stored: ${loaded} of ${all} ${unit} take ${mebibytes(taken)}${beside}, all of them need a limit of about ${mebibytes(needed)}; start with NODE_OPTIONS=--max-old-space-size=${Math.ceil(needed / 2 ** 20)} or more, and more memory where ${memorySetting} percent of it are less`
}

/** Message about a view that takes most of the room which the heap has for views at a start. */
export const tooLargeView = ({ limitBytes }: Memory, takenBytes: number): string =>
  `its rows take more than ${mebibytes(takenBytes)}, and the heap's limit of ${mebibytes(limitBytes)} is too small for it and the others; start with a larger NODE_OPTIONS=--max-old-space-size, and more memory where ${memorySetting} percent of it are less, or delete the view`

/** Message of a process that ends because the heap has no room for the rest of the records it reads. */
export const notReadable = (memory: Memory, read: number, owner: "scheduler" | "database"): string =>
  `the heap's limit of ${mebibytes(memory.limitBytes)} is too small for the ${owner}'s records: with ${read} of them read ${mebibytes(memory.usedBytes)} are in use, and there are more; start with a larger NODE_OPTIONS=--max-old-space-size, and more memory where ${memorySetting} percent of it are less`

const sizeOf = (doc: Obj): number => encode(doc).length

/** Whether changes of one step need more memory, in sum, than their records have now. */
export const growsTogether = (
  changes: ReadonlyArray<Pick<Change, "doc" | "id" | "op">>,
  known: (id: RecordId) => Obj | undefined
): boolean => {
  let more = 0
  for (const { doc, id, op } of changes) {
    const before = known(id)
    more += (op === "DELETE" ? 0 : sizeOf(doc)) - (before === undefined ? 0 : sizeOf(before))
  }
  return more > 0
}

/** Whether a change may need more memory than its record has now. A delete never does. */
export const grows = ({ doc, op }: Pick<Change, "doc" | "op">, known: Obj | undefined): boolean =>
  op !== "DELETE" && (known === undefined || sizeOf(doc) > sizeOf(known))
