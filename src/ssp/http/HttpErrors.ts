/**
 * Error codes of the SSP's services on the wire (D6), all in this file.
 *
 * Exhaustive by type: a new error of a service does not compile until it has an answer here.
 */
import { Effect } from "effect"
import { isoOf } from "../../core/view/viewTimes.ts"
import { overloaded } from "../../node/http/answers.ts"
import type {
  Overloaded,
  QueryRefused,
  SequenceGap,
  StaleEpoch,
  StoreFailed,
  TablesJoining,
  ViewNotFound,
  ViewQuarantined
} from "../viewTypes.ts"

export const unauthorized = {
  code: "UNAUTHORIZED" as const,
  message:
    "needs the header `Authorization: Bearer <secret>` with a secret of this service (settings SVC_AUTH_SECRET and SVC_AUTH_SECRETS)"
}

export const otherRegistration = (registration: number | undefined) => ({
  code: "SSP_NOT_READY" as const,
  message: `this SSP is not in registration ${registration}; try again when its heartbeats say that it is ready`
})

export const notReady = (phase: string) => ({
  code: "SSP_NOT_READY" as const,
  message: `this SSP is ${phase}; try again when /health answers 200`
})

/** By tag; every error a service of this room can fail with. */
const mapping = {
  Overloaded: overloaded,
  SequenceGap: (error: SequenceGap) => ({
    code: "SEQUENCE_GAP" as const,
    message: error.message,
    details: { expected: error.expected }
  }),
  StaleEpoch: (error: StaleEpoch) => ({ code: "STALE_EPOCH" as const, message: error.message }),
  TablesJoining: ({ message, retryAfterSecs }: TablesJoining) => ({
    code: "TABLES_JOINING" as const,
    message,
    retryAfterSecs
  }),
  StoreFailed: (error: StoreFailed) => ({ code: "STORE_FAILED" as const, message: error.message }),
  QueryRefused: (error: QueryRefused) => ({
    code: "INVALID_QUERY" as const,
    message: error.message,
    details: { line: error.line, column: error.column }
  }),
  ViewNotFound: (error: ViewNotFound) => ({
    code: "VIEW_NOT_FOUND" as const,
    message: `no view is registered under ${JSON.stringify(error.id.slice(0, 200))}`
  }),
  ViewQuarantined: ({ ends, id, last }: ViewQuarantined) => ({
    code: "VIEW_QUARANTINED" as const,
    message: `the query of view ${JSON.stringify(id.slice(0, 200))} is set aside: the process ended ${ends} times while it evaluated it; POST /view/free with the view's id lets it be evaluated again`,
    details: { ends, last: isoOf(last) }
  })
}

type World =
  | Overloaded
  | TablesJoining
  | SequenceGap
  | StaleEpoch
  | StoreFailed
  | QueryRefused
  | ViewNotFound
  | ViewQuarantined
type Mapped<E extends World> = E extends World ? ReturnType<(typeof mapping)[E["_tag"]]> : never

/** The wire's error for a service's error. */
export const wireErrorOf = <E extends World>(error: E): Mapped<E> =>
  (mapping[error._tag] as unknown as (error: E) => Mapped<E>)(error)

/** Maps a handler's service errors to errors of its endpoint. */
export const mapErrors = <A, E extends World, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, Mapped<E>, R> =>
  Effect.mapError(effect, wireErrorOf)
