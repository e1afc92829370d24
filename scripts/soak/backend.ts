/**
 * The backend of a soak's jobs: answers at once, refuses some for good, and fails others the first time.
 *
 * It keeps nothing but the keys it has failed and not yet seen again, for an hour of jobs must not make it grow.
 */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { jobFailsFirst, jobFailsForGood } from "./world.ts"

export interface Backend {
  readonly url: string
  readonly calls: () => number
  readonly close: () => Promise<void>
}

export const start = async (token: string): Promise<Backend> => {
  const failed = new Set<number>()
  let calls = 0
  const statusOf = (n: number): number => {
    if (jobFailsForGood(n)) return 422
    if (!jobFailsFirst(n) || failed.delete(n)) return 200
    failed.add(n)
    if (failed.size > 10_000) failed.delete(failed.values().next().value!)
    return 503
  }
  const server = createServer({ keepAliveTimeout: 60_000 }, (incoming, response) => {
    const n = Number(/\d+/.exec(String(incoming.headers["idempotency-key"]))?.[0])
    incoming.resume().on("end", () => {
      calls++
      const status = incoming.headers.authorization === `Bearer ${token}` ? statusOf(n) : 401
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify({ n }))
    })
  })
  await new Promise<void>((done, refused) => server.on("error", refused).listen(0, "127.0.0.1", done))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls: () => calls,
    close: () =>
      new Promise((done) => {
        server.closeAllConnections()
        server.close(() => done())
      })
  }
}
