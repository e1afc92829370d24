/**
 * Registrations in the database: written when a view is registered, deleted some time after it was unregistered.
 *
 * The delay is for a client that unregisters inside a transaction (a function of ours calls us from one): its commit
 * must go first. A view that is registered again meanwhile stays.
 */
import { Effect, Either } from "effect"
import type { UpstreamError, UpstreamShape } from "../../ports/Upstream.ts"
import { backoff, WakeSignal } from "./bell.ts"
import type { EdgesShape } from "./EdgeWriter.ts"

/** Registrations deleted by one statement. */
const size = 50
const pauseMs = 50

export class DatabaseRegistrations {
  private readonly leaving = new Set<string>()
  /** Keys that are being registered: they are not deleted meanwhile. */
  private readonly arriving = new Set<string>()
  private readonly bell = new WakeSignal()
  private isPrepared = false
  private readonly departure = Effect.unsafeMakeLatch(true)
  /** One deletion at a time: two of one registration would conflict in the database. */
  private readonly removing = Effect.unsafeMakeSemaphore(1)

  constructor(
    private readonly upstream: UpstreamShape,
    private readonly owner: string,
    /** Open while no edges are being written: a view's last edges arrive before its registration is deleted. */
    private readonly flight: Effect.Latch
  ) {}

  get size(): number {
    return this.leaving.size
  }

  has(key: string): boolean {
    return this.leaving.has(key)
  }

  leave(key: string): void {
    this.leaving.add(key)
    this.bell.ring()
  }

  /** In a cluster nothing else prepares our tables: the SSP reads no records from the database. */
  private readonly prepared: Effect.Effect<void, UpstreamError> = Effect.suspend(() => {
    if (this.isPrepared) return Effect.void
    return Effect.map(this.upstream.prepare, () => void (this.isPrepared = true))
  })

  readonly register: EdgesShape["register"] = (view) =>
    Effect.suspend(() => {
      this.arriving.add(view.key)
      return Effect.zipRight(
        Effect.zipRight(this.prepared, this.departure.await),
        this.upstream.register(view, this.owner)
      ).pipe(
        Effect.tap(() => Effect.sync(() => this.leaving.delete(view.key))),
        Effect.ensuring(
          Effect.sync(() => {
            this.arriving.delete(view.key)
            if (this.leaving.size > 0) this.bell.ring()
          })
        )
      )
    })

  /** Deletes every registration of this owner, known here or not. */
  readonly clear: Effect.Effect<void, UpstreamError> = Effect.gen(this, function* () {
    const registrations = yield* this.upstream.registrations
    const keys = registrations.filter(({ owner }) => owner === this.owner).map(({ key }) => key)
    for (let i = 0; i < keys.length; i += size) yield* this.remove(keys.slice(i, i + size))
    for (const key of keys) this.leaving.delete(key)
  })

  /** Deletes in turn, after the edges that are being written. */
  private remove(keys: ReadonlyArray<string>): Effect.Effect<void, UpstreamError> {
    return this.removing.withPermits(1)(Effect.zipRight(this.flight.await, this.upstream.unregister(keys, this.owner)))
  }

  /** One attempt at all remaining deletions, when the service stops. */
  readonly last: Effect.Effect<void, UpstreamError> = Effect.suspend(() =>
    this.leaving.size === 0 ? Effect.void : this.remove([...this.leaving])
  )

  readonly loop: Effect.Effect<never> = Effect.forever(
    Effect.gen(this, function* () {
      yield* this.bell.wait
      yield* Effect.sleep(pauseMs)
      for (let failed = 0; ; ) {
        const keys = [...this.leaving].filter((key) => !this.arriving.has(key)).slice(0, size)
        if (keys.length === 0) return
        this.departure.unsafeClose()
        const removed = yield* Effect.either(
          Effect.ensuring(
            this.remove(keys),
            Effect.sync(() => this.departure.unsafeOpen())
          )
        )
        if (Either.isRight(removed)) for (const key of keys) this.leaving.delete(key)
        else
          yield* Effect.zipRight(
            Effect.logDebug(`${keys.length} registrations could not be removed: ${removed.left.message}; trying again`),
            backoff(++failed)
          )
      }
    })
  )
}
