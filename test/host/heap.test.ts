/** What a start says of its heap beside what the container has (D43). */
import { totalmem } from "node:os"
import { Effect, Layer, Logger } from "effect"
import { expect, it } from "vitest"
import * as Heap from "../../src/host/process/heap.ts"

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
