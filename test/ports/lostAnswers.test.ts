/**
 * An append whose answer is cut off at any byte: the record is in the log, once, and the next one behind it.
 *
 * Every byte with `SVC_CAMPAIGN=1`; by default a few, the first and the last among them.
 */
import { Chunk, Effect, Stream } from "effect"
import { afterAll, describe, expect, test } from "vitest"
import { campaign } from "../../kit/data/random.ts"
import * as Postgres from "../../kit/processes/postgres.ts"
import { TcpProxy } from "../../kit/processes/tcpProxy.ts"

const missing = Postgres.isReachable ? "" : " (skipped: no PostgreSQL at 127.0.0.1:5432; SVC_TEST_POSTGRES names one)"

describe.skipIf(!Postgres.isReachable)(`answers of PostgreSQL that are cut off${missing}`, () => {
  afterAll(Postgres.forget)

  test(
    "D60 an append whose answer is cut off at any byte is there once",
    () =>
      Effect.gen(function* () {
        const { hostname, port } = new URL(Postgres.address)
        const proxy = yield* Effect.acquireRelease(
          Effect.promise(() => TcpProxy.to(hostname, Number(port || 5432))),
          (open) => Effect.promise(() => open.close())
        )
        const url = new URL(Postgres.freshLog())
        url.host = `127.0.0.1:${proxy.port}`
        // A lease so long that no beat comes between.
        const { wal } = yield* Postgres.leading(url.href, "one", 600_000)
        const lines: Array<string> = []
        const append = Effect.suspend(() => {
          lines.push(String(lines.length + 1))
          return wal.append([lines.at(-1)!])
        })
        // Each connection prepares the statement at its first use, whose answer is longer.
        for (let i = 0; i < 20; i++) yield* append
        const before = proxy.answered
        yield* append
        const length = proxy.answered - before
        expect(length).toBeGreaterThan(30)
        const step = campaign ? 1 : Math.ceil(length / 6)
        const cuts = [...Array.from({ length: Math.ceil(length / step) }, (_, i) => i * step), length - 1]
        for (const at of cuts) {
          proxy.cutAfter(at, true)
          expect(yield* append, `cut after ${at} of ${length} bytes`).toBe(lines.length)
          proxy.cutAfter(Number.POSITIVE_INFINITY, true)
          expect(yield* append).toBe(lines.length)
        }
        const read = yield* Stream.runCollect(wal.read(0))
        expect(Chunk.toReadonlyArray(read)).toEqual(lines.map((json, i) => ({ seq: i + 1, json })))
      }).pipe(Effect.scoped, Effect.runPromise),
    600_000
  )
})
