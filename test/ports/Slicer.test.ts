/**
 * The slicer: computations in slices, one slice per turn of the event loop, none holding up the others.
 *
 * Turns and time are the test's own: a turn runs when it is asked to, and every step of a computation takes 3 ms.
 */
import { it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { describe, expect } from "vitest"
import { fromRecords } from "../../src/core/surql/evaluate/memory.ts"
import { queryBudget, type Slices } from "../../src/core/surql/evaluate/scope.ts"
import { evaluate, evaluateSliced } from "../../src/core/surql/evaluate/select/select.ts"
import { parseStatements } from "../../src/core/surql/syntax/parse.ts"
import * as RecordIds from "../../src/core/surql/values/recordId.ts"
import { Closed, Slicer } from "../../src/node/work/Slicer.ts"

const made = () => {
  const waiting: Array<() => void> = []
  const log: Array<string> = []
  let now = 0
  const slicer = new Slicer({ next: (run) => void waiting.push(run) }, () => now)
  /** Takes `steps` steps and answers its name; says what becomes of it. */
  const work = (name: string, steps: number) =>
    function* (): Slices<string> {
      let done = false
      try {
        for (let i = 1; i <= steps; i++) {
          now += 3
          log.push(`${name}${i}`)
          if (i < steps) yield
        }
        done = true
        return name
      } finally {
        if (!done) log.push(`${name} let go`)
      }
    }
  const results: Array<unknown> = []
  const start = (name: string, steps: number) =>
    slicer.start(work(name, steps), (exit) => results.push(Exit.isSuccess(exit) ? exit.value : exit.cause))
  const turn = (): string => {
    log.length = 0
    const run = waiting.shift()
    run?.()
    return log.join(" ")
  }
  return { slicer, log, results, start, turn, waiting, work }
}

describe("Slicer", () => {
  it("a slice is 10 ms for all together; work that is not done goes behind the others", () => {
    const { results, start, turn, waiting } = made()
    start("a", 6)
    start("b", 2)
    start("c", 5)
    expect(waiting).toHaveLength(1)
    expect(turn()).toBe("a1 a2 a3 a4")
    expect(turn()).toBe("b1 b2 c1 c2")
    expect(results).toEqual(["b"])
    expect(turn()).toBe("a5 a6 c3 c4")
    expect(turn()).toBe("c5")
    expect(results).toEqual(["b", "a", "c"])
    expect(waiting).toHaveLength(0)
    start("d", 1)
    expect(turn()).toBe("d1")
  })

  it("cancelled work frees what it holds, and is not answered", () => {
    const { slicer, log, results, start, turn } = made()
    const cancel = start("a", 9)
    start("b", 1)
    turn()
    cancel()
    cancel()
    expect(log.at(-1)).toBe("a let go")
    expect(turn()).toBe("b1")
    expect([results, slicer.size]).toEqual([["b"], 0])
  })

  it("after a restart everything begins again", () => {
    const { slicer, log, results, start, turn } = made()
    start("a", 5)
    start("b", 1)
    turn()
    slicer.restart(() => log.push("between"))
    expect(log.slice(-2)).toEqual(["a let go", "between"])
    expect(turn()).toBe("b1 a1 a2 a3")
    expect(turn()).toBe("a4 a5")
    expect(results).toEqual(["b", "a"])
  })

  it.effect("one alone: the others let go, wait, and begin again when it is done", () =>
    Effect.gen(function* () {
      const { log, results, slicer, start, turn, work } = made()
      start("a", 6)
      turn()
      const fiber = yield* Effect.fork(slicer.alone(() => log.push("between"), work("sole", 6)))
      yield* Effect.yieldNow()
      expect(log.slice(-2)).toEqual(["a let go", "between"])
      start("b", 1)
      expect(turn()).toBe("sole1 sole2 sole3 sole4")
      expect(turn()).toBe("sole5 sole6 a1 a2")
      expect(yield* Fiber.join(fiber)).toBe("sole")
      turn()
      turn()
      expect(results).toEqual(["b", "a"])
      const closed = yield* Effect.fork(Effect.flip(slicer.alone(() => {}, work("sole", 6))))
      yield* Effect.yieldNow()
      slicer.close()
      expect([yield* Fiber.join(closed), yield* Effect.flip(slicer.alone(() => {}, work("later", 1)))]).toEqual([
        new Closed(),
        new Closed()
      ])
    })
  )

  it("a close answers waiting work and later work", () => {
    const { slicer, log, results, start, turn } = made()
    start("a", 9)
    turn()
    slicer.close()
    expect(log.at(-1)).toBe("a let go")
    start("b", 1)
    expect(turn()).toBe("")
    expect(results).toMatchObject([{ error: new Closed() }, { error: new Closed() }])
  })

  it("a defect is the answer of the work that has it", () => {
    const { slicer, results, start, turn } = made()
    const defects: Array<unknown> = []
    slicer.start(
      function* (): Slices<string> {
        yield
        throw new Error("broken")
      },
      (exit) => defects.push(exit)
    )
    start("b", 1)
    turn()
    expect(defects).toEqual([Exit.die(new Error("broken"))])
    expect(results).toEqual(["b"])
  })

  it.effect("an interrupted effect lets go of what it holds", () =>
    Effect.gen(function* () {
      const { slicer, log, turn, work } = made()
      const fiber = yield* Effect.fork(slicer.run(work("a", 9)))
      yield* Effect.yieldNow()
      turn()
      yield* Fiber.interrupt(fiber)
      expect(log.at(-1)).toBe("a let go")
    })
  )

  it.effect("D28 a query goes on beside others and answers what it answers without pauses", () =>
    Effect.gen(function* () {
      const { slicer, start, turn, waiting } = made()
      const source = fromRecords(Array.from({ length: 3_000 }, (_, n) => ({ id: RecordIds.make("t", n), v: n % 7 })))
      const [statement] = yield* parseStatements("SELECT v, count() AS n FROM t WHERE v > 2 GROUP BY v")
      const options = () => ({ source, params: {}, budget: queryBudget(), maxRows: 10 })
      const fiber = yield* Effect.fork(slicer.run(() => evaluateSliced(statement!, options())))
      yield* Effect.yieldNow()
      start("a", 20)
      const turns: Array<string> = []
      while (waiting.length > 0) turns.push(turn())
      expect(turns.length).toBeGreaterThan(4)
      expect(yield* Fiber.join(fiber)).toEqual(evaluate(statement!, options()))
    })
  )
})
