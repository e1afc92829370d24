/**
 * `POST /ingest` as a declared route, for servers that answer nothing by callback: the same callback, the same counts.
 *
 * The hot route and this one differ in what stands before them (a server's own admission here, middlewares there) and
 * in nothing else, so a deployment without the hot route measures, traces and answers alike.
 */
import type * as HttpApp from "@effect/platform/HttpApp"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import type * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect } from "effect"
import type { Answer } from "../ports/Front.ts"
import * as Answers from "./httpAnswers.ts"
import { IngestTimes } from "../ports/IngestTimes.ts"
import { Meters } from "../ports/Meters.ts"

/** From JSON to answer; `done` is called exactly once, now or later. */
export type Take = (json: unknown, done: (answer: Answer) => void, traceparent: string | undefined) => void

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
