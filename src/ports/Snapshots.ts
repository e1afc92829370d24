/**
 * Snapshots of the replica of a shared log: where a scheduler whose replica is behind the log's beginning gets one, and
 * where copies are kept that outlive every scheduler's disk.
 *
 * A snapshot is the replica's SQLite file as of one position of the log. What it should hash to is known before it is
 * used (D64), so a transfer that broke off, or a file that was written by halves, is never taken for one.
 */
import { Context, Data, Effect, type Scope, Stream } from "effect"

/** What names a snapshot, and proves it. */
export interface SnapshotHead {
  /** Of the log that it is a state of. */
  readonly logId: string
  /** Position through which it is applied. */
  readonly seq: number
  readonly bytes: number
  /** Of all its bytes, in hexadecimal. */
  readonly sha256: string
}

/**
 * `busy`: worth another try in a moment; `damaged`: not what its head says; `full`: no room on the disk here; `failed`:
 * anything else.
 */
export class SnapshotFailed extends Data.TaggedError("SnapshotFailed")<{
  readonly reason: "busy" | "damaged" | "full" | "failed"
  readonly message: string
}> {}

export interface Snapshot extends SnapshotHead {
  /** Once, from the beginning. */
  readonly content: Stream.Stream<Uint8Array, SnapshotFailed>
}

/** Where a snapshot might be had. */
export interface Offer {
  /** As people are told of it. */
  readonly from: string
  readonly open: Effect.Effect<Snapshot, SnapshotFailed, Scope.Scope>
}

/** The replica of this scheduler as a file. */
export interface ReplicaFileShape {
  /**
   * Its state now, which stands still while the scope is open; commits go on meanwhile. One at a time, and none while
   * an SSP's snapshot is held: `busy`.
   */
  readonly snapshot: (logId: string) => Effect.Effect<Snapshot, SnapshotFailed, Scope.Scope>
  /**
   * Replaces the replica by a snapshot, once all of that has come and is what its head says; the replica stays what it
   * was otherwise.
   */
  readonly restore: (snapshot: Snapshot) => Effect.Effect<void, SnapshotFailed>
}

/** Undefined where the replica is in no file. */
export class ReplicaFile extends Context.Reference<ReplicaFile>()("ports/Snapshots/ReplicaFile", {
  defaultValue: (): ReplicaFileShape | undefined => undefined
}) {}

export interface SnapshotsShape {
  /** What might be a snapshot of the log at or behind `atLeast`, the best first. */
  readonly offers: (atLeast: number) => Effect.Effect<ReadonlyArray<Offer>, SnapshotFailed>
  /**
   * For the leader that wants to cut the log before `wanted`: sees that there is a copy apart from the schedulers'
   * disks, and answers the position of the newest one that has been read back; undefined where none are kept apart.
   */
  readonly keep: (own: ReplicaFileShape, wanted: number) => Effect.Effect<number | undefined, SnapshotFailed>
}

/** What the name of a kept snapshot says of it; whether it is so is found out by reading it. */
export interface KeptSnapshot extends Omit<SnapshotHead, "bytes"> {
  readonly name: string
}

/** A place apart from the schedulers' disks that keeps snapshots under their names, of this log or of others. */
export interface SnapshotStore {
  /** A snapshot there, or all of it, as people are told of it. */
  readonly shown: (name: string) => string
  /** Of those that were written to their end. */
  readonly names: Effect.Effect<ReadonlyArray<string>, SnapshotFailed>
  readonly open: (name: string) => Effect.Effect<KeptContent, SnapshotFailed, Scope.Scope>
  /** Writes one, which has its name once all of it is there; answers that name. */
  readonly write: (snapshot: Snapshot) => Effect.Effect<string, SnapshotFailed>
  readonly remove: (names: ReadonlyArray<string>) => Effect.Effect<void, SnapshotFailed>
  /** Takes away what was left on its way by a scheduler that is gone. */
  readonly sweep: Effect.Effect<void, SnapshotFailed>
}

export interface KeptContent extends Pick<Snapshot, "bytes" | "content"> {
  /** By the clock of the place. */
  readonly writtenAt: number
}

export const nameOf = ({ logId, seq, sha256 }: Omit<SnapshotHead, "bytes">): string =>
  `svc-${logId}-${String(seq).padStart(16, "0")}-${sha256}.sqlite`

const namePattern = /^svc-(.+)-(\d{16})-([0-9a-f]{64})\.sqlite$/

/** Parses the name of a snapshot file; returns undefined for any other name. */
export const parseName = (name: string): KeptSnapshot | undefined => {
  const [, logId, seq, sha256] = namePattern.exec(name) ?? []
  return logId === undefined ? undefined : { name, logId, seq: Number(seq), sha256: sha256! }
}

/** Snapshots of a shared log's replica, of whichever sources there are. */
export class Snapshots extends Context.Tag("ports/Snapshots")<Snapshots, SnapshotsShape>() {}

/** Asks each in turn; the first that keeps copies keeps them. */
export const firstOf = (all: ReadonlyArray<SnapshotsShape>): SnapshotsShape => ({
  offers: (atLeast) =>
    Effect.map(
      Effect.forEach(all, (each) => Effect.either(each.offers(atLeast))),
      (answers) => answers.flatMap((answer) => (answer._tag === "Right" ? answer.right : [failing(answer.left)]))
    ),
  keep: (own, wanted) =>
    Effect.reduce(all, undefined as number | undefined, (kept, each) =>
      kept === undefined ? each.keep(own, wanted) : Effect.succeed(kept)
    )
})

/** Says why there is no offer where one is opened. */
const failing = (error: SnapshotFailed): Offer => ({ from: "no source", open: Effect.fail(error) })

/** Fails a stream whose bytes are more or fewer than the head says; the hash is the taker's to check. */
export const ofLength = ({ bytes }: SnapshotHead, content: Snapshot["content"]): Snapshot["content"] =>
  Stream.suspend(() => {
    let seen = 0
    const damaged = (): SnapshotFailed =>
      new SnapshotFailed({ reason: "damaged", message: `it has ${seen} bytes where ${bytes} were said` })
    return content.pipe(
      Stream.mapEffect((piece) => {
        seen += piece.length
        return seen > bytes ? Effect.fail(damaged()) : Effect.succeed(piece)
      }),
      Stream.concat(Stream.suspend(() => (seen === bytes ? Stream.empty : Stream.fail(damaged()))))
    )
  })
