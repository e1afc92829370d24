/**
 * The rooms of the house and what each may import, as rules: source files in, faults out (`path:line what is wrong`).
 */
import { importsOf, resolveImport, type SourceFile } from "./syntax.ts"

export type Faults = ReadonlyArray<string>
export type Rule = (files: ReadonlyArray<SourceFile>) => Faults

export const each =
  (check: (file: SourceFile, fault: (line: number, what: string) => void) => void): Rule =>
  (files) => {
    const faults: Array<string> = []
    for (const file of files) check(file, (line, what) => faults.push(`${file.path}:${line} ${what}`))
    return faults
  }

/** The room a file lives in; doors are the libraries directly under src/ and the programs. */
export const roomOf = (path: string): string | undefined => {
  if (!path.startsWith("src/")) return undefined
  const parts = path.split("/").slice(1)
  if (parts.length === 1 || parts[0] === "programs") return "door"
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
  // Tests stand on the kit and on scripts, never the other way round.
  if (/^(?:kit|scripts)\//.test(file.path))
    for (const { specifier, line } of importsOf(file))
      if (resolveImport(file.path, specifier)?.startsWith("test/")) fault(line, `imports a test: ${specifier}`)
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

/** Folders of one room that import each other still. The list may only shrink. */
const entwined: ReadonlySet<string> = new Set([
  "src/core/surql: evaluate, functions",
  "src/core/surql: evaluate, syntax"
])

/** A file's room as a folder, and the folder of that room in which it lies; undefined directly in the room. */
const wallsOf = (path: string): readonly [room: string, folder: string] | undefined => {
  const name = roomOf(path)
  if (name === undefined || name === "door") return undefined
  const folder = path.slice(`src/${name}/`.length).split("/").slice(0, -1)[0]
  return folder === undefined ? undefined : [`src/${name}`, folder]
}

/** Folders of one room are walls: of two, at most one imports the other. A debt that is paid is struck off the list. */
export const walls: Rule = (files) => {
  const imported = new Map<string, string>()
  for (const { path, ...file } of files) {
    const from = wallsOf(path)
    if (from === undefined) continue
    for (const { specifier, line } of importsOf({ path, ...file })) {
      const to = wallsOf(resolveImport(path, specifier) ?? "")
      if (to !== undefined && to[0] === from[0] && to[1] !== from[1])
        imported.set(`${from[0]}: ${from[1]}, ${to[1]}`, `${path}:${line}`)
    }
  }
  const both = [...imported].filter(([pair]) => imported.has(pair.replace(/(\w+), (\w+)$/, "$2, $1")))
  const unpaid = new Set(both.map(([pair]) => pair))
  return [
    ...both.filter(([pair]) => !entwined.has(pair) && !entwined.has(pair.replace(/(\w+), (\w+)$/, "$2, $1"))),
    ...[...entwined].filter((pair) => !unpaid.has(pair)).map((pair) => [pair, "kit/rules/rooms.ts:1"] as const)
  ].map(([pair, place]) => `${place} folders that import each other, or do no more: ${pair}`)
}

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
