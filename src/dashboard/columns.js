/**
 * The columns of a result in the order of its SELECT: JSON names the fields of a row in another order.
 *
 * The query is not read in full: a name that is not understood stands with the rest, where `*` does or at the end.
 */
// @ts-check

const word = /[A-Za-z_0-9]/
const closing = /** @type {{ [opening: string]: string }} */ ({ "(": ")", "[": "]", "{": "}" })

/**
 * The texts of the fields between SELECT and FROM. @param {string} query @returns {ReadonlyArray<string>}
 */
const fieldsOf = (query) => {
  const text = query.replace(/\/\*[^]*?\*\/|(?:--|#|\/\/).*$/gm, " ").trim()
  if (!/^SELECT\s+(?!VALUE\b)/i.test(text)) return []
  /** @type {Array<string>} */
  const fields = []
  /** @type {Array<string | undefined>} */
  const open = []
  let field = ""
  for (let i = "SELECT".length; i < text.length; i++) {
    const character = text.charAt(i)
    if (open.length === 0 && /^(?:FROM|OMIT)\b/i.test(text.slice(i, i + 5)) && !word.test(text.charAt(i - 1))) break
    if (character === "," && open.length === 0) {
      fields.push(field)
      field = ""
      continue
    }
    const quote = character === "⟨" ? "⟩" : /['"`]/.test(character) ? character : undefined
    let end = i
    if (quote !== undefined) {
      for (end = i + 1; end < text.length && text[end] !== quote; end++) if (text[end] === "\\") end++
    } else if (closing[character] !== undefined) open.push(closing[character])
    else if (character === open.at(-1)) open.pop()
    field += text.slice(i, end + 1)
    i = end
  }
  return [...fields, field]
}

/** The first part of a path, as a row names it. @param {string} path */
const nameOf = (path) => {
  const quoted = /^(?:`((?:[^`\\]|\\.)*)`|⟨([^⟩]*)⟩)/.exec(path)
  return quoted?.[1]?.replace(/\\(.)/g, "$1") ?? quoted?.[2] ?? /^[\w:]+|^\*/.exec(path)?.[0] ?? ""
}

/** Names of the columns; `*` stands for all that are not named. @param {string} query @returns {ReadonlyArray<string>} */
export const columnsOf = (query) =>
  fieldsOf(query).map((field) => nameOf((/^[^]*\sAS\s+([^]*)$/i.exec(field)?.[1] ?? field).trim()))

/**
 * Fields of rows in the order of the query's columns. @param {ReadonlyArray<string>} names @param
 * {ReadonlyArray<string>} columns @returns {ReadonlyArray<string>}
 */
export const inOrder = (names, columns) => {
  const rest = columns.indexOf("*")
  const placeOf = (/** @type {string} */ name) => {
    const at = columns.lastIndexOf(name)
    return at >= 0 ? at : rest < 0 ? columns.length : rest
  }
  return [...names].sort((a, b) => placeOf(a) - placeOf(b) || Number(b === "id") - Number(a === "id"))
}
