/**
 * The heap of a process (D43): what a start says of it beside what the container has, and what is left of it when much
 * has been let go.
 */
import { spawnSync } from "node:child_process"
import { totalmem } from "node:os"
import { Effect, Layer, Logger } from "effect"
import { expect, it } from "vitest"
import { root } from "../../../kit/rules/source.ts"
import type { Memory } from "../../../src/core/record/memory.ts"
import * as Heap from "../../../src/host/process/heap.ts"

const warned = (percent: number, limits: ReadonlyArray<string>): Promise<ReadonlyArray<string>> => {
  const lines: Array<string> = []
  const logger = Logger.make(({ logLevel, message }) => void lines.push(`${logLevel.label} ${String(message)}`))
  return Effect.runPromise(
    Effect.as(Effect.scoped(Layer.build(Heap.layer(percent, limits))), lines).pipe(
      Effect.provide(Logger.replace(Logger.defaultLogger, logger))
    )
  )
}

it("D43 a start warns where V8 keeps the heap far below the container's memory, and nowhere else", async () => {
  const container = [`${totalmem() - 1}\n`]
  expect(await warned(100, container)).toEqual([
    expect.stringMatching(
      /^WARN the heap may take \d+ MiB, though SVC_MAX_MEMORY .* the container's \d+ MiB: start with /
    )
  ])
  expect(await warned(1, container), "a share that V8 allows").toEqual([])
  expect(await warned(100, ["max\n"]), "no container").toEqual([])
})

/**
 * In a process of its own, with a small heap: fills it with records until `isEnough`, lets them go, and writes what is
 * left.
 */
const filling = (isEnough: string): string => `
  import { Effect, Layer, Context } from "effect"
  import * as Heaps from "./dist/host/process/heap.js"
  import { Heap } from "./dist/ports/ProcessFigures.js"
  const program = Effect.gen(function* () {
    const heap = Context.get(yield* Layer.build(Heaps.layer(75)), Heap)
    const left = []
    // Among what goes there is some that stays, as there is in a service.
    let going = []
    const isEnough = ${isEnough}
    for (let n = 0; !isEnough(heap.measured()) && n < 100_000; n++) {
      going.push(Array.from({ length: 5 }, (_, i) => JSON.parse('"' + String(n + i).padEnd(4_000, "x") + '"')))
      left.push({ n, text: JSON.parse('"' + String(n).padEnd(60, "y") + '"') })
    }
    if (!heap.memory().isFull) heap.released()
    const full = heap.memory()
    going = []
    heap.released()
    console.log(JSON.stringify({ full, then: heap.memory(), left: left.length }))
  })
  await Effect.runPromise(Effect.scoped(program))
`

const filled = (isEnough: string): Record<"full" | "then", Memory> & { readonly left: number } => {
  const args = ["--max-old-space-size=64", "--input-type=module", "--eval", filling(isEnough)]
  const { status, stderr, stdout } = spawnSync(process.execPath, args, { cwd: root, encoding: "utf8" })
  expect([status, stderr]).toEqual([0, ""])
  return JSON.parse(stdout) as ReturnType<typeof filled>
}

it("D43 a heap is full no more at once when what filled it has been let go", () => {
  const { full, left, then } = filled("({ isFull }) => isFull")
  expect([full.isFull, then.isFull, left > 1_000]).toEqual([true, false, true])
  expect(then.usedBytes).toBeLessThan(full.usedBytes)
})

it("D43 a heap that was nearly full does not count what has been let go", () => {
  const { full, then } = filled("() => going.length === 1_400")
  expect(full.isFull).toBe(false)
  expect(then.usedBytes).toBeLessThan(full.usedBytes * 0.8)
})

/** In a process of its own: a heap that is full and stays so, and how often it is collected while nothing is done. */
const staysFull = `
  import { PerformanceObserver } from "node:perf_hooks"
  import { Effect, Layer, Context } from "effect"
  import * as Heaps from "./dist/host/process/heap.js"
  import { Heap } from "./dist/ports/ProcessFigures.js"
  const program = Effect.gen(function* () {
    const heap = Context.get(yield* Layer.build(Heaps.layer(75)), Heap)
    const held = []
    while (!heap.measured().isFull) held.push(Array.from({ length: 1_000 }, (_, i) => i + 0.5))
    let collections = 0
    new PerformanceObserver((list) => (collections += list.getEntries().length)).observe({ entryTypes: ["gc"] })
    // Collections of before are told of late.
    yield* Effect.sleep("200 millis")
    collections = 0
    yield* Effect.sleep("6 seconds")
    console.log(JSON.stringify({ collections, isFull: heap.memory().isFull, held: held.length }))
  })
  await Effect.runPromise(Effect.scoped(program))
`

it("D43 a heap that stays full is collected about once a second, however long it does", () => {
  const args = ["--max-old-space-size=64", "--input-type=module", "--eval", staysFull]
  const { stderr, stdout } = spawnSync(process.execPath, args, { cwd: root, encoding: "utf8" })
  expect(stderr).toBe("")
  const { collections, isFull } = JSON.parse(stdout) as { readonly collections: number; readonly isFull: boolean }
  expect(isFull).toBe(true)
  expect(collections).toBeGreaterThan(1)
  expect(collections).toBeLessThan(8)
})
