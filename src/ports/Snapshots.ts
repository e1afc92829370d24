/**
 * Snapshots of the replica of a shared log: sources for a scheduler whose replica ends before the log begins, and
 * places for copies that survive the loss of every scheduler's disk.
 *
 * A snapshot is the replica's SQLite file at one position of the log. Its hash is known before it is used (D64), so a
 * broken transfer or a half-written file is never mistaken for one.
 */
import { Context, Data, Effect, type Scope, Stream } from "effect"

/** Identity of a snapshot, with the length and the hash that prove its content. */
export interface SnapshotHead {
  /** Id of the log of which the snapshot is a state. */
  readonly logId: string
  /** Position in the log through which the snapshot's changes are applied. */
  readonly seq: number
  readonly bytes: number
  /** SHA-256 of its content, in lower-case hexadecimal. */
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

/** A snapshot with its content. */
export interface Snapshot extends SnapshotHead {
  /** The bytes; readable once, from the beginning. */
  readonly content: Stream.Stream<Uint8Array, SnapshotFailed>
}

/** A source that may have a snapshot. */
export interface SnapshotOffer {
  /** Name of the source in messages. */
  readonly from: string
  readonly open: Effect.Effect<Snapshot, SnapshotFailed, Scope.Scope>
}

/** The replica of this scheduler as a file. */
export interface ReplicaFileShape {
  /**
   * The present state, unchanged while the scope is open; commits go on. One at a time, and none while an SSP's
   * snapshot is held: `busy`.
   */
  readonly snapshot: (logId: string) => Effect.Effect<Snapshot, SnapshotFailed, Scope.Scope>
  /**
   * Replaces the replica by a snapshot, after all of it has come and matches its head; on failure the replica is
   * unchanged.
   */
  readonly restore: (snapshot: Snapshot) => Effect.Effect<void, SnapshotFailed>
}

/** The replica as a file; undefined if this deployment keeps the replica in no file. */
export class ReplicaFile extends Context.Reference<ReplicaFile>()("ports/Snapshots/ReplicaFile", {
  defaultValue: (): ReplicaFileShape | undefined => undefined
}) {}

/** Sources of snapshots and places for copies. Methods fail with {@link SnapshotFailed}. */
export interface SnapshotsShape {
  /** Candidates for a snapshot of the log at or behind `atLeast`, the best first. */
  readonly offers: (atLeast: number) => Effect.Effect<ReadonlyArray<SnapshotOffer>, SnapshotFailed>
  /**
   * For the leader that wants to cut the log before `wanted`: makes sure that a copy exists apart from the schedulers'
   * disks, and answers the position of the newest one that was read back; undefined if no copies are kept.
   */
  readonly keep: (own: ReplicaFileShape, wanted: number) => Effect.Effect<number | undefined, SnapshotFailed>
}

/** Identity of a kept snapshot as its file name states it; only reading the content proves it. */
export interface KeptSnapshot extends Omit<SnapshotHead, "bytes"> {
  readonly name: string
}

/** A place apart from the schedulers' disks that keeps snapshots under their names, of this log or of others. */
export interface SnapshotStore {
  /** Name of the snapshot in messages, such as its path. */
  readonly shown: (name: string) => string
  /** Names of the snapshots that were written completely. */
  readonly names: Effect.Effect<ReadonlyArray<string>, SnapshotFailed>
  readonly open: (name: string) => Effect.Effect<KeptContent, SnapshotFailed, Scope.Scope>
  /** Writes a snapshot, which gets its name only once it is complete; returns that name. */
  readonly write: (snapshot: Snapshot) => Effect.Effect<string, SnapshotFailed>
  readonly remove: (names: ReadonlyArray<string>) => Effect.Effect<void, SnapshotFailed>
  /** Removes partial files that a scheduler which has died left here. */
  readonly sweep: Effect.Effect<void, SnapshotFailed>
}

/** A stored snapshot, opened for reading. */
export interface KeptContent extends Pick<Snapshot, "bytes" | "content"> {
  /** Time of writing by the store's own clock, Unix milliseconds. */
  readonly writtenAt: number
}

/** File name of a snapshot; {@link parseName} reads it. */
export const nameOf = ({ logId, seq, sha256 }: Omit<SnapshotHead, "bytes">): string =>
  `svc-${logId}-${String(seq).padStart(16, "0")}-${sha256}.sqlite`

const namePattern = /^svc-(.+)-(\d{16})-([0-9a-f]{64})\.sqlite$/

/** Parses the name of a snapshot file; returns undefined for any other name. */
export const parseName = (name: string): KeptSnapshot | undefined => {
  const [, logId, seq, sha256] = namePattern.exec(name) ?? []
  return logId === undefined ? undefined : { name, logId, seq: Number(seq), sha256: sha256! }
}

/** Snapshots of a shared log's replica, from all configured sources. */
export class Snapshots extends Context.Tag("ports/Snapshots")<Snapshots, SnapshotsShape>() {}

/** Combines several sources: offers of all of them; copies are kept by the first source that keeps any. */
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

/** An offer that fails when opened, with the reason why there is none. */
const failing = (error: SnapshotFailed): SnapshotOffer => ({ from: "no source", open: Effect.fail(error) })

/** Fails a stream with more or fewer bytes than the head says; the receiver checks the hash. */
export const withExactLength = ({ bytes }: SnapshotHead, content: Snapshot["content"]): Snapshot["content"] =>
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
