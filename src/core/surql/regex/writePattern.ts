/** A pattern as RE2 writes it. */
import type { Assertion, Node } from "./pattern.ts"

/** RE2's words are of ASCII, so it is given texts of ASCII alone where these are asked for. */
const assertions: { readonly [assertion in Assertion]: string | undefined } = {
  textStart: "\\A",
  textEnd: "\\z",
  lineStart: "(?m:^)",
  lineEnd: "(?m:$)",
  wordBoundary: "\\b",
  noWordBoundary: "\\B",
  wordStart: undefined,
  wordEnd: undefined,
  halfStart: undefined,
  halfEnd: undefined
}

export const isOfWords = (assertion: Assertion): boolean => !/^(?:text|line)/.test(assertion)

const counts = (min: number, max: number): string => {
  if (max === Infinity) return min === 0 ? "*" : min === 1 ? "+" : `{${min},}`
  return min === 0 && max === 1 ? "?" : `{${min},${max}}`
}

/** Undefined: it has an assertion that RE2 does not know. */
export const writePattern = (node: Node): string | undefined => {
  switch (node.kind) {
    case "nothing":
      return "(?:)"
    case "set":
      return node.ignoresCase ? `(?i:${node.text})` : node.text
    case "assertion":
      return assertions[node.assertion]
    case "repeat": {
      const part = writePattern(node.part)
      return part === undefined ? undefined : `(?:${part})${counts(node.min, node.max)}${node.isLazy ? "?" : ""}`
    }
    case "sequence":
    case "choice": {
      const parts = node.parts.map(writePattern)
      if (parts.includes(undefined)) return undefined
      return node.kind === "choice" ? `(?:${parts.join("|")})` : parts.join("")
    }
  }
}
