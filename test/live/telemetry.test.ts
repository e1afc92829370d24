/**
 * OpenTelemetry of the real processes against a local collector: one trace from a client over scheduler and SSP to a
 * job's call, figures, log records.
 *
 * And what a collector can do to the service: nothing, whether it is not there, answers errors or does not answer.
 */

import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { parse } from "../../kit/checks/exposition.ts"
import { request } from "../../kit/checks/http.ts"
import { campaign } from "../../kit/data/random.ts"
import { create } from "../../kit/data/registration.ts"
import { TestBackend } from "../../kit/processes/backend.ts"
import { Collector, type SentSpan } from "../../kit/processes/collector.ts"
import { Door, removeFolder, secret, temporaryFolder, until } from "../../kit/processes/Door.ts"
import { ProcessCluster } from "../../kit/processes/processCluster.ts"

const otel = (url: string) => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: url,
  OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
  OTEL_EXPORTER_OTLP_HEADERS: "x-tenant=secret%20tenant",
  OTEL_METRIC_EXPORT_INTERVAL: "200",
  OTEL_BSP_SCHEDULE_DELAY: "50",
  OTEL_BLRP_SCHEDULE_DELAY: "50",
  OTEL_RESOURCE_ATTRIBUTES: "deployment.environment=test"
})

const trace = (n: string): string => `00-${n.repeat(32)}-${"b".repeat(16)}-01`
const pending = (id: string): unknown =>
  create(id, {
    path: "/run?token=hidden",
    payload: { n: 1 },
    status: "pending",
    max_retries: 0,
    retry_strategy: "linear",
    retries: 0,
    errors: []
  })

describe("a cluster with a collector", () => {
  const folder = temporaryFolder()
  let collector: Collector
  let backend: TestBackend
  let cluster: ProcessCluster
  beforeAll(async () => {
    collector = await Collector.start()
    backend = await TestBackend.start()
    const file = join(folder, "svc.yml")
    writeFileSync(
      file,
      `job_tables:\n  job:\n    name: job\n    base_url: ${backend.url}\n    auth_token: ${backend.token}\n`
    )
    // One is sent what the other one pulls.
    cluster = await ProcessCluster.start(2, { ...otel(collector.url), SVC_CONFIG_PATH: file }, (id) => ({
      ...otel(collector.url),
      SVC_CONFIG_PATH: file,
      SVC_CLUSTER_FEED: id === "ssp-1" ? "push" : "pull"
    }))
  })
  afterAll(async () => {
    await cluster.close()
    await Promise.all([collector.close(), backend.close()])
    removeFolder(folder)
  })
  const ofTrace = (n: string): ReadonlyArray<SentSpan> =>
    collector.spans.filter(({ traceId }) => traceId === n.repeat(32))
  const ingest = (body: unknown, traceparent?: string) =>
    request(cluster.scheduler.url, {
      method: "POST",
      path: "/ingest",
      body,
      keepAlive: false,
      ...(traceparent === undefined ? {} : { headers: { traceparent } })
    })

  it("D34 D37 one trace from the client's request over scheduler and SSP to the call of the job's backend", async () => {
    expect((await ingest(pending("job:1"), trace("a"))).status).toBe(200)
    await until("the job is called", () => backend.calls("job:1").length === 1)
    await until("all spans came", () => ofTrace("a").length >= 5)
    const span = (name: string, service: string) =>
      ofTrace("a").find((each) => each.name === name && each.service.endsWith(service))
    const front = span("POST /ingest", "-scheduler"),
      deliver = span("deliver", "-scheduler"),
      sent = span("POST /ingest", "-ssp"),
      pulled = span("apply changes", "-ssp"),
      call = span("POST job", "-ssp")
    expect([front, deliver, sent, pulled].map((each) => each?.parentSpanId)).toEqual([
      "b".repeat(16),
      front?.spanId,
      deliver?.spanId,
      front?.spanId
    ])
    const caller = call?.attributes["service.instance.id"]
    expect(["ssp-1", "ssp-2"]).toContain(caller)
    expect(call?.parentSpanId).toBe(caller === "ssp-1" ? sent?.spanId : pulled?.spanId)
    expect([front, deliver, sent, pulled, call].map((each) => each?.kind)).toEqual([2, 3, 2, 1, 3])
    expect(backend.calls("job:1")[0]?.headers["traceparent"]).toBe(`00-${"a".repeat(32)}-${call?.spanId}-01`)
    expect(call?.attributes).toMatchObject({
      "url.path": "/run",
      "http.response.status_code": 200,
      "deployment.environment": "test"
    })
  })
  it("D34 a delivery of several traces: each has its own span on the SSP, linked to the request it came with", async () => {
    cluster.ssps[0]!.door!.signal("SIGSTOP")
    await Promise.all([ingest(create("t:1"), trace("c")), ingest(create("t:2"), trace("d"))])
    cluster.ssps[0]!.door!.signal("SIGCONT")
    const onSsp = (n: string) => ofTrace(n).filter(({ service }) => service.endsWith("-ssp"))
    await until("both are applied", () => onSsp("c").length > 0 && onSsp("d").length > 0)
  })
  it("D34 a caller that is not sampled is passed on and not collected; a malformed context begins a new trace", async () => {
    const before = collector.spans.length
    await ingest(pending("job:2"), `00-${"e".repeat(32)}-${"b".repeat(16)}-00`)
    await ingest(create("t:3"), "00-nonsense")
    await until("the job is called", () => backend.calls("job:2").length === 1)
    expect(backend.calls("job:2")[0]?.headers["traceparent"]).toBe(`00-${"e".repeat(32)}-${"b".repeat(16)}-00`)
    await until("the new trace came", () =>
      collector.spans
        .slice(before)
        .some(({ name, parentSpanId }) => name === "POST /ingest" && parentSpanId === undefined)
    )
    expect(ofTrace("e")).toEqual([])
  })
  it("D34 figures and log records arrive from both, with the headers that were set, and no secret in anything", async () => {
    await until(
      "figures came",
      () =>
        collector.metrics.has("surreal-live-sidecar-scheduler svc_scheduler_log_seq") &&
        collector.metrics.has("surreal-live-sidecar-ssp svc_ssp_records")
    )
    await until("the five requests are counted", () =>
      JSON.stringify(collector.metrics.get("surreal-live-sidecar-scheduler svc_ingest_duration_seconds")).includes(
        '"count":5,'
      )
    )
    expect(collector.metrics.get("surreal-live-sidecar-ssp svc_ingest_duration_seconds")).toMatchObject({
      unit: "s",
      histogram: { aggregationTemporality: 2 }
    })
    expect(collector.logs).toContainEqual([expect.stringContaining("listens on"), "surreal-live-sidecar-scheduler"])
    expect(collector.logs).toContainEqual([
      expect.stringContaining("bootstrapped at position"),
      "surreal-live-sidecar-ssp"
    ])
    expect(new Set(collector.received.map(({ headers }) => headers["x-tenant"]))).toEqual(new Set(["secret tenant"]))
    for (const { text } of collector.received)
      for (const hidden of [secret, backend.token, "secret tenant", "token=hidden"]) expect(text).not.toContain(hidden)
  })
})

