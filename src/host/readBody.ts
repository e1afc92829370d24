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
  // Listeners are never taken off: that costs more than the one comparison they make once they are done.
  let finished = false
  const finish = (body: string | BodyRefused): void => {
    if (finished) return
    finished = true
    done(body)
  }
  const stop = (): void => {
    finished = true
  }
  const tooLarge = (): void => {
    message.resume()
    finish(new BodyRefused({ reason: "too large" }))
  }
  if (Number(message.headers["content-length"]) > maxBytes) {
    tooLarge()
    return stop
  }
  message.on("data", (chunk: Buffer) => {
    if (finished) return
    size += chunk.length
    if (size > maxBytes) tooLarge()
    else if (first === undefined) first = chunk
    else (chunks ??= [first]).push(chunk)
  })
  message.on("end", () => {
    if (first === undefined) return finish("")
    const whole = chunks === undefined ? first : Buffer.concat(chunks, size)
    finish(isUtf8(whole) ? whole.toString("utf8") : new BodyRefused({ reason: "not utf-8" }))
  })
  message.on("close", () => finish(new BodyRefused({ reason: "aborted" })))
  return stop
}

export const layerNode: Layer.Layer<RequestBody> = Layer.succeed(RequestBody, {
  text: (request, maxBytes) =>
    Effect.async<string, BodyRefused>((resume) => {
      const stop = readBody(NodeHttpServerRequest.toIncomingMessage(request), maxBytes, (body) => resume(typeof body === "string" ? Effect.succeed(body) : Effect.fail(body)))
      return Effect.sync(stop)
    })
})
