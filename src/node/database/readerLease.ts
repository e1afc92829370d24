/**
 * The lease on following a database: waited for, renewed while the service lives, released at its end.
 *
 * Two services beside one database would take each other's rows of the change table and write the same edges, so the
 * second stands by until the first is gone. A service that hung for longer than its lease may find that another has
 * taken over, and ends its process. The clocks of two machines are not compared: the database's own time decides when a
 * lease lapses.
 */
import { Duration, Effect, Either } from "effect"
import { atEnd } from "../../ports/Front.ts"
import { StartFault } from "../../ports/StartFault.ts"
import type { FollowerState, UpstreamError, UpstreamShape, UpstreamTable } from "../../ports/Upstream.ts"
import { uuid } from "../config/configuration.ts"

type NumberedTable = Pick<UpstreamTable, "name" | "id">

/** A table as one line of text, whatever its name holds. */
const lineOf = ({ id, name }: NumberedTable): string => JSON.stringify([name, id])

interface LeaseSettings {
  /** Name of the service, which others are told while they stand by. */
  readonly name: string
  readonly ttlMs: number
  /** Work of the service until it has the lease, for the log. */
  readonly meanwhile: string
}

/** Pause between two questions of a service that stands by. */
const askMs = 500
/** Time limit of the release at the end. */
const releaseMs = 500
/** Most tokens remembered; several exist only if the process was killed in each start before an answer came. */
const maxTokens = 16

export class ReaderLease {
  /** Renewals and deletions of rows write the same row of the database: one at a time, or they would conflict. */
  private readonly turn = Effect.unsafeMakeSemaphore(1)
  private token: string | undefined
  /** Tables whose records this store has, as {@link lineOf} writes them. */
  private known: ReadonlyArray<string> = []

  constructor(
    private readonly upstream: Pick<UpstreamShape, "lease" | "remembered">,
    private readonly settings: LeaseSettings
  ) {}

  /**
   * Waits for the lease. Answers the position that this store noted when rows were last taken; undefined if another
   * service has held the lease since, or if the position is unknown.
   */
  readonly hold: Effect.Effect<number | undefined, UpstreamError> = Effect.suspend(() => {
    const { lease } = this.upstream
    return lease === undefined ? Effect.succeed(undefined) : this.wait(lease)
  })

  private wait(lease: NonNullable<UpstreamShape["lease"]>): Effect.Effect<number | undefined, UpstreamError> {
    return Effect.gen(this, function* () {
      const was = yield* this.remembered
      const token = yield* uuid
      // The token is stored before the question: a process that is killed before the answer holds the lease under this
      // token.
      yield* this.remember([...was, token].slice(-maxTokens))
      let told: string | undefined
      for (;;) {
        const answer = yield* lease.acquire(token, {
          was: this.token === undefined ? was : [...was, this.token],
          ...this.settings
        })
        if (answer.held) {
          this.token = token
          yield* this.remember([token])
          if (told !== undefined) yield* Effect.logInfo(`${told} has let the database go: this service follows it now`)
          // A store that was emptied has lost the state of that position.
          return was.length === 0 ? undefined : answer.position
        }
        if (told !== answer.by)
          yield* Effect.logWarning(
            `${answer.by} follows this database already: this service stands by, ${this.settings.meanwhile}, and takes over when that one has stopped or has not renewed its lease (${Math.ceil(answer.forMs / 1_000)} s to go; SVC_DATABASE_LEASE_SECS)`
          )
        told = answer.by
        yield* Effect.sleep(Duration.millis(Math.min(askMs, Math.max(1, answer.forMs))))
      }
    })
  }

  /** Whether this store has the records of these tables; a table that was dropped and defined again is another one. */
  readonly knows = (tables: ReadonlyArray<NumberedTable>): boolean => {
    const known = new Set(this.known)
    return tables.every((table) => known.has(lineOf(table)))
  }

