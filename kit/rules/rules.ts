/**
 * The rules of the house, one function each: source files in, faults out (`path:line what is wrong`).
 *
 * Why functions and not assertions: test/tidy.test.ts runs every rule twice, on the project, where it must find
 * nothing, and on a sample that breaks it, where it must find something. A rule that cannot fail would be no rule.
 */
import ts from "typescript"
import { each, type Faults, type Rule, roomOf } from "./rooms.ts"
import { globalsOf, importsOf, lineOf, literalText, parse, resolveImport, type SourceFile, visit } from "./syntax.ts"

/** Tests with their kit, and the conformance suites, which are tests that others get too. */
const isTest = (path: string): boolean => /^(?:kit|test|src\/testing)\//.test(path)

const valueModules = new Set([
  "Array",
  "BigDecimal",
  "BigInt",
  "Boolean",
  "Brand",
  "Chunk",
  "Data",
  "Duration",
  "Either",
  "Encoding",
  "Equal",
  "Equivalence",
  "Function",
  "Hash",
  "HashMap",
  "HashSet",
  "Iterable",
  "List",
  "Match",
  "MutableHashMap",
  "Number",
  "Option",
  "Order",
  "Ordering",
  "pipe",
  "Predicate",
  "Record",
  "RedBlackTree",
  "SortedMap",
  "SortedSet",
  "String",
  "Struct",
  "Tuple",
  "Types",
  "identity",
  "absurd"
])
const valueLibraries = ["decimal.js", "@noble/hashes", "hash-wasm", "sorted-btree"]

const fromLibrary = (specifier: string, library: string): boolean =>
  specifier === library || specifier.startsWith(`${library}/`)

/** core is pure: value modules of effect and the value libraries, nothing that runs, waits or reads the world. */
export const purity: Rule = each((file, fault) => {
  if (roomOf(file.path)?.startsWith("core") !== true) return
  for (const { specifier, names, line } of importsOf(file)) {
    if (specifier.startsWith(".")) continue
    if (specifier === "effect") {
      for (const name of names) if (!valueModules.has(name)) fault(line, `core imports ${name} of effect`)
    } else if (specifier.startsWith("effect/")) {
      if (!valueModules.has(specifier.slice("effect/".length))) fault(line, `core imports ${specifier}`)
    } else if (!valueLibraries.some((library) => fromLibrary(specifier, library)))
      fault(line, `core imports ${specifier}`)
  }
})

const runtimes = [
  "@effect/platform-node",
  "@effect/sql-sqlite-node",
  "better-sqlite3",
  "undici",
  "ws",
  "surrealdb",
  "@surrealdb/node"
]

/** Files of the client that bind it to a library, which is an optional peer, and the library. */
const bindings: { readonly [file: string]: string } = {
  "src/client/react.ts": "react",
  "src/client/solid.ts": "solid-js",
  "src/client/tanstack-db.ts": "@tanstack/db"
}

/** The client has no dependency; a binding knows its own library. */
export const clientAlone: Rule = each((file, fault) => {
  if (roomOf(file.path) !== "client") return
  for (const { specifier, line } of importsOf(file))
    if (!specifier.startsWith(".") && specifier !== bindings[file.path]) fault(line, `client imports ${specifier}`)
})

/** Nothing but host and the doors knows a runtime or a driver. */
export const runtime: Rule = each((file, fault) => {
  const room = roomOf(file.path)
  if (room === undefined || room === "host" || room === "door") return
  for (const { specifier, line } of importsOf(file)) {
    if (specifier.startsWith("node:") || runtimes.some((library) => fromLibrary(specifier, library)))
      fault(line, `${room} imports ${specifier}`)
  }
})

const bannedGlobals = new Set([
  "console",
  "setTimeout",
  "setInterval",
  "setImmediate",
  "queueMicrotask",
  "process",
  "fetch",
  "globalThis",
  "performance",
  "crypto",
  "Deno",
  "Bun",
  "eval",
  "Function"
])

/** What the client and the handler of named views know of their runtime, in one file each. */
const worlds: ReadonlySet<string> = new Set(["src/client/world.ts", "src/views/world.ts"])

