/**
 * Connections to addresses that were judged under a name (`drivers/shared/judge.ts`): the name is not resolved again.
 *
 * A pool for each origin, and a new one when its name gets other addresses: a kept connection must never carry requests
 * meant for the new addresses.
 */

import { isIPv6, type LookupFunction } from "node:net"
import { Dispatcher, Pool } from "@effect/platform-node/Undici"

/** A look-up that answers known addresses, in both forms that a connection may ask for. */
const lookupOf =
  (addresses: ReadonlyArray<string>): LookupFunction =>
  (hostname, { all }, done) => {
    const found = addresses.map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }))
    const [first] = found
    if (first === undefined) return done(new Error(`the name ${hostname} is unknown`), "")
    if (all === true) done(null, found)
    else done(null, first.address, first.family)
  }

/** Most origins with kept connections; the oldest make room. */
const maxOrigins = 1000

interface OriginPool {
  readonly addresses: string
  readonly pool: Pool
}

export class JudgedPools {
  private readonly byOrigin = new Map<string, OriginPool>()
  /** Replaced pools whose requests have not ended. */
  private readonly leaving = new Set<Pool>()

  constructor(private readonly optionsWith: (lookup: LookupFunction) => Pool.Options) {}

  at(origin: string, judged: ReadonlyArray<string>): Pool {
    const addresses = [...judged].sort().join(" ")
    const kept = this.byOrigin.get(origin)
    if (kept?.addresses === addresses) return kept.pool
    if (kept !== undefined) this.leave(origin, kept)
    for (const [oldest, each] of this.byOrigin) {
      if (this.byOrigin.size < maxOrigins) break
      this.leave(oldest, each)
    }
    const pool = new Pool(origin, this.optionsWith(lookupOf(judged)))
    this.byOrigin.set(origin, { addresses, pool })
    return pool
  }

  /** A dispatcher for a client that connects to `judged` only. */
  dispatcher(judged: ReadonlyArray<string>): Dispatcher {
    const at = (origin: string): Pool => this.at(origin, judged)
    return new (class extends Dispatcher {
      override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
        return at(String(options.origin)).dispatch(options, handler)
      }
    })()
  }

  async destroy(): Promise<void> {
    const all = [...this.leaving, ...[...this.byOrigin.values()].map(({ pool }) => pool)]
    this.byOrigin.clear()
    await Promise.all(all.map((pool) => pool.destroy()))
  }

  /** Closes a pool once its requests have ended. */
  private leave(origin: string, { pool }: OriginPool): void {
    this.byOrigin.delete(origin)
    this.leaving.add(pool)
    void pool.close().finally(() => this.leaving.delete(pool))
  }
}
