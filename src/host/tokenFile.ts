/** Stores the tokens under which a node has followed a database, in a file beside its other state. */
import { join } from "node:path"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { Effect, Layer } from "effect"
import { inFile } from "../ports/SavedState.ts"
import { Upstream, type UpstreamShape } from "../ports/Upstream.ts"

/** `upstream`, with a file that holds the tokens under which this node last followed it. */
export const withTokenFile = <E, R>(
  folder: string,
  upstream: Layer.Layer<Upstream, E, R>
): Layer.Layer<Upstream, E, R> =>
  Layer.effect(
    Upstream,
    Effect.map(
      Effect.all([Upstream, inFile(join(folder, "reader.token"))]),
      ([shape, remembered]): UpstreamShape => ({ ...shape, remembered })
    )
  ).pipe(Layer.provide([upstream, NodeFileSystem.layer, NodePath.layer]))
