/**
 * The version of this build.
 *
 * The version stands in the code, so that a node needs no file to know it, wherever it runs; a test compares it with
 * `package.json`.
 */
import { Context, Layer } from "effect"

/** The version that `/version` answers: `layer` gives the package's, `layerOf` one of your own. */
export class Release extends Context.Tag("ports/Release")<
  Release,
  {
    /** As in package.json. */
    readonly version: string
  }
>() {
  static readonly layerOf = (version: string): Layer.Layer<Release> => Layer.succeed(Release, { version })
  static readonly layer: Layer.Layer<Release> = Release.layerOf("0.1.0")
}
