/**
 * Keeps this SSP's views and the registrations in the database equal (D20): at a start the database wins, later
 * registrations deleted or inserted there are followed.
 *
 * Apart from the records, because a registration has an owner: one that another SSP has claimed stays with it, and the
 * edge writer drops the view here.
 */
import { Duration, Effect, Either } from "effect"
import * as JsonText from "../../core/jsonText.ts"
import type { OwnedRegistration, Upstream, UpstreamError } from "../../ports/Upstream.ts"
import type { JsonParams } from "../views/registering.ts"
import type { Views } from "../views/Views.ts"
import { formatNamed, type StoreFailed } from "../viewTypes.ts"

interface SyncDependencies {
  readonly upstream: Upstream["Type"]
  readonly views: Views["Type"]
  readonly sspId: string
  readonly momentMs: number
  /** Whether a view's removal has not yet reached the database. */
  readonly isLeaving: (key: string) => boolean
}

type Failure = UpstreamError | StoreFailed

const isParams = (value: unknown): value is JsonParams => typeof value === "object" && !Array.isArray(value)

const parse = (text: string): Either.Either<unknown, unknown> => Either.try(() => JsonText.parse(text))

/** Adds and removes views of this SSP by comparison with the registrations in the database. */
export class RegistrationSync {
  /** Queries of registrations that were refused, by key. */
  private readonly refused = new Map<string, string>()

  constructor(private readonly parts: SyncDependencies) {}

  /**
   * Removes views without a registration and adds those of registrations of any owner: a registration is in the
   * database before it is answered.
   */
  readonly restore: Effect.Effect<void, Failure> = Effect.gen(this, function* () {
    const { come, gone } = yield* this.differing(() => true)
    yield* this.settle(gone, come)
  })

  /**
   * Does the same as {@link restore} while clients come and go: a difference counts only if it lasts for a moment.
   * Registrations of other SSPs are left alone.
   */
  readonly follow: Effect.Effect<void, Failure> = Effect.gen(this, function* () {
    const free = ({ key, owner, surql }: OwnedRegistration): boolean =>
      (owner === undefined || owner === this.parts.sspId) && this.refused.get(key) !== surql
    const first = yield* this.differing(free)
    if (first.gone.length + first.come.length === 0) return
    yield* Effect.sleep(Duration.millis(this.parts.momentMs))
    const second = yield* this.differing(free)
    const come = new Set(first.come.map(({ key }) => key))
    yield* this.settle(
      second.gone.filter((key) => first.gone.includes(key)),
      second.come.filter(({ key }) => come.has(key))
    )
  })

  private differing(
    free: (registration: OwnedRegistration) => boolean
  ): Effect.Effect<
    { readonly gone: ReadonlyArray<string>; readonly come: ReadonlyArray<OwnedRegistration> },
    UpstreamError
  > {
    return Effect.gen(this, function* () {
      const { isLeaving, upstream, views } = this.parts
      // Views are listed first: a view registered between the two reads is in the database by the second.
      const ours = new Set((yield* views.registrations).map(({ key }) => key))
      const theirs = yield* upstream.registrations
      const there = new Set(theirs.map(({ key }) => key))
      return {
        gone: [...ours].filter((key) => !there.has(key)),
        come: theirs.filter((one) => !ours.has(one.key) && !isLeaving(one.key) && free(one))
      }
    })
  }

  private settle(
    gone: ReadonlyArray<string>,
    come: ReadonlyArray<OwnedRegistration>
  ): Effect.Effect<void, StoreFailed> {
    return Effect.gen(this, function* () {
      for (const key of gone) yield* this.parts.views.unregister(key, true)
      if (gone.length > 0)
        yield* Effect.logInfo(`${gone.length} views have no registration in the database any more and are gone`).pipe(
          Effect.annotateLogs("views", gone.slice(0, 20))
        )
      const taken = (yield* Effect.forEach(come, (registration) => this.take(registration), {
        concurrency: 16
      })).filter((yes) => yes).length
      if (come.length > 0)
        yield* Effect.logInfo(`${taken} of ${come.length} registrations of the database became views`)
    })
  }

  private take(registration: OwnedRegistration): Effect.Effect<boolean, StoreFailed> {
    const { clientId, format, id, key, lastActiveAtMs, params, surql, ttlMs } = registration
    const parsed = parse(params)
    const refuse = (why: string): Effect.Effect<boolean> => {
      this.refused.set(key, surql)
      return Effect.as(Effect.logWarning(`the registration of ${id} in the database is not served: ${why}`), false)
    }
    if (Either.isLeft(parsed) || !isParams(parsed.right)) return refuse("its parameters are no JSON object")
    return this.parts.views
      .register({ id, surql, clientId, ttlMs, params: parsed.right, lastActiveAtMs, format: formatNamed(format) })
      .pipe(
        Effect.as(true),
        Effect.catchTags({
          // An SSP that reads its database holds every table.
          TablesJoining: Effect.die,
          QueryRefused: ({ column, line, message }) => refuse(`${message} (line ${line}, column ${column})`),
          ViewQuarantined: ({ ends }) =>
            refuse(
              `its query is quarantined, the process ended ${ends} times while it evaluated it; POST /view/free lets it be registered again`
            ),
          Overloaded: ({ message }) =>
            Effect.as(
              Effect.logWarning(`the registration of ${id} in the database is not served for now: ${message}`),
              false
            )
        })
      )
  }
}
