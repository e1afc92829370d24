/**
 * Figures as OTLP has them: one export request, cumulative since the start (OpenTelemetry protocol, metrics).
 *
 * The same families as the Prometheus text and under the same names, so that a query works on either; JSON or protobuf
 * is the serializer's business.
 */
import type { Family, Histogram, Series } from "./meters.ts"

const cumulative = 2
const units = { seconds: "s", bytes: "By", ratio: "1", "": "1" } as const

interface Times {
  /** Unix time in nanoseconds. */
  readonly startTimeUnixNano: string
  readonly timeUnixNano: string
}

const attributesOf = (labels: Series["labels"]) =>
  labels.map(([key, value]) => ({ key, value: { stringValue: value } }))

const numberPoint = ({ labels, value }: Series, times: Times) => ({
  attributes: attributesOf(labels),
  ...times,
  asDouble: value as number
})

const histogramPoint = ({ labels, value }: Series, times: Times) => {
  const { bounds, counts, sum } = value as Histogram
  return {
    attributes: attributesOf(labels),
    ...times,
    count: counts.reduce((all, count) => all + count, 0),
    sum,
    bucketCounts: [...counts],
    explicitBounds: [...bounds]
  }
}

const metricOf = ({ metric: { help, name, type, unit }, series }: Family, times: Times) => {
  const common = { name, description: help, unit: units[unit] }
  if (type === "histogram")
    return {
      ...common,
      histogram: { aggregationTemporality: cumulative, dataPoints: series.map((each) => histogramPoint(each, times)) }
    }
  const dataPoints = series.map((each) => numberPoint(each, times))
  return type === "counter"
    ? { ...common, sum: { aggregationTemporality: cumulative, isMonotonic: true, dataPoints } }
    : { ...common, gauge: { dataPoints } }
}

export const request = (families: ReadonlyArray<Family>, resource: unknown, scope: string, times: Times) => ({
  resourceMetrics: [
    { resource, scopeMetrics: [{ scope: { name: scope }, metrics: families.map((family) => metricOf(family, times)) }] }
  ]
})
