/**
 * What this build calls itself.
 *
 * A port, because reading `package.json` is a runtime's business.
 */
import { Context, Layer } from "effect"

/** The version that `/version` answers; `layerOf` gives one. */
export class Release extends Context.Tag("ports/Release")<
  Release,
  {
    /** As in package.json. */
    readonly version: string
  }
>() {
  static readonly layerOf = (version: string): Layer.Layer<Release> => Layer.succeed(Release, { version })
}
