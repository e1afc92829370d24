/**
 * The declared metrics and what is written from them: names, units, labels, and text that a strict reader takes (D34).
 *
 * Why the reader is tested too: a checker that takes everything proves nothing.
 */
import { describe, expect, it } from "vitest"
import { parse } from "../../../kit/checks/exposition.ts"
import * as Meters from "../../../src/core/telemetry/meters.ts"
import { declared, metrics, taskKinds } from "../../../src/core/telemetry/metrics.ts"
import * as Text from "../../../src/core/telemetry/metricText.ts"

describe("declared metrics", () => {
  it("D34 have the field's names: a common prefix, base units last, counters in _total", () => {
    expect(metrics.length).toBeGreaterThan(50)
    expect(new Set(metrics.map(({ name }) => name)).size).toBe(metrics.length)
    for (const { buckets, help, name, on, type, unit } of metrics) {
      expect(name).toMatch(on === "both" ? /^(?:svc|process)_[a-z0-9_]+$/ : new RegExp(`^svc_${on}_[a-z0-9_]+$`))
      expect(name.endsWith("_total"), name).toBe(type === "counter")
      expect(name, name).not.toMatch(/milli|micro|minutes|kilo|mega|percent|_ms\b/)
      if (type === "histogram")
        expect([unit, buckets], name).toEqual(["seconds", [...(buckets ?? [])].sort((a, b) => a - b)])
      expect(help, name).toMatch(/^[A-Z1/].*\.$/)
    }
  })
  it("D34 have labels of fixed values, or say what bounds them", () => {
    for (const { labels, name } of metrics)
      for (const [label, values] of Object.entries(labels)) {
        expect(label, name).toMatch(/^[a-z]+$/)
        expect(["le", "quantile"], name).not.toContain(label)
        if (typeof values === "string")
          expect(values, name).toMatch(/^(?:registered SSPs|job tables|schedulers of the log|one value)/)
        else expect(values.length, name).toBeGreaterThan(1)
      }
  })
})

describe("figures as text", () => {
  const meters = Meters.make()
  meters.walAppend.observe(0.0005)
  meters.walAppend.observe(0.0006)
  meters.walAppend.observe(99)
  meters.deliveries.applied.observe(0.2)
  meters.overflows.add()
  meters.overflows.add(2)
  meters.taskFailures.clone.add()
  const readings: Meters.Readings = {
    schedulerStatus: Meters.oneOf(declared.schedulerStatus.labels.status, "ready"),
    sspLag: [
      [["a"], 5],
      [['odd "\\\n id'], 0]
    ],
    logSeq: 7,
    walBytes: undefined
  }
  const read = parse(Text.render(Meters.families("scheduler", meters, readings)))
  const samples = (name: string) =>
    read
      .get(name)
      ?.samples.map(({ labels, name: own, value }) => [own.slice(name.length), Object.values(labels).join(), value])

  it("D34 histograms are cumulative, a bound belongs to its bucket, a value beyond all bounds counts in +Inf", () => {
    const found = samples("svc_scheduler_wal_append_duration_seconds") ?? []
    expect(found.slice(0, 3)).toEqual([
      ["_bucket", "0.0005", 1],
      ["_bucket", "0.001", 2],
      ["_bucket", "0.0025", 2]
    ])
    expect(found.slice(-3)).toEqual([
      ["_bucket", "+Inf", 3],
      ["_sum", "", 99.0011],
      ["_count", "", 3]
    ])
    expect(samples("svc_scheduler_delivery_duration_seconds")?.filter(([suffix]) => suffix === "_count")).toEqual([
      ["_count", "applied", 1],
      ["_count", "retry", 0],
      ["_count", "refused", 0]
    ])
  })
  it("D34 counters, states and labels that hold anything", () => {
    expect(samples("svc_scheduler_ssp_overflows_total")).toEqual([["", "", 3]])
    expect(samples("svc_scheduler_status")).toEqual([
      ["", "cloning", 0],
      ["", "ready", 1],
      ["", "frozen", 0],
      ["", "updating", 0]
    ])
    expect(samples("svc_scheduler_ssp_lag_events")).toEqual([
      ["", "a", 5],
      ["", 'odd "\\\n id', 0]
    ])
    expect(samples("svc_task_failures_total")).toEqual(taskKinds.map((kind) => ["", kind, kind === "clone" ? 1 : 0]))
  })
  it("D34 leave out unknown figures and figures of the other server", () => {
    expect([
      read.has("svc_scheduler_log_seq"),
      read.has("svc_scheduler_wal_bytes"),
      read.has("svc_ssp_views"),
      read.has("svc_ssp_store_commit_failures_total")
    ]).toEqual([true, false, false, false])
  })
  it("D34 are asked for by Accept or ?format=, and JSON stays the default", () => {
    expect(
      [
        ["text/plain", undefined],
        ["application/openmetrics-text;version=1.0.0,text/plain;q=0.5", undefined],
        [undefined, "prometheus"]
      ].map(([accept, format]) => Text.wantsText(accept, format))
    ).toEqual([true, true, true])
    expect(
      [
        [undefined, undefined],
        ["*/*", undefined],
        ["application/json, text/plain, */*", undefined],
        ["text/plain", "json"]
      ].map(([accept, format]) => Text.wantsText(accept, format))
    ).toEqual([false, false, false, false])
  })
})

describe("the strict reader", () => {
  const head = "# HELP a A.\n# TYPE a gauge\n"
  const histogram = (lines: string): string => `# HELP h H.\n# TYPE h histogram\n${lines}\n`
  it.each([
    ["a sample without a family", "a 1\n"],
    ["no HELP", "# TYPE a gauge\na 1\n"],
    ["an unknown type", "# HELP a A.\n# TYPE a number\na 1\n"],
    ["a family twice", `${head}a 1\n${head}a 1\n`],
    ["a series twice", `${head}a{b="c"} 1\na{b="c"} 2\n`],
    ["a label twice", `${head}a{b="c",b="d"} 1\n`],
    ["a label without quotes", `${head}a{b=c} 1\n`],
    ["a trailing comma", `${head}a{b="c",} 1\n`],
    ["no samples", head],
    ["no number", `${head}a x\n`],
    ["a time stamp", `${head}a 1 1700000000\n`],
    ["no line feed at the end", `${head}a 1`],
    ["another family's sample", `${head}b 1\n`],
    ["a counter without _total", "# HELP a A.\n# TYPE a counter\na 1\n"],
    ["a counter below zero", "# HELP a_total A.\n# TYPE a_total counter\na_total -1\n"],
    ["buckets that fall", histogram(`h_bucket{le="1"} 2\nh_bucket{le="+Inf"} 1\nh_sum 1\nh_count 1`)],
    ["no +Inf", histogram(`h_bucket{le="1"} 1\nh_sum 1\nh_count 1`)],
    ["a count that is not the last bucket", histogram(`h_bucket{le="+Inf"} 1\nh_sum 1\nh_count 2`)],
    ["no sum", histogram(`h_bucket{le="+Inf"} 1\nh_count 1`)],
    ["bounds that fall", histogram(`h_bucket{le="2"} 1\nh_bucket{le="1"} 1\nh_bucket{le="+Inf"} 1\nh_sum 1\nh_count 1`)]
  ])("refuses %s", (_, text) => expect(() => parse(text)).toThrow())
  it("takes a right text", () =>
    expect(parse(`${head}a{b="c"} 1\na{b="d"} -1.5e-3\n`).get("a")?.samples).toHaveLength(2))
})
