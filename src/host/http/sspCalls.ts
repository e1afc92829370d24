/**
 * The scheduler's calls to SSPs on bare connections; `ports/SspClient.ts` says what they are.
 *
 * Why bare: see `exchange.ts`; there is a delivery to each SSP for every event that comes alone.
 */
import { Effect, Layer } from "effect"
import * as HttpSspClient from "../../drivers/httpSspClient.ts"
import type { Tls } from "../../node/config/tls.ts"
import type { Names } from "../../ports/Names.ts"
import type { Options, SspClient } from "../../ports/SspClient.ts"
import * as Exchange from "./exchange.ts"

/** With an authority of the cluster only over TLS. */
export const layer = ({
  tls,
  ...options
}: Omit<Options, "isTlsOnly"> & { readonly tls?: Tls | undefined }): Layer.Layer<SspClient, never, Names> =>
  Layer.unwrapScoped(
    Effect.map(Exchange.make(tls), (exchange) =>
      HttpSspClient.layerOver(exchange, { ...options, isTlsOnly: tls?.isMutual ?? false })
    )
  )
