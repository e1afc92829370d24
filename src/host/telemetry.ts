/**
 * OpenTelemetry by the standard variables of the environment: spans, figures and log records to a collector, or nothing at all.
 *
 * What sends is loaded only by a process that sends: the others do not wait for it, and their hot path finds no tracer.
 */
import { Effect, Layer } from "effect"
import { signals } from "../core/metrics.ts"
import * as Otel from "../core/otelSettings.ts"
import type { NodeFigures } from "../ports/NodeFigures.ts"
import type { Release } from "../ports/Release.ts"

export interface Identity {
  readonly server: "ssp" | "scheduler"
  /** SSP_ID or SCHEDULER_ID. */
  readonly id: string
}

export interface Layers {
  /** Spans (`ports/Tracing`) and log records; outside of everything that makes them. */
  readonly outer: Layer.Layer<never, never, Release>
  /** The figures of the node. */
  readonly metrics: Layer.Layer<never, never, NodeFigures | Release>
}

const warned = (warnings: ReadonlyArray<string>): Layer.Layer<never> => Layer.effectDiscard(Effect.forEach(warnings, (warning) => Effect.logWarning(warning), { discard: true }))

export const layers = (identity: Identity, env: Otel.Env = process.env): Layers => {
  const settings = Otel.read(env)
  const warnings = warned(settings.warnings)
  if (signals.every((signal) => settings.sending[signal] === undefined)) return { outer: warnings, metrics: Layer.empty }
  const loaded = Effect.promise(() => import("./otlp.ts"))
  return {
    outer: Layer.merge(warnings, Layer.unwrapEffect(Effect.map(loaded, (otlp) => otlp.layerOuter(settings, identity)))),
    metrics: Layer.unwrapEffect(Effect.map(loaded, (otlp) => otlp.layerMetrics(settings, identity)))
  }
}
