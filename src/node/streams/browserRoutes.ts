/** The routes of {@link Browsers}, as both servers answer them. */
import { Effect } from "effect"
import { maxLength } from "../../core/access/viewToken.ts"
import type * as Audit from "../../ports/Audit.ts"
import type { Reply, SinkEvents } from "../../ports/Front.ts"
import type * as ViewAccess from "../../protocol/viewAccess.ts"
import * as Answers from "../http/answers.ts"
import type { Call } from "../http/routes.ts"
import { grantsView } from "../http/viewTokens.ts"
import type { BrowsersShape } from "./Browsers.ts"
import * as OpenStreams from "./openStreams.ts"
import { streamHeaders } from "./sse.ts"

type Audited = Effect.Effect.Success<typeof Audit.make>

const unsigned = {
  code: "FORBIDDEN" as const,
  message:
    "no secret can sign tokens: set one, or in SVC_AUTH_SECRETS one with the scope read that is not given as a hash"
}

const wrongViews = (reason: string) => Answers.invalidRequest([{ path: "views", reason }])

/** Opens a stream of several views. */
const openStream = (
  { open, streams }: BrowsersShape,
  { away, caller, payload }: Call & { readonly payload: typeof ViewAccess.StreamOpening.Type },
  reply: Reply
): void => {
  // The server may have stopped accepting streams since the guard was passed.
  const refused = away() ?? streams.refusal(payload.views)
  if (refused !== undefined) return reply.send(Answers.toAnswer(refused))
  let writing: SinkEvents | undefined
  let isGone = false
  const sink = reply.stream(streamHeaders, {
    drained: () => writing?.drained(),
    gone: () => {
      isGone = true
      writing?.gone()
    }
  })
  writing = open(payload, caller.grant, sink)
  if (isGone) writing.gone()
}

const changeStream = (
  { streams }: BrowsersShape,
  {
    caller,
    path,
    payload
  }: Call & {
    readonly path: { readonly stream_id: string }
    readonly payload: OpenStreams.StreamChange
  }
) =>
  Effect.suspend(() => {
    const changed = streams.change(path.stream_id, caller.grant, payload)
    return "code" in changed ? Effect.fail(changed) : Effect.succeed(changed)
  })

const token = (
  { streams, tokens }: BrowsersShape,
  { once, subject, ttl_ms, views }: typeof ViewAccess.TokenRequest.Type
) =>
  Effect.gen(function* () {
    if (views.length > streams.maxViews)
      return yield* Effect.fail(
        wrongViews(
          `names ${views.length} views, the limit is ${streams.maxViews} (setting ${OpenStreams.viewsSetting})`
        )
      )
    const given = tokens.give(views, { subject, ttlMs: ttl_ms, isTicket: once })
    if (given === undefined) return yield* Effect.fail(unsigned)
    return given.token.length <= maxLength
      ? given
      : yield* Effect.fail(
          wrongViews(`has ids that take a token of more than ${maxLength} characters (fixed); ask for several`)
        )
  })

const touch = <E>(
  { caller: { grant }, payload: { views } }: Call & { readonly payload: typeof ViewAccess.Touch.Type },
  { concurrency, one }: Touching<E>
) =>
  Effect.suspend(() => {
    const asked = [...new Set(views)].filter((view) => grant === undefined || grantsView(grant, view))
    return Effect.map(Effect.filter(asked, one, { concurrency }), (touched) => ({ touched }))
  })

/** How a server keeps views alive. */
interface Touching<E> {
  /** Refreshes a view's last activity; answers whether the view exists. */
  readonly one: (view: string) => Effect.Effect<boolean, E>
  readonly concurrency: "unbounded" | 1
}

/** The group `browser` of an Api; `audited` writes its audit lines. */
export const make = <E>(browsers: BrowsersShape, audited: Audited, touching: Touching<E>) => ({
  openStream: {
    answer: (call: Parameters<typeof openStream>[1], reply: Reply) => openStream(browsers, call, reply)
  },
  changeStream: { value: (call: Parameters<typeof changeStream>[1]) => changeStream(browsers, call) },
  token: {
    value: ({ payload }: { readonly payload: typeof ViewAccess.TokenRequest.Type }) => token(browsers, payload)
  },
  revoke: {
    value: (call: Call & { readonly payload: typeof ViewAccess.TokenRevoked.Type }) => {
      const { subject } = call.payload
      const revoked = Effect.sync(() => browsers.revoke(subject))
      return audited(call, subject)(Effect.as(revoked, { status: "ok" as const }))
    }
  },
  touch: { isWhole: true, value: (call: Parameters<typeof touch>[0]) => touch(call, touching) }
})
