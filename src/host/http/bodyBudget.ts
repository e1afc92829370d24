/**
 * Limits the bytes of unfinished request bodies on a server: in all, and for one address if callers need no secret.
 *
 * Each body is bounded by itself, but many at once are not: a client that begins a body and never ends it makes the
 * server hold its bytes until the time-out. So received bytes are counted until the body is whole or its connection is
 * gone; announced bytes cost nothing and are not counted. Cost: two additions per chunk, nothing per request without
 * one.
 */
import type { IncomingMessage, Server } from "node:http"
import type { Socket } from "node:net"
import { Server as TlsServer } from "node:tls"
import { clientOf } from "../../core/access/rateLimit.ts"

/** Bytes counted for a chunk beside its content, so that a body in tiny pieces is not free. */
const chunkOverhead = 128

interface BodyBounds {
  /** Most bytes of unfinished bodies, at least those of one body. */
  readonly total: number
  /** Most bytes for one client address; undefined if every caller needs a secret. */
  readonly perAddress: number | undefined
}

/**
 * Bytes beside the largest body that an SSP allows for its envelope; with an eighth for the overhead of chunks one body
 * always fits.
 */
const envelopeBytes = 65_536

/** If callers need no secret, the total is divided by this number for one address. */
const shareOfStranger = 4

export const boundsOf = (total: number, maxBodyBytes: number, isOpen: boolean): BodyBounds => {
  const least = Math.ceil(maxBodyBytes * 1.125) + envelopeBytes
  return {
    total: Math.max(total, least),
    perAddress: isOpen ? Math.max(Math.floor(total / shareOfStranger), least) : undefined
  }
}

const accounts = new WeakMap<Socket, Account>()

/** Account of the request's connection; undefined if its server counts nothing. */
export const accountOf = ({ socket }: IncomingMessage): Account | undefined => accounts.get(socket)

/** Bytes that one connection holds. */
class Account {
  private held = 0
  private closed = false

  constructor(
    private readonly budget: BodyBudget,
    private readonly client: string
  ) {}

  /** Counts a chunk, or answers which limit it would exceed. */
  take(chunk: number): string | undefined {
    const bytes = chunk + chunkOverhead
    const refused = this.closed ? undefined : this.budget.take(this.client, bytes)
    if (refused === undefined && !this.closed) this.held += bytes
    return refused
  }

  /** Gives back the bytes that {@link take} counted for `chunks` chunks of `bytes` bytes together. */
  giveBack(bytes: number, chunks: number): void {
    const freed = Math.min(this.held, bytes + chunks * chunkOverhead)
    this.held -= freed
    this.budget.giveBack(this.client, freed)
  }

  close(): void {
    this.closed = true
    this.giveBack(this.held, 0)
  }
}

export class BodyBudget {
  private readonly byClient = new Map<string, number>()
  private sum = 0

  constructor(private readonly bounds: BodyBounds) {}

  /** Bytes held now. */
  get held(): number {
    return this.sum
  }

  /** Opens an account for every connection of `server`. */
  follow(server: Server): void {
    server.on(server instanceof TlsServer ? "secureConnection" : "connection", (socket: Socket) => {
      const account = new Account(this, clientOf(socket.remoteAddress ?? ""))
      accounts.set(socket, account)
      socket.once("close", () => account.close())
    })
  }

  take(client: string, bytes: number): string | undefined {
    const { perAddress, total } = this.bounds
    if (this.sum + bytes > total)
      return `unfinished request bodies hold ${this.sum} bytes, the limit is ${total} (setting SVC_MAX_BODY_BYTES_TOTAL)`
    if (perAddress !== undefined) {
      const own = this.byClient.get(client) ?? 0
      if (own + bytes > perAddress)
        return `unfinished request bodies from the address of this client hold ${own} bytes, the limit for one address is ${perAddress} where no secret is asked for (a quarter of SVC_MAX_BODY_BYTES_TOTAL)`
      this.byClient.set(client, own + bytes)
    }
    this.sum += bytes
    return undefined
  }

  giveBack(client: string, bytes: number): void {
    this.sum -= bytes
    if (this.bounds.perAddress === undefined || bytes === 0) return
    const left = (this.byClient.get(client) ?? bytes) - bytes
    if (left > 0) this.byClient.set(client, left)
    else this.byClient.delete(client)
  }
}
