/**
 * Snapshots that are kept apart from the schedulers' disks, wherever that is: copies that outlive them.
 *
 * A snapshot's name says log, position and SHA-256; whether it is what its name says is found out by reading it. The
 * leader writes one when it wants to cut the log and the newest is old, reads it back, and only then says that it is
 * there. The newest two stay. Each writes under a name of its own and takes away only what is older than its own, so
 * one that leads no more harms nothing of the next.
 */
import { Clock, Effect } from "effect"
import {
  type KeptSnapshot,
  type Offer,
  parseName,
  type ReplicaFileShape,
  type Snapshot,
  SnapshotFailed,
  type SnapshotStore,
  type SnapshotsShape
} from "../../ports/Snapshots.ts"
import * as Files from "./snapshotFiles.ts"

interface KeptOptions {
  readonly logId: string
  /** Age at which the newest one is replaced, where the log is to be cut. */
  readonly intervalMs: number
}

const keptSnapshots = 2

class KeptSnapshots implements SnapshotsShape {
  /** The newest that has been read back, and when it was written. */
  private proven: (KeptSnapshot & { readonly writtenAt: number }) | undefined

  constructor(
    private readonly store: SnapshotStore,
    private readonly options: KeptOptions
  ) {}

  /** Snapshots of this log, the newest first. */
  private readonly listed: Effect.Effect<ReadonlyArray<KeptSnapshot>, SnapshotFailed> = Effect.suspend(() =>
    Effect.map(this.store.names, (names) =>
      names
        .flatMap((name) => parseName(name) ?? [])
        .filter(({ logId }) => logId === this.options.logId)
        .sort((a, b) => b.seq - a.seq)
    )
  )

  private open({ logId, name, seq, sha256 }: KeptSnapshot): Offer["open"] {
    return Effect.map(this.store.open(name), ({ bytes, content }): Snapshot => ({ logId, seq, sha256, bytes, content }))
  }

  readonly offers: SnapshotsShape["offers"] = (atLeast) =>
    Effect.map(this.listed, (all) =>
      all
        .filter(({ seq }) => seq >= atLeast)
        .map((each): Offer => ({ from: this.store.shown(each.name), open: this.open(each) }))
    )

  /** Time at which a snapshot was written; undefined if its content does not match its name. */
  private proved({ name, sha256 }: KeptSnapshot): Effect.Effect<number | undefined, SnapshotFailed> {
    return Effect.flatMap(this.store.open(name), ({ content, writtenAt }) =>
      Effect.map(Files.sha256Of(content), (read) => (read === sha256 ? writtenAt : undefined))
    ).pipe(
      Effect.scoped,
      Effect.catchIf(
        ({ reason }) => reason === "damaged",
        () => Effect.succeed(undefined)
      )
    )
  }

  /** The newest that is what its name says; what is not is left where it is, for its owner to look at. */
  private readonly newest = Effect.suspend(() =>
    Effect.gen(this, function* () {
      for (const each of yield* this.listed) {
        if (this.proven?.name === each.name) return this.proven
        const writtenAt = yield* this.proved(each)
        if (writtenAt !== undefined) {
          this.proven = { ...each, writtenAt }
          return this.proven
        }
        yield* Effect.logWarning(
          `the snapshot ${this.store.shown(each.name)} is not what its name says: it is not used`
        )
      }
      this.proven = undefined
      return undefined
    })
  )

  private readonly write = (own: ReplicaFileShape): Effect.Effect<void, SnapshotFailed> =>
    Effect.gen(this, function* () {
      const { store } = this
      yield* store.sweep
      const { bytes, name } = yield* Effect.flatMap(own.snapshot(this.options.logId), (snapshot) =>
        Effect.map(store.write(snapshot), (name) => ({ bytes: snapshot.bytes, name }))
      ).pipe(Effect.scoped)
      const written = parseName(name)!
      if ((yield* this.proved(written)) === undefined) {
        // The damaged snapshot never counted as a copy, and another is written soon.
        yield* store.remove([name])
        return yield* new SnapshotFailed({
          reason: "damaged",
          message: `${store.shown(name)} reads back as other bytes`
        })
      }
      this.proven = { ...written, writtenAt: yield* Clock.currentTimeMillis }
      yield* Effect.logInfo(`snapshot of ${bytes} bytes at seq ${written.seq}: ${store.shown(name)}`)
      const older = (yield* this.listed).filter(({ seq }) => seq < written.seq)
      yield* store.remove(older.slice(keptSnapshots - 1).map((each) => each.name))
    })

  readonly keep: SnapshotsShape["keep"] = (own, wanted) =>
    Effect.gen(this, function* () {
      const found = yield* this.newest
      const now = yield* Clock.currentTimeMillis
      // One from a time to come was written before the clock was set back.
      const isDue = found === undefined || Math.abs(now - found.writtenAt) >= this.options.intervalMs
      // While an SSP loads the replica's file is busy: then the log waits, too.
      if (isDue && (found?.seq ?? 0) + 1 < wanted)
        yield* Effect.catchIf(
          this.write(own),
          ({ reason }) => reason === "busy",
          ({ message }) => Effect.logInfo(`no snapshot is written: ${message}`)
        )
      return this.proven?.seq ?? 0
    })
}

export const make = (store: SnapshotStore, options: KeptOptions): SnapshotsShape => new KeptSnapshots(store, options)
