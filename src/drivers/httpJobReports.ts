/** Word of jobs to a scheduler over HTTP. */
import { Effect, Layer, type Redacted } from "effect"
import { bearerOf } from "../node/bearer.ts"
import { JobReportFailed, JobReports } from "../ports/JobReports.ts"
import { json, type Send } from "./shared/httpSend.ts"

const withinMs = 10_000

/** `url` without a trailing slash. `secret`, the scheduler's, is asked for at each report. */
export const layer = (
  url: string,
  secret: () => Redacted.Redacted<string> | undefined,
  send: Send
): Layer.Layer<JobReports> =>
  Layer.succeed(JobReports, {
    present: true,
    report: (report) => {
      const bearer = secret()
      const headers = { "content-type": json, ...(bearer === undefined ? {} : { authorization: bearerOf(bearer) }) }
      return send({ method: "POST", url: `${url}/job/result`, headers, body: JSON.stringify(report), withinMs }).pipe(
        Effect.mapError(({ message }) => new JobReportFailed({ message: `${url}/job/result: ${message}` })),
        Effect.filterOrFail(
          ({ status }) => status >= 200 && status < 300,
          ({ status }) => new JobReportFailed({ message: `${url}/job/result answered ${status}` })
        ),
        Effect.asVoid
      )
    }
  })
