/**
 * `GET /view/:view_id` and its stream. A result is read once at the SSP that has the view, for all clients that ask at
 * the same time; a stream uses the shared views.
 *
 * Refused, unusual or long reads are passed on to the SSP one by one.
 */
import { Effect, FiberSet } from "effect"
import * as State from "../../core/cluster/state.ts"
import { viewKey } from "../../core/view/viewId.ts"
import { makeJudge } from "../../node/http/bearer.ts"
import type { Call } from "../../node/http/routes.ts"
import { SingleStreams } from "../../node/streams/singleStreams.ts"
import type { StreamFormat } from "../../node/streams/sse.ts"
import type { Reply } from "../../ports/Front.ts"
import { SspClient } from "../../ports/SspClient.ts"
import { type formats, isFormat } from "../../protocol/wire.ts"
import { SchedulerConfig } from "../Config.ts"
import * as Errors from "../HttpErrors.ts"
import { Pool } from "../pool/Pool.ts"
import * as ViewOwner from "../pool/viewOwner.ts"
import { FollowedViews } from "../streams/FollowedViews.ts"
import * as HttpPass from "./HttpPass.ts"
import { type SendRead, SharedReads } from "./sharedReads.ts"

type Format = (typeof formats)[number]

/** Format of the view's registration. */
const formatOf = (state: State.State, id: string): StreamFormat => {
  const key = viewKey(id)
  const body = key === undefined ? undefined : State.view(state, key)?.spec.body
  const { format } = (body ?? {}) as { readonly format?: unknown }
  return isFormat(format) ? format : "flat"
}

type ViewCall<Asked> = Call & {
  readonly path: { readonly view_id: string }
  readonly urlParams: Asked & { readonly errors?: "kinds" | undefined }
}

/** The routes of a view: shared reads and streams first, everything else is passed on to the SSP that has the view. */
export const make = Effect.gen(function* () {
  const { viewSecrets } = yield* SchedulerConfig
  const { state } = yield* Pool
  const { follow } = yield* FollowedViews
  const client = yield* SspClient
  const runFork = yield* FiberSet.makeRuntime<never>()
  const judge = makeJudge(viewSecrets, Errors.unauthorizedView)
  const pass = yield* HttpPass.toOwner
  const streams = yield* SingleStreams.make
  const reads = new SharedReads()
  /**
   * Whether a read may be shared. The SSP does not check the caller then, so a secret is needed here even at a
   * scheduler that asks for none.
   */
  const isShared = ({ asked, path, urlParams }: ViewCall<object>): boolean =>
    asked.method === "GET" &&
    urlParams.errors === undefined &&
    !HttpPass.isPathStep(path.view_id) &&
    "caller" in judge(asked.headers["authorization"], "read")
  const ask =
    (id: string, path: string): SendRead =>
    (ifNoneMatch, heard, began, failed) => {
      const found = ViewOwner.ownerOf(state(), id)
      if (!("owner" in found)) return false
      const headers = ifNoneMatch === undefined ? {} : { "if-none-match": ifNoneMatch }
      const opened = client.open(found.owner, { method: "GET", path, headers }, heard)
      runFork(Effect.match(opened, { onFailure: failed, onSuccess: began }))
      return true
    }
  const passed = (page: string) => (call: ViewCall<object>) =>
    pass(call, call.path.view_id, (id) => `/view/${id}${page}`, call.urlParams)
  return {
    view: {
      attempt: (
        call: ViewCall<{ readonly format?: Format | undefined }>,
        reply: Reply,
        otherwise: (respond: ReturnType<typeof passed>) => void
      ): void => {
        const { view_id: id } = call.path
        const { format } = call.urlParams
        const onwards = () => otherwise(passed(""))
        if (!isShared(call) || !("owner" in ViewOwner.ownerOf(state(), id))) return onwards()
        const path = `/view/${encodeURIComponent(id)}${format === undefined ? "" : `?format=${format}`}`
        const ifNoneMatch = call.asked.headers["if-none-match"]
        reads.read(path, ask(id, path), { ifNoneMatch, reply, pass: onwards })
      }
    },
    stream: {
      attempt: (
        call: ViewCall<{ readonly format?: StreamFormat | undefined }>,
        reply: Reply,
        otherwise: (respond: ReturnType<typeof passed>) => void
      ): void => {
        const { view_id: id } = call.path
        const { format = formatOf(state(), id) } = call.urlParams
        const isOpen =
          isShared(call) &&
          streams.open((receiver) => {
            const following = follow(id, format, call.asked.headers["last-event-id"], receiver)
            return "code" in following ? undefined : following
          }, reply)
        if (!isOpen) otherwise(passed("/stream"))
      }
    }
  }
})
