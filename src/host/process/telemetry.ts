/**
 * OpenTelemetry by the standard variables of the environment: spans, figures and log records to a collector, or nothing
 * at all.
 *
 * What sends is loaded only by a process that sends: the others do not wait for it, and their hot path finds no tracer.
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
   * The log, on a terminal the bar, and spans (`ports/Tracing`) and log records to the collector; outside of everything
   * that makes them.
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
  // The node's own counters: the same layer, so the same ones.
  const outer = Layer.unwrapEffect(Effect.map(loaded, (otlp) => otlp.layerOuter(settings, identity))).pipe(
    Layer.provide([Release.layer, Meters.layer])
  )
  return {
    around: Layer.provideMerge(outer, own),
    metrics: Layer.unwrapEffect(Effect.map(loaded, (otlp) => otlp.layerMetrics(settings, identity)))
  }
}
