/**
 * Snapshots in a folder that every scheduler of a log reaches, a shared volume: copies that outlive their disks.
 *
 * One file is one snapshot, and its name says log, position and SHA-256. It gets that name once all of it is flushed,
 * so what was written by halves has another; whether a file is what its name says is found out by reading it. The
 * leader writes one when it wants to cut the log and the newest is old, reads it back, and only then says that it is
 * there. The newest two stay.
 */
import * as fs from "node:fs/promises"
import { join } from "node:path"
import { Clock, Effect } from "effect"
import {
  type Offer,
  type ReplicaFileShape,
  type Snapshot,
  SnapshotFailed,
  type SnapshotHead,
  type SnapshotsShape
} from "../ports/Snapshots.ts"
import * as Files from "./snapshotFiles.ts"

export interface SnapshotFolderOptions {
  readonly folder: string
  readonly logId: string
  /** Of the scheduler that writes. */
  readonly name: string
  /** Age at which the newest one is replaced, where the log is to be cut. */
  readonly intervalMs: number
}

const keptSnapshots = 2
/** A file on its way that has not been touched for so long is of a scheduler that is gone. */
const abandonedMs = 86_400_000

const nameOf = ({ logId, seq, sha256 }: Omit<SnapshotHead, "bytes">): string =>
  `svc-${logId}-${String(seq).padStart(16, "0")}-${sha256}.sqlite`

const namePattern = /^svc-(.+)-(\d{16})-([0-9a-f]{64})\.sqlite$/

interface Named extends Omit<SnapshotHead, "bytes"> {
  readonly name: string
}

const named = (name: string): Named | undefined => {
  const [, logId, seq, sha256] = namePattern.exec(name) ?? []
  return logId === undefined ? undefined : { name, logId, seq: Number(seq), sha256: sha256! }
}

class SnapshotFolder {
  private readonly options: SnapshotFolderOptions
  /** The newest that has been read back, and when it was written. */
  private proven: (Named & { readonly writtenAt: number }) | undefined

  constructor(options: SnapshotFolderOptions) {
    this.options = options
  }

  private trying<A>(body: () => Promise<A>): Effect.Effect<A, SnapshotFailed> {
    return Files.trying(`the snapshots in ${this.options.folder} (SVC_SNAPSHOT_URL)`, body)
  }

  private path(name: string): string {
    return join(this.options.folder, name)
  }

  /** Those of this log, the newest first. */
  private readonly listed: Effect.Effect<ReadonlyArray<Named>, SnapshotFailed> = Effect.suspend(() =>
    Effect.map(
      this.trying(() => fs.readdir(this.options.folder)),
      (names) =>
        names
          .flatMap((name) => named(name) ?? [])
          .filter(({ logId }) => logId === this.options.logId)
          .sort((a, b) => b.seq - a.seq)
    )
  )

  private open({ logId, name, seq, sha256 }: Named): Offer["open"] {
    const path = this.path(name)
    return Effect.gen(this, function* () {
      const handle = yield* Effect.acquireRelease(
        this.trying(() => fs.open(path, "r")),
        (open) => Effect.promise(() => open.close())
      )
      const { size } = yield* this.trying(() => handle.stat())
      return { logId, seq, sha256, bytes: size, content: Files.read(path, handle, size) } satisfies Snapshot
    })
  }

  readonly offers: SnapshotsShape["offers"] = (atLeast) =>
    Effect.map(this.listed, (all) =>
      all
        .filter(({ seq }) => seq >= atLeast)
        .map((each): Offer => ({ from: this.path(each.name), open: this.open(each) }))
    )

  /** Whether the file is what its name says. */
  private proves(file: Named): Effect.Effect<boolean, SnapshotFailed> {
    return Effect.scoped(
      Effect.flatMap(this.open(file), ({ content, sha256 }) =>
        Effect.map(Files.sha256Of(content), (read) => read === sha256)
      )
    )
  }

  /** The newest that is what its name says; what is not is left where it is, for its owner to look at. */
  private readonly newest = Effect.suspend(() =>
    Effect.gen(this, function* () {
      for (const file of yield* this.listed) {
        if (this.proven?.name === file.name) return this.proven
        if (yield* this.proves(file)) {
          const { mtimeMs } = yield* this.trying(() => fs.stat(this.path(file.name)))
          this.proven = { ...file, writtenAt: mtimeMs }
          return this.proven
        }
        yield* Effect.logWarning(`the snapshot ${this.path(file.name)} is not what its name says: it is not used`)
      }
      this.proven = undefined
      return undefined
    })
  )

  private readonly write = (own: ReplicaFileShape): Effect.Effect<void, SnapshotFailed> =>
    Effect.gen(this, function* () {
      const { folder, logId, name } = this.options
      const part = this.path(`svc-${logId}-${name}.part`)
      const written = yield* Effect.flatMap(own.snapshot(logId), (snapshot) =>
        Effect.map(Files.write(part, snapshot.content), (sha256) => ({ ...snapshot, sha256 }))
      ).pipe(Effect.scoped)
      const final = nameOf(written)
      yield* this.trying(() => fs.rename(part, this.path(final)))
      yield* Files.syncFolder(folder)
      const file = named(final)!
      if (!(yield* this.proves(file)))
        return yield* new SnapshotFailed({
          reason: "damaged",
          message: `${this.path(final)} reads back as other bytes`
        })
      this.proven = { ...file, writtenAt: yield* Clock.currentTimeMillis }
      yield* Effect.logInfo(`snapshot of ${written.bytes} bytes at seq ${written.seq}: ${this.path(final)}`)
      yield* this.sweep
    })

  /** Those behind the newest that is proven and the one before it, and what schedulers left that were killed. */
  private readonly sweep = Effect.suspend(() =>
    Effect.gen(this, function* () {
      const { folder, logId } = this.options
      const now = yield* Clock.currentTimeMillis
      const newest = this.proven?.seq ?? 0
      const older = (yield* this.listed).filter(({ seq }) => seq < newest)
      const old = older.slice(keptSnapshots - 1).map(({ name }) => name)
      const parts = yield* this.trying(async () => {
        const names = (await fs.readdir(folder)).filter(
          (name) => name.startsWith(`svc-${logId}-`) && name.endsWith(".part")
        )
        const ages = await Promise.all(names.map((name) => fs.stat(join(folder, name)).catch(() => undefined)))
        return names.filter((_, i) => now - (ages[i]?.mtimeMs ?? now) > abandonedMs)
      })
      yield* this.trying(async () => {
        for (const name of [...old, ...parts]) await fs.rm(join(folder, name), { force: true })
      })
    })
  )

  readonly keep: SnapshotsShape["keep"] = (own, wanted) =>
    Effect.gen(this, function* () {
      const found = yield* this.newest
      const now = yield* Clock.currentTimeMillis
      const isDue = found === undefined || now - found.writtenAt >= this.options.intervalMs
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

/** Makes the folder, if it is missing. */
export const make = (options: SnapshotFolderOptions): Effect.Effect<SnapshotsShape, SnapshotFailed> =>
  Effect.gen(function* () {
    yield* Files.trying(`${options.folder} (SVC_SNAPSHOT_URL)`, async () => {
      await fs.mkdir(options.folder, { recursive: true, mode: 0o700 })
      // What this scheduler left when it was killed as it wrote.
      await fs.rm(join(options.folder, `svc-${options.logId}-${options.name}.part`), { force: true })
    })
    const folder = new SnapshotFolder(options)
    return { offers: folder.offers, keep: folder.keep }
  })
