/**
 * A server on the way to another one: what passes can be held back, or the connections cut.
 */
import { createConnection, createServer, type Server, type Socket } from "node:net"

export class TcpProxy {
  private readonly server: Server
  private readonly sockets = new Set<Socket>()
  private isHeld = false
  readonly port: number

  private constructor(server: Server, port: number) {
    this.server = server
    this.port = port
  }

  static async to(host: string, port: number): Promise<TcpProxy> {
    const server = createServer()
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done))
    const address = server.address()
    const proxy = new TcpProxy(server, typeof address === "object" && address !== null ? address.port : 0)
    server.on("connection", (client) => {
      const upstream = createConnection({ host, port })
      for (const [from, to] of [
        [client, upstream],
        [upstream, client]
      ] as const) {
        proxy.sockets.add(from)
        if (proxy.isHeld) from.pause()
        from.on("data", (chunk) => to.write(chunk))
        from.on("error", () => to.destroy())
        from.on("close", () => {
          proxy.sockets.delete(from)
          to.destroy()
        })
      }
      if (proxy.isHeld) for (const each of [client, upstream]) each.pause()
    })
    return proxy
  }

  /** Nothing passes, in either direction; connections stay. */
  hold(): void {
    this.isHeld = true
    for (const socket of this.sockets) socket.pause()
  }

  release(): void {
    this.isHeld = false
    for (const socket of this.sockets) socket.resume()
  }

  close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy()
    return new Promise((done) => this.server.close(() => done()))
  }
}
