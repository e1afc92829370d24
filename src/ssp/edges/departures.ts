/**
 * Registrations that come and go in the database: written when a view is registered, removed some time after it was
 * taken back.
 *
 * Why some time after: the client that took it back may still have a transaction open around it (a function of ours
 * posts to us from one), and its commit goes first. A view that is registered again meanwhile stays.
 */
import { Effect, Either } from "effect"
import type { UpstreamError, UpstreamShape } from "../../ports/Upstream.ts"
import { type Bell, backoff } from "./bell.ts"
import type { EdgesShape } from "./EdgeWriter.ts"

/** Registrations removed in one go. */
const size = 50
const pauseMs = 50

export class Departures {
  private readonly leaving = new Set<string>()
  /** Keys that are being registered: they do not leave meanwhile. */
  private readonly arriving = new Set<string>()
  private isPrepared = false
  private readonly departure = Effect.unsafeMakeLatch(true)
  /** One removal at a time: two of one registration write its row, and the database refuses one of them. */
  private readonly removing = Effect.unsafeMakeSemaphore(1)

  constructor(
    private readonly upstream: UpstreamShape,
    private readonly owner: string,
    private readonly bell: Bell,
    /** Open while no edges are on their way: those of a view that goes arrive before it goes. */
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

  /** An SSP of a cluster reads no records there, so the first registration is what first needs our tables. */
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

  /** Removes every registration of this owner, known or not. */
  readonly clear: Effect.Effect<void, UpstreamError> = Effect.gen(this, function* () {
    const registrations = yield* this.upstream.registrations
    const keys = registrations.filter(({ owner }) => owner === this.owner).map(({ key }) => key)
    for (let i = 0; i < keys.length; i += size) yield* this.remove(keys.slice(i, i + size))
    for (const key of keys) this.leaving.delete(key)
  })

  /** In turn, and behind the edges that are on their way. */
  private remove(keys: ReadonlyArray<string>): Effect.Effect<void, UpstreamError> {
    return this.removing.withPermits(1)(Effect.zipRight(this.flight.await, this.upstream.unregister(keys, this.owner)))
  }

  /** One try at all that are left, when the service stops. */
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
