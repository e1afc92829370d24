/**
 * How deep a JSON value nests, looked at only as far as the limit (D17).
 *
 * After parsing rather than on the text: it costs a fraction of the parse, and the walk never goes deeper than the
 * limit.
 */

/** Levels a body may have; the outermost object is level 1. */
export const maxDepth = 64

const deeper = (value: object, left: number): boolean => {
  if (left === 0) return true
  if (Array.isArray(value)) {
    for (const item of value) if (typeof item === "object" && item !== null && deeper(item, left - 1)) return true
    return false
  }
  for (const key in value) {
    const item: unknown = (value as { readonly [key: string]: unknown })[key]
    if (typeof item === "object" && item !== null && deeper(item, left - 1)) return true
  }
  return false
}

/** Whether `value` nests beyond the limit. An outermost array (a batch of changes) does not count as a level. */
export const tooDeep = (value: unknown): boolean =>
  typeof value === "object" && value !== null && deeper(value, Array.isArray(value) ? maxDepth + 1 : maxDepth)
