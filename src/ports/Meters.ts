/**
 * The counters of one node, for whatever counts in it (D34).
 *
 * A reference with a default, so that a part of a node on its own (a test, another composition) needs no meters and its
 * counts are dropped; a whole node gets its own, so that two in one process do not count each other's.
 */
import { Context, Layer } from "effect"
import * as Core from "../core/telemetry/meters.ts"

/** The counters of a node; without a layer counts are dropped. */
export class Meters extends Context.Reference<Meters>()("ports/Meters", { defaultValue: Core.make }) {
  static readonly layer: Layer.Layer<Meters> = Layer.sync(Meters, Core.make)
}
