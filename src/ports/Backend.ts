/**
 * The backends that jobs call: one POST out, status and the beginning of the body back (D37).
 *
 * A port, so that decisions about jobs need no network. Redirects are never followed, so a token goes to no other host.
 * The time-out covers everything up to the status; a body that breaks off after the status does not change the outcome.
 */
import { Context, Data, Effect, Layer } from "effect"
import type { Answer } from "../core/job/outcome.ts"
import type { HttpCall } from "../core/job/request.ts"

/** There was no HTTP answer. */
export class BackendFailed extends Data.TaggedError("BackendFailed")<{ readonly message: string }> {}

/** One POST to a backend; fails if no HTTP status came. */
export interface BackendShape {
  readonly call: (call: HttpCall) => Effect.Effect<Answer, BackendFailed>
}

/** Most bytes of a body that an error message quotes. */
export const quotedBytes = 8_192
/** Most bytes of a body that are read, and the milliseconds for it: a body read whole frees its connection. */
export const readBytes = 1_048_576
/** Milliseconds for reading a body after the status. */
export const bodyWithinMs = 5_000

/** Bytes of an answer's body to keep: enough to quote a reason, and to parse a result of up to `keptBytes`. */
export const bytesToKeep = (keptBytes = 0): number => Math.min(readBytes, Math.max(quotedBytes, keptBytes))

/** Calls backends of jobs; `layerNone` for a node that runs none. */
export class Backend extends Context.Tag("ports/Backend")<Backend, BackendShape>() {
  /** For a node without job tables. */
  static readonly layerNone: Layer.Layer<Backend> = Layer.succeed(Backend, {
    call: () => Effect.fail(new BackendFailed({ message: "no HTTP client was given to this node" }))
  })
}
