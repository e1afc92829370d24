/**
 * Configuration from the process's surroundings: environment, `svc.yml`, secret files, the machine's name.
 *
 * Faults are handed on, not thrown: the reader of settings names them together with all others.
 */
import { Layer } from "effect"
import { existsSync, readFileSync } from "node:fs"
import { hostname } from "node:os"
import { parseDocument } from "yaml"
import { type ConfigFile, ConfigSource } from "../ports/ConfigSource.ts"

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message.split("\n")[0] ?? "" : String(error))

const readText = (path: string): { readonly text: string } | { readonly fault: string } => {
  try {
    return { text: readFileSync(path, "utf8") }
  } catch (error) {
    return { fault: reasonOf(error) }
  }
}

/** Aliases are bounded, so that a small file cannot become a huge value. */
export const parse = (path: string): ConfigFile => {
  const read = readText(path)
  if ("fault" in read) return { path, content: undefined, fault: `cannot be read (${read.fault}); SVC_CONFIG_PATH must name a readable YAML file` }
  const document = parseDocument(read.text, { prettyErrors: false })
  const [error] = document.errors
  if (error !== undefined) {
    const line = read.text.slice(0, error.pos[0]).split("\n").length
    return { path, content: undefined, fault: `line ${line} is not YAML: ${error.message}` }
  }
  try {
    return { path, content: document.toJS({ maxAliasCount: 100 }) as unknown, fault: undefined }
  } catch (thrown) {
    return { path, content: undefined, fault: `is not usable YAML: ${reasonOf(thrown)}` }
  }
}

const defaultPath = "./svc.yml"

export const layer: Layer.Layer<ConfigSource> = Layer.sync(ConfigSource, () => {
  const given = process.env["SVC_CONFIG_PATH"]
  const path = given !== undefined && given !== "" ? given : existsSync(defaultPath) ? defaultPath : undefined
  return {
    env: process.env,
    file: path === undefined ? undefined : parse(path),
    readText,
    hostName: hostname()
  }
})
