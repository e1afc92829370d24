/**
 * A backend for the jobs of the local cluster: takes alerts over HTTP, takes its time, and does not always succeed.
 *
 * Failures by the number in the key and not by chance, so that each kind is seen within the first ten: a backend that
 * is down for two attempts, one that refuses for good, one that never recovers.
 */
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"

export interface Backend {
  readonly url: string
  readonly close: () => Promise<void>
}

const answerOf = (number: number, attempt: number): number => {
  if (number % 10 === 3 || number % 10 === 7) return attempt <= 2 ? 503 : 200
  if (number % 10 === 5) return 422
  return number % 20 === 9 ? 500 : 200
}

const listening = (server: Server): Promise<number> =>
  new Promise((done, failed) =>
    server.on("error", failed).listen(0, "127.0.0.1", () => done((server.address() as AddressInfo).port))
  )

export const start = async (token: string): Promise<Backend> => {
  const attempts = new Map<string, number>()
  const server = createServer((request, response) => {
    const key = String(request.headers["idempotency-key"])
    const number = Number(/\d+/.exec(key)?.[0] ?? 0)
    const attempt = (attempts.get(key) ?? 0) + 1
    attempts.set(key, attempt)
    if (attempts.size > 1000) attempts.delete(attempts.keys().next().value!)
    request.resume().on("end", () => {
      if (request.headers.authorization !== `Bearer ${token}`) return void response.writeHead(401).end()
      const status = answerOf(number, attempt)
      setTimeout(
        () =>
          response
            .writeHead(status, { "content-type": "application/json" })
            .end(
              JSON.stringify(
                status === 200
                  ? { sent: true }
                  : { reason: status === 422 ? "nobody to alert there" : "the gateway is down" }
              )
            ),
        50 + ((number * 37) % 700)
      )
    })
  })
  const port = await listening(server)
  return {
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((done) => {
        server.closeAllConnections()
        server.close(() => done())
      })
  }
}
