/**
 * Limits connections, in all and from one address, and keeps a few more for probes.
 *
 * Node's own limit silently closes connections beyond it, probes included: a client that fills it makes a healthy
 * process look dead. Here a connection beyond a limit is lent for one request: a probe is answered, any other request
 * is told the limit, and the connection closes. When all lent connections are taken, the oldest is closed, so a probe
 * that asks at once gets through however many others wait. Cost: O(1) per connection, none per request.
 */
import type { Server } from "node:http"
import { Socket } from "node:net"
import { clientOf } from "../../core/access/rateLimit.ts"
import { tcpSocketOf } from "./tlsServer.ts"

/** Most connections beyond the limits, and the time each has to ask. */
const lentConnections = 32
const lentMs = 5000

interface ConnectionBounds {
  readonly maxConnections: number
  /** 0: half of all. */
  readonly maxConnectionsPerAddress: number
}

export class ConnectionLimits {
  private readonly max: number
  private readonly share: number
  private open = 0
  private readonly byClient = new Map<string, number>()
  /** Lent connections, oldest first, each with the limit it exceeded. */
  private readonly lent = new Map<object, string>()

  constructor(server: Server, { maxConnections, maxConnectionsPerAddress }: ConnectionBounds) {
    this.max = maxConnections
    this.share = maxConnectionsPerAddress > 0 ? maxConnectionsPerAddress : Math.ceil(maxConnections / 2)
    server.on("connection", (socket: Socket) => this.connected(socket))
  }

  /** Why this connection may only carry a probe; undefined: it may carry any request. */
  refusal(socket: Socket): string | undefined {
    return this.lent.size === 0 ? undefined : this.lent.get(tcpSocketOf(socket))
  }

  private connected(socket: Socket): void {
    const client = clientOf(socket.remoteAddress ?? "")
    const own = this.byClient.get(client) ?? 0
    if (own >= this.share)
      return this.lend(
        socket,
        `${own} connections are open from the address of this client, the limit for one address is ${this.share} (setting SVC_MAX_CONNECTIONS_PER_ADDRESS)`
      )
    if (this.open >= this.max)
      return this.lend(
        socket,
        `${this.open} connections are open, the limit is ${this.max} (setting SVC_MAX_CONNECTIONS)`
      )
    this.open++
    this.byClient.set(client, own + 1)
    socket.once("close", () => {
      this.open--
      const left = (this.byClient.get(client) ?? 1) - 1
      if (left > 0) this.byClient.set(client, left)
      else this.byClient.delete(client)
    })
  }

  private lend(socket: Socket, met: string): void {
    for (const oldest of this.lent.keys()) {
      if (this.lent.size < lentConnections) break
      this.lent.delete(oldest)
      if (oldest instanceof Socket) oldest.destroy()
    }
    this.lent.set(socket, met)
    const late = setTimeout(() => socket.destroy(), lentMs)
    socket.once("close", () => {
      clearTimeout(late)
      this.lent.delete(socket)
    })
  }
}
