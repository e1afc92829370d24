/**
 * The WAL as processes know it: `kill -9` while many append, two processes on one log, both runtimes, a file system
 * that is full, and the command.
 *
 * Real processes and a real file system, because what is promised here is what the operating system keeps.
 */

import { type ChildProcess, spawn } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, statfsSync, truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Chunk, Effect, Logger, Stream } from "effect"
import { describe, expect, it, onTestFinished } from "vitest"
import { campaign, runs, seeded } from "../../../kit/data/random.ts"
import { compiled } from "../../../kit/processes/compiled.ts"
import { Door, removeFolder, temporaryFolder, until } from "../../../kit/processes/Door.ts"
import { root } from "../../../kit/rules/source.ts"
import { layerFile } from "../../../src/host/wal/WalFile.ts"
import { Wal } from "../../../src/ports/Wal.ts"

const here = "test/host/wal/WalFile.processes.test.ts"
const appender = "test/host/walAppender.ts"
const deno = join(root, "node_modules/.bin/deno")
const runtimes: ReadonlyArray<readonly [string, ReadonlyArray<string>, boolean]> = [
  ["Node", [process.execPath, await compiled(appender)], true],
  ["Deno", [deno, "run", "-A", appender], existsSync(deno)]
]
/** A campaign goes over all of them. */
const chosen = campaign ? runtimes : runtimes.slice(0, 1)

const freshPath = (): string => {
  const folder = temporaryFolder()
  onTestFinished(() => removeFolder(folder))
  return join(folder, "data", "wal.log")
}

interface Run {
  readonly child: ChildProcess
  readonly out: () => string
  readonly errors: () => string
  readonly ended: Promise<void>
}

const start = (command: ReadonlyArray<string>, ...args: ReadonlyArray<string>): Run => {
  const child = spawn(command[0] ?? "", [...command.slice(1), ...args], {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"]
  })
  let out = ""
  let errors = ""
  child.stdout.on("data", (data: Buffer) => (out += data.toString()))
  child.stderr.on("data", (data: Buffer) => (errors += data.toString()))
  const ended = new Promise<void>((done) => child.on("close", () => done()))
  onTestFinished(async () => {
    child.kill("SIGKILL")
    await ended
  })
  return { child, out: () => out, errors: () => errors, ended }
}

const acknowledged = (out: string): ReadonlyMap<number, string> =>
  new Map([...out.matchAll(/^ack (\d+) (.*)\n/gm)].map(([, seq, record]) => [Number(seq), record ?? ""]))

const contents = (path: string) =>
  Effect.runPromise(
    Effect.gen(function* () {
      const wal = yield* Wal
      const keptAfter = yield* wal.keptAfter
      return {
        logId: wal.logId,
        keptAfter,
        last: yield* wal.lastSeq,
        records: Chunk.toReadonlyArray(yield* Stream.runCollect(wal.read(keptAfter)))
      }
    }).pipe(Effect.provide(layerFile(path)), Effect.provide(Logger.remove(Logger.defaultLogger)))
  )

