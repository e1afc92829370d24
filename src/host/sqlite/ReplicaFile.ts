/**
 * The replica's file: `replica.db` in the folder `replica_db_path`, locked by one process, offered to others as a
 * snapshot, and replaced by one of theirs (D64).
 *
 * In this room because files and drivers belong to a runtime. A lock beside the file and not SQLite's own, because that
 * one would keep out our own reading connections.
 */

import * as fs from "node:fs/promises"
import { join } from "node:path"
import { SqlClient } from "@effect/sql"
import { Context, Duration, Effect, Exit, Layer, Schedule, Scope, Stream } from "effect"
import * as Layout from "../../core/storeLayout.ts"
import * as SqliteReplica from "../../drivers/sqliteReplica.ts"
import { Replica, ReplicaError, type ReplicaShape } from "../../ports/Replica.ts"
import {
  ReplicaFile,
  type ReplicaFileShape,
  type Snapshot,
  SnapshotFailed,
  withExactLength
} from "../../ports/Snapshots.ts"
import { lockFile } from "../process/fileLock.ts"
import { privateFolder } from "../process/privateFolder.ts"
import * as Files from "../snapshots/snapshotFiles.ts"
import { layerSqlite } from "./Sqlite.ts"

export const fileName = "replica.db"
/** A snapshot being received. */
const partName = `${fileName}.part`

/** How long a snapshot is tried for while another state is frozen. */
const busyMs = 5000
const busyRetryMs = 50

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const unusable = (folder: string, reason: string): ReplicaError =>
  new ReplicaError({
    reason: "failed",
    message: `the replica's folder ${folder} cannot be used: ${reason}; set replica_db_path to one that this user may write to`
  })

const lock = (folder: string): Effect.Effect<void, ReplicaError, Scope.Scope> =>
  Effect.acquireRelease(
    privateFolder(folder, (reason) => unusable(folder, reason)).pipe(
      Effect.zipRight(
        Effect.tryPromise({
          try: () => lockFile(join(folder, `${fileName}.lock`)),
          catch: (cause) => unusable(folder, textOf(cause))
        })
      ),
      Effect.filterOrFail(
        (held) => held !== undefined,
        () => new ReplicaError({ reason: "locked", message: `${join(folder, fileName)}: another process has it` })
      )
    ),
    (held) => Effect.promise(() => held.release())
  ).pipe(Effect.asVoid)

const openIn = (file: string): SqliteReplica.Open =>
  Layer.build(Layer.fresh(layerSqlite(file))).pipe(
    Effect.map((context) => Context.get(context, SqlClient.SqlClient)),
    Effect.mapError(({ cause, message, reason }) => new ReplicaError({ reason, message, cause }))
  )

/** Why bytes are not the beginning of an SQLite file that this version reads. */
const faultOf = (head: Uint8Array): string | undefined => {
  if (new TextDecoder().decode(head.subarray(0, 15)) !== "SQLite format 3") return "it is no SQLite file"
  // `user_version`, by the file format.
  const layout = new DataView(head.buffer, head.byteOffset).getInt32(60)
  return Layout.layoutFault(layout, SqliteReplica.layout)?.message
}

/** A replica that forwards to the current one, so that a restored replica can replace it. */
const through = (now: () => ReplicaShape): ReplicaShape => ({
  applied: Effect.suspend(() => now().applied),
  current: (ids) => Effect.suspend(() => now().current(ids)),
  commit: (batch) => Effect.suspend(() => now().commit(batch)),
  catchUp: Effect.suspend(() => now().catchUp),
  sync: Effect.suspend(() => now().sync),
  freeze: (id) => Effect.suspend(() => now().freeze(id)),
  thaw: (id) => Effect.suspend(() => now().thaw(id)),
  snapshot: Effect.suspend(() => now().snapshot),
  records: (table, after, size) => Effect.suspend(() => now().records(table, after, size)),
  bucket: (table, index) => Effect.suspend(() => now().bucket(table, index)),
  names: Effect.suspend(() => now().names),
  tables: Effect.suspend(() => now().tables),
  putTables: (tables) => Effect.suspend(() => now().putTables(tables)),
  whole: Effect.suspend(() => now().whole),
  markWhole: Effect.suspend(() => now().markWhole),
  clear: Effect.suspend(() => now().clear)
})

