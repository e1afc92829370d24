/**
 * A Dockerfile as data: stages, their instructions, the environment of what runs.
 *
 * Read from the file itself by whoever checks it or does what it says without a container engine.
 */

export interface Instruction {
  readonly word: string
  readonly rest: string
}

export type Stage = ReadonlyArray<Instruction>

/** Instructions of each stage, lines that go on joined; throws where a line is none. */
export const stages = (source: string): ReadonlyArray<Stage> => {
  const found: Array<Array<Instruction>> = []
  for (const line of source.replace(/^\s*#.*\n/gm, "").replace(/\\\n\s*/g, "").split("\n").filter((each) => each.trim() !== "")) {
    const [, word = "", rest = ""] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? []
    if (word === "") throw new Error(`not an instruction: ${line}`)
    if (word === "FROM") found.push([])
    found.at(-1)?.push({ word, rest })
  }
  return found
}

/** What stands behind every instruction of that word. */
export const all = (stage: Stage, word: string): ReadonlyArray<string> => stage.filter((each) => each.word === word).map(({ rest }) => rest)

export const env = (stage: Stage): { readonly [name: string]: string } =>
  Object.fromEntries(all(stage, "ENV").flatMap((rest) => [...rest.matchAll(/(\w+)=(\S+)/g)].map(([, name, value]) => [name!, value!])))
