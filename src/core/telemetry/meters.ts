/**
 * Meters of the running service, and all figures at one moment, as plain data.
 *
 * Counters are numbers and histograms arrays with fixed buckets, because every request writes them; a figure that can
 * be computed on demand (views, queues, lag) is a reading and costs nothing in between. Both become families of series,
 * which are written as Prometheus text or as OTLP.
 */
import { Distribution } from "./distribution.ts"
import { type Declared, declared, type Metric, type MetricKey } from "./metrics.ts"

class Counter {
  value = 0

  add(count = 1): void {
    this.value += count
  }
}

type Instrument<M extends Metric> = M["type"] extends "histogram" ? Distribution : Counter

/** One instrument, or for a metric with a label one per value. */
type Instruments<M extends Metric> =
  Record<never, never> extends M["labels"]
    ? Instrument<M>
    : M["labels"][keyof M["labels"]] extends ReadonlyArray<infer V extends string>
      ? { readonly [value in V]: Instrument<M> }
      : never

/** Meters that count events as they happen; all other figures are read when they are requested. */
const recorded = [
  "taskDuration",
  "taskFailures",
  "exportFailures",
  "ingestRefused",
  "ingestChanges",
  "sspViewUpdates",
  "storeCommit",
  "storeFailures",
  "edgeFlush",
  "jobCalls",
  "jobsEnded",
  "reconcileDifferences",
  "walAppend",
  "walFailures",
  "replicaCommit",
  "replicaFailures",
  "deliveries",
  "registrations",
  "overflows",
  "integrityCompares"
] as const satisfies ReadonlyArray<MetricKey>

type Recorded = (typeof recorded)[number]

export type Meters = { readonly [K in Recorded]: Instruments<Declared[K]> }

const instrumentOf = (metric: Metric): Counter | Distribution =>
  metric.type === "histogram" ? new Distribution(metric.buckets ?? []) : new Counter()

const instrumentsOf = (
  metric: Metric
): Counter | Distribution | { readonly [value: string]: Counter | Distribution } => {
  const values = Object.values(metric.labels)[0]
  return Array.isArray(values)
    ? Object.fromEntries(values.map((value: string) => [value, instrumentOf(metric)]))
    : instrumentOf(metric)
}

export const make = (): Meters =>
  Object.fromEntries(recorded.map((key) => [key, instrumentsOf(declared[key])])) as unknown as Meters

export interface Histogram {
  readonly bounds: ReadonlyArray<number>
  readonly counts: ReadonlyArray<number>
  readonly sum: number
}

/** A figure, or rows of label values with a figure; undefined: unknown. */
type Reading = number | undefined | Histogram | ReadonlyArray<readonly [labels: ReadonlyArray<string>, value: number]>

export type Readings = { readonly [K in Exclude<MetricKey, Recorded>]?: Reading }

export interface Series {
  readonly labels: ReadonlyArray<readonly [name: string, value: string]>
  readonly value: number | Histogram
}

export interface Family {
  readonly metric: Metric
  readonly series: ReadonlyArray<Series>
}

const valueOf = (of: Counter | Distribution): number | Histogram => (of instanceof Counter ? of.value : of)

const seriesOfMeter = (
  metric: Metric,
  of: Counter | Distribution | { readonly [value: string]: Counter | Distribution }
): ReadonlyArray<Series> => {
  const label = Object.keys(metric.labels)[0]
  if (of instanceof Counter || of instanceof Distribution || label === undefined)
    return [{ labels: [], value: valueOf(of as Counter | Distribution) }]
  return Object.entries(of).map(([value, each]) => ({ labels: [[label, value]], value: valueOf(each) }))
}

const seriesOfReading = (metric: Metric, reading: Reading): ReadonlyArray<Series> => {
  if (reading === undefined) return []
  if (typeof reading === "number" || "counts" in reading) return [{ labels: [], value: reading }]
  const names = Object.keys(metric.labels)
  return reading.map(([values, value]) => ({ labels: names.map((name, i) => [name, values[i] ?? ""] as const), value }))
}

/** The figures of one server at this moment, in the order of their declaration; unknown figures are left out. */
export const families = (on: "ssp" | "scheduler", meters: Meters, readings: Readings): ReadonlyArray<Family> =>
  (Object.keys(declared) as ReadonlyArray<MetricKey>).flatMap((key) => {
    const metric: Metric = declared[key]
    if (metric.on !== "both" && metric.on !== on) return []
    const series =
      key in meters
        ? seriesOfMeter(metric, meters[key as Recorded])
        : seriesOfReading(metric, readings[key as keyof Readings])
    return series.length === 0 ? [] : [{ metric, series }]
  })

/** One row per value: 1 for the current one, 0 for the others. */
export const oneOf = (values: ReadonlyArray<string>, now: string): Reading =>
  values.map((value) => [[value], value === now ? 1 : 0] as const)
