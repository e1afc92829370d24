/**
 * The calls of jobs on bare connections (`ports/Backend.ts` says what a call is).
 *
 * Why beside the layer that takes any HTTP client: a node runs a thousand of these a second, and there the general client, with its fibers,
 * streams and abort signals per request, cost more than everything else that is done for a job. Redirects are not followed;
 * connections are kept.
 */
import { Agent, type Dispatcher } from "@effect/platform-node/Undici"
import { Effect, Layer } from "effect"
import type { Answer } from "../core/job/outcome.ts"
import type { HttpCall } from "../core/job/request.ts"
import { Backend, BackendFailed, bodyWithinMs, quotedBytes, readBytes, reasonOf } from "../ports/Backend.ts"

/** One call, from its request to what the backend said. Settles once. */
class Call implements Dispatcher.DispatchHandler {
  private readonly settle: (answer: Answer | BackendFailed) => void
  private readonly timeoutMs: number
  private timer: ReturnType<typeof setTimeout>
  private controller: Dispatcher.DispatchController | undefined
  private status: number | undefined
  private retryAfter: string | undefined
  private readonly kept: Array<Uint8Array> = []
  private size = 0
  private over = false

  constructor(timeoutMs: number, settle: (answer: Answer | BackendFailed) => void) {
    this.settle = settle
    this.timeoutMs = timeoutMs
    this.timer = setTimeout(() => this.end(this.late), timeoutMs)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller
    if (this.over) controller.abort(new Error("given up"))
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: { readonly [name: string]: string | string[] | undefined }): void {
    // 102 and 103 announce an answer.
    if (status < 200 || this.over) return
    const after = headers["retry-after"]
    this.status = status
    this.retryAfter = typeof after === "string" ? after : after?.[0]
    clearTimeout(this.timer)
    this.timer = setTimeout(() => this.end(undefined), bodyWithinMs)
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Uint8Array): void {
    // The chunk is a view of a buffer that is used again.
    if (this.size < quotedBytes) this.kept.push(chunk.slice(0, quotedBytes - this.size))
    this.size += chunk.length
    if (this.size >= readBytes) this.end(undefined)
  }

  onResponseEnd(): void {
    this.finish(undefined)
  }

  onResponseError(_: unknown, error: Error): void {
    this.finish(new BackendFailed({ message: `no answer from the backend: ${reasonOf(error)}` }))
  }

  /** Nobody waits any more. */
  readonly cancel: Effect.Effect<void> = Effect.sync(() => this.end(undefined))

  private get late(): BackendFailed {
    return new BackendFailed({ message: `no answer from the backend within ${this.timeoutMs} ms` })
  }

  /** Cuts the connection: what is still to come would stand in the way of the next request. */
  private end(failure: BackendFailed | undefined): void {
    if (this.over) return
    this.finish(failure)
    this.controller?.abort(new Error("given up"))
  }

  /** Once there was a status, that is what the backend said, however the body ended. */
  private finish(failure: BackendFailed | undefined): void {
    if (this.over) return
    this.over = true
    clearTimeout(this.timer)
    if (this.status === undefined) return this.settle(failure ?? this.late)
    const decoder = new TextDecoder()
    this.settle({ status: this.status, retryAfter: this.retryAfter, body: this.kept.map((chunk) => decoder.decode(chunk, { stream: true })).join("") })
  }
}

const call = (agent: Agent, { body, headers, timeoutMs, url }: HttpCall): Effect.Effect<Answer, BackendFailed> =>
  Effect.async((resume) => {
    const { origin, pathname, search } = new URL(url)
    const running = new Call(timeoutMs, (answer) => resume("_tag" in answer ? Effect.fail(answer) : Effect.succeed(answer)))
    agent.dispatch({ origin, path: `${pathname}${search}`, method: "POST", headers, body }, running)
    return running.cancel
  })

export const layer: Layer.Layer<Backend> = Layer.scoped(
  Backend,
  Effect.map(
    // A call has a bound of its own, and connecting is part of it; what still connects when nobody waits must end too.
    Effect.acquireRelease(Effect.sync(() => new Agent({ headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 60_000 } })), (agent) => Effect.promise(() => agent.destroy())),
    (agent) => ({ call: (wanted: HttpCall) => call(agent, wanted) })
  )
)
