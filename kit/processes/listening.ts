/** Servers of Node that stand in for others in a test, on free ports of loopback. */
import type { Server } from "node:http"
import type { AddressInfo } from "node:net"

/** Of `node:http` or `node:https`. */
type Listening = Pick<Server, "address" | "close" | "closeAllConnections" | "listen">

/** Answers the port. */
export const listen = (server: Listening): Promise<number> =>
  new Promise((done) => void server.listen(0, "127.0.0.1", () => done((server.address() as AddressInfo).port)))

/** Waits for no connection. */
export const shut = (server: Listening): Promise<void> =>
  new Promise((done) => {
    server.close(() => done())
    server.closeAllConnections()
  })
