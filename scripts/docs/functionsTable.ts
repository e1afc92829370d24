/**
 * The list of functions in docs/language.md, made from the table the evaluator calls.
 *
 * Why made and compared: four hundred names typed by hand are wrong the day after. `npx vite-node scripts/functions.ts`
 * writes it.
 */

import { functions } from "../../src/core/surql/evaluate/functions.ts"
import { isConstantName, isFunctionName, refusals } from "../../src/core/surql/syntax/functionNames.ts"

const family = (name: string): string => (name.includes("::") ? name.slice(0, name.indexOf("::")) : "")

const ticks = (names: ReadonlyArray<string>): string =>
  names.map((name) => `✓ ${family(name) === "" ? name : name.slice(family(name).length + 2)}`).join(" · ")

/** Answers that change by themselves: known by name, refused in a view. */
const unsteady = (name: string): boolean => functions.get(name)?.pure === false

const code = (names: ReadonlyArray<string>): string => names.map((name) => `\`${name}\``).join(" ")

/** One row per family with a tick for each function that works, one per reason with those that do not. */
export const functionsTable = (): string => {
  const names = [...functions.keys()].filter((name) => isFunctionName(name) && !unsteady(name)).sort()
  const constants = [...functions.keys()].filter(isConstantName).sort()
  const families = [...new Set(names.map(family))]
  return [
    "| Family | Works |",
    "|---|---|",
    ...families.map(
      (f) => `| ${f === "" ? "of no family" : `\`${f}::\``} | ${ticks(names.filter((name) => family(name) === f))} |`
    ),
    `| constants | ${constants.map((name) => `✓ ${name}`).join(" · ")} |`,
    "",
    "| Refused because | Functions |",
    "|---|---|",
    `| it gives another answer each time, or another for each session | ${code([...functions.keys()].filter(unsteady).sort())} |`,
    ...refusals.map(({ reason, names: refused }) => `| ${reason} | ${code(refused)} |`)
  ].join("\n")
}

const begin = "<!-- functions -->\n",
  end = "\n<!-- /functions -->"

/** What stands between the marks of a text. */
export const between = (text: string): string => text.slice(text.indexOf(begin) + begin.length, text.indexOf(end))

/** A text with something else between its marks. */
export const replaced = (text: string, content: string): string =>
  text.slice(0, text.indexOf(begin) + begin.length) + content + text.slice(text.indexOf(end))
