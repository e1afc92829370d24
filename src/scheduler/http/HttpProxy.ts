/**
 * `POST /proxy/query`: the query's answer as a response with the position it was read at (D20, D28).
 */
import { Effect } from "effect"
import { overloaded } from "../../node/http/answers.ts"
import type { Call } from "../../node/http/routes.ts"
import type { ProxyQuery as Wire } from "../../protocol/schedulerWire.ts"
import { snapshotSeqHeader } from "../../protocol/wire.ts"
import { ProxyQuery, type QueryError } from "../replica/ProxyQuery.ts"

const refusal = (error: QueryError) => {
  switch (error._tag) {
    case "QueryRefused":
      return {
        code: "INVALID_QUERY" as const,
        message: error.message,
        details: { line: error.line, column: error.column }
      }
    case "QueryBusy":
      return overloaded(error)
    case "QueryFailed":
      return { code: "QUERY_FAILED" as const, message: error.message }
    case "ReplicaError":
      return { code: "QUERY_FAILED" as const, message: `the replica cannot be read: ${error.message}` }
  }
}

export const handler = Effect.map(
  ProxyQuery,
  (proxy) =>
    ({ asked: { headers }, payload: { params, query } }: Call & { readonly payload: typeof Wire.Type }) =>
      proxy.run({ query, params: params ?? undefined, accept: headers["accept"] }).pipe(
        Effect.map(({ body, contentType, seq }) => ({
          status: 200,
          headers: { "content-type": contentType, [snapshotSeqHeader]: String(seq) },
          pieces: body
        })),
        Effect.mapError(refusal)
      )
)
