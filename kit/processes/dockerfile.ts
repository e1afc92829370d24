/**
 * A Dockerfile as data: stages, their instructions, the environment of what runs.
 *
 * Read from the file itself by the test that checks it, and by the one that carries it out without a container engine.
 */

export interface Instruction {
  readonly word: string
  readonly rest: string
}

export type Stage = ReadonlyArray<Instruction>

/** Instructions of each stage, lines that go on joined; throws where a line is none. */
export const stages = (source: string): ReadonlyArray<Stage> => {
  const found: Array<Array<Instruction>> = []
  for (const line of source
    .replace(/^\s*#.*\n/gm, "")
    .replace(/\\\n\s*/g, "")
    .split("\n")
    .filter((each) => each.trim() !== "")) {
    const [, word = "", rest = ""] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? []
    if (word === "") throw new Error(`not an instruction: ${line}`)
    if (word === "FROM") found.push([])
    found.at(-1)?.push({ word, rest })
  }
  return found
}

/** What stands behind every instruction of that word. */
export const all = (stage: Stage, word: string): ReadonlyArray<string> =>
  stage.filter((each) => each.word === word).map(({ rest }) => rest)

export const env = (stage: Stage): { readonly [name: string]: string } =>
  Object.fromEntries(
    all(stage, "ENV").flatMap((rest) => [...rest.matchAll(/(\w+)=(\S+)/g)].map(([, name, value]) => [name!, value!]))
  )

/** {@link env} without options that this Node does not have: it may be older than the image's. */
export const envHere = (stage: Stage): { readonly [name: string]: string } =>
  Object.fromEntries(
    Object.entries(env(stage)).filter(
      ([name, value]) => name !== "NODE_OPTIONS" || process.allowedNodeEnvironmentFlags.has(value.replace(/=.*/, ""))
    )
  )

const base = /^node:(\d+\.\d+\.\d+)-(bookworm(?:-slim)?)@sha256:[0-9a-f]{64}$/

/** Images from outside that stages begin with. */
export const bases = (source: string): ReadonlyArray<string> => {
  const read = stages(source)
  const from = read.map((stage) => /^(\S+)(?: AS (\S+))?$/.exec(all(stage, "FROM")[0] ?? "") ?? [])
  const named = new Set(from.map(([, , name]) => name))
  return from.map(([, image = ""]) => image).filter((image) => !named.has(image))
}

/** What is wrong with the bases: each stands by exact version and digest, all of them of one version of Node. */
export const baseFaults = (source: string): ReadonlyArray<string> => {
  const found = bases(source)
  const versions = new Set(found.flatMap((image) => base.exec(image)?.[1] ?? []))
  return [
    ...found.filter((image) => !base.test(image)).map((image) => `${image} does not stand by exact version and digest`),
    ...(versions.size > 1 ? [`several versions of Node: ${[...versions].join(", ")}`] : [])
  ]
}

/** The version of Node that all bases are of. */
export const nodeVersion = (source: string): string | undefined => base.exec(bases(source)[0] ?? "")?.[1]

/**
 * The same file with its bases at `version`, by the digests that `digestOf` gives for their tags; throws where one is
 * none.
 */
export const repinned = (source: string, version: string, digestOf: (tag: string) => string): string => {
  const moved = bases(source).reduce((text, image) => {
    const [, , system] = /^node:([\d.]+)-(bookworm(?:-slim)?)/.exec(image) ?? []
    if (system === undefined) throw new Error(`${image} is no image of Node on bookworm`)
    const tag = `node:${version}-${system}`
    return text.replaceAll(`FROM ${image}${text.includes(`FROM ${image} `) ? " " : "\n"}`, (line) =>
      line.replace(image, `${tag}@${digestOf(tag)}`)
    )
  }, source)
  const faults = baseFaults(moved)
  if (faults.length > 0) throw new Error(faults.join("; "))
  return moved
}
