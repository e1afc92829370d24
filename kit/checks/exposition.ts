/**
 * A strict reader of the Prometheus text format (0.0.4): what it does not refuse, every scraper takes.
 *
 * Why our own and strict: scrapers forgive or drop in silence what is wrong (a series twice, buckets that fall, a type
 * after its samples), and a test must not.
 */

export interface Sample {
  readonly name: string
  readonly labels: { readonly [label: string]: string }
  readonly value: number
}

export interface ReadFamily {
  readonly name: string
  readonly type: string
  readonly help: string
  readonly samples: Array<Sample>
}

const name = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/
const line = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (-?(?:\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|[+-]Inf|NaN)$/

const labelsOf = (text: string, at: string): { readonly [label: string]: string } => {
  const found: Record<string, string> = {}
  let rest = text
  while (rest !== "") {
    const pair = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,(?=.)|$)/.exec(rest)
    if (pair === null) throw new Error(`${at}: labels are not well-formed at ${rest}`)
    if (pair[1]! in found) throw new Error(`${at}: label ${pair[1]!} twice`)
    found[pair[1]!] = pair[2]!.replace(/\\([\\"n])/g, (_, c: string) => (c === "n" ? "\n" : c))
    rest = rest.slice(pair[0].length)
  }
  return found
}

const numberOf = (text: string): number => (text === "+Inf" ? Infinity : text === "-Inf" ? -Infinity : Number(text))

const keyOf = (labels: Sample["labels"], without?: string): string =>
  JSON.stringify(
    Object.entries(labels)
      .filter(([label]) => label !== without)
      .sort()
  )

const checkHistogram = ({ name: family, samples }: ReadFamily): void => {
  const groups = new Map<string, Array<Sample>>()
  for (const sample of samples)
    groups.set(keyOf(sample.labels, "le"), [...(groups.get(keyOf(sample.labels, "le")) ?? []), sample])
  for (const [labels, group] of groups) {
    const of = (suffix: string): ReadonlyArray<Sample> =>
      group.filter((sample) => sample.name === `${family}_${suffix}`)
    const buckets = of("bucket").map(({ labels: { le = "" }, value }) => [numberOf(le), value] as const)
    if (of("sum").length !== 1 || of("count").length !== 1)
      throw new Error(`${family}${labels}: must have one _sum and one _count`)
    if (buckets.at(-1)?.[0] !== Infinity) throw new Error(`${family}${labels}: the last bucket must be +Inf`)
    if (buckets.at(-1)?.[1] !== of("count")[0]!.value)
      throw new Error(`${family}${labels}: the last bucket must be the count`)
    buckets.forEach(([bound, value], i) => {
      const before = buckets[i - 1]
      if (before !== undefined && (bound <= before[0] || value < before[1]))
        throw new Error(`${family}${labels}: buckets must grow, le=${bound}`)
    })
  }
}

const checkFamily = (family: ReadFamily): void => {
  if (family.samples.length === 0) throw new Error(`${family.name}: has no samples`)
  const seen = new Set<string>()
  for (const sample of family.samples) {
    const suffixes = family.type === "histogram" ? ["_bucket", "_sum", "_count"] : [""]
    if (!suffixes.some((suffix) => sample.name === `${family.name}${suffix}`))
      throw new Error(`${sample.name}: is no series of ${family.name}, a ${family.type}`)
    const key = `${sample.name}${keyOf(sample.labels)}`
    if (seen.has(key)) throw new Error(`${key}: the series is there twice`)
    seen.add(key)
    if (family.type !== "gauge" && (sample.value < 0 || Number.isNaN(sample.value)))
      throw new Error(`${key}: a ${family.type} is ${sample.value}`)
  }
  if (family.type === "counter" && !family.name.endsWith("_total"))
    throw new Error(`${family.name}: a counter must end in _total`)
  if (family.type === "histogram") checkHistogram(family)
}

/** Families by name, or an error that names the first fault. */
export const parse = (text: string): ReadonlyMap<string, ReadFamily> => {
  if (!text.endsWith("\n")) throw new Error("the text must end with a line feed")
  const families = new Map<string, ReadFamily>()
  let help: readonly [string, string] | undefined
  let current: ReadFamily | undefined
  for (const each of text.slice(0, -1).split("\n")) {
    const comment = /^# (HELP|TYPE) (\S+) (.+)$/.exec(each)
    if (comment?.[1] === "HELP") help = [comment[2]!, comment[3]!]
    else if (comment?.[1] === "TYPE") {
      const [, , family = "", type = ""] = comment
      if (!name.test(family) || !["counter", "gauge", "histogram"].includes(type))
        throw new Error(`not a type: ${each}`)
      if (help?.[0] !== family) throw new Error(`${family}: its HELP must stand before its TYPE`)
      if (families.has(family)) throw new Error(`${family}: the family is there twice`)
      families.set(family, (current = { name: family, type, help: help[1], samples: [] }))
    } else {
      const read = line.exec(each)
      if (read === null) throw new Error(`not a sample: ${each}`)
      if (current === undefined || !read[1]!.startsWith(current.name))
        throw new Error(`${read[1]!}: stands outside its family`)
      current.samples.push({ name: read[1]!, labels: labelsOf(read[2] ?? "", each), value: numberOf(read[3]!) })
    }
  }
  for (const family of families.values()) checkFamily(family)
  return families
}
