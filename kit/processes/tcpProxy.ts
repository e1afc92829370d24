/**
 * A server on the way to another one: what passes can be held back, from the middle of an answer on too, or the
 * connections cut there, or all answers lost.
 */
import { createConnection, createServer, type Server, type Socket } from "node:net"

export class TcpProxy {
  private readonly server: Server
  private readonly sockets = new Set<Socket>()
  private isHeld = false
  /** Bytes that still pass on the way there, or back, before all connections are cut or held; undefined: any number. */
  private left: { readonly isBack: boolean; readonly isHold: boolean; bytes: number } | undefined
  cuts = 0
  private loses: { readonly isBack: boolean } | undefined
  /** Bytes of answers so far. */
  answered = 0
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
        from.on("data", (chunk) => proxy.pass(chunk, from, to, from === upstream))
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

  private pass(chunk: Buffer, from: Socket, to: Socket, isBack: boolean): void {
    const { left } = this
    if (isBack) this.answered += chunk.length
    if (this.loses?.isBack === isBack) return
    if (left === undefined || left.isBack !== isBack || chunk.length < left.bytes) {
      if (left?.isBack === isBack) left.bytes -= chunk.length
      to.write(chunk)
      return
    }
    this.left = undefined
    if (left.isHold) {
      to.write(chunk.subarray(0, left.bytes))
      this.hold()
      from.unshift(chunk.subarray(left.bytes))
      return
    }
    this.cuts++
    // The other end has what came through before its connection ends.
    to.end(chunk.subarray(0, left.bytes), () => {
      for (const socket of this.sockets) socket.destroy()
    })
  }

  /** Cuts all connections once so many more bytes have passed: `isBack` from the server, else to it. */
  cutAfter(bytes: number, isBack: boolean): void {
    this.left = { bytes, isBack, isHold: false }
  }

  /** As {@link hold}, once so many more bytes have passed: `isBack` from the server, else to it. */
  holdAfter(bytes: number, isBack: boolean): void {
    this.left = { bytes, isBack, isHold: true }
  }

  get holds(): boolean {
    return this.isHeld
  }

  /** Answers go nowhere from now on, while what is asked arrives; where `isBack` is false the other way round. */
  lose(isBack = true): void {
    this.loses = { isBack }
  }

  /** All passes again, on new connections: what was lost of the old ones is gone. */
  find(): void {
    this.loses = undefined
    for (const socket of this.sockets) socket.destroy()
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