/**
 * Outside src/host nothing reads a clock, draws a random number, prints, waits by itself or looks at the environment.
 */
export const banned: Rule = each((file, fault) => {
  const room = roomOf(file.path)
  if (room === undefined || room === "host" || worlds.has(file.path)) return
  for (const { name, node } of globalsOf(file)) {
    const parent = node.parent
    const property = ts.isPropertyAccessExpression(parent) && parent.expression === node ? parent.name.text : undefined
    if (bannedGlobals.has(name)) fault(lineOf(file, node), `uses ${name}`)
    if (name === "Date" && property === "now") fault(lineOf(file, node), "uses Date.now")
    if (name === "Date" && ts.isNewExpression(parent) && (parent.arguments?.length ?? 0) === 0)
      fault(lineOf(file, node), "uses new Date()")
    if (name === "Math" && property === "random") fault(lineOf(file, node), "uses Math.random")
  }
})

/** Places that read the time of day, and what for: times that others read, compare or have set. */
const ofTheDay: { readonly [file: string]: string } = {
  "src/drivers/nats/objects.ts": "times of the NATS server, and one that is kept there",
  "src/host/http/tlsFiles.ts": "a certificate's days",
  "src/host/snapshots/keptSnapshots.ts": "times of snapshots, which other schedulers write too",
  "src/host/process/processFigures.ts": "when the process began, once, as Prometheus asks for it",
  "src/host/process/watchdogThread.ts": "times in the log, and of a turn that the next process reads",
  "src/host/snapshots/snapshotFolder.ts": "times of files",
  "src/ssp/jobs/recordJobs.ts": "claims of jobs in records, for a process that starts again, and times of jobs",
  "src/ssp/jobs/reportedJobs.ts": "claims of jobs as /jobs shows them; renewed by time that goes by",
  "src/node/streams/Browsers.ts": "ends of tokens, looked at each second",
  "src/ports/Turn.ts": "how far both are apart",
  "src/scheduler/http/HttpRegistration.ts": "last activity of a view",
  "src/scheduler/jobs/Jobs.ts": "times in job records",
  "src/scheduler/pool/viewRequests.ts": "last activity of a view, moved to time that goes by",
  "src/ssp/database/viewCalls.ts": "last activity of a view",
  "src/ssp/http/HttpBrowsers.ts": "last activity of a view",
  "src/ssp/http/HttpRegistration.ts": "last activity of a view",
  "src/ssp/jobs/Jobs.ts": "times in job records",
  "src/ssp/jobs/runner.ts": "times in job records: of an attempt, and before which there is no next one",
  "src/ssp/membership/Expiry.ts": "last activity of a view, where a process sees it first",
  "src/ssp/views/viewService.ts": "a name for this start that no other has, and how the clock stands then"
}

/** Reads the time of day: of the runtime, or of the Clock service. */
const readsTheDay = (node: ts.Node): boolean => {
  if (ts.isNewExpression(node)) return node.expression.getText() === "Date" && (node.arguments?.length ?? 0) === 0
  if (ts.isCallExpression(node) && node.expression.getText() === "Date") return true
  return (
    ts.isPropertyAccessExpression(node) &&
    /^(Date\.now|DateTime\.(now|unsafeNow)|performance\.timeOrigin|.*\.(unsafeC|c)urrentTimeMillis)$/.test(
      node.getText()
    )
  )
}

/**
 * Ages, lags and deadlines are measured by time that goes by (`ports/Turn.ts`), which nobody sets (D73). A place that is
 * named and reads no time of day is a fault, too.
 */
export const timeOfDay: Rule = (files) => {
  const faults: Array<string> = []
  const reading = new Set<string>()
  for (const file of files) {
    if (!file.path.startsWith("src/") || isTest(file.path)) continue
    visit(file.tree, (node) => {
      if (!readsTheDay(node)) return
      reading.add(file.path)
      if (ofTheDay[file.path] === undefined) faults.push(`${file.path}:${lineOf(file, node)} reads the time of day`)
    })
  }
  const stale = files.map(({ path }) => path).filter((path) => ofTheDay[path] !== undefined && !reading.has(path))
  return [...faults, ...stale.map((path) => `${path}:1 is named in ofTheDay and reads no time of day`)]
}

