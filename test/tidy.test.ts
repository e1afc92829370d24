/**
 * The rules of the house as tests: rooms, purity, sizes, headers, banned globals, dead files, decisions cited both
 * ways.
 *
 * Why: a rule that only a reviewer knows is broken on a busy day. Every rule is also shown a sample that breaks it, so
 * that none of these tests can pass by looking at nothing.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import * as Exported from "../kit/rules/exported.ts"
import * as Rooms from "../kit/rules/rooms.ts"
import * as Rules from "../kit/rules/rules.ts"
import { root, trackedFiles } from "../kit/rules/source.ts"
import { sourceFiles } from "../kit/rules/syntax.ts"

const files = sourceFiles()
const decisions = (): string => readFileSync(join(root, "docs/decisions.md"), "utf8")
const header = "/**\n * A thing.\n *\n * Because of this.\n */\n"

interface Case {
  readonly rule: Rooms.Rule
  /** Samples that break the rule, each in its own way: path and text. */
  readonly broken: ReadonlyArray<readonly [string, string]>
  /** Samples that keep it. */
  readonly kept: ReadonlyArray<readonly [string, string]>
}

const long = (lines: number): string => "\n".repeat(lines)

const cases: { readonly [what: string]: Case } = {
  "imports follow the rooms": {
    rule: Rooms.imports,
    broken: [
      ["src/core/surql/a.ts", `import { x } from "../ivm/x.ts"`],
      ["src/core/job/a.ts", `import { x } from "../surql/x.ts"`],
      ["src/core/a.ts", `import { x } from "../ports/x.ts"`],
      ["src/ports/a.ts", `import { x } from "../node/x.ts"`],
      ["src/node/a.ts", `import { x } from "../drivers/x.ts"`],
      ["src/ssp/Ssp.ts", `import { x } from "../drivers/x.ts"`],
      ["src/protocol/a.ts", `import { x } from "../ports/x.ts"`],
      ["src/ports/a.ts", `import { x } from "../host/x.ts"`],
      ["src/ssp/a.ts", `import { x } from "../scheduler/x.ts"`],
      ["src/ssp/a.ts", `import { x } from "../host/x.ts"`],
      ["src/host/a.ts", `import type { x } from "../ssp/x.ts"`],
      ["src/core/a.ts", `const x = import("../ssp/x.ts")`],
      ["src/ports/a.ts", `type X = import("../ssp/x.ts").X`],
      ["src/attic/a.ts", ""],
      ["src/ssp/a.ts", `import { x } from "../../kit/x.ts"`],
      ["src/client/a.ts", `import type { x } from "../protocol/x.ts"`],
      ["kit/checks/a.ts", `import { x } from "../../test/core/x.ts"`],
      ["scripts/bench/a.ts", `import { x } from "../../test/core/x.ts"`]
    ],
    kept: [
      ["src/programs/ssp/main.ts", `import { x } from "../../host/x.ts"`],
      ["src/ssp/Memory.ts", `import { x } from "../drivers/x.ts"`],
      ["src/core/ivm/a.ts", `import { x } from "../surql/x.ts"`]
    ]
  },
  "core is pure": {
    rule: Rules.purity,
    broken: [
      ["src/core/a.ts", `import { Effect } from "effect"`],
      ["src/core/surql/a.ts", `import { Either, Schema } from "effect"`],
      ["src/core/a.ts", `import * as E from "effect"`],
      ["src/core/a.ts", `import { readFileSync } from "node:fs"`],
      ["src/core/a.ts", `import { x } from "effect/Clock"`],
      ["src/core/a.ts", `import { x } from "@effect/platform"`],
      ["src/core/a.ts", `import { x } from "yaml"`]
    ],
    kept: [
      [
        "src/core/a.ts",
        `import { Either, Option } from "effect"; import { Decimal } from "decimal.js"; import { x } from "@noble/hashes/blake3.js"`
      ]
    ]
  },
  "the client has no dependency": {
    rule: Rules.clientAlone,
    broken: [
      ["src/client/a.ts", `import { Effect } from "effect"`],
      ["src/client/live.ts", `import type { x } from "react"`]
    ],
    kept: [
      ["src/client/a.ts", `import { x } from "./x.ts"`],
      ["src/ssp/a.ts", `import { Effect } from "effect"`]
    ]
  },
  "only host and the doors know a runtime": {
    rule: Rules.runtime,
    broken: [
      ["src/ssp/a.ts", `import { x } from "node:http"`],
      ["src/ports/a.ts", `import { x } from "@effect/sql-sqlite-node"`]
    ],
    kept: [
      ["src/host/a.ts", `import { x } from "node:http"`],
      ["src/programs/ssp/main.ts", `import { x } from "@effect/platform-node"`]
    ]
  },
  "the time of day is read where others read it, and ages are of time that goes by": {
    rule: Rules.timeOfDay,
    broken: [
      ["src/host/a.ts", "export const a = Date.now()"],
      ["src/host/a.ts", "export const a = new Date()"],
      ["src/host/a.ts", "export const a = Date()"],
      ["src/ssp/a.ts", "export const a = Clock.currentTimeMillis"],
      ["src/ssp/a.ts", "export const a = (yield* Effect.clock).unsafeCurrentTimeMillis()"],
      ["src/node/a.ts", "export const a = DateTime.now"],
      ["src/ssp/membership/Expiry.ts", "export const a = steadyMs"]
    ],
    kept: [
      ["src/ssp/membership/Expiry.ts", "export const a = Clock.currentTimeMillis"],
      ["src/host/a.ts", "export const a = new Date(5)"],
      ["src/testing/a.ts", "export const a = Date.now()"]
    ]
  },
  "no clock, randomness, console, timers or environment outside host": {
    rule: Rules.banned,
    broken: [
      "Date.now()",
      "new Date()",
      "Math.random()",
      "console.log(1)",
      "setTimeout(f, 1)",
      "setInterval(f)",
      "setImmediate(f)",
      "queueMicrotask(f)",
      "process.env",
      "globalThis.fetch",
      "fetch(u)",
      "performance.now()",
      "crypto.randomUUID()",
      "f({ process })"
    ].flatMap((text) =>
      ["src/ssp/a.ts", "src/client/live.ts"].map((path) => [path, `export const a = ${text}`] as const)
    ),
    kept: [
      ["src/client/world.ts", "export const a = Math.random()"],
      ["src/host/a.ts", "export const a = Date.now()"],
      ["src/core/a.ts", "export const a = new Date(5)"],
      ["src/core/a.ts", "export const a = job.process({ console: 1 })"],
      ["src/core/a.ts", "export const f = (fetch: Idiom) => fetch.at"]
    ]
  },
  "files stay within 450 lines, functions under 80 lines and 60 statements": {
    rule: Rules.sizes,
    broken: [
      ["src/core/a.ts", long(451)],
      ["src/core/a.ts", `export const f = () => {${long(80)}}`],
      ["src/core/a.ts", `class A { m() {${long(80)}} }`],
      ["src/core/a.ts", `export const f = () => {${"a();".repeat(61)}}`],
      ["test/a.test.ts", `it("x", () => {${long(100)}})`]
    ],
    kept: [
      ["src/core/a.ts", `export const f = () => {${long(70)}}`],
      ["test/a.test.ts", `it("x", () => {${long(90)}})`],
      ["test/a.test.ts", `describe("x", () => {${long(100)}})`]
    ]
  },
  "no line over 120 columns but for a text": {
    rule: Rules.columns,
    broken: [
      ["src/core/a.ts", `// ${"word ".repeat(30)}`],
      ["src/core/a.ts", `const a = ${"b + ".repeat(40)}c`]
    ],
    kept: [
      ["src/core/a.ts", `const a = "${"word ".repeat(30)}"`],
      ["src/core/a.ts", `const a = \`${"word ".repeat(30)}\``],
      ["src/core/a.ts", `const a = /${"word ".repeat(30)}/`]
    ]
  },
  "a sentence names its noun": {
    rule: Rules.nouns,
    broken: [
      ["src/ssp/a.ts", `// For who${"ever"} reads it.`],
      ["src/ssp/a.ts", "// It ends. Who waits is told."],
      ["src/core/ivm/a.ts", "// Who waits is told."],
      ["src/core/ivm/a.ts", "// Read by nobody."],
      ["src/ssp/a.ts", "/** Those that are open. */"],
      ["src/core/ivm/a.ts", "// Views stay. One that has moved is gone."],
      ["src/ssp/a.ts", "/** What a reader asks for. */"],
      ["src/ssp/a.ts", "// It is empty."],
      ["src/ssp/a.ts", "/**\n * They are open.\n */"],
      ["test/a.test.ts", " * Who waits is told"]
    ],
    kept: [
      ["src/ssp/a.ts", "// For the client who reads it."],
      ["src/ssp/a.ts", "// Who is told? The client."],
      ["src/ssp/a.ts", "/**\n * A view.\n * It is empty.\n */"],
      ["test/a.test.ts", "// Read by nobody."]
    ]
  },
  "every file opens with what lives here": {
    rule: Rules.headers,
    broken: [
      ["src/core/a.ts", "export const a = 1"],
      ["src/core/a.ts", "// A thing. Why.\n"],
      ["src/core/a.ts", "/**\n *\n */\n"],
      ["src/core/a.ts", `import "x"\n${header}`]
    ],
    kept: [
      ["src/core/a.ts", header],
      ["src/programs/ssp/main.ts", `#!/usr/bin/env node\n${header}`]
    ]
  },
  "no any, no switched-off type checker": {
    rule: Rules.noAny,
    broken: [
      ["src/core/a.ts", "export const a: any = 1"],
      ["test/a.ts", "export const a = x as any"],
      ["src/core/a.ts", "// @ts-ignore\nx()"]
    ],
    kept: [["src/core/a.ts", `export const any = "any" // any`]]
  },
  "no default exports and no re-exports": {
    rule: Rules.exportsRule,
    broken: [
      ["src/core/a.ts", "export default 1"],
      ["src/core/a.ts", "export default function f() {}"],
      ["src/core/a.ts", `export * from "./b.ts"`],
      ["src/core/a.ts", `export { b } from "./b.ts"`],
      ["src/core/a.ts", `import { b } from "./b.ts"\nexport { b }`]
    ],
    kept: [
      ["vitest.config.ts", "export default {}"],
      ["src/core/a.ts", "const b = 1\nexport { b }"]
    ]
  },
  "every file is reached from a door, a test or a script": {
    rule: Rules.reachable,
    broken: [
      ["src/core/a.ts", ""],
      ["kit/checks/a.ts", ""],
      ["scripts/bench/load.ts", ""]
    ],
    kept: [
      ["src/programs/ssp/main.ts", ""],
      ["test/a.test.ts", ""],
      ["scripts/bench/main.ts", ""]
    ]
  }
}

