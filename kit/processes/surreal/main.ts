/**
 * The database server of the tests as a process of its own, so that it can be killed and stopped like one.
 *
 * Started by `ServerProcess.ts` with its options as the only argument; says its port when it listens, and takes orders
 * (slow down, end sessions, cut connections) over the channel to its parent, whose end is its own end.
 */
import { RpcServer, type ServerOptions } from "./RpcServer.ts"

export type Order =
  | { readonly slow: number }
  | { readonly expire: true }
  | { readonly cut: true }
  | { readonly count: true }

const server = await RpcServer.start(JSON.parse(process.argv[2] ?? "{}") as ServerOptions)
process.on("message", (order: Order) => {
  if ("slow" in order) server.slow(order.slow)
  else if ("expire" in order) server.expireSessions()
  else if ("cut" in order) server.cut()
  process.send?.({ requests: [...server.calls.values()].reduce((sum, count) => sum + count, 0) })
})
process.on("disconnect", () => process.exit())
process.send?.({ port: server.port })
