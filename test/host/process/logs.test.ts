/**
 * Log lines: one record, one line, whatever a client put into it.
 *
 * Why: `/log` takes text from clients, and a line break in it must not become a second, made-up record.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Logger, LogLevel } from "effect"
import * as Logs from "../../../src/host/process/logs.ts"

const written = (format: Logs.Format, log: Effect.Effect<void>) =>
  Effect.gen(function* () {
    const out: Array<string> = []
    const logger = Logger.map(Logs.lines[format], (line) => void out.push(line))
    yield* log.pipe(
      Effect.provide(Logger.replace(Logger.defaultLogger, logger)),
      Logger.withMinimumLogLevel(LogLevel.All)
    )
    return out
  })

const forged = Effect.logWarning('first\n{"level":"error"}\u001b[2J').pipe(
  Effect.annotateLogs({ from: "client", data: { a: "x\ny", level: "y" }, level: "forged" })
)

describe("log lines", () => {
  it.effect("JSON: time, level, message, annotations that cannot replace them", () =>
    Effect.gen(function* () {
      const [line, ...more] = yield* written("json", forged)
      expect([more, line?.includes("\n")]).toEqual([[], false])
      expect(JSON.parse(line ?? "")).toEqual({
        time: expect.any(String),
        level: "warn",
        message: 'first\n{"level":"error"}\u001b[2J',
        from: "client",
        data: { a: "x\ny", level: "y" }
      })
    })
  )
  it.effect("text: control characters are shown, not obeyed", () =>
    Effect.gen(function* () {
      const [line, ...more] = yield* written("text", forged)
      expect(more).toEqual([])
      expect(line).toMatch(/^\d\d:\d\d:\d\d warn {2}first\\n\{"level":"error"\}\\u001b\[2J from=client/)
    })
  )
  it.effect("a cause is there, in both", () =>
    Effect.gen(function* () {
      const log = Effect.sandbox(Effect.die(new Error("deep down"))).pipe(
        Effect.catchAll((cause) => Effect.logError("a fault", cause))
      )
      expect(JSON.parse((yield* written("json", log))[0] ?? "")).toMatchObject({
        level: "error",
        message: "a fault",
        cause: expect.stringContaining("deep down")
      })
      expect((yield* written("text", log))[0]).toContain("deep down")
    })
  )
})

it.effect("text: a value cannot pass for the next key", () =>
  Effect.gen(function* () {
    const [line] = yield* written(
      "text",
      Effect.logInfo("audit").pipe(Effect.annotateLogs({ object: 'a secret=default "' }))
    )
    expect(line).toMatch(/ audit object="a secret=default \\""$/)
  })
)
