/**
 * YAML as configuration: bounded in size, depth and aliases, with faults that name the line.
 *
 * Apart from `ConfigFile.ts`, which loads it only if there is a file: the library takes a twentieth of a start.
 */
import { type Document, isCollection, isScalar, parseDocument, type Range, visit } from "yaml"
import { firstLineOf } from "../core/reason.ts"
import type { ConfigFile } from "../ports/ConfigSource.ts"
import { readText } from "./ConfigFile.ts"

const maxAliases = 100
/** Levels of nesting; the service reads five, the schemas of an OpenAPI document take some more. */
export const maxDepth = 64

/**
 * Faults of parsed YAML, with their place: an alias inside its own node has no end, thousands of aliases take minutes,
 * and so does the library's own check for duplicate keys.
 */
const faultIn = (document: Document.Parsed): { readonly at: number; readonly what: string } | undefined => {
  let aliases = 0
  let fault: { readonly at: number; readonly what: string } | undefined
  const stop = (node: { readonly range?: Range | null | undefined }, what: string): symbol => {
    fault = { at: node.range?.[0] ?? 0, what }
    return visit.BREAK
  }
  const tooDeep = (
    node: { readonly range?: Range | null | undefined },
    path: ReadonlyArray<unknown>
  ): symbol | undefined =>
    path.filter(isCollection).length >= maxDepth ? stop(node, `is nested more than ${maxDepth} levels deep`) : undefined
  visit(document, {
    Seq: (_, list, path) => tooDeep(list, path),
    Alias: (_, node, path) => {
      if (++aliases > maxAliases) return stop(node, `has more than ${maxAliases} aliases`)
      return path.some((above) => isCollection(above) && above.anchor === node.source)
        ? stop(node, `has the alias *${node.source} inside what it stands for`)
        : undefined
    },
    Map: (_, map, path) => {
      const seen = new Set<unknown>()
      for (const { key } of map.items) {
        if (!isScalar(key)) continue
        if (seen.has(key.value)) return stop(key, `has the key ${JSON.stringify(key.value)} twice`)
        seen.add(key.value)
      }
      return tooDeep(map, path)
    }
  })
  return fault
}

/** Parses YAML within the limits above; the fault names the line. */
export const parseText = (text: string): { readonly content: unknown; readonly fault: string | undefined } => {
  const lineOf = (offset: number): number => text.slice(0, offset).split("\n").length
  try {
    const document = parseDocument(text, { prettyErrors: false, uniqueKeys: false })
    const [error] = document.errors
    if (error !== undefined)
      return { content: undefined, fault: `line ${lineOf(error.pos[0])} is not YAML: ${error.message}` }
    const fault = faultIn(document)
    if (fault !== undefined) return { content: undefined, fault: `line ${lineOf(fault.at)} ${fault.what}` }
    return { content: document.toJS({ maxAliasCount: maxAliases }) as unknown, fault: undefined }
  } catch (thrown) {
    return { content: undefined, fault: `is not usable YAML: ${firstLineOf(thrown)}` }
  }
}

export const parse = (path: string): ConfigFile => {
  const read = readText(path)
  return "fault" in read
    ? {
        path,
        content: undefined,
        fault: `cannot be read (${read.fault}); SVC_CONFIG_PATH must name a readable YAML file`
      }
    : { path, ...parseText(read.text) }
}
