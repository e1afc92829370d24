/** Where a node that follows a database keeps under which token it last did: a file beside what else is its own. */
import { join } from "node:path"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { Effect, Layer } from "effect"
import { inFile } from "../ports/SavedState.ts"
import { Upstream, type UpstreamShape } from "../ports/Upstream.ts"

/** A database that this node follows, with a file that says under which token it last did. */
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