describe("a WAL and its processes", () => {
  for (const [runtime, command, there] of chosen) {
    const rounds = runs(2)
    describe.skipIf(!there)(runtime, () => {
      seeded(
        `${runtime}: kill -9 while 16 append, ${rounds} times over on one log: every acknowledged record is at its seq`,
        here,
        async (random) => {
          const path = freshPath()
          let logId: string | undefined
          let total = 0
          for (let round = 0; round < rounds; round++) {
            const { child, ended, errors, out } = start(command, path)
            const enough = 300 + random.below(2_000)
            await until(
              "acknowledgements",
              () => {
                if (child.exitCode !== null) throw new Error(errors())
                return acknowledged(out()).size >= enough
              },
              60_000
            )
            child.kill("SIGKILL")
            await ended
            const known = acknowledged(out())
            const { keptAfter, last, logId: id, records } = await contents(path)
            expect(last - keptAfter).toBe(records.length)
            for (const [seq, record] of known)
              if (seq > keptAfter) expect(records[seq - keptAfter - 1], `seq ${seq}`).toEqual({ seq, json: record })
            expect(last).toBeGreaterThanOrEqual(Math.max(...known.keys()))
            expect(logId ?? id, "the log stays the same").toBe(id)
            logId = id
            total += known.size
          }
          expect(total).toBeGreaterThan(300 * rounds)
        },
        300_000
      )
    })
  }

  it("a second process is told that the log is taken, also while the first is stopped, and gets it when the first is dead", async () => {
    const path = freshPath()
    const command = runtimes[0]![1]
    const first = start(command, path)
    await until("the first process", () => first.out().startsWith("log "))
    first.child.kill("SIGSTOP")
    const second = start(command, path, "5")
    await second.ended
    expect(second.errors()).toContain(`${path}: another process has this WAL open`)
    expect(second.child.exitCode).toBe(1)
    first.child.kill("SIGKILL")
    await first.ended
    const third = start(command, path, "5")
    await third.ended
    expect([third.child.exitCode, third.errors(), acknowledged(third.out()).size]).toEqual([0, "", 16 * 9])
  })

  for (const [runtime, command, there] of chosen) {
    const door =
      runtime === "Node" ? [process.execPath, "dist/scheduler.js"] : [...command, "src/programs/scheduler/main.ts"]
    it.skipIf(!there)(
      `${runtime}: --verify-wal ends with 0 for a log that is whole, 3 naming file, offset and seq for a damaged one, 2 without a path, and changes nothing`,
      async () => {
        const path = freshPath()
        const writer = start(command, path, "4")
        await writer.ended
        const verify = async (...args: ReadonlyArray<string>) => {
          const run = await Door.spawn({ command: door }, ...args)
          onTestFinished(() => run.close())
          return { code: (await run.exited).code, logs: run.logs }
        }
        const whole = readFileSync(path)
        expect(await verify("--verify-wal", path)).toMatchObject({
          code: 0,
          logs: expect.stringMatching(/records, all as they were written/)
        })
        truncateSync(path, whole.length - 3)
        expect(await verify("--verify-wal", path)).toMatchObject({
          code: 0,
          logs: expect.stringMatching(/offset \d+: \d+ bytes of a write that is not finished/)
        })
        const bad = Buffer.from(whole)
        const offset = bad.indexOf("\n", bad.indexOf("\n") + 1) + 1
        bad[offset + 12]! ^= 1
        writeFileSync(path, bad)
        expect(await verify("--verify-wal", path)).toMatchObject({
          code: 3,
          logs: expect.stringMatching(new RegExp(`wal\\.log, offset ${offset}, seq \\d+: the WAL is damaged`))
        })
        expect(readFileSync(path).equals(bad)).toBe(true)
        expect((await verify("--verify-wal", `${path}.none`)).code).toBe(1)
        expect((await verify("--verify-wal")).code).toBe(2)
      }
    )
  }
})

/**
 * A small file system that may be filled, named by the environment: making one needs rights that a test should
 * not ask for.
 */
const small = process.env["SVC_SMALL_DISK"]
it.skipIf(small === undefined)(
  "a file system that is full refuses, keeps what was acknowledged, and goes on when there is room (SVC_SMALL_DISK)",
  async () => {
    const folder = join(small!, "wal-test")
    onTestFinished(() => removeFolder(folder))
    mkdirSync(folder)
    const record = JSON.stringify("p".repeat(1_000))
    await Effect.runPromise(
      Effect.gen(function* () {
        const wal = yield* Wal
        const { bavail, bsize } = statfsSync(folder)
        writeFileSync(join(folder, "ballast"), Buffer.alloc(Math.max(0, bavail * bsize - 200_000)))
        let last = 0
        const error = yield* Effect.flip(
          Effect.forever(Effect.tap(wal.append([record]), (seq) => Effect.sync(() => void (last = seq))))
        )
        expect(error).toMatchObject({ reason: "full" })
        expect(last).toBeGreaterThan(50)
        expect(yield* wal.lastSeq).toBe(last)
        expect((yield* Effect.flip(wal.append([record]))).reason).toBe("full")
        truncateSync(join(folder, "ballast"), 0)
        expect(yield* wal.append([record])).toBe(last + 1)
        expect(yield* Stream.runCount(wal.read(0))).toBe(last + 1)
      }).pipe(Effect.provide(layerFile(join(folder, "wal.log"))))
    )
  }
)
