/**
 * Measures what a start does with a log of 100,000 events, in this process, round by round beside plainly reading the
 * same file line by line.
 *
 * Opened where the replica has everything, as after a stop; and with all of it to be applied to an empty replica on
 * disk, which is the most a crash can leave behind. Started by `wal.ts`, which points the imports of `src` at `dist`.
 */
// Loaded before the first dynamic import of it: in a program given as text that one comes out empty.
import "@effect/sql-sqlite-node/SqliteClient"
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Layer, Logger, LogLevel } from "effect"
import { layerReplica } from "../../src/host/sqlite/ReplicaFile.ts"
import { layerFile } from "../../src/host/wal/WalFile.ts"
import { Replica } from "../../src/ports/Replica.ts"
import { Wal } from "../../src/ports/Wal.ts"
import * as Recovery from "../../src/scheduler/pool/recovery.ts"

const count = Number(process.argv.at(-1))
const rounds = 5
const folder = mkdtempSync(join(tmpdir(), "svc-bench-wal-"))
const walPath = join(folder, "wal.log")

const line = (n: number): string =>
  JSON.stringify({
    table: "post",
    op: "UPDATE",
    id: `post:${n % 20_000}`,
    record: {
      author: `user:${n % 1000}`,
      title: `Post number ${n}`,
      likes: n,
      tags: ["a", "b"],
      draft: false,
      _svc_rv: 1 + Math.floor(n / 20_000)
    }
  })

const fill = Effect.gen(function* () {
  const wal = yield* Wal
  for (let i = 0; i < count; i += 1000)
    yield* wal.append(Array.from({ length: Math.min(1000, count - i) }, (_, n) => line(i + n)))
}).pipe(Effect.provide(layerFile(walPath)))

const recover = (replicaDbPath: string) =>
  Effect.gen(function* () {
    const log = yield* Recovery.recover({ walPath, replicaDbPath }, yield* Wal, yield* Replica, false)
    if (log.head !== count || (yield* (yield* Replica).applied) !== count)
      throw new Error(`recovered ${log.head} of ${count}`)
  }).pipe(Effect.provide(Layer.mergeAll(layerFile(walPath), layerReplica(replicaDbPath))))

const plain = Effect.sync(() => {
  let read = 0
  for (const name of readdirSync(folder)) {
    if (!name.startsWith("wal.log") || name.endsWith(".lock")) continue
    for (const text of readFileSync(join(folder, name), "utf8").split("\n").slice(1)) {
      const at = text.indexOf("{")
      if (at > 0) read += (JSON.parse(text.slice(at)) as { readonly op: string }).op === "UPDATE" ? 1 : 0
    }
  }
  if (read !== count) throw new Error(`read ${read} of ${count}`)
})

const timed = async (effect: Effect.Effect<void, unknown>): Promise<number> => {
  const start = performance.now()
  await Effect.runPromise(effect.pipe(Logger.withMinimumLogLevel(LogLevel.Warning)))
  return (performance.now() - start) / 1000
}

try {
  await Effect.runPromise(fill)
  const figures = { plain: [] as Array<number>, whole: [] as Array<number>, empty: [] as Array<number> }
  for (let round = 0; round < rounds; round++) {
    figures.plain.push(await timed(plain))
    figures.empty.push(await timed(recover(join(folder, `replica-${round}`))))
    figures.whole.push(await timed(recover(join(folder, `replica-${round}`))))
  }
  console.log(JSON.stringify(figures))
} finally {
  rmSync(folder, { recursive: true, force: true })
}