export const maxFileLines = 450
/** Files that are longer still, and how long each may be. The list may only shrink. */
const longFiles: { readonly [path: string]: number } = {
  "src/core/cluster/poolViews.ts": 535,
  "src/core/ivm/engine.ts": 510,
  "src/core/ivm/operators/groups.ts": 485,
  "src/core/surql/evaluate/evaluate.ts": 571,
  "src/core/surql/evaluate/select/group.ts": 510,
  "src/core/surql/evaluate/select/select.ts": 489,
  "src/core/surql/syntax/parsePrimary.ts": 524,
  "src/node/database/changeReader.ts": 451,
  "src/protocol/SchedulerApi.ts": 532,
  "src/scheduler/Config.ts": 521,
  "src/scheduler/ingest/Ingest.ts": 495,
  "src/ssp/Config.ts": 465,
  "src/ssp/edges/writer.ts": 520,
  "src/ssp/reconcile/Reconcile.ts": 454,
  "src/ssp/tables/TableFollower.ts": 483,
  "src/ssp/views/viewService.ts": 592,
  "src/testing/Replica.suite.ts": 462,
  "test/browser/dashboard.test.ts": 524,
  "test/contract/scheduler.views.test.ts": 479,
  "test/contract/ssp.views.test.ts": 513,
  "test/core/cluster/termWorld.ts": 460,
  "test/core/ivm/generateQuery.ts": 568,
  "test/core/ivm/index/viewIndex.test.ts": 545,
  "test/core/ivm/pages.test.ts": 591,
  "test/core/ivm/pitfalls.test.ts": 464,
  "test/core/surql/generate.ts": 580,
  "test/core/surql/scalarValues.ts": 570,
  "test/host/surreal/Surreal.test.ts": 506,
  "test/hostile/limits.ts": 457,
  "test/outbox/outbox.test.ts": 459,
  "test/package/tarball.test.ts": 480,
  "test/scheduler/jobs.test.ts": 492,
  "test/scheduler/replica/ProxyQuery.test.ts": 599,
  "test/ssp/jobs/runner.test.ts": 473,
  "test/ssp/membership/Membership.test.ts": 582,
  "test/ssp/reconcile/Reconcile.test.ts": 474
}
export const maxColumns = 120
/** Lines as the formatter writes them. A test tells one story from the first line to the last and may be longer. */
export const maxFunctionLines = { source: 80, test: 100 } as const
export const maxStatements = 60

/** A describe, or the outermost function of a conformance suite: a list of tests, not a piece of logic. */
const isSuite = (file: SourceFile, node: ts.Node): boolean =>
  (ts.isCallExpression(node.parent) && /^(describe|suite)\b/.test(node.parent.expression.getText(file.tree))) ||
  (file.path.endsWith(".suite.ts") &&
    ts.isVariableDeclaration(node.parent) &&
    ts.isSourceFile(node.parent.parent.parent.parent))

const statementsIn = (body: ts.Node): number => {
  let count = 0
  visit(body, (node) => {
    if (ts.isStatement(node) && !ts.isBlock(node)) count++
  })
  return count
}

export const sizes: Rule = each((file, fault) => {
  const lines = file.text.split("\n").length - 1
  if (lines > (longFiles[file.path] ?? maxFileLines)) fault(1, `has ${lines} lines`)
  const longest = isTest(file.path) ? maxFunctionLines.test : maxFunctionLines.source
  visit(file.tree, (node) => {
    if (!ts.isFunctionLike(node) || !("body" in node) || node.body === undefined) return
    if (isTest(file.path) && isSuite(file, node)) return
    const start = lineOf(file, node)
    const length = file.tree.getLineAndCharacterOfPosition(node.end).line + 2 - start
    if (length >= longest) fault(start, `has a function of ${length} lines`)
    const statements = statementsIn(node.body)
    if (statements > maxStatements) fault(start, `has a function of ${statements} statements`)
  })
})

/**
 * The formatter breaks code; what it cannot break is a comment, and a text or pattern that begins before the last
 * column.
 */
