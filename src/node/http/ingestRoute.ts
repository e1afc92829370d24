/**
 * `POST /ingest` of both nodes, as a hot route (by callback) and as a declared route for servers without hot routes.
 *
 * The two routes differ in what stands before them (a server's own admission, or middlewares) and in nothing else, so a
 * deployment without the hot route measures, traces and answers alike. A node gives what it does with a body.
 */
import type * as HttpApp from "@effect/platform/HttpApp"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import type * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect, Either } from "effect"
import type { Accept, Answer, HotRoute } from "../../ports/Front.ts"
import { IngestTimes } from "../../ports/IngestTimes.ts"
import { Meters } from "../../ports/Meters.ts"
import type { Declaring } from "../../protocol/access.ts"
import * as Answers from "./answers.ts"
import type { makeJudge } from "./bearer.ts"
import * as Bodies from "./bodies.ts"
import * as Guard from "./guard.ts"

/** From JSON to answer; `done` is called exactly once, now or later. */
export type Take = (json: unknown, done: (answer: Answer) => void, traceparent: string | undefined) => void

/** What a node gives for its hot route. */
interface HotParts {
  readonly api: Declaring
  readonly judge: ReturnType<typeof makeJudge>
  readonly maxBodyBytes: number
  /** Why an authorised request is not taken now; `registration` as in {@link HotRoute}. */
  readonly notTaking: (registration: string | undefined) => Answer | undefined
  readonly take: Take
}

/** The hot route. */
export const hot = ({ api, judge, maxBodyBytes, notTaking, take }: HotParts) =>
  Effect.gen(function* () {
    const { timed } = yield* IngestTimes
    const turnedAway = yield* Guard.makeHot(api, "POST /ingest", judge)
    const accept: Accept = (body, answer, traceparent) => {
      const done = timed(answer)
      const json = Bodies.parseJson(body)
      if (Either.isLeft(json)) done(Answers.toAnswer(json.left))
      else take(json.right, done, traceparent)
    }
    const route: HotRoute = {
      method: "POST",
      path: "/ingest",
      maxBodyBytes,
      admit: (authorization, registration, address) =>
        turnedAway(authorization, address) ?? notTaking(registration) ?? accept,
      answered: yield* refusals,
      tooLarge: Answers.toAnswer(Answers.tooLarge(maxBodyBytes)),
      notText: Answers.toAnswer(Answers.notText)
    }
    return [route]
  })

/** The handler of the declared route; bearer, readiness and body were seen to by its middlewares. */
export const handler = (take: Take) =>
  Effect.map(
    IngestTimes,
    ({ timed }) =>
      (request: HttpServerRequest.HttpServerRequest): Effect.Effect<HttpServerResponse.HttpServerResponse> =>
        Effect.flatMap(Effect.orDie(request.json), (json) =>
          Effect.async<HttpServerResponse.HttpServerResponse>((resume) =>
            take(
              json,
              timed((answer) => resume(Effect.succeed(Answers.respond(answer)))),
              request.headers["traceparent"]
            )
          )
        )
  )

/** Counts an answer that refuses. */
export const refusals = Effect.map(Meters, ({ ingestRefused }) => (status: number): void => {
  if (status >= 400) ingestRefused[status < 500 ? "4xx" : "5xx"].add()
})

/** Around all routes, since most refusals come from what stands before the handler. */
export const counted =
  (refused: (status: number) => void) =>
  <E, R>(app: HttpApp.Default<E, R>): HttpApp.Default<E, R> =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ method, url }) =>
      method === "POST" && url.split("?", 1)[0] === "/ingest"
        ? Effect.tap(app, ({ status }) => Effect.sync(() => refused(status)))
        : app
    )
