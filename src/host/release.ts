/**
 * The version in `package.json`, read where the built and the plain source find it alike.
 *
 * Read at start rather than written into the build, so that there is one place to change it.
 */

import { readFileSync } from "node:fs"
import { Layer } from "effect"
import { Release } from "../ports/Release.ts"

export const layer: Layer.Layer<Release> = Layer.sync(Release, () => {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"))
  const version =
    typeof manifest === "object" && manifest !== null && "version" in manifest ? String(manifest.version) : "unknown"
  return { version }
})