/** Connections to the file, and a handle of it. */
interface Opened extends SqliteReplica.ReplicaWithFile {
  readonly scope: Scope.CloseableScope
  readonly handle: fs.FileHandle
}

const opened = (file: string): Effect.Effect<Opened, ReplicaError> =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const inScope = Effect.gen(function* () {
      let handle: fs.FileHandle | undefined
      // Closed after the connections: a process that closes a file loses every lock that it has on it.
      yield* Effect.addFinalizer(() => Effect.promise(async () => handle?.close()))
      const filed = yield* SqliteReplica.makeWithFile(openIn(file))
      handle = yield* Effect.tryPromise({
        try: () => fs.open(file, "r"),
        catch: (cause) => new ReplicaError({ reason: "failed", message: textOf(cause), cause })
      })
      return { ...filed, scope, handle }
    })
    return yield* Scope.extend(inScope, scope).pipe(Effect.tapError((error) => Scope.close(scope, Exit.fail(error))))
  })

/** Position of a replica in a file that no other code has open. */
const appliedIn = (file: string): Effect.Effect<number, SnapshotFailed> =>
  Effect.scoped(Effect.flatMap(SqliteReplica.make(openIn(file)), ({ applied }) => applied)).pipe(
    Effect.mapError(({ message, reason }) => failedBy(reason, message, "damaged"))
  )

/** Removes a SQLite file, and the files beside it while it is open or after a kill. */
const removed = async (file: string): Promise<void> => {
  for (const end of ["", "-wal", "-shm"]) await fs.rm(file + end, { force: true })
}

const busy = new SnapshotFailed({
  reason: "busy",
  message: "another snapshot of this replica, or one for an SSP, is being read; try again later"
})

const failedBy = (
  reason: ReplicaError["reason"],
  message: string,
  otherwise: "damaged" | "failed" = "failed"
): SnapshotFailed => new SnapshotFailed({ reason: reason === "full" ? "full" : otherwise, message })

class FiledReplica {
  private readonly file: string
  private readonly turn = Effect.unsafeMakeSemaphore(1)

  constructor(
    private readonly folder: string,
    private readonly holdMs: number,
    private now: Opened
  ) {
    this.file = join(folder, fileName)
  }

  readonly replica = through(() => this.now.replica)

  readonly close = Effect.suspend(() => Scope.close(this.now.scope, Exit.void))

  /** Freezes the file; waits a little for other readers. */
  private still({ still }: Opened): Effect.Effect<number, SnapshotFailed, Scope.Scope> {
    return still.pipe(
      Effect.retry({
        while: ({ reason }) => reason === "locked",
        schedule: Schedule.spaced(busyRetryMs).pipe(Schedule.upTo(Math.min(busyMs, this.holdMs)))
      }),
      Effect.mapError(({ message, reason }) => (reason === "locked" ? busy : failedBy(reason, message)))
    )
  }

  readonly snapshot: ReplicaFileShape["snapshot"] = (logId) =>
    Effect.gen(this, function* () {
      const { now: from, holdMs } = this
      // A scope of its own with a time limit: a reader that hangs must not let SQLite's log grow for ever.
      const hold = yield* Scope.make()
      let isLate = false
      yield* Effect.addFinalizer((exit) => Scope.close(hold, exit))
      const seq = yield* Scope.extend(this.still(from), hold)
      yield* Effect.forkScoped(
        Effect.zipRight(
          Effect.sleep(Duration.millis(holdMs)),
          Effect.suspend(() => {
            isLate = true
            return Scope.close(hold, Exit.void)
          })
        )
      )
      const late = new SnapshotFailed({
        reason: "failed",
        message: `not read within ${holdMs / 1000} s (SVC_SNAPSHOT_TIMEOUT_SECS)`
      })
      const bytes = (yield* Files.tryFile(this.file, () => from.handle.stat())).size
      const content = Files.read(this.file, from.handle, bytes).pipe(
        Stream.mapEffect((piece) => (isLate ? Effect.fail(late) : Effect.succeed(piece)))
      )
      return { logId, seq, bytes, sha256: yield* Files.sha256Of(content), content }
    })

