/**
 * The figures of a whole node at this moment, for the parts that serve or send them (D34).
 *
 * A port between the node, which has the figures, and their two writers, `/metrics` and the exporter, which therefore
 * report the same.
 */
import { Context, type Effect } from "effect"
import type { Family } from "../core/telemetry/meters.ts"

/** All figures of a node, as `/metrics` prints them. */
export class NodeFigures extends Context.Tag("ports/NodeFigures")<
  NodeFigures,
  Effect.Effect<ReadonlyArray<Family>>
>() {}
