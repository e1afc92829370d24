/**
 * Snapshots in a store apart from the schedulers' disks, so that they outlive these.
 *
 * A snapshot's name holds log, position and SHA-256; only reading it proves them. The leader writes one when it wants
 * to cut the log and the newest is old, reads it back, and only then counts it. The newest two stay. Each scheduler
 * writes under a name of its own and removes only snapshots older than its own, so a former leader harms none of its
 * successor's.
 */
import { Clock, Effect } from "effect"
import {
  type KeptSnapshot,
  parseName,
  type ReplicaFileShape,
  type Snapshot,
  SnapshotFailed,
  type SnapshotOffer,
  type SnapshotStore,
  type SnapshotsShape
} from "../../ports/Snapshots.ts"
import * as Files from "./snapshotFiles.ts"

interface KeptOptions {
  readonly logId: string
  /** Age at which the newest snapshot is replaced when the log is to be cut. */
  readonly intervalMs: number
}

const keptSnapshots = 2

class KeptSnapshots implements SnapshotsShape {
  /** The newest snapshot that was read back, and when it was written. */
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

  private open({ logId, name, seq, sha256 }: KeptSnapshot): SnapshotOffer["open"] {
    return Effect.map(this.store.open(name), ({ bytes, content }): Snapshot => ({ logId, seq, sha256, bytes, content }))
  }

  readonly offers: SnapshotsShape["offers"] = (atLeast) =>
    Effect.map(this.listed, (all) =>
      all
        .filter(({ seq }) => seq >= atLeast)
        .map((each): SnapshotOffer => ({ from: this.store.shown(each.name), open: this.open(each) }))
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

  /** The newest snapshot whose content matches its name; others are left for the operator. */
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
      // A snapshot from the future was written before the clock was set back.
      const isDue = found === undefined || Math.abs(now - found.writtenAt) >= this.options.intervalMs
      // While an SSP loads, the replica's file is busy; then cutting the log waits too.
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