export const columns: Rule = each((file, fault) => {
  if (!file.path.startsWith("src/")) return
  const starts = file.tree.getLineStarts()
  const unbreakable = new Set<number>()
  visit(file.tree, (node) => {
    if (!ts.isStringLiteralLike(node) && !ts.isTemplateExpression(node) && !ts.isRegularExpressionLiteral(node)) return
    const first = file.tree.getLineAndCharacterOfPosition(node.getStart(file.tree)).line
    const last = file.tree.getLineAndCharacterOfPosition(node.end).line
    for (let line = first; line <= last; line++) unbreakable.add(line)
  })
  for (const [line, start] of starts.entries()) {
    const length = (starts[line + 1] ?? file.text.length + 1) - 1 - start
    if (length > maxColumns && !unbreakable.has(line)) fault(line + 1, `has a line of ${length} columns`)
  }
})

const noNoun = /\bwho(?:ever)\b/i
const beginsWithWho = /^\s*(?:\/\/|\/\*\*|\*)(?:.*[.:;])? Who\b(?!.*\?)/
/** "Those of them" and "One that" stand for a noun that the reader has to look for; a count or a name is a noun. */
const beginsWithOne = /^\s*(?:\/\/|\/\*\*|\*)(?:.*[.:;])? ?(?:Those|One (?:that|whose))\b(?!.*\?)/
/** A comment about a declaration begins with its noun: "What", "It" and "They" leave the reader to look for one. */
const beginsWithIt = /^\s*(?:\/\/|\/\*\*|\*) ?(?:What|It|They)\b(?!.*\?)/
const isInComment = /^\s*(?:\/\/|\*(?!\/))/
const someBody = /^\s*(?:\/\/|\/\*\*|\*).*\b(?:no|some|every)body\b/i

/** A sentence names its noun: no pronoun stands for the client, the SSP or the process. */
export const nouns: Rule = each((file, fault) => {
  const isSource = file.path.startsWith("src/")
  const lines = file.text.split("\n")
  for (const [index, line] of lines.entries())
    if (isSource && someBody.test(line)) fault(index + 1, "says nobody or somebody and names no noun")
    else if (isSource && beginsWithOne.test(line)) fault(index + 1, "begins with those or one that and names no noun")
    else if (isSource && beginsWithIt.test(line) && !isInComment.test(lines[index - 1] ?? ""))
      fault(index + 1, "begins with what, it or they and names no noun")
    else if (noNoun.test(line) || beginsWithWho.test(line)) fault(index + 1, "says who and names no noun")
})

