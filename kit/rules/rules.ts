/**
 * The rules of the house, one function each: source files in, faults out (`path:line what is wrong`).
 *
 * Why functions and not assertions: test/tidy.test.ts runs every rule twice, on the project, where it must find
 * nothing, and on a sample that breaks it, where it must find something. A rule that cannot fail would be no rule.
 */
import ts from "typescript"
import { globalsOf, importsOf, lineOf, literalText, parse, resolveImport, type SourceFile, visit } from "./syntax.ts"

export type Faults = ReadonlyArray<string>
export type Rule = (files: ReadonlyArray<SourceFile>) => Faults

/** Tests, and the conformance suites, which are tests that others get too. */
const isTest = (path: string): boolean => path.startsWith("test/") || path.startsWith("src/testing/")

const each =
  (check: (file: SourceFile, fault: (line: number, what: string) => void) => void): Rule =>
  (files) => {
    const faults: Array<string> = []
    for (const file of files) check(file, (line, what) => faults.push(`${file.path}:${line} ${what}`))
    return faults
  }

/** The room a file lives in; files directly under src/ are doors. */
export const roomOf = (path: string): string | undefined => {
  if (!path.startsWith("src/")) return undefined
  const parts = path.split("/").slice(1)
  if (parts.length === 1) return "door"
  return parts[0] === "core" && parts.length > 2 ? `core/${parts[1]}` : parts[0]
}

/** Which rooms a room may import beside itself. Rooms that are not here are unknown, which is a fault. */
const sees: { readonly [room: string]: ReadonlyArray<string> } = {
  core: [],
  "core/surql": ["core"],
  "core/settings": ["core"],
  "core/telemetry": ["core"],
  "core/record": ["core", "core/surql", "core/telemetry"],
  "core/view": ["core"],
  "core/wal": ["core"],
  "core/access": ["core", "core/settings"],
  "core/surreal": ["core", "core/record", "core/surql"],
  "core/job": ["core"],
  "core/cluster": ["core", "core/view"],
  "core/ivm": ["core", "core/record", "core/surql", "core/surreal", "core/view"],
  "core/edges": ["core", "core/surql", "core/ivm"],
  "core/integrity": ["core", "core/surql", "core/ivm"],
  "core/rows": ["core", "core/surql", "core/ivm"],
  protocol: ["core/*"],
  ports: ["core/*", "protocol"],
  node: ["core/*", "protocol", "ports"],
  drivers: ["core/*", "protocol", "ports", "node"],
  ssp: ["core/*", "protocol", "ports", "node"],
  scheduler: ["core/*", "protocol", "ports", "node"],
  outbox: ["core/*", "protocol", "ports"],
  host: ["core/*", "protocol", "ports", "node", "drivers"],
  testing: ["core/*", "protocol", "ports", "node"],
  // What runs in a browser knows nothing of the service but the wire.
  client: [],
  views: ["core/*", "protocol"],
  // A door may load the rest of itself.
  door: [
    "core/*",
    "protocol",
    "ports",
    "node",
    "drivers",
    "ssp",
    "scheduler",
    "outbox",
    "host",
    "testing",
    "client",
    "views"
  ]
}

/**
 * A whole node in memory, put together from drivers for tests and for composing: the only files of their rooms that
 * may.
 */
const composed = new Set(["src/ssp/Memory.ts", "src/scheduler/Memory.ts"])

const allowed = (from: string, to: string): boolean => {
  const rooms = sees[from]
  return (
    rooms !== undefined && (from === to || rooms.includes(to) || (to.startsWith("core") && rooms.includes("core/*")))
  )
}

export const imports: Rule = each((file, fault) => {
  const room = roomOf(file.path)
  if (room === undefined) return
  if (sees[room] === undefined) fault(1, `room "${room}" is not on the map`)
  for (const { specifier, line } of importsOf(file)) {
    const target = resolveImport(file.path, specifier)
    if (target === undefined) continue
    const other = roomOf(target)
    if (other === "drivers" && composed.has(file.path)) continue
    if (other === undefined || !allowed(room, other)) fault(line, `${room} imports ${other ?? target}`)
  }
})