describe("the house", () => {
  it("is read whole: the rules see the source, the tests and the scripts", () => {
    expect(files.length).toBeGreaterThan(20)
    expect(new Set(files.map((file) => file.path.split("/")[0]))).toEqual(
      new Set(["src", "kit", "test", "scripts", "vitest.config.ts"])
    )
  })
  it("keeps folders short enough to be read as lists", () => {
    const crowd = Array.from({ length: 25 }, (_, i) => Rules.sample(`src/core/edges/a${i}.ts`, ""))
    expect(Rooms.folders(crowd)).toEqual(["src/core/edges:1 holds 25 files side by side"])
    expect(Rooms.folders(files)).toEqual([])
  })
  it("has folders of which no two import each other, but for a list that shrinks", () => {
    const mutual = [
      Rules.sample("src/ssp/views/a.ts", `import type { b } from "../edges/b.ts"`),
      Rules.sample("src/ssp/edges/b.ts", `import type { c } from "../views/streams/c.ts"`)
    ]
    const debts = Rooms.walls([]).length
    expect(Rooms.walls(mutual)).toHaveLength(debts + 2)
    expect(Rooms.walls(mutual.slice(1))).toHaveLength(debts)
    expect(Rooms.walls(files)).toEqual([])
  })
  it("has no import circle beyond three files but for grammar and evaluator", () => {
    const ring = (size: number, room: string) =>
      Array.from({ length: size }, (_, i) =>
        Rules.sample(`src/core/${room}/a${i}.ts`, `import type { x } from "./a${(i + 1) % size}.ts"`)
      )
    expect(Rooms.circles(ring(3, "job"))).toEqual([])
    expect(Rooms.circles(ring(4, "job"))).toEqual([expect.stringMatching(/^src\/core\/job\/a0\.ts:1 .* 4 files/)])
    expect(Rooms.circles(files)).toEqual([])
  })
  for (const [what, { rule, broken, kept }] of Object.entries(cases)) {
    it(`keeps the rule: ${what}`, () => expect(rule(files)).toEqual([]))
    it(`can fail: ${what}`, () => {
      for (const [path, text] of broken)
        expect(rule([Rules.sample(path, text)]), `${path}: ${text.slice(0, 60)}`).not.toEqual([])
      for (const [path, text] of kept)
        expect(rule([Rules.sample(path, text)]), `${path}: ${text.slice(0, 60)}`).toEqual([])
    })
  }
  it("keeps the doors under 80 lines each", () => {
    const doors = files.filter((file) => Rooms.roomOf(file.path) === "door")
    expect(doors.length).toBeGreaterThan(0)
    expect(doors.filter((door) => door.text.split("\n").length > 80).map((door) => door.path)).toEqual([])
  })
})

