/**
 * Replaces each `$dynamicRef` that has only one possible target by a `$ref`.
 *
 * By the standard it leads to the outermost `$dynamicAnchor` of its name in the course of validation. If the whole
 * document has one such anchor, and no schema is a document of its own (`$id`), that is always the target. The
 * validator gets anchors in `$defs` wrong, and the type printer knows only `$ref`. References with several targets, or
 * within compared values, are left; the validator refuses them.
 */
import { isMapping, type Mapping } from "../core/typeGuards.ts"

const step = (key: string): string => encodeURIComponent(key.replaceAll("~", "~0").replaceAll("/", "~1"))

/** Calls `each` for every mapping with its JSON pointer. */
const walk = (value: unknown, at: string, each: (mapping: Mapping, at: string) => void): void => {
  if (Array.isArray(value)) return value.forEach((item, i) => walk(item, `${at}/${i}`, each))
  if (!isMapping(value)) return
  each(value, at)
  for (const [key, item] of Object.entries(value)) walk(item, `${at}/${step(key)}`, each)
}

/** Keywords with values to compare, not schemas. */
const compared = new Set(["const", "enum"])

const rewritten = (value: unknown, places: ReadonlyMap<string, string>): unknown => {
  if (Array.isArray(value)) return value.map((item) => rewritten(item, places))
  if (!isMapping(value)) return value
  const ref = value["$dynamicRef"]
  const place = typeof ref === "string" && value["$ref"] === undefined ? places.get(ref) : undefined
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => {
      if (key === "$dynamicRef" && place !== undefined) return ["$ref", place]
      return [key, compared.has(key) ? item : rewritten(item, places)]
    })
  )
}

/** The document with these references replaced. */
export const withoutDynamicRefs = (content: Mapping): Mapping => {
  const found = new Map<string, Array<string>>()
  let apart = false
  walk(content, "#", (mapping, at) => {
    if (typeof mapping["$id"] === "string") apart = true
    const anchor = mapping["$dynamicAnchor"]
    if (typeof anchor === "string") found.set(`#${anchor}`, [...(found.get(`#${anchor}`) ?? []), at])
  })
  const places = new Map([...found].flatMap(([name, all]) => (all.length === 1 ? [[name, all[0]!] as const] : [])))
  return apart || places.size === 0 ? content : (rewritten(content, places) as Mapping)
}
