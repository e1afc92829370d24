/**
 * The scheduler's calls to SSPs on bare connections; `ports/SspClient.ts` says what they are.
 *
 * Why bare: see `exchange.ts`; there is a delivery to each SSP for every event that comes alone.
 */
import type * as HttpClient from "@effect/platform/HttpClient"
import { Effect, Layer } from "effect"
import type { Names } from "../ports/Names.ts"
import { type Options, SspClient } from "../ports/SspClient.ts"
import * as Exchange from "./exchange.ts"

/** The HTTP client is for what callers ask of an SSP through the scheduler. */
export const layer = (options: Omit<Options, "send">): Layer.Layer<SspClient, never, HttpClient.HttpClient | Names> =>
  Layer.unwrapScoped(Effect.map(Exchange.between, (send) => SspClient.layerHttp({ ...options, send })))