describe("exports", () => {
  const composing = readFileSync(join(root, "docs/compose.md"), "utf8")
  it("are read by other files, but for the package's interface", () =>
    expect(Exported.unused(files, composing)).toEqual([]))
  it("would be caught read by none", () => {
    const read = (path: string, text: string) =>
      Exported.unused(
        [Rules.sample("src/core/a.ts", "export const a = 1\nexport interface B {}"), Rules.sample(path, text)],
        "| `.../core/a` | `b` |"
      )
    expect(read("src/core/b.ts", "")).toHaveLength(2)
    expect(read("src/core/b.ts", `import { a } from "./a.ts"`)).toHaveLength(1)
    expect(read("src/core/b.ts", `import * as A from "./a.ts"\nconst x: A.B = A.a`)).toEqual([])
    expect(read("test/b.ts", `const a = await import("../src/core/a.ts")`)).toEqual([])
    expect(read("test/b.ts", `import type { a, B } from "surreal-live-sidecar/core/a"`)).toEqual([])
  })
})

describe("the dashboard's files", () => {
  const scripts = trackedFiles()
    .filter((path) => /^src\/dashboard\/.+\.js$/.test(path))
    .map((path) => Rules.sample(path, readFileSync(join(root, path), "utf8")))
  const markup: Rooms.Rule = (all) =>
    all
      .filter(({ text }) =>
        /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|createContextualFragment/.test(
          text
        )
      )
      .map(({ path }) => `${path}:1 makes markup from text`)
  it("open with what lives here and why, are short, and make no markup from text", () => {
    expect(scripts.length).toBeGreaterThan(10)
    expect([...Rules.headers(scripts), ...Rules.sizes(scripts), ...markup(scripts)]).toEqual([])
  })
  it("would be caught making markup", () =>
    expect(markup([Rules.sample("src/dashboard/a.js", "box.innerHTML = name")])).toHaveLength(1))
})

