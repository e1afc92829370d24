/**
 * What this build calls itself.
 *
 * A port, because reading `package.json` is a runtime's business.
 */
import { Context, Layer } from "effect"

export class Release extends Context.Tag("ports/Release")<Release, {
  /** As in package.json. */
  readonly version: string
}>() {
  static readonly layerOf = (version: string): Layer.Layer<Release> => Layer.succeed(Release, { version })
}