  /** Notes that the store has the records of these tables, so that a restart need not compare them. */
  note(tables: ReadonlyArray<NumberedTable>): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { known, token } = this
      if (token === undefined || (tables.length === known.length && this.knows(tables))) return Effect.void
      this.known = tables.map(lineOf)
      return this.remember([token])
    })
  }

  /** The tokens under which this store may be known to the database, oldest first; the tables follow in the text. */
  private readonly remembered: Effect.Effect<ReadonlyArray<string>> = Effect.suspend(() =>
    (this.upstream.remembered?.load ?? Effect.succeed(undefined)).pipe(
      Effect.map((text) => {
        const [tokens, ...known] = text?.split("\n") ?? []
        this.known = known
        return tokens?.split(" ") ?? []
      }),
      Effect.catchAll(({ message }) =>
        Effect.as(Effect.logWarning(`the token of the last lease on the database cannot be read: ${message}`), [])
      )
    )
  )

  private remember(tokens: ReadonlyArray<string>): Effect.Effect<void> {
    const text = [tokens.join(" "), ...this.known].join("\n")
    return Effect.catchAll(this.upstream.remembered?.save(text) ?? Effect.void, ({ message }) =>
      Effect.logWarning(
        `the token of the lease on the database cannot be written, so a restart compares everything: ${message}`
      )
    )
  }

  /** Runs work that deletes rows, with the token and the store's position; not beside a renewal. */
  during<A, E, E2>(
    position: Effect.Effect<number, E2>,
    work: (holding: FollowerState | undefined) => Effect.Effect<A, E>
  ): Effect.Effect<A, E | E2> {
    return Effect.suspend(() => {
      const { token } = this
      if (token === undefined) return work(undefined)
      return this.turn.withPermits(1)(Effect.flatMap(position, (at) => work({ token, position: at })))
    })
  }

  /**
   * Notes that the store holds everything up to this position; rows not taken by then are still in the change table.
   */
  complete(position: number): Effect.Effect<void, UpstreamError> {
    return Effect.suspend(() => {
      const { token } = this
      const { lease } = this.upstream
      if (token === undefined || lease === undefined) return Effect.void
      return Effect.flatMap(this.turn.withPermits(1)(lease.renew(token, this.settings.ttlMs, position)), (mine) =>
        mine ? Effect.void : Effect.die(supersededFault)
      )
    })
  }

  /**
   * Renews for ever; fails if another service has taken over. A database that does not answer lets no other service in
   * either.
   */
  readonly keep: Effect.Effect<never, StartFault> = Effect.suspend(() => {
    const { lease } = this.upstream
    if (lease === undefined) return Effect.never
    const { ttlMs } = this.settings
    const once = Effect.suspend(() => {
      const { token } = this
      return token === undefined
        ? Effect.succeed(true)
        : Effect.map(
            Effect.either(this.turn.withPermits(1)(lease.renew(token, ttlMs))),
            (tried) => Either.isLeft(tried) || tried.right || token !== this.token
          )
    })
    return Effect.forever(
      Effect.flatMap(once, (mine) => (mine ? Effect.sleep(Duration.millis(ttlMs / 3)) : Effect.fail(supersededFault)))
    )
  })

  /**
   * Lets other services take the lease at once; if the database cannot be reached, they wait for the lease to lapse.
   */
  readonly release: Effect.Effect<void> = Effect.suspend(() => {
    const { token } = this
    this.token = undefined
    return token === undefined || this.upstream.lease === undefined
      ? Effect.void
      : Effect.ignore(atEnd(this.upstream.lease.release(token), Duration.millis(releaseMs)))
  })
}

/** Ends the process: another service follows the database now and does its work. */
export const supersededFault = new StartFault({
  exitCode: 4,
  message:
    "another service follows this database now, because this one has not renewed its lease in time (SVC_DATABASE_LEASE_SECS): it ends; started again, it stands by"
})
