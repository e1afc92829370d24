/**
 * Reads request bodies from Node's own messages: bounded, by callback, and so that a refusal reaches the client.
 *
 * Beyond the bound nothing is kept, but reading goes on: a connection that is closed with unread bytes in it is reset,
 * and the client would see that instead of the 413. How long it may go on is bounded by the server's request time-out.
 */
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { isUtf8 } from "node:buffer"
import type { IncomingMessage } from "node:http"
import { BodyRefused, RequestBody } from "../ports/RequestBody.ts"

/** `done` is called exactly once, with the text or why there is none; returns how to stop listening. */
export const readBody = (message: IncomingMessage, maxBytes: number, done: (body: string | BodyRefused) => void): () => void => {
  let first: Buffer | undefined
  let chunks: Array<Buffer> | undefined
  let size = 0
  const stop = (): void => {
    message.off("data", onData).off("end", onEnd).off("close", onClose).off("error", onClose)
  }
  const finish = (body: string | BodyRefused): void => {
    stop()
    done(body)
  }
  const tooLarge = (): void => {
    stop()
    message.resume()
    done(new BodyRefused({ reason: "too large" }))
  }
  const onData = (chunk: Buffer): void => {
    size += chunk.length
    if (size > maxBytes) tooLarge()
    else if (first === undefined) first = chunk
    else (chunks ??= [first]).push(chunk)
  }
  const onEnd = (): void => {
    if (first === undefined) return finish("")
    const whole = chunks === undefined ? first : Buffer.concat(chunks, size)
    finish(isUtf8(whole) ? whole.toString("utf8") : new BodyRefused({ reason: "not utf-8" }))
  }
  const onClose = (): void => finish(new BodyRefused({ reason: "aborted" }))
  if (Number(message.headers["content-length"]) > maxBytes) {
    tooLarge()
    return stop
  }
  message.on("data", onData).on("end", onEnd).on("close", onClose).on("error", onClose)
  return stop
}

export const layerNode: Layer.Layer<RequestBody> = Layer.succeed(RequestBody, {
  text: (request, maxBytes) =>
    Effect.async<string, BodyRefused>((resume) => {
      const stop = readBody(NodeHttpServerRequest.toIncomingMessage(request), maxBytes, (body) => resume(typeof body === "string" ? Effect.succeed(body) : Effect.fail(body)))
      return Effect.sync(stop)
    })
})
