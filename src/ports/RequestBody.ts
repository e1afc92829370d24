/**
 * Reads a request's body as text, bounded, in a way that leaves the connection able to carry the refusal.
 *
 * A port, because the generic reader tears the connection down when it stops early, so that the client never sees the
 * 413; a server that knows its sockets does better and cheaper (`host/http/readBody.ts`), and bounds what it holds of
 * all unfinished bodies together.
 */
import type { HttpServerRequest } from "@effect/platform"
import { Context, Data, Effect, Layer, Stream } from "effect"
import { joined } from "../core/bytes.ts"
import type { NoText } from "./Front.ts"

/** Refusal of a body without text. */
export class BodyRefused extends Data.TaggedError("BodyRefused")<NoText> {}

/** Strict decoding: undefined for bytes that are no UTF-8, never a replacement character. */
export const decodeUtf8 = (bytes: Uint8Array): string | undefined => {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

const declaredLength = (request: HttpServerRequest.HttpServerRequest): number =>
  Number(request.headers["content-length"] ?? 0)

interface Collected {
  readonly size: number
  readonly chunks: ReadonlyArray<Uint8Array>
}

/** Reads the bodies of requests behind a foreign server and of forwarded requests; `layer` works with any server. */
export class RequestBody extends Context.Tag("ports/RequestBody")<
  RequestBody,
  {
    readonly text: (
      request: HttpServerRequest.HttpServerRequest,
      maxBytes: number
    ) => Effect.Effect<string, BodyRefused>
  }
>() {
  /** For any server: reads the part beyond the bound to its end and drops it. */
  static readonly layer: Layer.Layer<RequestBody> = Layer.succeed(RequestBody, {
    text: (request, maxBytes) => {
      if (declaredLength(request) > maxBytes) return Effect.fail(new BodyRefused({ reason: "too large" }))
      return request.stream.pipe(
        Stream.runFold({ size: 0, chunks: [] } as Collected, (all, chunk): Collected => {
          const size = all.size + chunk.length
          return size > maxBytes ? { size, chunks: [] } : { size, chunks: [...all.chunks, chunk] }
        }),
        Effect.mapError(() => new BodyRefused({ reason: "aborted" })),
        Effect.flatMap((all) => {
          if (all.size > maxBytes) return Effect.fail(new BodyRefused({ reason: "too large" }))
          const decoded = decodeUtf8(joined(all.chunks))
          return decoded === undefined ? Effect.fail(new BodyRefused({ reason: "not utf-8" })) : Effect.succeed(decoded)
        })
      )
    }
  })
}
