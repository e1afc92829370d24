/**
 * A process that appends to a WAL until it is killed, and prints what was acknowledged: `ack <seq> <record>`.
 *
 * A process of its own because only a real one can be killed with what it has written but not said; plain enough for
 * both runtimes.
 */
import { Effect } from "effect"
import { layerFile } from "../../src/host/wal/WalFile.ts"
import { Wal } from "../../src/ports/Wal.ts"

const lanes = 16
const [path = "", most = "Infinity"] = process.argv.slice(2)

const lane = (wal: Wal["Type"], own: number): Effect.Effect<void, unknown> =>
  Effect.gen(function* () {
    for (let n = 0; n < Number(most); n++) {
      const records = Array.from({ length: 1 + (n % 3) }, (_, i) =>
        JSON.stringify({ lane: own, n, i, pad: "p".repeat((own * 37 + n) % 300) })
      )
      const last = yield* wal.append(records)
      process.stdout.write(records.map((record, i) => `ack ${last - records.length + 1 + i} ${record}\n`).join(""))
      if (n % 50 === 49 && own === 0) yield* wal.dropBefore(Math.max(1, last - 2_000))
    }
  })

const program = Effect.gen(function* () {
  const wal = yield* Wal
  process.stdout.write(`log ${wal.logId} ${yield* wal.keptAfter} ${yield* wal.lastSeq}\n`)
  yield* Effect.forEach(
    Array.from({ length: lanes }, (_, i) => i),
    (i) => lane(wal, i),
    { concurrency: "unbounded", discard: true }
  )
})
Effect.runPromise(program.pipe(Effect.provide(layerFile(path, { segmentBytes: 64 * 1024 })))).catch(
  (error: unknown) => {
    process.stderr.write(`${String(error)}\n`)
    process.exitCode = 1
  }
)