describe("a collector that is of no use", () => {
  const start = (url: string): Promise<Door> =>
    Door.start({
      env: {
        ...otel(url),
        OTEL_EXPORTER_OTLP_TIMEOUT: "300",
        OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "10",
        OTEL_BSP_MAX_QUEUE_SIZE: "20"
      }
    })
  const failures = async (door: Door): Promise<number> =>
    (
      parse((await request(door.url, { path: "/metrics", token: secret })).text).get(
        "svc_telemetry_export_failures_total"
      )?.samples ?? []
    ).reduce((sum, { value }) => sum + value, 0)
  const uneffected = async (door: Door): Promise<void> => {
    for (let n = 0; n < 60; n++)
      expect(
        (await request(door.url, { method: "POST", path: "/ingest", token: secret, body: create(`t:${n}`) })).status
      ).toBe(200)
    await until("the failures are counted", async () => (await failures(door)) >= 3)
    await until("it is said once", () => door.logs.includes("the collector does not take"))
    expect((await request(door.url, { path: "/health" })).status).toBe(200)
    const begun = performance.now()
    expect((await door.stop()).code).toBe(0)
    expect(performance.now() - begun).toBeLessThan(8000)
    expect(door.logs.split("the collector does not take traces").length - 1).toBeLessThanOrEqual(1)
    await door.close()
  }

  it.runIf(campaign)("D34 not there: changes are taken, failures counted, the stop is clean", async () =>
    uneffected(await start("http://127.0.0.1:9"))
  )
  it.runIf(campaign)("D34 it answers 503, then nothing at all", async () => {
    const collector = await Collector.start()
    collector.answer = 503
    const door = await start(collector.url)
    await until("it was refused", () => collector.received.length > 2)
    collector.answer = "hang"
    await uneffected(door)
    await collector.close()
  })
  it.runIf(campaign)("D34 without an endpoint nothing is sent, and what is not supported is named", async () => {
    const door = await Door.start({ env: { OTEL_SERVICE_NAME: "x", OTEL_TRACES_EXPORTER: "otlp" } })
    expect(door.logs).toContain("OTEL_TRACES_EXPORTER is otlp, but no endpoint is set")
    await door.close()
    const console = await Door.start({
      env: { OTEL_TRACES_EXPORTER: "console", OTEL_BSP_SCHEDULE_DELAY: "20", OTEL_EXPORTER_OTLP_COMPRESSION: "gzip" }
    })
    await request(console.url, { method: "POST", path: "/ingest", token: secret, body: create("t:1") })
    await until(
      "the span is printed",
      () =>
        console.logs.includes('{"resourceSpans":') &&
        console.logs.includes("OTEL_EXPORTER_OTLP_COMPRESSION is not supported")
    )
    await console.close()
  })
})
