/**
 * `GET /view/:view_id` and its stream by callback: a result is read from the SSP that has the view, a stream is over
 * the views that clients share.
 *
 * Whatever is refused, odd, long or unknown is left to the declared route, which asks the SSP.
 */
import { Effect, FiberSet, Layer } from "effect"
import * as State from "../../core/cluster/state.ts"
import { viewKey } from "../../core/view/viewId.ts"
import { makeJudge } from "../../node/bearer.ts"
import * as Target from "../../node/streams/readTarget.ts"
import { SingleStreams } from "../../node/streams/singleStreams.ts"
import type { StreamFormat } from "../../node/streams/sse.ts"
import { HotReads, type ReadAsked, type ReadReply } from "../../ports/Front.ts"
import { type Flow, type Heard, SspClient } from "../../ports/SspClient.ts"
import { scopeOf } from "../../protocol/access.ts"
import { SchedulerApi } from "../../protocol/SchedulerApi.ts"
import { isFormat } from "../../protocol/wire.ts"
import { SchedulerConfig } from "../Config.ts"
import * as HttpFeed from "../feed/HttpFeed.ts"
import { Pool } from "../pool/Pool.ts"
import * as Whereabouts from "../pool/whereabouts.ts"
import { FollowedViews } from "../streams/FollowedViews.ts"
import * as Errors from "./HttpErrors.ts"

/** That of the view's registration. */
const formatOf = (state: State.State, id: string): StreamFormat => {
  const key = viewKey(id)
  const body = key === undefined ? undefined : State.view(state, key)?.spec.body
  const { format } = (body ?? {}) as { readonly format?: unknown }
  return isFormat(format) ? format : "flat"
}

/** A longer result is handed on as it comes. */
const maxBytes = 1024 * 1024

const kept = ["cache-control", "etag"] as const

const keptOf = (headers: Parameters<Heard["head"]>[1]): { readonly [name: string]: string } =>
  Object.fromEntries(kept.flatMap((name) => (typeof headers[name] === "string" ? [[name, headers[name]]] : [])))

/** An answer of an SSP on its way to a client: whole, or left to the declared route. */
class Passing implements Heard {
  private readonly reply: ReadReply
  private flow: Flow | undefined
  private headers: { readonly [name: string]: string } = {}
  private status = 0
  private readonly pieces: Array<Uint8Array> = []
  private size = 0
  private isOver = false

  constructor(reply: ReadReply) {
    this.reply = reply
    reply.whenGone(() => this.settle(() => {}))
  }

  readonly head: Heard["head"] = (status, headers) => {
    this.status = status
    this.headers = keptOf(headers)
    const isShort = Number(headers["content-length"] ?? 0) <= maxBytes
    if (status !== 304 && !(status === 200 && isShort)) this.leave()
  }

  /** The bytes are parts of a buffer that is used again. */
  readonly data = (bytes: Uint8Array): void => {
    this.pieces.push(bytes.slice())
    this.size += bytes.length
    if (this.size > maxBytes) this.leave()
  }

  readonly end = (error: unknown): void =>
    this.settle(() => {
      if (error !== undefined) this.reply.pass()
      else if (this.status === 304) this.reply.notModified(this.headers)
      else this.reply.json(this.headers, this.pieces)
    })

  readonly began = (flow: Flow): void => {
    this.flow = flow
    if (this.isOver) flow.close()
  }

  readonly leave = (): void => this.settle(this.reply.pass)

  /** Once. */
  private settle(answer: () => void): void {
    if (this.isOver) return
    this.isOver = true
    this.flow?.close()
    answer()
  }
}

export const layer = Layer.scoped(
  HotReads,
  Effect.gen(function* () {
    const { viewSecrets } = yield* SchedulerConfig
    const { state } = yield* Pool
    const { follow } = yield* FollowedViews
    const client = yield* SspClient
    const runFork = yield* FiberSet.makeRuntime<never>()
    const judge = makeJudge(viewSecrets, Errors.unauthorizedView)
    const scope = scopeOf(SchedulerApi, "GET /view/:view_id/stream")
    const streams = yield* SingleStreams.make
    const feed = yield* HttpFeed.hotFeed
    const read = ({ format, id }: Target.Target, { ifNoneMatch }: ReadAsked, reply: ReadReply): boolean => {
      const found = Whereabouts.of(state(), id)
      if (!("owner" in found)) return false
      const passing = new Passing(reply)
      const path = `/view/${encodeURIComponent(id)}${format === undefined ? "" : `?format=${format}`}`
      const headers = ifNoneMatch === undefined ? {} : { "if-none-match": ifNoneMatch }
      const opened = client.open(found.owner, { method: "GET", path, headers }, passing)
      runFork(Effect.match(opened, { onFailure: passing.leave, onSuccess: passing.began }))
      return true
    }
    return (asked, reply) => {
      if (feed(asked, reply)) return true
      const target = Target.of(asked.url)
      if (target === undefined || !("caller" in judge(asked.authorization, scope))) return false
      if (!target.isStream) return read(target, asked, reply)
      const { format = formatOf(state(), target.id), id } = target
      return streams.open((taker) => {
        const following = follow(id, format, asked.lastEventId, taker)
        return "code" in following ? undefined : following
      }, reply)
    }
  })
)
