/**
 * The WAL over files, as a layer, and its check on request.
 *
 * Thin on purpose: decisions are in `core/wal/walFormat.ts`, the work in `walLog.ts`; here they become effects.
 */

import { randomUUID } from "node:crypto"
import { dirname } from "node:path"
import { Chunk, Effect, Layer, Option, Stream } from "effect"
import type { WalRecord } from "../../core/wal/walFormat.ts"
import { appendChecked, Wal, WalFailed, type WalShape } from "../../ports/Wal.ts"
import { nodeDisk, type WalDisk } from "./walDisk.ts"
import { type Cursor, defaultSegmentBytes, WalLog } from "./walLog.ts"
import * as Segments from "./walSegments.ts"

export interface WalFileOptions {
  /** Size at which a file is complete and the next one begins, in bytes. */
  readonly segmentBytes?: number
  readonly disk?: WalDisk
}

const attempt = <A>(path: string, run: () => Promise<A>): Effect.Effect<A, WalFailed> =>
  Effect.tryPromise({ try: run, catch: (error) => Segments.failure(path, error) })

const read = (path: string, log: WalLog, afterSeq: number): Stream.Stream<WalRecord, WalFailed> =>
  Stream.suspend(() => {
    const upTo = log.lastSeq
    if (afterSeq >= upTo) return Stream.empty
    const first: Cursor = { from: afterSeq, upTo, at: undefined }
    return Stream.paginateChunkEffect(first, (cursor) =>
      Effect.map(
        attempt(path, () => log.page(cursor)),
        ({ next, records }) =>
          [
            Chunk.unsafeFromArray(records),
            next.at !== undefined && next.at.after >= upTo ? Option.none() : Option.some(next)
          ] as const
      )
    )
  })

const shapeOf = (path: string, log: WalLog, disk: WalDisk): WalShape => ({
  logId: log.logId,
  lastSeq: Effect.sync(() => log.lastSeq),
  keptAfter: Effect.sync(() => log.keptAfter),
  append: (records) =>
    appendChecked(
      records,
      Effect.async((resume) => log.submit(records, resume))
    ),
  read: (afterSeq) => read(path, log, afterSeq),
  dropBefore: (seq) => attempt(path, () => log.dropBefore(seq)),
  usage: Effect.map(
    Effect.promise(async () => disk.free?.(dirname(path)).catch(() => undefined)),
    (freeBytes) => ({ bytes: log.bytes, freeBytes })
  )
})

/** The log at `path`, with its complete files beside it; created if missing. Closing it first ends waiting work. */
export const layerFile = (path: string, options: WalFileOptions = {}): Layer.Layer<Wal, WalFailed> =>
  Layer.scoped(
    Wal,
    Effect.gen(function* () {
      const { disk = nodeDisk, segmentBytes = defaultSegmentBytes } = options
      const opened = attempt(path, () => WalLog.open(disk, path, randomUUID, segmentBytes))
      const { log, tail } = yield* Effect.acquireRelease(opened, (own) => Effect.promise(() => own.log.close()))
      if (tail !== undefined)
        yield* Effect.logWarning(
          `${tail.file}, offset ${tail.offset}, seq ${log.lastSeq + 1}: cut off ${tail.bytes} bytes of a write that was never finished`
        )
      return shapeOf(path, log, disk)
    })
  )

const lineOf = ({ after, last, path, size }: Segments.Segment): string =>
  `${path}: ${last === after ? `no records behind seq ${after}` : `seq ${after + 1} to ${last}`}, ${size} bytes`

/** Names change while a log is in use: after a fault the files are read again if their names have changed. */
const loadInUse = async (path: string, disk: WalDisk): Promise<Segments.LoadedWal | undefined> => {
  for (;;) {
    const names = await Segments.namesOf(disk, path)
    try {
      return await Segments.load(disk, path)
    } catch (error) {
      if (JSON.stringify(await Segments.namesOf(disk, path)) === JSON.stringify(names)) throw error
    }
  }
}

/**
 * Reads every line of the log at `path`, also while it is in use, and changes nothing; answers its findings, line by
 * line.
 */
export const verify = (path: string, disk: WalDisk = nodeDisk): Effect.Effect<ReadonlyArray<string>, WalFailed> =>
  Effect.flatMap(
    attempt(path, () => loadInUse(path, disk)),
    (loaded) => {
      if (loaded === undefined)
        return new WalFailed({ reason: "failed", file: path, message: `${path}: there is no WAL` })
      const { logId, segments, tail } = loaded
      const records = segments.at(-1)!.last - segments[0]!.after
      const lines = [`log ${logId}: ${records} records, all as they were written`, ...segments.map(lineOf)]
      return Effect.succeed(
        tail === undefined
          ? lines
          : [
              ...lines,
              `${tail.file}, offset ${tail.offset}: ${tail.bytes} bytes of a write that is not finished; the next start cuts them off`
            ]
      )
    }
  )
