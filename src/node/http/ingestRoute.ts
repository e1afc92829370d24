/** `POST /ingest` of both nodes: timed, counted, by callback. A node gives the function that takes the body. */
import { Effect, Either } from "effect"
import type { Answer, Reply } from "../../ports/Front.ts"
import { IngestTimes } from "../../ports/IngestTimes.ts"
import { Meters } from "../../ports/Meters.ts"
import * as Answers from "./answers.ts"
import * as Bodies from "./bodies.ts"
import type { Call } from "./routes.ts"

/** From JSON to answer; `done` is called exactly once, now or later. */
export type IngestHandler = (json: unknown, done: (answer: Answer) => void, traceparent: string | undefined) => void

export const make = (take: IngestHandler) =>
  Effect.gen(function* () {
    const { timed } = yield* IngestTimes
    const { ingestRefused } = yield* Meters
    const refused = (status: number): void => {
      if (status >= 400) ingestRefused[status < 500 ? "4xx" : "5xx"].add()
    }
    return {
      isRaw: true,
      refused,
      answer: ({ asked: { headers }, text }: Call, reply: Reply) => {
        const done = timed((answer) => {
          refused(answer.status)
          reply.send(answer)
        })
        const json = Bodies.parseJson(text)
        if (Either.isLeft(json)) done(Answers.toAnswer(json.left))
        else take(json.right, done, headers["traceparent"])
      }
    }
  })
