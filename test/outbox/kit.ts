/**
 * The polling job runner inside a test, on a database server and real backends.
 *
 * Why inside: the door is tested as a process elsewhere; here a look every few milliseconds keeps the tests short.
 */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Effect, Fiber, Layer, Logger, LogLevel } from "effect"
import { rootAccess } from "../../kit/processes/surreal/rootAccess.ts"
import * as HttpBackend from "../../src/drivers/httpBackend.ts"
import * as SurrealJobs from "../../src/drivers/surrealJobs.ts"
import { layerServer } from "../../src/host/surreal/Surreal.ts"
import * as Polling from "../../src/ssp/jobs/polling.ts"

export const pollingRunner = async (
  server: { readonly url: string },
  jobTables: Polling.PollingSettings["jobTables"],
  sspId = "runner"
): Promise<() => Promise<void>> => {
  const client = layerServer({ kind: "server", url: `${server.url}/rpc` }, rootAccess)
  const drivers = Layer.merge(
    Layer.provide(SurrealJobs.layer, client),
    Layer.provide(HttpBackend.layer, NodeHttpClient.layerUndici)
  )
  const fiber = Effect.runFork(
    Effect.scoped(Polling.run({ jobTables, sspId, jobRetryBaseMs: 5, jobMaxRetries: 100, pollMs: 20 })).pipe(
      Effect.provide(drivers),
      Logger.withMinimumLogLevel(LogLevel.None)
    )
  )
  return async () => void (await Effect.runPromise(Fiber.interrupt(fiber)))
}
