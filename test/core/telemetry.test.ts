/**
 * The standard variables of OpenTelemetry as they are read, trace contexts, spans of a request with changes of several
 * traces, and figures as OTLP has them.
 *
 * Why the warnings are asserted word for word in part: a variable that is silently not honoured is worse than none.
 */
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import { type Change, decodeChanges } from "../../src/core/record/change.ts"
import * as Event from "../../src/core/record/event.ts"
import * as Meters from "../../src/core/telemetry/meters.ts"
import { declared } from "../../src/core/telemetry/metrics.ts"
import { read, variables } from "../../src/core/telemetry/otelSettings.ts"
import * as Otlp from "../../src/core/telemetry/otlpMetrics.ts"
import * as Trace from "../../src/core/telemetry/traceContext.ts"
import type { SpanStart, TracingShape } from "../../src/ports/Tracing.ts"
import * as ChangeTraces from "../../src/ssp/views/changeTraces.ts"

const to = (env: { readonly [name: string]: string }, signal: "traces" | "metrics" | "logs" = "traces") =>
  read(env).sending[signal]?.to

describe("OTEL_ variables", () => {
  it("D34 nothing is sent without an endpoint, or when it is disabled", () => {
    for (const env of [
      {},
      { OTEL_SERVICE_NAME: "x" },
      { OTEL_SDK_DISABLED: "TRUE", OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4318" }
    ]) {
      expect(read(env)).toMatchObject({
        sending: { traces: undefined, metrics: undefined, logs: undefined },
        warnings: []
      })
    }
  })
  it("D34 the general endpoint gets the signal's path, a signal's own is used as it is", () => {
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4318/base/",
      OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: "https://logs/in",
      OTEL_METRICS_EXPORTER: "none"
    }
    expect([to(env), to(env, "logs"), to(env, "metrics")]).toMatchObject(
      [{ url: "http://c:4318/base/v1/traces" }, { url: "https://logs/in" }, {}].map((each, i) =>
        i === 2 ? undefined : each
      )
    )
  })
  it("D34 headers, protocol and time-out: percent-decoded, a signal's own wins", () => {
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://c",
      OTEL_EXPORTER_OTLP_HEADERS: "a=1%2C2, b = x=y",
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: "a=3",
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_EXPORTER_OTLP_LOGS_PROTOCOL: "http/protobuf",
      OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: "500"
    }
    expect([to(env), to(env, "logs")]).toEqual([
      { kind: "otlp", url: "http://c/v1/traces", headers: { a: "3", b: "x=y" }, timeoutMs: 500 },
      { kind: "otlp", url: "http://c/v1/logs", headers: { a: "1,2", b: "x=y" }, timeoutMs: 10_000 }
    ])
    expect([read(env).sending.traces?.json, read(env).sending.logs?.json, read(env).warnings]).toEqual([
      true,
      false,
      []
    ])
  })
  it("D34 samplers, batches, resource", () => {
    const sampler = (name: string, arg = "0.25") =>
      read({ OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: arg }).sampler
    expect(
      ["always_on", "always_off", "traceidratio", "parentbased_always_off", "parentbased_traceidratio"].map((name) =>
        sampler(name)
      )
    ).toEqual([
      { parentBased: false, ratio: 1 },
      { parentBased: false, ratio: 0 },
      { parentBased: false, ratio: 0.25 },
      { parentBased: true, ratio: 0 },
      { parentBased: true, ratio: 0.25 }
    ])
    const settings = read({
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://c",
      OTEL_BSP_MAX_QUEUE_SIZE: "100",
      OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "30",
      OTEL_METRIC_EXPORT_INTERVAL: "5000",
      OTEL_RESOURCE_ATTRIBUTES: "service.name=a,team=x%20y"
    })
    expect([
      settings.sending.traces,
      settings.sending.metrics?.everyMs,
      settings.serviceName,
      settings.attributes
    ]).toMatchObject([{ batchSize: 30, maxBatches: 3, everyMs: 5000 }, 5000, "a", { team: "x y" }])
    expect(read({ OTEL_SERVICE_NAME: "b", OTEL_RESOURCE_ATTRIBUTES: "service.name=a" }).serviceName).toBe("b")
  })
  it.each([
    [{ OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" }, 'OTEL_EXPORTER_OTLP_PROTOCOL is "grpc", which is not supported'],
    [{ OTEL_TRACES_SAMPLER: "xray" }, "OTEL_TRACES_SAMPLER"],
    [{ OTEL_TRACES_SAMPLER_ARG: "2" }, "a number from 0 to 1"],
    [{ OTEL_EXPORTER_OTLP_COMPRESSION: "gzip" }, "OTEL_EXPORTER_OTLP_COMPRESSION is not supported"],
    [{ OTEL_PROPAGATORS: "b3" }, "only tracecontext"],
    [{ OTEL_EXPORTER_OTLP_HEADERS: "secret" }, "OTEL_EXPORTER_OTLP_HEADERS holds an entry"],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "c:4318" }, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is no http://"],
    [{ OTEL_METRICS_EXPORTER: "prometheus" }, "always served at /metrics"],
    [{ OTEL_EXPORTER_OTLP_HEADERS: "a=%zz" }, "percent-encoded"]
  ])("D34 warns of %j, and shows no value of a header", (env, words) => {
    const { warnings } = read({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://c", ...env })
    expect([warnings.length, warnings[0]]).toEqual([1, expect.stringContaining(words)])
    expect(warnings.join()).not.toContain("holds an entry secret")
  })
  it("D34 documents what it honours: each of the names is read", () => {
    const names = variables
      .flatMap(({ name }) => name.split(", "))
      .flatMap((name) =>
        name.includes("<SIGNAL>")
          ? ["TRACES", "METRICS", "LOGS"].map((signal) => name.replace("<SIGNAL>", signal))
          : [name]
      )
    const env = Object.fromEntries(
      names.filter((name) => name !== "OTEL_SDK_DISABLED" && !name.endsWith("_EXPORTER")).map((name) => [name, "?"])
    )
    expect(
      read({ ...env, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://c" }).warnings.filter((warning) =>
        warning.includes("is not supported by this service")
      )
    ).toEqual([])
  })
})

const parent = `00-${"a".repeat(32)}-${"1".repeat(16)}-01`
const other = `00-${"b".repeat(32)}-${"2".repeat(16)}-01`

describe("trace contexts", () => {
  it("D34 are read and written; a malformed header counts as absent", () => {
    expect(Trace.parse(parent)).toEqual({ traceId: "a".repeat(32), spanId: "1".repeat(16), sampled: true })
    expect(Trace.write(Trace.parse(`${parent.slice(0, -2)}02`)!)).toBe(`${parent.slice(0, -2)}00`)
    expect(Trace.valid(`01${parent.slice(2)}-more`)).toBe(`01${parent.slice(2)}-more`)
    for (const bad of [
      undefined,
      5,
      "",
      parent.toUpperCase(),
      `${parent}-more`,
      `ff${parent.slice(2)}`,
      parent.replace(/a/g, "0"),
      parent.replace(/1{16}/, "0".repeat(16)),
      ` ${parent}`
    ])
      expect(Trace.valid(bad), String(bad)).toBeUndefined()
  })
  it("D34 travel with a change to the SSP, and a malformed header does not refuse the change", () => {
    const line = Event.toLine({ table: "t", id: "t:1", record: { a: 1 } }, "CREATE", 1, undefined)
    const sent = (trace: string | undefined): Change =>
      Either.getOrThrow(decodeChanges(JSON.parse(Event.forwardedLine(line, 1, "log", 1, trace))))[0]!
    expect([sent(parent).traceparent, sent("nonsense").traceparent, "traceparent" in sent(undefined)]).toEqual([
      parent,
      undefined,
      false
    ])
    expect(Either.isLeft(decodeChanges({ table: "t", op: "CREATE", id: "t:1", record: {}, traceparent: 5 }))).toBe(true)
  })
})

describe("spans of a request", () => {
  const change = (id: string, traceparent?: string): Change =>
    Either.getOrThrow(
      decodeChanges({ table: "t", op: "CREATE", id, record: {}, ...(traceparent === undefined ? {} : { traceparent }) })
    )[0]!
  const recording = () => {
    const begun: Array<SpanStart & { readonly name: string }> = []
    const ended: Array<string | undefined> = []
    const tracing: TracingShape = {
      begin: (name, start) => {
        begun.push({ name, ...start })
        return {
          traceparent: `00-${Trace.parse(start.parent)?.traceId ?? "c".repeat(32)}-${String(begun.length).repeat(16)}-01`,
          end: (fault) => void ended.push(fault)
        }
      }
    }
    return { tracing, begun, ended }
  }
  it("D34 without a collector and without a context nothing is done; a context alone is passed on", () => {
    expect(ChangeTraces.ofRequest(undefined, undefined, [change("t:1")])).toBeUndefined()
    expect(ChangeTraces.ofRequest(undefined, parent, [change("t:1")])?.changes[0]?.traceparent).toBe(parent)
    expect(ChangeTraces.ofRequest(undefined, "nonsense", [change("t:1")])?.changes[0]?.traceparent).toBeUndefined()
    expect(ChangeTraces.ofRequest(undefined, parent, [change("t:1", other)])?.changes[0]?.traceparent).toBe(other)
  })
  it("D34 changes of the request's trace follow its span, those of another have one of their own, linked to it", () => {
    const { begun, ended, tracing } = recording()
    const traced = ChangeTraces.ofRequest(tracing, parent, [
      change("t:1", parent),
      change("t:2", other),
      change("t:3", other),
      change("t:4")
    ])
    expect(begun.map(({ kind, links = [], name, parent: from }) => [name, kind, from, links.length])).toEqual([
      ["POST /ingest", "server", parent, 0],
      ["apply changes", "internal", other, 1]
    ])
    expect(traced?.changes.map(({ traceparent }) => Trace.parse(traceparent)?.spanId)).toEqual([
      "1".repeat(16),
      "2".repeat(16),
      "2".repeat(16),
      "1".repeat(16)
    ])
    traced?.end(503)
    expect(ended).toEqual(["answered 503", "answered 503"])
  })
  it("D34 D61 changes of a feed have a span for each trace, and none where no trace is theirs", () => {
    const { begun, ended, tracing } = recording()
    expect(ChangeTraces.ofFeed(tracing, [change("t:1")])).toBeUndefined()
    expect(ChangeTraces.ofFeed(undefined, [change("t:1", parent)])).toBeUndefined()
    const traced = ChangeTraces.ofFeed(tracing, [change("t:1", parent), change("t:2", other), change("t:3")])
    expect(begun.map(({ kind, links, name, parent: from }) => [name, kind, from, links])).toEqual([
      ["apply changes", "internal", parent, []],
      ["apply changes", "internal", other, []]
    ])
    expect(traced?.changes.map(({ traceparent }) => Trace.parse(traceparent)?.spanId)).toEqual([
      "1".repeat(16),
      "2".repeat(16),
      undefined
    ])
    traced?.end()
    expect(ended).toEqual([undefined, undefined])
  })
})

describe("figures over OTLP", () => {
  it("D34 are cumulative, with units, per-bucket counts and labels as attributes", () => {
    const meters = Meters.make()
    meters.deliveries.retry.observe(0.003)
    meters.overflows.add(4)
    const { metrics } = Otlp.request(Meters.families("scheduler", meters, { sspMemory: [[["a"], 9]] }), {}, "scope", {
      startTimeUnixNano: "1",
      timeUnixNano: "2"
    }).resourceMetrics[0]!.scopeMetrics[0]!
    const of = (name: string) => metrics.find((metric) => metric.name === name)
    expect(of(declared.overflows.name)).toMatchObject({
      unit: "1",
      sum: {
        isMonotonic: true,
        aggregationTemporality: 2,
        dataPoints: [{ asDouble: 4, startTimeUnixNano: "1", timeUnixNano: "2" }]
      }
    })
    expect(of(declared.sspMemory.name)).toMatchObject({
      unit: "By",
      gauge: { dataPoints: [{ asDouble: 9, attributes: [{ key: "ssp", value: { stringValue: "a" } }] }] }
    })
    const points = (
      of(declared.deliveries.name) as {
        readonly histogram: {
          readonly dataPoints: ReadonlyArray<{
            readonly count: number
            readonly bucketCounts: ReadonlyArray<number>
            readonly explicitBounds: ReadonlyArray<number>
          }>
        }
      }
    ).histogram.dataPoints
    expect(
      points.map(({ bucketCounts, count, explicitBounds }) => [
        count,
        bucketCounts.length - explicitBounds.length,
        bucketCounts[3]
      ])
    ).toEqual([
      [0, 1, 0],
      [1, 1, 1],
      [0, 1, 0]
    ])
  })
})
