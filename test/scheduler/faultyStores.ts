/**
 * Log and replica in memory that fail or stand still when a test says so.
 *
 * Why fakes: a disk that is full, and one that answers late, on demand and without waiting.
 */
import { Effect, Layer } from "effect"
import * as MemoryPool from "../../src/drivers/memoryPool.ts"
import * as MemoryReplica from "../../src/drivers/memoryReplica.ts"
import { Replica, ReplicaError, type ReplicaShape } from "../../src/ports/Replica.ts"
import { Upstream } from "../../src/ports/Upstream.ts"
import { Wal, WalFailed, type WalShape } from "../../src/ports/Wal.ts"
import type { Stored } from "./node.ts"

export interface Faults {
  wal: "full" | undefined
  commit: "full" | undefined
  read: "failed" | undefined
  bucket: "failed" | undefined
  /** While it is there, appends wait for it. */
  hold: Promise<void> | undefined
}

export const noFaults = (): Faults => ({
  wal: undefined,
  commit: undefined,
  read: undefined,
  bucket: undefined,
  hold: undefined
})

const failing = <A>(
  reason: "full" | "failed" | undefined,
  effect: Effect.Effect<A, ReplicaError>
): Effect.Effect<A, ReplicaError> =>
  reason === undefined ? effect : Effect.fail(new ReplicaError({ reason, message: "no space left on device" }))

const faultyReplica = (faults: Faults, inner: ReplicaShape): ReplicaShape => ({
  ...inner,
  current: (ids) => Effect.suspend(() => failing(faults.read, inner.current(ids))),
  bucket: (table, index) => Effect.suspend(() => failing(faults.bucket, inner.bucket(table, index))),
  commit: (batch) => Effect.suspend(() => failing(faults.commit, inner.commit(batch)))
})

const faultyWal = (faults: Faults, inner: WalShape): WalShape => ({
  ...inner,
  append: (records) =>
    Effect.suspend(() => {
      if (faults.wal !== undefined)
        return Effect.fail(new WalFailed({ reason: faults.wal, message: "no space left on device" }))
      const { hold } = faults
      return hold === undefined
        ? inner.append(records)
        : Effect.zipRight(
            Effect.promise(() => hold),
            inner.append(records)
          )
    })
})

/** A database that is there and never answers. */
export const silentUpstream: Layer.Layer<Upstream> = Layer.effect(
  Upstream,
  Effect.map(Upstream, (inner) => ({ ...inner, present: true, tables: Effect.never, highestVersion: Effect.never }))
).pipe(Layer.provide(Upstream.layerNone))

export const stores = (faults: Faults): Stored =>
  Layer.mergeAll(
    Layer.effect(
      Replica,
      Effect.map(Replica, (inner) => faultyReplica(faults, inner))
    ).pipe(Layer.provide(MemoryReplica.layer)),
    Layer.effect(
      Wal,
      Effect.map(Wal, (inner) => faultyWal(faults, inner))
    ).pipe(Layer.provide(Wal.layerMemory("faulty"))),
    MemoryPool.layer,
    Upstream.layerNone
  )
