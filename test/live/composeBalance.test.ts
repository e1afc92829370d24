/**
 * A scheduler whose balancing strategy is the deployment's own, as `docs/compose.md` shows it.
 *
 * The text of the page is the file that runs here, but for how a package is imported.
 */

import { readFileSync } from "node:fs"
import { join } from "node:path"
import { HttpApiBuilder, HttpServer } from "@effect/platform"
import { Layer, Logger, LogLevel } from "effect"
import { describe, expect, it } from "vitest"
import { registration } from "../../kit/data/registration.ts"
import { secret, until } from "../../kit/processes/Door.ts"
import { root } from "../../kit/rules/source.ts"
import * as Loopback from "../../src/drivers/loopback.ts"
import * as Memory from "../../src/scheduler/Memory.ts"
import * as Scheduler from "../../src/scheduler/Scheduler.ts"
import * as LeastMemory from "./example/leastMemory.ts"

const quiet = Logger.minimumLogLevel(LogLevel.None)

describe("a balancing strategy of one's own", () => {
  it("D32 takes the place of the configured one: every view is placed by it", async () => {
    const hosts = new Map<string, Loopback.Handler>(
      ["a:1", "b:1"].map((host) => [host, () => Promise.resolve(Response.json({ status: "ready" }))])
    )
    const env = {
      SVC_AUTH_SECRET: secret,
      SVC_SCHEDULER_SSP_POLL_INTERVAL_MS: "20",
      SVC_SCHEDULER_HEARTBEAT_INTERVAL_MS: "20"
    }
    const ports = Layer.mergeAll(Memory.ports(env, Loopback.layer(hosts)), LeastMemory.layer)
    const node = HttpApiBuilder.toWebHandler(
      Layer.mergeAll(Scheduler.layer.pipe(Layer.provide(ports), Layer.provide(quiet)), HttpServer.layerContext)
    )
    const ask = async (path: string, body?: unknown): Promise<unknown> =>
      (
        await node.handler(
          new Request(
            `http://node${path}`,
            body === undefined
              ? {}
              : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }
          )
        )
      ).json()
    try {
      for (const ssp_id of ["a", "b"]) await ask("/ssp/register", { ssp_id, url: `http://${ssp_id}:1` })
      await until("both are ready", async () => JSON.stringify(await ask("/info")).match(/"ready"/g)?.length === 3)
      for (const [ssp_id, memory_usage] of [
        ["a", 300],
        ["b", 100]
      ] as const)
        await ask("/ssp/heartbeat", { ssp_id, timestamp: 1, views: 0, memory_usage })
      const placed = []
      for (let n = 0; n < 4; n++) placed.push(await ask("/view/register", registration(`v${n}`, "SELECT * FROM t")))
      expect(placed.map((each) => (each as { readonly ssp_id: string }).ssp_id)).toEqual(["b", "b", "b", "b"])
    } finally {
      await node.dispose()
    }
  })
  it("is the text that docs/compose.md shows", () => {
    const text = readFileSync(join(root, "test/live/example/leastMemory.ts"), "utf8").replaceAll(
      /"\.\.\/\.\.\/\.\.\/src\/(.*)\.ts"/g,
      '"surreal-live-sidecar/$1"'
    )
    expect(readFileSync(join(root, "docs/compose.md"), "utf8")).toContain(`\`\`\`ts\n${text}\`\`\`\n`)
  })
})
