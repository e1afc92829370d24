/** Ports of this machine that nothing listens on. */
import { createServer } from "node:net"

export const isFree = (port: number): Promise<boolean> =>
  new Promise((done) => {
    const server = createServer()
    server.on("error", () => done(false))
    server.listen(port, "127.0.0.1", () => server.close(() => done(true)))
  })

/**
 * Gives free ports, each another one: `count` ports from `first` on are tried, beginning behind `at` of them. They
 * should lie below those that the system gives to connections: one of those may be taken again before its process
 * listens.
 */
export const freePorts = (first: number, count: number, at: number): (() => Promise<number>) => {
  let last = at
  return async () => {
    for (let tries = 0; tries < count; tries++) {
      // Others ask while this waits.
      last = (last + 1) % count
      const port = first + last
      if (await isFree(port)) return port
    }
    throw new Error(`no port is free from ${first} to ${first + count - 1}`)
  }
}