  private get part(): string {
    return join(this.folder, partName)
  }

  /** Receives a snapshot into a file and checks its length and SHA-256. */
  private fetched(snapshot: Snapshot): Effect.Effect<void, SnapshotFailed> {
    const { bytes, sha256 } = snapshot
    const damaged = (message: string): SnapshotFailed => new SnapshotFailed({ reason: "damaged", message })
    return Effect.gen(this, function* () {
      const written = yield* Files.write(this.part, withExactLength(snapshot, snapshot.content))
      if (written !== sha256) return yield* damaged(`its SHA-256 is ${written} where ${sha256} was said`)
      const head = new Uint8Array(100)
      if (bytes < head.length) return yield* damaged(`${bytes} bytes are no SQLite file`)
      yield* Effect.acquireUseRelease(
        Files.tryFile(this.part, () => fs.open(this.part, "r")),
        (handle) => Files.tryFile(this.part, () => handle.read(head, 0, head.length, 0)),
        (handle) => Effect.promise(() => handle.close())
      )
      const fault = faultOf(head)
      if (fault !== undefined) return yield* damaged(fault)
      const seq = yield* appliedIn(this.part)
      if (seq !== snapshot.seq) return yield* damaged(`it stands at seq ${seq} where ${snapshot.seq} was said`)
    })
  }

  /**
   * Replaces the file in an order in which a kill does no harm: SQLite drops a log without its file, and the next start
   * removes a snapshot that was not renamed.
   */
  private readonly swap: Effect.Effect<void, SnapshotFailed> = Effect.gen(this, function* () {
    yield* Scope.close(this.now.scope, Exit.void)
    yield* Files.tryFile(this.folder, async () => {
      await removed(this.file)
      await fs.rename(this.part, this.file)
    })
    yield* Files.syncFolder(this.folder)
    this.now = yield* Effect.mapError(opened(this.file), ({ message, reason }) =>
      failedBy(reason, `${this.file}: ${message}`)
    )
  })

  readonly restore: ReplicaFileShape["restore"] = (snapshot) =>
    this.turn.withPermits(1)(
      this.fetched(snapshot).pipe(
        Effect.zipRight(Effect.uninterruptible(this.swap)),
        Effect.ensuring(Effect.promise(() => removed(this.part)))
      )
    )
}

const withPath = (folder: string, { cause, message, reason }: ReplicaError): ReplicaError =>
  new ReplicaError({
    reason,
    message: message.includes(folder) ? message : `${join(folder, fileName)}: ${message}`,
    cause
  })

/** `holdMs`: how long a snapshot may be read. Fails with a {@link ReplicaError} that names the file. */
export const layerReplica = (folder: string, holdMs = 3_600_000): Layer.Layer<Replica | ReplicaFile, ReplicaError> =>
  Layer.scopedContext(
    Effect.gen(function* () {
      yield* lock(folder)
      yield* Effect.promise(() => removed(join(folder, partName)))
      const filed = new FiledReplica(folder, holdMs, yield* opened(join(folder, fileName)))
      yield* Effect.addFinalizer(() => filed.close)
      return Context.make(Replica, filed.replica).pipe(
        Context.add(ReplicaFile, { snapshot: filed.snapshot, restore: filed.restore })
      )
    }).pipe(Effect.mapError((error) => withPath(folder, error)))
  )
