/**
 * The corpus files: `test/corpus/*.surql`, readable by people and by the database's own tools.
 *
 * Why so: a file states its data, its queries and the real engine's answers, so a case can be read, run and argued
 * about without this project. Format: `-- data` followed by one record per comment line; then queries of one line, each
 * ended by `;` and followed by `--> answer`, or by `--> planner: ..` and `--> older: ..` where the engine's two
 * evaluators differ. `-- differs: why` in front of a query says that we knowingly answer otherwise.
 */
import { readdirSync, readFileSync } from "node:fs"

export interface Case {
  readonly query: string
  readonly planner: string | undefined
  readonly older: string | undefined
  /** Why our answer is knowingly another one. */
  readonly differs: string | undefined
}

export interface CorpusFile {
  readonly name: string
  readonly title: string
  readonly data: ReadonlyArray<string>
  readonly cases: ReadonlyArray<Case>
}

export const folder = new URL("../../test/corpus/", import.meta.url)

/** Reads one file. */
export const parseFile = (name: string, text: string): CorpusFile => {
  const data: Array<string> = []
  const cases: Array<Case> = []
  let differs: string | undefined
  const [title = "", ...lines] = text.split("\n")
  for (const line of lines) {
    const last = cases[cases.length - 1]
    if (line.startsWith("--> planner: ")) cases[cases.length - 1] = { ...last!, planner: line.slice(13) }
    else if (line.startsWith("--> older: ")) cases[cases.length - 1] = { ...last!, older: line.slice(11) }
    else if (line.startsWith("--> "))
      cases[cases.length - 1] = { ...last!, planner: line.slice(4), older: line.slice(4) }
    else if (line.startsWith("-- differs: ")) differs = line.slice(12)
    else if (/^-- [^\s:]+:\S* \{/.test(line)) data.push(line.slice(3))
    else if (line.endsWith(";") && !line.startsWith("--")) {
      cases.push({ query: line.slice(0, -1), planner: undefined, older: undefined, differs })
      differs = undefined
    }
  }
  return { name, title, data, cases }
}

/** All files, by name. */
export const readCorpus = (): ReadonlyArray<CorpusFile> =>
  readdirSync(folder)
    .filter((name) => name.endsWith(".surql"))
    .sort()
    .map((name) => parseFile(name, readFileSync(new URL(name, folder), "utf8")))

/** The text of a file. */
export const printFile = (file: CorpusFile): string => {
  const data = file.data.length === 0 ? "" : "\n-- data\n" + file.data.map((d) => `-- ${d}\n`).join("")
  const cases = file.cases.map((c) => {
    const answer = c.planner === c.older ? `--> ${c.planner}\n` : `--> planner: ${c.planner}\n--> older: ${c.older}\n`
    return (c.differs === undefined ? "" : `-- differs: ${c.differs}\n`) + `${c.query};\n${answer}`
  })
  return `${file.title}\n${data}\n${cases.join("")}`
}

/** Tables a file's records stand in. */
export const tablesOf = (file: CorpusFile): ReadonlyArray<string> => [
  ...new Set(file.data.map((d) => d.slice(0, d.indexOf(":"))))
]
