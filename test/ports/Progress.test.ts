/**
 * Long work tells how far it is (D34): lines of the log every 5 s in virtual time, figures, counts, and the bar of a
 * terminal.
 */
import { Effect, Exit, Layer, Logger, Scope } from "effect"
import { describe, expect, it } from "vitest"
import { VirtualTime } from "../../kit/data/virtualTime.ts"
import * as Core from "../../src/core/telemetry/meters.ts"
import { bar, line, paceOf, type Task, timeText } from "../../src/core/telemetry/progress.ts"
import { TerminalBar } from "../../src/host/process/terminalBar.ts"
import { Meters } from "../../src/ports/Meters.ts"
import { type Display, Progress, ProgressDisplay } from "../../src/ports/Progress.ts"
import { taskOf } from "../../src/protocol/progress.ts"

const task = (more: Partial<Task> = {}): Task => ({
  kind: "clone",
  what: "the database",
  unit: "records",
  at: undefined,
  done: 0,
  total: undefined,
  elapsedMs: 0,
  ...more
})

/** A node's worth of progress in virtual time. */
const started = async (display?: Display) => {
  const time = new VirtualTime()
  const logs: Array<string> = []
  const meters = Core.make()
  const scope = Effect.runSync(Scope.make())
  const log = Logger.replace(
    Logger.defaultLogger,
    Logger.make(({ message }) => void logs.push(String(message)))
  )
  const layer = Progress.layer.pipe(
    Layer.provide(
      Layer.mergeAll(
        time.layer,
        log,
        Layer.succeed(Meters, meters),
        display === undefined ? Layer.empty : Layer.succeed(ProgressDisplay, display)
      )
    )
  )
  const progress = await Effect.runPromise(
    Effect.flatMap(Layer.buildWithScope(layer, scope), (context) => Effect.provide(Progress, context))
  )
  const during: typeof Progress.during = (kind, what, unit, work) =>
    Effect.provideService(Progress.during(kind, what, unit, work), Progress, progress)
  return { time, logs, meters, progress, during, close: () => Effect.runPromise(Scope.close(scope, Exit.void)) }
}

describe("progress", () => {
  it("D34 one line of the log per 5 s of running work: items done, rate, and remaining time", async () => {
    const { close, logs, meters, progress, time } = await started()
    const work = progress.open("clone", "the database", "records")
    work.expect(10_000)
    work.at("table t")
    for (let second = 0; second < 12; second++) {
      await time.advance(1000)
      work.add(500)
    }
    expect(logs).toEqual([
      "clone of the database (table t): 2,000 of 10,000 records, 20 % in 5 s, 400 records/s, about 20 s left",
      "clone of the database (table t): 4,500 of 10,000 records, 45 % in 10 s, 450 records/s, about 12 s left"
    ])
    expect(progress.tasks().map(taskOf)).toEqual([
      {
        kind: "clone",
        of: "the database",
        at: "table t",
        unit: "records",
        done: 6000,
        total: 10_000,
        elapsed_seconds: 12,
        per_second: 500,
        remaining_seconds: 8
      }
    ])
    work.close(true)
    await time.advance(60_000)
    expect([logs.length, progress.tasks(), progress.endedAt("clone")]).toEqual([2, [], 12_000])
    expect([
      meters.taskDuration.clone.sum,
      meters.taskDuration.clone.counts.reduce((a, b) => a + b),
      meters.taskFailures.clone.value
    ]).toEqual([12, 1, 0])
    await close()
  })
  it("D34 work that is over within 5 s says nothing; work that begins later is told of again", async () => {
    const { close, logs, progress, time } = await started()
    progress.open("restore", "the store", "records").close(true)
    await time.advance(30_000)
    expect(logs).toEqual([])
    const work = progress.open("reconcile", "the database", "records")
    await time.advance(5001)
    expect(logs).toHaveLength(1)
    work.close(true)
    await close()
  })
  it("D34 `during` ends with its work: what fails or is cut off counts as such, and closes once", async () => {
    const { close, during, meters, progress, time } = await started()
    const run = <A>(effect: Effect.Effect<A, string>) =>
      Effect.runPromise(Effect.exit(Effect.provide(effect, time.layer)))
    await run(during("recovery", "a", "events", () => Effect.fail("no")))
    await run(during("recovery", "a", "events", () => Effect.interrupt))
    expect(
      await run(
        during("recovery", "a", "events", ({ reach }) => Effect.sync(() => (reach(7), progress.tasks()[0]?.done)))
      )
    ).toEqual(Exit.succeed(7))
    const twice = progress.open("recovery", "a", "events")
    twice.close(true)
    twice.close(false)
    expect([
      progress.tasks(),
      meters.taskFailures.recovery.value,
      meters.taskDuration.recovery.counts[0],
      progress.endedAt("bootstrap")
    ]).toEqual([[], 2, 2, undefined])
    await close()
  })
  it("D34 a display is called while something goes on, and once with nothing when it is over", async () => {
    const shown: Array<number> = []
    const { close, progress, time } = await started({
      everyMs: 200,
      show: (tasks) => Effect.sync(() => void shown.push(tasks.length))
    })
    const work = progress.open("bootstrap", "x", "records")
    await time.advance(650)
    work.close(true)
    await time.advance(5000)
    expect(shown).toEqual([1, 1, 1, 0])
    await close()
  })
})

