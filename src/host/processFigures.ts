/**
 * What this process uses, as Node and Deno tell it.
 *
 * A file of its own so that whoever composes a node of their own can take it or leave it.
 */
import { Effect, Layer } from "effect"
import { ProcessFigures } from "../ports/ProcessFigures.ts"

export const layer = Layer.succeed(ProcessFigures, Effect.sync(() => {
  const { system, user } = process.cpuUsage()
  return { cpuMicros: user + system, residentBytes: process.memoryUsage.rss() }
}))
