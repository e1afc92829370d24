/**
 * Reads request bodies from Node's own messages: bounded, by callback, and so that a refusal reaches the client.
 *
 * Beyond the limit bytes are read and dropped: a connection closed with unread bytes is reset, and the client would not
 * see the 413. Such a read ends with the server's request time-out, or after one second if the server holds too many
 * unfinished bodies already.
 */

import { isUtf8 } from "node:buffer"
import type { IncomingMessage } from "node:http"
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Effect, Layer } from "effect"
import type { NoText } from "../../ports/Front.ts"
import { BodyRefused, RequestBody } from "../../ports/RequestBody.ts"
import { accountOf } from "./bodyBudget.ts"

/** Plain data, made once: an error made for each request, even an unused one, is a tenth of the request's cost. */
const tooLarge: NoText = { reason: "too large" }
/** How long a client that is refused for the load may go on sending before it is cut. */
const lingerMs = 1000

const notUtf8: NoText = { reason: "not utf-8" }

/**
 * `done` is called once, with the text or why there is none; never if the client leaves before the end. Returns a
 * function that stops the read.
 */
export const readBody = (
  message: IncomingMessage,
  maxBytes: number,
  done: (body: string | NoText) => void
): (() => void) => {
  let first: Buffer | undefined
  let chunks: Array<Buffer> | undefined
  let size = 0
  // Listeners are never removed: that costs more than the one comparison each makes afterwards.
  let finished = false
  let taken = 0
  let pieces = 0
  const account = accountOf(message)
  const stop = (): void => {
    finished = true
    first = chunks = undefined
    if (pieces > 0) account?.giveBack(taken, pieces)
    pieces = 0
  }
  const finish = (body: string | NoText): void => {
    stop()
    done(body)
  }
  const refuse = (): void => {
    message.resume()
    finish(tooLarge)
  }
  const overloaded = (why: string): void => {
    message.resume()
    finish({ reason: "overloaded", message: why })
    setTimeout(() => message.complete || message.socket.destroy(), lingerMs).unref()
  }
  if (Number(message.headers["content-length"]) > maxBytes) {
    refuse()
    return stop
  }
  message.on("data", (chunk: Buffer) => {
    if (finished) return
    size += chunk.length
    if (size > maxBytes) return refuse()
    const refused = account?.take(chunk.length)
    if (refused !== undefined) return overloaded(refused)
    taken = size
    pieces++
    if (first === undefined) first = chunk
    else (chunks ??= [first]).push(chunk)
  })
  message.on("end", () => {
    if (finished) return
    if (first === undefined) return finish("")
    const whole = chunks === undefined ? first : Buffer.concat(chunks, size)
    finish(isUtf8(whole) ? whole.toString("utf8") : notUtf8)
  })
  return stop
}

export const layerNode: Layer.Layer<RequestBody> = Layer.succeed(RequestBody, {
  text: (request, maxBytes) =>
    Effect.async<string, BodyRefused>((resume) => {
      const message = NodeHttpServerRequest.toIncomingMessage(request)
      const stop = readBody(message, maxBytes, (body) =>
        resume(typeof body === "string" ? Effect.succeed(body) : Effect.fail(new BodyRefused(body)))
      )
      // Also emitted after every end; only the first answer counts.
      message.on("close", () => resume(Effect.failSync(() => new BodyRefused({ reason: "aborted" }))))
      return Effect.sync(stop)
    })
})
