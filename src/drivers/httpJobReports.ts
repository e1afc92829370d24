/** Reports of jobs to a scheduler over HTTP. */
import { Effect, Layer, type Redacted } from "effect"
import * as JsonText from "../core/jsonText.ts"
import { bearerOf } from "../node/http/bearer.ts"
import { JobReportFailed, JobReports } from "../ports/JobReports.ts"
import { type Exchange, isSuccess, json } from "./shared/exchange.ts"
import { Schedulers, whySecret } from "./shared/schedulers.ts"

const withinMs = 10_000

interface Unreported {
  readonly failed: JobReportFailed
  /** Whether another scheduler may accept the report. */
  readonly passes: boolean
  readonly refused: boolean
}

/**
 * `list`: addresses of schedulers without a trailing slash, separated by commas. `secret` is the schedulers' secret,
 * read for each report.
 */
export const layer = (
  list: string,
  secret: () => Redacted.Redacted<string> | undefined,
  { request }: Pick<Exchange, "request">
): Layer.Layer<JobReports> => {
  const schedulers = new Schedulers(list)
  const reportTo = (url: string, body: string): Effect.Effect<void, Unreported> => {
    const bearer = secret()
    const headers = { "content-type": json, ...(bearer === undefined ? {} : { authorization: bearerOf(bearer) }) }
    const failed = (what: string, status?: number): Unreported => ({
      failed: new JobReportFailed({ message: `${url}/job/result${what}` }),
      passes: status === undefined || status === 503,
      refused: status === 400
    })
    return request({ method: "POST", url: `${url}/job/result`, headers, body, withinMs }).pipe(
      Effect.mapError(({ message }) => failed(`: ${message}`)),
      Effect.filterOrFail(isSuccess, ({ status }) => failed(` answered ${status}${whySecret(status)}`, status)),
      Effect.asVoid
    )
  }
  return Layer.succeed(JobReports, {
    present: true,
    report: ({ errors, ssp_id, ...report }) => {
      const told = (body: object) =>
        schedulers.ask(
          (url) => reportTo(url, JsonText.write(body)),
          ({ passes }) => passes
        )
      return told({ ...report, errors, ssp_id }).pipe(
        // A scheduler of the specification alone may refuse a body with extensions (D77).
        Effect.catchIf(
          ({ refused }) => refused,
          () => told(report)
        ),
        Effect.mapError(({ failed }) => failed)
      )
    }
  })
}
