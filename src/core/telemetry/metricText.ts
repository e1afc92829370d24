/**
 * Figures as Prometheus reads them: the text format, version 0.0.4.
 *
 * Written from the declared table alone, so that a name, a type and a help line cannot be forgotten; a family without
 * series is left out.
 */
import type { Family, Histogram, Series } from "./meters.ts"

export const contentType = "text/plain; version=0.0.4; charset=utf-8"

const escaped = (label: string): string => label.replace(/\\/g, "\\\\").replace(/"/g, '\\"').replace(/\n/g, "\\n")

const labelText = (labels: Series["labels"]): string =>
  labels.length === 0 ? "" : `{${labels.map(([name, value]) => `${name}="${escaped(value)}"`).join(",")}}`

const numberText = (value: number): string =>
  value === Infinity ? "+Inf" : value === -Infinity ? "-Inf" : String(value)

const bucketLines = (
  name: string,
  labels: Series["labels"],
  { bounds, counts, sum }: Histogram
): ReadonlyArray<string> => {
  let total = 0
  const buckets = [...bounds, Infinity].map((bound, i) => {
    total += counts[i] ?? 0
    return `${name}_bucket${labelText([...labels, ["le", numberText(bound)]])} ${total}`
  })
  return [
    ...buckets,
    `${name}_sum${labelText(labels)} ${numberText(sum)}`,
    `${name}_count${labelText(labels)} ${total}`
  ]
}

const familyLines = ({ metric: { help, name, type }, series }: Family): ReadonlyArray<string> => [
  `# HELP ${name} ${help.replace(/\\/g, "\\\\").replace(/\n/g, "\\n")}`,
  `# TYPE ${name} ${type}`,
  ...series.flatMap(({ labels, value }) =>
    typeof value === "number" ? [`${name}${labelText(labels)} ${numberText(value)}`] : bucketLines(name, labels, value)
  )
]

export const render = (families: ReadonlyArray<Family>): string => `${families.flatMap(familyLines).join("\n")}\n`

/** Whether a request for figures wants this text and not the specification's JSON (D34). */
export const wantsText = (accept: string | undefined, format: string | undefined): boolean =>
  format === "prometheus" ||
  (format === undefined &&
    accept !== undefined &&
    /text\/plain|openmetrics/.test(accept) &&
    !/application\/json/.test(accept))