/** Two or three files that know each other are one thing in parts. */
const maxCircle = 3
/** Circles that the subject asks for, by one of their files. */
const neededCircles: { readonly [file: string]: string } = {
  "src/core/surql/syntax/parseExpression.ts":
    "the grammar is recursive: an expression holds a SELECT, which holds expressions",
  "src/core/surql/evaluate/evaluate.ts":
    "so is what the grammar means: an expression runs a query, which evaluates expressions"
}

/** Files that import each other in a circle, type imports included. */
const circlesIn = (files: ReadonlyArray<SourceFile>): ReadonlyArray<ReadonlyArray<string>> => {
  const byPath = new Map(files.map((file) => [file.path, file]))
  const targets = new Map<string, ReadonlyArray<string>>()
  for (const file of files)
    targets.set(
      file.path,
      importsOf(file)
        .flatMap(({ specifier }) => resolveImport(file.path, specifier) ?? [])
        .filter((path) => byPath.has(path))
    )
  const reached = (from: string): ReadonlySet<string> => {
    const seen = new Set<string>()
    const queue = [from]
    for (let path = queue.pop(); path !== undefined; path = queue.pop())
      for (const target of targets.get(path) ?? [])
        if (!seen.has(target)) {
          seen.add(target)
          queue.push(target)
        }
    return seen
  }
  const reach = new Map(files.map(({ path }) => [path, reached(path)]))
  const circles = new Map<string, ReadonlyArray<string>>()
  for (const [path, seen] of reach) {
    if (!seen.has(path)) continue
    const circle = [...seen].filter((other) => reach.get(other)!.has(path)).sort()
    circles.set(circle[0]!, circle)
  }
  return [...circles.values()]
}

export const circles: Rule = (files) =>
  circlesIn(files.filter(({ path }) => path.startsWith("src/")))
    .filter((circle) => circle.length > maxCircle && !circle.some((path) => neededCircles[path] !== undefined))
    .map((circle) => `${circle[0]}:1 imports itself in a circle of ${circle.length} files: ${circle.join(", ")}`)

/** Files that one folder of `src` holds side by side, so that a folder can be read as a list. */
const maxFilesPerFolder = 24
/** Folders whose files are entries of one list. */
const longLists: { readonly [folder: string]: number } = { "src/ports": 32 }

export const folders: Rule = (files) => {
  const counts = new Map<string, number>()
  for (const { path } of files) {
    if (!path.startsWith("src/")) continue
    const folder = path.slice(0, path.lastIndexOf("/"))
    counts.set(folder, (counts.get(folder) ?? 0) + 1)
  }
  return [...counts]
    .filter(([folder, count]) => count > (longLists[folder] ?? maxFilesPerFolder))
    .map(([folder, count]) => `${folder}:1 holds ${count} files side by side`)
}

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
const valueLibraries = ["decimal.js", "@noble/hashes", "hash-wasm", "re2js", "sorted-btree"]

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
  "src/scheduler/http/Http.ts": "last activity of a view",
  "src/scheduler/http/HttpRegistration.ts": "last activity of a view",
  "src/scheduler/jobs/Jobs.ts": "times in job records",
  "src/scheduler/pool/viewRequests.ts": "last activity of a view, moved to time that goes by",
  "src/ssp/database/viewCalls.ts": "last activity of a view",
  "src/ssp/http/HttpBrowsers.ts": "last activity of a view",
  "src/ssp/http/HttpRegistration.ts": "last activity of a view",
  "src/ssp/jobs/Jobs.ts": "times in job records",
  "src/ssp/jobs/runner.ts": "times in job records: of an attempt, and before which there is no next one",
  "src/ssp/membership/Expiry.ts": "last activity of a view, where a process sees it first",
  "src/ssp/views/viewService.ts": "a name for this start that no other has"
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

export const maxFileLines = 600
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
  if (lines >= maxFileLines) fault(1, `has ${lines} lines`)
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
const someBody = /^\s*(?:\/\/|\/\*\*|\*).*\b(?:no|some|every)body\b/i

/** A sentence names its noun: no pronoun stands for the client, the SSP or the process. */
export const nouns: Rule = each((file, fault) => {
  const isSource = file.path.startsWith("src/")
  for (const [index, line] of file.text.split("\n").entries())
    if (isSource && someBody.test(line)) fault(index + 1, "says nobody or somebody and names no noun")
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