/** Every file opens with a doc comment that says in a sentence what lives here. */
export const headers: Rule = each((file, fault) => {
  const opening = /^(?:#![^\n]*\n)?\/\*\*([\s\S]*?)\*\//.exec(file.text)
  if (opening === null) return fault(1, "has no doc comment at the top")
  const text = (opening[1] ?? "").replace(/^\s*\*/gm, " ").trim()
  if (text === "") fault(1, "does not say what lives here")
})

export const noAny: Rule = each((file, fault) => {
  visit(file.tree, (node) => {
    if (node.kind === ts.SyntaxKind.AnyKeyword) fault(lineOf(file, node), "uses any")
  })
  for (const [index, line] of file.text.split("\n").entries()) {
    if (/^\s*(?:\/\/|\/?\*+)\s*@ts-(?:ignore|nocheck)/.test(line)) fault(index + 1, "switches the type checker off")
  }
})

/** A default export hides its name; vitest asks for one in its own file. */
export const exportsRule: Rule = each((file, fault) => {
  const imported = new Set(importsOf(file).flatMap(({ names }) => names))
  visit(file.tree, (node) => {
    const isDefault =
      ts.isExportAssignment(node) ||
      (ts.canHaveModifiers(node) &&
        ts.getModifiers(node)?.some((modifier) => modifier.kind === ts.SyntaxKind.DefaultKeyword) === true)
    if (isDefault && file.path !== "vitest.config.ts") fault(lineOf(file, node), "has a default export")
    if (!ts.isExportDeclaration(node)) return
    if (node.moduleSpecifier !== undefined) fault(lineOf(file, node), "re-exports")
    const clause = node.exportClause
    if (clause === undefined || !ts.isNamedExports(clause)) return
    for (const element of clause.elements) {
      if (imported.has((element.propertyName ?? element.name).text))
        fault(lineOf(file, node), "re-exports what it imports")
    }
  })
})

/**
 * Every file is reached from a door, a test, a script or the test configuration, by import or named as a path to run.
 */
export const reachable: Rule = (files) => {
  const byPath = new Map(files.map((file) => [file.path, file]))
  const isRoot = (path: string): boolean =>
    roomOf(path) === "door" ||
    path.endsWith(".test.ts") ||
    /^scripts\/(?:[^/]+|(?:.+\/)?main)\.ts$/.test(path) ||
    path === "vitest.config.ts"
  const seen = new Set<string>()
  const queue = files.map((file) => file.path).filter(isRoot)
  for (let path = queue.pop(); path !== undefined; path = queue.pop()) {
    const file = byPath.get(path)
    if (file === undefined || seen.has(path)) continue
    seen.add(path)
    for (const { specifier } of importsOf(file)) {
      const target = resolveImport(path, specifier)
      if (target !== undefined) queue.push(target)
    }
    visit(file.tree, (node) => {
      if (ts.isStringLiteral(node) && byPath.has(node.text)) queue.push(node.text)
    })
  }
  return files.filter((file) => !seen.has(file.path)).map((file) => `${file.path}:1 nothing leads here`)
}

/** First arguments of `it`, `test`, `describe` and of rows (`{ name: "..." }`) in test files. */
export const testNames = (files: ReadonlyArray<SourceFile>): ReadonlyArray<string> => {
  const names: Array<string> = []
  for (const file of files) {
    if (!isTest(file.path)) continue
    visit(file.tree, (node) => {
      if (ts.isCallExpression(node) && /^(?:it|test|describe|seeded|row)\b/.test(node.expression.getText(file.tree))) {
        const name = literalText(node.arguments[0])
        if (name !== undefined) names.push(name)
      }
      if (ts.isPropertyAssignment(node) && node.name.getText(file.tree) === "name") {
        const name = literalText(node.initializer)
        if (name !== undefined) names.push(name)
      }
    })
  }
  return names
}

const numbersIn = (text: string): ReadonlyArray<string> => text.match(/\bD\d+a?\b/g) ?? []

/** Decisions of the table in `docs/decisions.md`: number -> built or later. */
export const decisions = (page: string): ReadonlyMap<string, "built" | "later"> => {
  const found = new Map<string, "built" | "later">()
  for (const line of page.split("\n")) {
    const row = /^\|\s*(D\d+a?)\s*\|/.exec(line)
    if (row?.[1] !== undefined) found.set(row[1], /\|\s*later\b[^|]*\|\s*$/.test(line) ? "later" : "built")
  }
  return found
}

/** Tests cite decisions that exist, and every decision that is built is cited by a test. */
export const citations = (files: ReadonlyArray<SourceFile>, page: string): Faults => {
  const known = decisions(page)
  const cited = new Set(testNames(files).flatMap(numbersIn))
  const unknown = [...cited]
    .filter((number) => !known.has(number))
    .map((number) => `test names cite ${number}, docs/decisions.md has no such decision`)
  const later = [...cited]
    .filter((number) => known.get(number) === "later")
    .map((number) => `test names cite ${number}, docs/decisions.md says it comes later`)
  const unproven = [...known]
    .filter(([number, state]) => state === "built" && !cited.has(number))
    .map(([number]) => `docs/decisions.md says ${number} is built, no test name cites it`)
  return [...unknown, ...later, ...unproven]
}

/** Every number cited in a comment or a message of the source is a decision that `docs/decisions.md` lists. */
export const sourceCitations = (files: ReadonlyArray<SourceFile>, page: string): Faults => {
  const known = decisions(page)
  return files
    .filter((file) => file.path.startsWith("src/"))
    .flatMap((file) =>
      [...new Set(numbersIn(file.text))]
        .filter((number) => !known.has(number))
        .map((number) => `${file.path}:1 cites ${number}, docs/decisions.md has no such decision`)
    )
}

export const sample = (path: string, text: string): SourceFile => parse(path, text)
