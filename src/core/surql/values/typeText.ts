/**
 * Splits texts of types: `none | array<int | string, 3>`, `{ at: datetime }`.
 *
 * Why so: types are canonical text, which casts, declared fields and names of results parse.
 */

/** The parts of a text between separators that stand outside brackets and quotes. */
export const splitOutside = (text: string, separator: string): ReadonlyArray<string> => {
  const out: Array<string> = []
  let depth = 0,
    start = 0,
    quote = ""
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!
    if (quote !== "") {
      if (c === "\\") i++
      else if (c === quote) quote = ""
    } else if (c === "'" || c === '"') quote = c
    else if ("<[{".includes(c)) depth++
    else if (">]}".includes(c)) depth--
    else if (c === separator && depth === 0) {
      out.push(text.slice(start, i).trim())
      start = i + 1
    }
  }
  const last = text.slice(start).trim()
  return last === "" && out.length === 0 ? out : [...out, last]
}

/** The alternatives of a type. */
export const splitUnion = (type: string): ReadonlyArray<string> =>
  type.includes("|") ? splitOutside(type, "|") : [type]
