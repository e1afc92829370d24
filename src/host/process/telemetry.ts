/**
 * OpenTelemetry by the standard environment variables: spans, figures and log records to a collector, if one is set.
 *
 * The exporter is loaded only by a process that sends: others do not wait for it, and find no tracer.
 */
import { Effect, Layer } from "effect"
import { signals } from "../../core/telemetry/metrics.ts"
import * as Otel from "../../core/telemetry/otelSettings.ts"
import { Meters } from "../../ports/Meters.ts"
import type { NodeFigures } from "../../ports/NodeFigures.ts"
import { Release } from "../../ports/Release.ts"
import * as Logs from "./logs.ts"
import * as TerminalBar from "./terminalBar.ts"

export interface Identity {
  readonly server: "ssp" | "scheduler"
  /** SSP_ID or SCHEDULER_ID. */
  readonly id: string
}

export interface Layers {
  /**
   * The log, the bar on a terminal, and the exporters of spans (`ports/Tracing`) and log records; provided to
   * everything that makes these.
   */
  readonly around: Layer.Layer<never>
  /** The figures of the node. */
  readonly metrics: Layer.Layer<never, never, NodeFigures | Release>
}

const warned = (warnings: ReadonlyArray<string>): Layer.Layer<never> =>
  Layer.effectDiscard(Effect.forEach(warnings, (warning) => Effect.logWarning(warning), { discard: true }))

export const layers = (
  identity: Identity,
  { logFormat, logLevel }: { readonly logFormat: Logs.Format | undefined; readonly logLevel: Logs.Level },
  env: Otel.Env = process.env
): Layers => {
  const settings = Otel.read(env)
  const own = Layer.provideMerge(
    Layer.merge(warned(settings.warnings), TerminalBar.layer(logFormat)),
    Logs.layer(logFormat, logLevel)
  )
  if (signals.every((signal) => settings.sending[signal] === undefined)) return { around: own, metrics: Layer.empty }
  const loaded = Effect.promise(() => import("./otlp.ts"))
  // The same layer as the node's, so its counters are the same.
  const outer = Layer.unwrapEffect(Effect.map(loaded, (otlp) => otlp.layerOuter(settings, identity))).pipe(
    Layer.provide([Release.layer, Meters.layer])
  )
  return {
    around: Layer.provideMerge(outer, own),
    metrics: Layer.unwrapEffect(Effect.map(loaded, (otlp) => otlp.layerMetrics(settings, identity)))
  }
}