describe("decisions", () => {
  const table = "| D1 | q | d | why | built |\n| D2 | q | d | why | later |\n"
  it("are cited both ways: test names and docs/decisions.md agree", () =>
    expect(Rules.citations(files, decisions())).toEqual([]))
  it("that the source cites are in docs/decisions.md", () =>
    expect(Rules.sourceCitations(files, decisions())).toEqual([]))
  it("are checked by rules that can fail", () => {
    const cites = (name: string) => [Rules.sample("test/a.test.ts", `it("${name}", () => {})`)]
    expect(Rules.citations(cites("D1 holds"), table)).toEqual([])
    expect(Rules.citations(cites("nothing"), table)).toHaveLength(1)
    expect(Rules.citations(cites("D1 and D2"), table)).toHaveLength(1)
    expect(Rules.citations(cites("D1 and D9"), table)).toHaveLength(1)
    expect(Rules.sourceCitations([Rules.sample("src/a.ts", "// as D9 says")], table)).toHaveLength(1)
  })
})

describe("docs/laws.md", () => {
  it("names a law only where a test names it too", () => {
    const page = readFileSync(join(root, "docs/laws.md"), "utf8")
    const laws = [...page.matchAll(/^\| (L\d) \|/gm)].map(([, law]) => law ?? "")
    const tested = new Set(Rules.testNames(files).flatMap((name) => name.match(/\bL\d\b/g) ?? []))
    expect(laws.length).toBeGreaterThan(3)
    expect(laws.filter((law) => !tested.has(law))).toEqual([])
  })
})

describe("tracked files", () => {
  /** Written in pieces, so that this file does not find itself. */
  const forbidden: ReadonlyArray<readonly [string, RegExp]> = [
    ["a machine path", new RegExp(String.raw`(?<![\w.:/-])/(?:${["work", "home", "root", "Users"].join("|")})/[\w.]`)],
    ["a private key", new RegExp(`-----BEGIN [A-Z ]*PRIVATE${" "}KEY-----`)],
    ["a token", /\b(?:gh[pousr]_[A-Za-z0-9]{30,}|npm_[A-Za-z0-9]{36}|AKIA[0-9A-Z]{16}|sk-[A-Za-z0-9]{32,})\b/]
  ]
  const faultsIn = (path: string, text: string): ReadonlyArray<string> =>
    forbidden.filter(([, pattern]) => pattern.test(text)).map(([what]) => `${path} holds ${what}`)

  it("hold no machine paths and no secrets", () => {
    const faults = trackedFiles()
      .filter((path) => path !== "package-lock.json")
      .flatMap((path) => faultsIn(path, readFileSync(join(root, path), "utf8")))
    expect(faults).toEqual([])
  })
  it("would be caught holding one", () => {
    expect(faultsIn("a", `cd ${"/wo"}rk/main`)).toHaveLength(1)
    expect(faultsIn("a", `key ${"gh"}p_${"a".repeat(36)}`)).toHaveLength(1)
    expect(faultsIn("a", `-----BEGIN PRIVATE${" "}KEY-----`)).toHaveLength(1)
    expect(faultsIn("a", "https://example.com/home/x and ./work/x")).toEqual([])
  })
})
