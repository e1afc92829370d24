/**
 * Errors of a call through the outbox: all faults at once, as data and as text.
 *
 * Classes of their own, so that a client can tell its own mistake from a refusal by the database.
 */
import { Data } from "effect"

/** One fault. */
export interface Fault {
  /** Such as `payload.to`, `options.max_retries`, `backends.mail.spec`. */
  readonly path: string
  readonly reason: string
}

const textOf = (faults: ReadonlyArray<Fault>): string =>
  faults.map(({ path, reason }) => `${path} ${reason}`).join("; ")

const listed = (known: ReadonlyArray<string>): string =>
  known.length === 0 ? "none is known" : `known: ${known.join(", ")}`

/** The configuration, or one of its OpenAPI documents, cannot be used. */
export class OutboxConfigInvalid extends Data.TaggedError("OutboxConfigInvalid")<{
  readonly faults: ReadonlyArray<Fault>
  readonly message: string
}> {
  static readonly of = (faults: ReadonlyArray<Fault>): OutboxConfigInvalid =>
    new OutboxConfigInvalid({ faults, message: textOf(faults) })
}

/** The configuration has no such backend. */
export class UnknownBackend extends Data.TaggedError("UnknownBackend")<{
  readonly backend: string
  readonly known: ReadonlyArray<string>
  readonly message: string
}> {
  static readonly of = (backend: string, known: ReadonlyArray<string>): UnknownBackend =>
    new UnknownBackend({ backend, known, message: `there is no backend ${JSON.stringify(backend)}; ${listed(known)}` })
}

/** The backend has no such route. */
export class UnknownRoute extends Data.TaggedError("UnknownRoute")<{
  readonly backend: string
  readonly route: string
  readonly known: ReadonlyArray<string>
  readonly message: string
}> {
  static readonly of = (backend: string, route: string, known: ReadonlyArray<string>): UnknownRoute =>
    new UnknownRoute({
      backend,
      route,
      known,
      message: `backend ${backend} has no route ${JSON.stringify(route)} that takes POST; ${listed(known)}`
    })
}

/** The payload does not fit the route, or an option is invalid. */
export class InvalidCall extends Data.TaggedError("InvalidCall")<{
  readonly faults: ReadonlyArray<Fault>
  readonly message: string
}> {
  static readonly of = (faults: ReadonlyArray<Fault>): InvalidCall =>
    new InvalidCall({ faults, message: textOf(faults) })
}

/** The database created no record: permissions suppressed it, or it was refused. */
export class JobNotCreated extends Data.TaggedError("JobNotCreated")<{
  readonly table: string
  readonly message: string
  readonly cause?: unknown
}> {}
