/**
 * `GET /view/:view_id` and `GET /view/:view_id/stream`.
 *
 * No Effect inside: streams to followers are the purpose of a live query, and a fiber per stream takes twenty times the
 * stream's bytes.
 */
import { Cause, Effect, Exit } from "effect"
import { toAnswer } from "../../node/http/answers.ts"
import type { Call } from "../../node/http/routes.ts"
import { Browsers } from "../../node/streams/Browsers.ts"
import { SingleStreams } from "../../node/streams/singleStreams.ts"
import { type StreamFormat, streamHeaders } from "../../node/streams/sse.ts"
import type { Reply } from "../../ports/Front.ts"
import type { Sees } from "../../protocol/access.ts"
import * as ResultTag from "../views/resultTag.ts"
import { Views } from "../views/Views.ts"
import { type Format, Overloaded } from "../viewTypes.ts"
import { wireErrorOf } from "./HttpErrors.ts"

type ViewCall<Asked> = Call & { readonly path: { readonly view_id: string }; readonly urlParams: Asked }
type ReadCall = ViewCall<{ readonly format?: Format | undefined; readonly errors?: Sees | undefined }>
type FollowCall = ViewCall<{ readonly format?: StreamFormat | undefined }>

const eventStream = { "content-type": "text/event-stream", ...streamHeaders }

export const make = Effect.gen(function* () {
  const views = yield* Views
  const { tokens } = yield* Browsers
  const streams = yield* SingleStreams.make
  const view = (call: ReadCall, reply: Reply): void => {
    const { asked, caller, fail, path, urlParams } = call
    const { errors = caller.sees, format } = urlParams
    const how = { format, ifNoneMatch: asked.headers["if-none-match"], sees: errors }
    const abandon = views.look(path.view_id, how, (looked) => {
      if (Exit.isFailure(looked)) return fail(Cause.map(looked.cause, wireErrorOf))
      const { pieces, tag } = looked.value
      const headers = ResultTag.headersOf(tag)
      reply.send(pieces === undefined ? { status: 304, headers, pieces: [] } : { status: 200, headers, pieces })
    })
    if (abandon !== undefined) reply.whenGone(abandon)
  }
  /** Answers HEAD: the headers alone, if the view can be followed. */
  const head = ({ fail, path }: FollowCall, reply: Reply): void =>
    void views.look(path.view_id, { format: "flat", ifNoneMatch: undefined, sees: "kinds" }, (looked) => {
      if (Exit.isFailure(looked)) fail(Cause.map(looked.cause, wireErrorOf))
      else reply.send({ status: 200, headers: eventStream, pieces: [] })
    })
  const stream = (call: FollowCall, reply: Reply): void => {
    const { asked, caller, path, urlParams } = call
    if (asked.method === "HEAD") return head(call, reply)
    const { view_id: id } = path
    const after = asked.headers["last-event-id"]
    const over = caller.grant && tokens.lapse(caller.grant)
    let isGone = false
    const begin = (): void => {
      if (isGone || views.whenSettled(id, begin)) return
      if (streams.open((receiver) => views.follow(id, urlParams.format, after, receiver), reply, over)) return
      // A reason that has passed meanwhile is answered with "try again".
      const refused = views.refusal(id) ?? new Overloaded({ message: "try again", retryAfterSecs: 1 })
      if (refused._tag === "ViewQuarantined") streams.ended("quarantined", reply)
      else reply.send(toAnswer(wireErrorOf(refused)))
    }
    if (!views.whenSettled(id, begin)) return begin()
    reply.whenGone(() => {
      isGone = true
    })
  }
  return { view: { answer: view }, stream: { answer: stream } }
})
