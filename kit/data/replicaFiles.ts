/** Replicas in files of their own, and snapshots of them. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Context, Effect, Layer, type Scope, Stream } from "effect"
import { afterAll } from "vitest"
import { layerReplica } from "../../src/host/sqlite/ReplicaFile.ts"
import { Replica, type ReplicaShape } from "../../src/ports/Replica.ts"
import { ReplicaFile, type ReplicaFileShape, type Snapshot, type SnapshotFailed } from "../../src/ports/Snapshots.ts"
import { record } from "../../src/testing/Replica.suite.ts"

const root = mkdtempSync(join(tmpdir(), "svc-snapshots-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

let folders = 0
export const fresh = (): string => join(root, String(folders++))

export interface Opened {
  readonly folder: string
  readonly replica: ReplicaShape
  readonly own: ReplicaFileShape
}

export const open = (folder = fresh(), holdMs?: number): Effect.Effect<Opened, unknown, Scope.Scope> =>
  Effect.map(Layer.build(Layer.fresh(layerReplica(folder, holdMs))), (context) => ({
    folder,
    replica: Context.get(context, Replica),
    own: Context.get(context, ReplicaFile)!
  }))

export const run = <A>(body: Effect.Effect<A, unknown, Scope.Scope>): Promise<A> =>
  Effect.runPromise(Effect.scoped(body))

/** Long enough that SQLite would bring its log into the file many times over. */
export const filled = (replica: ReplicaShape, from: number, count: number): Effect.Effect<void, unknown> =>
  Effect.forEach(
    Array.from({ length: count }, (_, i) => from + i),
    (n) =>
      replica.commit({
        records: Array.from({ length: 20 }, (_, i) =>
          record(`t:${(n * 20 + i) % 4000}`, n, { n, text: "x".repeat(900) })
        ),
        through: n
      }),
    { discard: true }
  ).pipe(Effect.zipRight(replica.catchUp))

export const bytesOf = ({ content }: Pick<Snapshot, "content">): Effect.Effect<Uint8Array, SnapshotFailed> =>
  Effect.map(Stream.runCollect(content), (pieces) => Buffer.concat([...pieces]))

/** A snapshot that gives other bytes than it says. */
export const giving = (snapshot: Snapshot, content: Snapshot["content"]): Snapshot => ({ ...snapshot, content })
