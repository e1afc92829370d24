/**
 * A WAL in the hands of a test: opened on a real folder or on a disk made up, asked without effects in the way.
 *
 * Shared, so that every test says the same with the same words.
 */

import { join } from "node:path"
import { Chunk, Effect, Either, Exit, Layer, Logger, Scope, Stream } from "effect"
import { onTestFinished } from "vitest"
import { removeFolder, temporaryFolder } from "../../kit/processes/Door.ts"
import type * as Format from "../../src/core/wal/walFormat.ts"
import { layerFile, type WalFileOptions } from "../../src/host/wal/WalFile.ts"
import { Wal, type WalFailed } from "../../src/ports/Wal.ts"
import type { FaultyDisk } from "./faultyDisk.ts"

export const path = "/d/wal"

export const freshPath = (): string => {
  const folder = temporaryFolder()
  onTestFinished(() => removeFolder(folder))
  return join(folder, "wal.log")
}

export interface Open {
  readonly wal: Wal["Type"]
  readonly append: (...records: ReadonlyArray<string>) => Promise<Either.Either<number, WalFailed>>
  readonly all: (after?: number) => Promise<ReadonlyArray<Format.WalRecord>>
  readonly close: () => Promise<void>
}

export const open = async (file: string, options: WalFileOptions = {}): Promise<Either.Either<Open, WalFailed>> => {
  const scope = await Effect.runPromise(Scope.make())
  const built = await Effect.runPromise(
    Layer.buildWithScope(Layer.fresh(layerFile(file, options)), scope).pipe(
      Effect.either,
      Effect.provide(Logger.remove(Logger.defaultLogger))
    )
  )
  return Either.map(built, (context) => {
    const wal = Effect.runSync(Effect.provide(Wal, context))
    return {
      wal,
      append: (...records) => Effect.runPromise(Effect.either(wal.append(records))),
      all: async (after = 0) => Chunk.toReadonlyArray(await Effect.runPromise(Stream.runCollect(wal.read(after)))),
      close: () => Effect.runPromise(Scope.close(scope, Exit.void))
    }
  })
}

export const opened = async (file: string, options: WalFileOptions = {}): Promise<Open> =>
  Either.getOrThrowWith(await open(file, options), (error) => error)
export const onDisk = (disk: FaultyDisk, options: WalFileOptions = {}): Promise<Open> =>
  opened(path, { ...options, disk: disk.mount() })
export const reasonOf = (result: Either.Either<unknown, WalFailed>): string =>
  Either.isLeft(result) ? result.left.reason : "none"
export const record = (n: number): string => JSON.stringify({ n, pad: "p".repeat(40) })
export const texts = (records: ReadonlyArray<Format.WalRecord>): ReadonlyArray<string> =>
  records.map(({ json }) => json)
