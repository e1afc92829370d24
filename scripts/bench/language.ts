/**
 * The bench of the language: parse and compile, and a filter over 100,000 rows beside two other engines.
 *
 * Why apart: `languageRun.ts` measures, on the built code; here it is started and its figures become lines with a goal.
 */
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import ts from "typescript"
import { root } from "../../kit/rules/source.ts"
import { type Line, median, print } from "./load.ts"

interface Figures {
  readonly group: string
  readonly name: string
  readonly figures: ReadonlyArray<number>
}

const goalMicros = 50

/** Runs a script of measurements on `dist`: its imports of `src` are pointed there. Answers what it prints. */
export const onDist = (script: string, args: ReadonlyArray<string> = []): string => {
  const { outputText } = ts.transpileModule(readFileSync(join(root, script), "utf8"), {
    compilerOptions: {
      module: ts.ModuleKind.ESNext,
      target: ts.ScriptTarget.ES2022,
      rewriteRelativeImportExtensions: true,
      sourceMap: false
    }
  })
  const code = outputText.replaceAll('"../../src/', `"${pathToFileURL(join(root, "dist")).href}/`)
  return execFileSync(process.execPath, ["--input-type=module", "--eval", code, "--", ...args], {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 1e8,
    stdio: ["ignore", "pipe", "inherit"]
  })
}

/**
 * Prints every figure; answers the lines that are judged. Parse and compile is measured against its goal in
 * microseconds.
 */
export const language = (): ReadonlyArray<Line> => {
  const all = JSON.parse(onDist("scripts/bench/languageRun.ts")) as ReadonlyArray<Figures>
  const lines: Array<Line> = []
  for (const group of new Set(all.map((one) => one.group))) {
    console.log(`  ${group}`)
    const members = all.filter((one) => one.group === group)
    for (const { figures, name } of members)
      console.log(
        `    ${name.padEnd(60)} ${median(figures).toFixed(1).padStart(9)} us CPU, rounds ${figures.map((figure) => figure.toFixed(figure < 100 ? 1 : 0)).join(" ")}`
      )
    const [first, ...others] = members
    if (first === undefined) continue
    if (first.name.startsWith("parse"))
      lines.push({
        what: `${first.name}, us`,
        against: `${goalMicros} us`,
        ratio: median(first.figures) / goalMicros,
        goal: 1
      })
    else
      for (const other of others)
        lines.push({
          what: `${first.name}: ${group}`,
          against: other.name,
          ratio: median(first.figures.map((figure, round) => figure / (other.figures[round] ?? Number.NaN))),
          goal: 1
        })
  }
  for (const line of lines) print(line)
  return lines
}
