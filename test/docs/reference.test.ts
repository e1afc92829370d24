/**
 * The pages and the code name the same things: settings, endpoints, error codes; the generated page is what the code
 * makes.
 *
 * Both ways, because either alone is easy to satisfy: a page that names nothing lies about nothing.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { root, trackedFiles } from "../../kit/rules/source.ts"
import { codes, endpoints } from "../../scripts/docs/contractTables.ts"
import { pagePath, referencePage } from "../../scripts/docs/referencePage.ts"
import { metrics, signals } from "../../src/core/telemetry/metrics.ts"
import { variables } from "../../src/core/telemetry/otelSettings.ts"
import { statusOf } from "../../src/protocol/errors.ts"
import { knobs as schedulerKnobs } from "../../src/scheduler/Config.ts"
import { knobs } from "../../src/ssp/Config.ts"

const read = (path: string): string => readFileSync(join(root, path), "utf8")
const pages = [
  "README.md",
  ...readdirSync(join(root, "docs"))
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`)
].map((path) => ({ path, text: read(path) }))
const reference = referencePage()

const all = [...Object.values(knobs), ...Object.values(schedulerKnobs)]
const settings = new Set(all.flatMap(({ env, secret }) => (secret ? [env, `${env}_FILE`] : [env])))
const telemetry = new Set(
  variables
    .flatMap(({ name }) => name.split(", "))
    .flatMap((name) =>
      name.includes("<SIGNAL>") ? signals.map((signal) => name.replace("<SIGNAL>", signal.toUpperCase())) : [name]
    )
)
/** Read by tests and scripts only: these are no settings of the service. */
const forTests = new Set(
  trackedFiles()
    .filter((path) => path.endsWith(".ts") && !path.startsWith("src/"))
    .flatMap((path) => [...read(path).matchAll(/env\["(SVC_[A-Z_]+)"\]/g)].map(([, name]) => name ?? ""))
)
const served = new Set([...endpoints("ssp"), ...endpoints("scheduler")].map(({ name }) => name))

/** Matches of a pattern in every page, with the page they stand in. */
const named = (pattern: RegExp): ReadonlyArray<{ readonly path: string; readonly name: string }> =>
  pages.flatMap(({ path, text }) => [...text.matchAll(pattern)].map(([, name]) => ({ path, name: name ?? "" })))

describe("what the pages name", () => {
  it("docs/reference.md is what `npm run docs` writes", () => {
    expect(read(pagePath)).toBe(reference)
  })
  it("every setting, endpoint and error code of the code is in the reference", () => {
    expect(settings.size).toBeGreaterThan(50)
    expect([...settings].filter((name) => !reference.includes(`\`${name}\``))).toEqual([])
    expect(served.size).toBeGreaterThan(30)
    expect([...served].filter((name) => !reference.includes(`| \`${name}\` |`))).toEqual([])
    expect(
      Object.keys(statusOf).filter(
        (code) => !reference.includes(`| \`${code}\` | ${statusOf[code as keyof typeof statusOf]} |`)
      )
    ).toEqual([])
  })
  it("every error code is answered by some endpoint, and says what it means", () => {
    const answered = new Set(
      [...endpoints("ssp"), ...endpoints("scheduler")].flatMap(({ errors, everywhere }) => [...errors, ...everywhere])
    )
    expect(Object.keys(statusOf).filter((code) => !answered.has(code))).toEqual([])
    expect(codes().filter(({ description }) => description === "")).toEqual([])
  })
  it("every metric of the code is in the reference, and every metric in a page is one of the code", () => {
    const known = new Set(metrics.map(({ name }) => name))
    expect([...known].filter((name) => !reference.includes(`| \`${name}\` |`))).toEqual([])
    const names = named(/`(svc_[a-z]+_[a-z0-9_]+)/g)
    expect(names.length).toBeGreaterThan(30)
    expect(
      names.filter(({ name }) => !known.has(name) && !known.has(name.replace(/_(?:bucket|sum|count)$/, "")))
    ).toEqual([])
  })
  it("every setting in a page is one of the code", () => {
    const names = named(/\b((?:SVC|STORE|SSP|SCHEDULER|LISTEN|ADVERTISE|HEARTBEAT|TTL)_[A-Z][A-Z0-9_]*)\b/g).filter(
      ({ name }) => !Object.hasOwn(statusOf, name)
    )
    expect(names.length).toBeGreaterThan(100)
    expect(names.filter(({ name }) => !settings.has(name) && !forTests.has(name))).toEqual([])
  })
  it("every variable of OpenTelemetry in a page is honoured", () => {
    const names = named(/\b(OTEL_[A-Z][A-Z0-9_]*)(?![<A-Z0-9_])/g).filter(({ name }) => !name.endsWith("_"))
    expect(names.length).toBeGreaterThan(8)
    expect(names.filter(({ name }) => !telemetry.has(name))).toEqual([])
  })
  it("every endpoint in a page is served", () => {
    const names = named(/\b((?:GET|POST|PUT|PATCH|DELETE) \/[\w/:.-]*)/g)
    expect(names.length).toBeGreaterThan(40)
    expect(names.filter(({ name }) => !served.has(name))).toEqual([])
  })
  it("every error code in a page is one of the code", () => {
    const names = named(/`(?:\d{3} )?([A-Z]+(?:_[A-Z]+)+)`/g).filter(
      ({ name }) => !settings.has(name) && !forTests.has(name) && !telemetry.has(name)
    )
    expect(names.length).toBeGreaterThan(20)
    expect(names.filter(({ name }) => !Object.hasOwn(statusOf, name))).toEqual([])
  })
  it("every file of the project that a page names is there, and every link between pages leads somewhere", () => {
    const files = named(/`((?:src|test|scripts|docs)\/[\w./-]+)`/g)
    expect(files.length).toBeGreaterThan(30)
    expect(files.filter(({ name }) => !existsSync(join(root, name)))).toEqual([])
    const anchors = new Map(
      pages.map(({ path, text }) => [
        path,
        new Set(
          [...text.matchAll(/^#{1,4} (.+)$/gm)].map(([, title]) =>
            (title ?? "")
              .toLowerCase()
              .replace(/[^\w\s-]/g, "")
              .replaceAll(" ", "-")
          )
        )
      ])
    )
    const links = pages.flatMap(({ path, text }) =>
      [...text.matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([\w-]+))?\)/g)].map(([, file = "", anchor]) => ({
        from: path,
        to: file === "" ? path : join(path, "..", file),
        anchor
      }))
    )
    expect(links.length).toBeGreaterThan(15)
    expect(
      links.filter(
        ({ anchor, to }) =>
          !existsSync(join(root, to)) || (anchor !== undefined && anchors.get(to)?.has(anchor) === false)
      )
    ).toEqual([])
  })
})