describe("words and bars", () => {
  it("D34 the rate and the remaining time follow from the whole time", () => {
    expect(paceOf(task())).toEqual({ perSecond: 0, remainingMs: undefined })
    expect(paceOf(task({ done: 100, elapsedMs: 2000 }))).toEqual({ perSecond: 50, remainingMs: undefined })
    expect(paceOf(task({ done: 100, total: 300, elapsedMs: 2000 }))).toEqual({ perSecond: 50, remainingMs: 4000 })
    expect(paceOf(task({ done: 400, total: 300, elapsedMs: 2000 })).remainingMs).toBe(0)
    expect([59_400, 60_000, 125_000, 3_840_000].map(timeText)).toEqual(["59 s", "1 min 0 s", "2 min 5 s", "1 h 4 min"])
    expect(line(task({ done: 1_234_567, elapsedMs: 61_000 }))).toBe(
      "clone of the database: 1,234,567 records in 1 min 1 s, 20,239 records/s"
    )
  })
  it("D34 a bar fills with its part, wanders where the total is not known, and is cut to the terminal", () => {
    expect(bar(task({ done: 50, total: 100, elapsedMs: 1000 }), 200)).toMatch(
      /^\[#{12}-{12}\] clone of the database: 50 of 100 records, 50 %/
    )
    expect([0, 200, 400].map((elapsedMs) => bar(task({ elapsedMs }), 30).slice(0, 26))).toEqual([
      "[####--------------------]",
      "[-####-------------------]",
      "[--####------------------]"
    ])
    for (const columns of [0, 1, 20, 80])
      expect(bar(task({ done: 5, total: 9 }), columns).length).toBeLessThanOrEqual(Math.max(0, columns - 1))
  })
  it("D34 the log's lines stand above the bar, and it is gone when the work is", () => {
    let text = ""
    const shown = new TerminalBar(
      (more) => void (text += more),
      () => 80
    )
    const wiped = "\r\u001b[K"
    shown.show([])
    shown.above(() => void (text += "before\n"))
    shown.show([task({ done: 1, total: 2, elapsedMs: 1000 }), task()])
    expect(text).toMatch(new RegExp(`^before\\n${wiped.replace("[", "\\[")}\\[#{12}-{12}\\] .*\\(\\+1\\)$`))
    text = ""
    shown.above(() => void (text += "a line\n"))
    expect(text.startsWith(`${wiped}a line\n[####`)).toBe(true)
    text = ""
    shown.show([])
    shown.show([])
    expect(text).toBe(wiped)
  })
})
