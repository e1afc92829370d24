/**
 * The HTTP client for calls to other nodes: the runtime's own, or one that shows this node's certificate.
 *
 * The second is loaded where it is needed only: its modules are a tenth of a start.
 */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import type * as HttpClient from "@effect/platform/HttpClient"
import { Effect, Layer } from "effect"
import type { Tls } from "../../node/tls.ts"

export const layer = (tls: Tls | undefined): Layer.Layer<HttpClient.HttpClient> =>
  tls?.isMutual === true
    ? Layer.unwrapEffect(
        Effect.map(
          Effect.promise(() => import("./tlsClient.ts")),
          (client) => client.layerMutual(tls)
        )
      )
    : FetchHttpClient.layer
