/**
 * Reads the configuration: environment, `svc.yml`, secret files, the machine's name.
 *
 * Faults are returned, not thrown: the reader of settings lists them with all others.
 */

import { existsSync, readFileSync, statSync } from "node:fs"
import { hostname } from "node:os"
import { Effect, Layer } from "effect"
import { firstLineOf } from "../core/reason.ts"
import { ConfigSource } from "../ports/ConfigSource.ts"
import { judgeTls } from "./http/tlsFiles.ts"

/** Largest configuration file, and largest secret file. */
const maxConfigBytes = 1024 * 1024

/** Reads a regular file of bounded size: a device or a pipe might never end, or block the start. */
export const readText = (
  path: string,
  maxBytes = maxConfigBytes
): { readonly text: string } | { readonly fault: string } => {
  try {
    const stats = statSync(path)
    if (!stats.isFile()) return { fault: "it is not a regular file" }
    if (stats.size > maxBytes) return { fault: `it has ${stats.size} bytes, and ${maxBytes} are allowed` }
    return { text: readFileSync(path, "utf8") }
  } catch (error) {
    return { fault: firstLineOf(error) }
  }
}

const defaultPath = "./svc.yml"

export const layer: Layer.Layer<ConfigSource> = Layer.effect(
  ConfigSource,
  Effect.gen(function* () {
    const given = process.env["SVC_CONFIG_PATH"]
    const path = given !== undefined && given !== "" ? given : existsSync(defaultPath) ? defaultPath : undefined
    const file = path === undefined ? undefined : (yield* Effect.promise(() => import("./yamlFile.ts"))).parse(path)
    return {
      env: process.env,
      file,
      readText,
      judgeTls,
      hostName: hostname()
    }
  })
)
