/**
 * The dashboard and the alert rules of `scripts/monitoring`: every metric they name is declared, with labels it has,
 * and nothing declared is forgotten.
 *
 * Because a panel over a metric that was renamed shows nothing, and an alert over it never comes.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { parse } from "yaml"
import { root } from "../../kit/rules/source.ts"
import { type Metric, metrics } from "../../src/core/telemetry/metrics.ts"

const read = (name: string): string => readFileSync(join(root, "scripts/monitoring", name), "utf8")

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly for?: string
  readonly labels: { readonly severity: string }
  readonly annotations: { readonly summary: string; readonly action: string }
}
interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly gridPos: { readonly x: number; readonly w: number }
  readonly targets?: ReadonlyArray<{ readonly expr: string; readonly legendFormat: string; readonly refId: string }>
}

const rules = (
  parse(read("alerts.yml")) as { readonly groups: ReadonlyArray<{ readonly rules: ReadonlyArray<Rule> }> }
).groups.flatMap((group) => group.rules)
const panels = (JSON.parse(read("dashboard.json")) as { readonly panels: ReadonlyArray<Panel> }).panels
const targets = panels.flatMap(({ targets = [], title }) =>
  targets.map(({ expr, legendFormat }) => ({ title, expr, legendFormat }))
)

/** Names as a scraper stores them, with the metric each belongs to. */
const stored = new Map<string, Metric>(
  metrics.flatMap((metric) =>
    (metric.type === "histogram" ? ["_bucket", "_sum", "_count"] : [""]).map(
      (suffix) => [`${metric.name}${suffix}`, metric] as const
    )
  )
)

/** What is wrong with the metrics and labels that an expression names. */
const faultsIn = (expr: string): ReadonlyArray<string> => {
  const names = expr.match(/\b(?:svc|process)_[a-z0-9_]+/g) ?? []
  const unknown = names.filter((name) => !stored.has(name)).map((name) => `${name} is not declared`)
  const own = new Set(["instance", "le", ...names.flatMap((name) => Object.keys(stored.get(name)?.labels ?? {}))])
  const selected = [...expr.matchAll(/([a-z_]+)=~?"([^"]*)"/g)]
  const wrongLabels = [
    ...selected.map(([, label = ""]) => label),
    ...[...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, labels = ""]) =>
      labels.split(",").map((label) => label.trim())
    )
  ]
    .filter((label) => !own.has(label))
    .map((label) => `${label} is no label of ${names.join(", ")}`)
  const wrongValues = selected
    .filter(
      ([, label = "", value = ""]) =>
        label !== "instance" &&
        !names.some((name) => {
          const values = stored.get(name)?.labels[label]
          return values !== undefined && (typeof values === "string" || values.includes(value))
        })
    )
    .map(([text]) => `${text}: no such value`)
  const counters = names
    .filter((name) => stored.get(name)?.type !== "gauge" && !new RegExp(`(?:rate|increase)\\(${name}`).test(expr))
    .map((name) => `${name} only grows and must stand in rate() or increase()`)
  return names.length === 0 ? ["names no metric"] : [...unknown, ...wrongLabels, ...wrongValues, ...counters]
}

/** All brackets closed. */
const balanced = (expr: string): boolean => {
  let open = 0
  for (const c of expr.replace(/"[^"]*"/g, "")) {
    open += "([{".includes(c) ? 1 : ")]}".includes(c) ? -1 : 0
    if (open < 0) return false
  }
  return open === 0
}

describe("monitoring", () => {
  it("names only metrics, labels and values that are declared", () => {
    expect([rules.length > 10, targets.length > 50]).toEqual([true, true])
    for (const { alert, expr } of rules) expect([faultsIn(expr), balanced(expr)], alert).toEqual([[], true])
    for (const { expr, title } of targets) expect([faultsIn(expr), balanced(expr)], title).toEqual([[], true])
  })
  it("shows or watches every declared metric", () => {
    const used = [...rules, ...targets].map(({ expr }) => expr).join("\n")
    expect(
      metrics.map(({ name }) => name).filter((name) => !new RegExp(`\\b${name}(?:_bucket|_sum|_count)?\\b`).test(used))
    ).toEqual([])
  })
  it("alerts say what has happened and what to do, once each", () => {
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length)
    for (const {
      alert,
      annotations: { action, summary },
      labels: { severity }
    } of rules) {
      expect(["critical", "warning", "info"], alert).toContain(severity)
      for (const text of [summary, action]) expect(text, alert).toMatch(/^(?:[A-Z]|\{\{).{20,}\.$/)
      for (const [, label = ""] of summary.matchAll(/\$labels\.([a-z]+)/g))
        expect(["instance", ...metrics.flatMap(({ labels }) => Object.keys(labels))], alert).toContain(label)
    }
  })
  it("the dashboard fits: ids once, panels beside each other, legends of labels that are there", () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
    for (const {
      gridPos: { w, x },
      targets = [],
      title,
      type
    } of panels) {
      expect(x + w, title).toBeLessThanOrEqual(24)
      expect(type === "row" || targets.length > 0, title).toBe(true)
      expect(new Set(targets.map(({ refId }) => refId)).size, title).toBe(targets.length)
    }
    for (const { expr, legendFormat, title } of targets)
      for (const [, label = ""] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) {
        const names = expr.match(/\b(?:svc|process)_[a-z0-9_]+/g) ?? []
        expect(["instance", ...names.flatMap((name) => Object.keys(stored.get(name)?.labels ?? {}))], title).toContain(
          label
        )
      }
  })
  it("can fail: finds a wrong rule", () => {
    for (const expr of [
      "up == 0",
      "svc_ssp_vews",
      'svc_ssp_status{state="ready"}',
      'svc_ssp_status{status="redy"}',
      "svc_ingest_changes_total > 5",
      "sum by (view) (svc_ssp_views)"
    ])
      expect(faultsIn(expr), expr).not.toEqual([])
    expect([balanced("rate(x[5m])"), balanced("rate(x[5m]"), balanced(")(")]).toEqual([true, false, false])
  })
})
