/**
 * The SSPs as the scheduler sees them: health polls, deliveries, views and jobs, each call with an end that always
 * comes.
 *
 * What an answer means is decided by the driver (D26, D31), when to call again is not. The secret goes along only where
 * D15 allows it, never on health polls; redirects are not followed, so it cannot be carried off.
 */
import { Context, Data, type Effect, type Either, type Redacted, type Stream } from "effect"
import type { Answer } from "../core/cluster/deliveryQueue.ts"
import type { CallOutcome, Health } from "../core/cluster/messages.ts"
import type * as Integrity from "../protocol/integrity.ts"
import type { ListedViews } from "../protocol/overview.ts"

export interface Passed {
  readonly method: "GET" | "HEAD" | "POST"
  /** With its query, beginning with `/`. */
  readonly path: string
  readonly authorization: string | undefined
  readonly lastEventId: string | undefined
  readonly ifNoneMatch: string | undefined
}

export interface PassedAnswer {
  readonly status: number
  readonly contentType: string
  /** Headers of the caller's concern. */
  readonly headers: { readonly [name: string]: string }
  /** Ends the request when it is no longer pulled. */
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
  /** With its query, beginning with `/`. */
  readonly path: string
  /** JSON. */
  readonly body?: string
  readonly headers?: { readonly [name: string]: string }
}

/** Callbacks of an answer. */
export interface Heard {
  /** Once, first; headers by lower-case name. */
  readonly head: (
    status: number,
    headers: { readonly [name: string]: string | ReadonlyArray<string> | undefined }
  ) => void
  readonly data: (bytes: Uint8Array) => void
  /** Once, last, unless it was closed; `error` where it broke off or never came. */
  readonly end: (error: unknown) => void
}

/** An answer that goes on. */
export interface Flow {
  readonly pause: () => void
  readonly resume: () => void
  /** Ends the call; no callback is called afterwards. */
  readonly close: () => void
}

/** An SSP in one registration. */
export interface Target {
  readonly ssp: string
  readonly registration: number
  /** Without a trailing slash. */
  readonly url: string
}

export interface SspClientShape {
  /** Has the names heard of SSPs that do not take the scheduler's secret, at each call of any kind that finds it. */
  readonly watchSecrets?: (heard: (ssp: string) => void) => void
  /** The address an SSP may register, or why not (D15). */
  readonly check: (url: string) => Effect.Effect<Either.Either<string, string>>
  readonly health: (target: Target) => Effect.Effect<Health>
  /** `body` is the JSON of one change, or of an array of them. */
  readonly deliver: (target: Target, body: string, traceparent?: string) => Effect.Effect<Answer>
  readonly registerView: (target: Target, body: unknown) => Effect.Effect<CallOutcome>
  readonly unregisterView: (target: Target, body: unknown) => Effect.Effect<CallOutcome>
  /** Has the SSP evaluate a query again that it has set aside (D48). */
  readonly freeView: (target: Target, body: unknown) => Effect.Effect<CallOutcome>
  /** `change`: what an SSP without `/job/execute` is told instead, by `/ingest`: its record, pending. */
  readonly executeJob: (target: Target, body: unknown, change: unknown) => Effect.Effect<CallOutcome>
  /**
   * Roots of the tables it holds (D41); undefined when it does not say: not ready, not reached, of a version that
   * cannot.
   */
  readonly roots: (target: Target) => Effect.Effect<typeof Integrity.Tables.Type | undefined>
  /** Its views that have cost most; undefined when it does not say. */
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
  /** Asks for an answer that is heard by callback, with the scheduler's secret; refused by the rules of D15. */
  readonly open: (
    target: Pick<Target, "ssp" | "url">,
    asked: Asked,
    heard: Heard
  ) => Effect.Effect<Flow, SspUnreachable>
  /** Changes such a stream; false: it is to be opened anew. */
  readonly changeStream: (target: Pick<Target, "ssp" | "url">, stream: string, body: string) => Effect.Effect<boolean>
  /** A caller's request to an SSP, with the caller's own credentials. */
  readonly pass: (ssp: string, url: string, asked: Passed) => Effect.Effect<PassedAnswer, SspUnreachable>
}

export interface Options {
  /** Asked for at each call, with the name of the SSP. */
  readonly secret: (ssp: string) => Redacted.Redacted<string> | undefined
  readonly allowedHosts: ReadonlyArray<string> | undefined
  /** A call that takes longer has failed. */
  readonly timeoutMs: number
  /** Only `https://` is called; false when absent. */
  readonly isTlsOnly?: boolean
}

/** Calls of a scheduler to its SSPs. */
export class SspClient extends Context.Tag("ports/SspClient")<SspClient, SspClientShape>() {}
