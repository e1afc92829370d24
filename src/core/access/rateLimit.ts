/**
 * Rate limit per client: a token bucket per client address, refilled each second with one second's requests.
 *
 * Cost per request: one look-up and one write, O(1). Memory: two generations of buckets, swapped each second. A bucket
 * untouched for a second is full again, and a full bucket is the same as none, so dropping it changes nothing.
 */
import { ipv6Groups } from "../settings/address.ts"

interface Bucket {
  tokens: number
  at: number
}

/** Most buckets; further clients share one, so that made-up addresses cannot fill the memory. */
const maxClients = 100_000
const rest = "rest"
const generationMs = 1000

/**
 * Client of an address: an IPv4 address (also inside IPv6), or the /64 of an IPv6 one, which is what one client is
 * assigned.
 */
export const clientOf = (address: string): string => {
  const v4 = /^(?:::ffff:)?(\d+\.\d+\.\d+\.\d+)$/i.exec(address)
  if (v4 !== null) return v4[1] ?? address
  return ipv6Groups((address.split("%")[0] ?? "").toLowerCase())
    .slice(0, 4)
    .join(":")
}

/** Token buckets of clients. `perSecond`: requests that one client may send each second. */
export class RateLimit {
  private now = new Map<string, Bucket>()
  private before = new Map<string, Bucket>()
  private swappedAt = 0

  constructor(readonly perSecond: number) {}

  /** Counts a request of `client`; returns 0 if it is allowed, else the whole seconds to wait. */
  take(client: string, nowMs: number): number {
    if (nowMs - this.swappedAt >= generationMs) {
      this.before = nowMs - this.swappedAt < 2 * generationMs ? this.now : new Map()
      this.now = new Map()
      this.swappedAt = nowMs
    }
    const key = this.now.has(client) || this.now.size < maxClients ? client : rest
    const bucket = this.now.get(key) ?? this.before.get(key) ?? { tokens: this.perSecond, at: nowMs }
    this.now.set(key, bucket)
    bucket.tokens = Math.min(this.perSecond, bucket.tokens + (Math.max(0, nowMs - bucket.at) * this.perSecond) / 1000)
    bucket.at = nowMs
    if (bucket.tokens < 1) return Math.max(1, Math.ceil((1 - bucket.tokens) / this.perSecond))
    bucket.tokens -= 1
    return 0
  }
}
