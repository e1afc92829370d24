/**
 * The SSPs as the scheduler sees them: health polls, deliveries, views and jobs; every call ends, if only by its
 * time-out.
 *
 * The driver interprets answers (D26, D31); the caller decides when to call again. The secret is sent only where D15
 * allows it, never with health polls; redirects are not followed, so it goes to no other host.
 */
import { Context, Data, type Effect, type Either, type Redacted, type Stream } from "effect"
import type { Answer } from "../core/cluster/deliveryQueue.ts"
import type { CallOutcome, Health } from "../core/cluster/messages.ts"
import type * as Integrity from "../protocol/integrity.ts"
import type { ListedViews } from "../protocol/overview.ts"

/** A caller's request to be forwarded. */
export interface ForwardedRequest {
  readonly method: "GET" | "HEAD" | "POST"
  /** Path with query, beginning with `/`. */
  readonly path: string
  readonly authorization: string | undefined
  readonly lastEventId: string | undefined
  readonly ifNoneMatch: string | undefined
}

/** Answer to a forwarded request. */
export interface ForwardedAnswer {
  readonly status: number
  readonly contentType: string
  /** The headers meant for the caller. */
  readonly headers: { readonly [name: string]: string }
  /** The body; its request ends when it is no longer pulled. */
  readonly body: Stream.Stream<Uint8Array, SspUnreachable>
}

/** `refused`: the connection was refused, so no process listens there. */
export class SspUnreachable extends Data.TaggedError("SspUnreachable")<{
  readonly message: string
  readonly refused: boolean
}> {}

/** A request of the scheduler's own. */
export interface Asked {
  readonly method: "GET" | "POST"
  /** Path with query, beginning with `/`. */
  readonly path: string
  /** JSON text. */
  readonly body?: string
  readonly headers?: { readonly [name: string]: string }
}

/** Callbacks of an answer. */
export interface AnswerEvents {
  /** Called once, first; headers by lower-case name. */
  readonly head: (
    status: number,
    headers: { readonly [name: string]: string | ReadonlyArray<string> | undefined }
  ) => void
  readonly data: (bytes: Uint8Array) => void
  /** Called once, last, unless the call was closed; `error` if the answer broke off or never came. */
  readonly end: (error: unknown) => void
}

/** A call whose answer is endless. */
export interface OpenCall {
  readonly pause: () => void
  readonly resume: () => void
  /** Ends the call; no callback is called afterwards. */
  readonly close: () => void
}

/** An SSP in one registration. */
export interface Target {
  readonly ssp: string
  readonly registration: number
  /** Base address without a trailing slash. */
  readonly url: string
}

/** Calls to SSPs. */
export interface SspClientShape {
  /** Reports each call in which an SSP refused the scheduler's secret, by the SSP's name. */
  readonly watchSecrets?: (heard: (ssp: string) => void) => void
  /** The address that an SSP may register, or the reason against it (D15). */
  readonly check: (url: string) => Effect.Effect<Either.Either<string, string>>
  readonly health: (target: Target) => Effect.Effect<Health>
  /** `body` is the JSON of one change, or of an array of them. */
  readonly deliver: (target: Target, body: string, traceparent?: string) => Effect.Effect<Answer>
  readonly registerView: (target: Target, body: unknown) => Effect.Effect<CallOutcome>
  readonly unregisterView: (target: Target, body: unknown) => Effect.Effect<CallOutcome>
  /** Frees a query that the SSP has quarantined (D48). */
  readonly freeView: (target: Target, body: unknown) => Effect.Effect<CallOutcome>
  /** Gives the SSP a job. `change`: its pending record as a change, sent to an SSP without `/job/execute`. */
  readonly executeJob: (target: Target, body: unknown, change: unknown) => Effect.Effect<CallOutcome>
  /**
   * Merkle roots of the SSP's tables (D41); undefined if it gives none: not ready, not reached, or of an old version.
   */
  readonly roots: (target: Target) => Effect.Effect<typeof Integrity.Tables.Type | undefined>
  /** The SSP's most expensive views; undefined if it gives none. */
  readonly costliest: (
    target: Target,
    limit: number,
    search: string | undefined
  ) => Effect.Effect<typeof ListedViews.Type | undefined>
  readonly node: (
    target: Target,
    table: string,
    level: number,
    index: number
  ) => Effect.Effect<typeof Integrity.Node.Type | undefined>
  /** Opens an endless answer, received by callbacks. Sends the scheduler's secret; refused by the rules of D15. */
  readonly open: (
    target: Pick<Target, "ssp" | "url">,
    asked: Asked,
    heard: AnswerEvents
  ) => Effect.Effect<OpenCall, SspUnreachable>
  /** Changes an open stream; false: the stream has to be opened again. */
  readonly changeStream: (target: Pick<Target, "ssp" | "url">, stream: string, body: string) => Effect.Effect<boolean>
  /** Forwards a caller's request to an SSP, with the caller's own credentials. */
  readonly forward: (
    ssp: string,
    url: string,
    asked: ForwardedRequest
  ) => Effect.Effect<ForwardedAnswer, SspUnreachable>
}

/** Options of the drivers. */
export interface Options {
  /** Secret for an SSP by its name; called for each call. */
  readonly secret: (ssp: string) => Redacted.Redacted<string> | undefined
  readonly allowedHosts: ReadonlyArray<string> | undefined
  /** Time-out of a call in milliseconds. */
  readonly timeoutMs: number
  /** Only `https://` addresses are called; false if absent. */
  readonly isTlsOnly?: boolean
}

/** Calls of a scheduler to its SSPs. */
export class SspClient extends Context.Tag("ports/SspClient")<SspClient, SspClientShape>() {}
