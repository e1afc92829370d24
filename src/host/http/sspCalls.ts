/**
 * The scheduler's calls to SSPs (`ports/SspClient.ts`) on bare connections.
 *
 * Bare connections as in `exchange.ts`, because an event that arrives alone costs one delivery to each SSP.
 */
import { Effect, Layer } from "effect"
import * as HttpSspClient from "../../drivers/httpSspClient.ts"
import type { Tls } from "../../node/config/tls.ts"
import type { Names } from "../../ports/Names.ts"
import type { Options, SspClient } from "../../ports/SspClient.ts"
import * as Exchange from "./exchange.ts"

/** If the cluster has a certificate authority, SSPs are called over TLS only. */
export const layer = ({
  tls,
  ...options
}: Omit<Options, "isTlsOnly"> & { readonly tls?: Tls | undefined }): Layer.Layer<SspClient, never, Names> =>
  Layer.unwrapScoped(
    Effect.map(Exchange.make(tls), (exchange) =>
      HttpSspClient.layerOver(exchange, { ...options, isTlsOnly: tls?.isMutual ?? false })
    )
  )
