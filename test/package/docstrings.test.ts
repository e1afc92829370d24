/**
 * What the composed examples take from the package is documented where it is declared, and the API documents are made
 * from that.
 *
 * Why by the examples: they are what a composer reads first, and from there goes to the declaration or its page.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import ts from "typescript"
import { afterAll, describe, expect, it } from "vitest"
import { campaign } from "../../kit/data/random.ts"
import { run } from "../../kit/processes/tarball.ts"
import { root, trackedFiles } from "../../kit/rules/source.ts"
import { importsOf, parse, type SourceFile, visit } from "../../kit/rules/syntax.ts"

const own = "surreal-live-sidecar/"
const read = (path: string): SourceFile => parse(path, readFileSync(join(root, path), "utf8"))

/**
 * What a file takes of the package: the file that declares it, and the names, `Memory.ports` or `Database.layerMemory`
 * as paths.
 */
const takenBy = (file: SourceFile): ReadonlyArray<readonly [path: string, name: string]> => {
  const taken: Array<readonly [string, string]> = []
  visit(file.tree, (node) => {
    if (
      !ts.isImportDeclaration(node) ||
      !ts.isStringLiteral(node.moduleSpecifier) ||
      !node.moduleSpecifier.text.startsWith(own)
    )
      return
    const path = `src/${node.moduleSpecifier.text.slice(own.length)}.ts`
    const bindings = node.importClause?.namedBindings
    if (bindings !== undefined && ts.isNamedImports(bindings))
      for (const { name, propertyName } of bindings.elements) taken.push([path, (propertyName ?? name).text])
    const known =
      bindings === undefined
        ? []
        : ts.isNamedImports(bindings)
          ? bindings.elements.map(({ name }) => name.text)
          : [bindings.name.text]
    visit(file.tree, (used) => {
      if (
        !ts.isPropertyAccessExpression(used) ||
        !ts.isIdentifier(used.expression) ||
        !known.includes(used.expression.text)
      )
        return
      taken.push([
        path,
        bindings !== undefined && ts.isNamespaceImport(bindings)
          ? used.name.text
          : `${used.expression.text}.${used.name.text}`
      ])
    })
  })
  return taken
}

/**
 * Whether the declaration `name` of a file, or the static member `Class.member`, has a comment of its own; undefined
 * when there is none such.
 */
const documented = (file: SourceFile, name: string): boolean | undefined => {
  const [outer = "", member] = name.split(".")
  let found: boolean | undefined
  const has = (node: ts.Node): boolean =>
    ts.getJSDocCommentsAndTags(node).some((comment) => ts.isJSDoc(comment) && comment.comment !== undefined)
  for (const statement of file.tree.statements) {
    if (ts.isClassDeclaration(statement) && statement.name?.text === outer) {
      if (member === undefined) found = has(statement)
      else for (const each of statement.members) if (each.name?.getText(file.tree) === member) found = has(each)
    }
    if (
      ts.isVariableStatement(statement) &&
      statement.declarationList.declarations.some((each) => each.name.getText(file.tree) === outer)
    )
      found = has(statement)
    if (
      (ts.isInterfaceDeclaration(statement) ||
        ts.isTypeAliasDeclaration(statement) ||
        ts.isFunctionDeclaration(statement)) &&
      statement.name?.text === outer
    )
      found = has(statement)
  }
  return found
}

describe("the API documents", () => {
  for (const example of ["test/package/example/node.ts", "test/package/example/worker.ts"]) {
    it(`everything that ${example} takes from the package has a docstring`, () => {
      const taken = takenBy(read(example))
      expect(taken.length).toBeGreaterThanOrEqual(4)
      const states = taken.map(([path, name]) => [`${path} ${name}`, documented(read(path), name)] as const)
      expect(states.filter(([, state]) => state !== true)).toEqual([])
    })
  }
  it("every port and configuration has a docstring at its Tag", () => {
    const tag = /^export class (\w+) extends Context\.(?:Tag|Reference)\b/gm
    const tags = trackedFiles()
      .filter((path) => /^src\/(?:ports\/|ssp\/Config|scheduler\/Config).*\.ts$/.test(path))
      .map(read)
      .flatMap((file) => [...file.text.matchAll(tag)].map(([, name]) => [file, name ?? ""] as const))
    expect(tags.length).toBeGreaterThan(20)
    expect(
      tags.filter(([file, name]) => documented(file, name) !== true).map(([{ path }, name]) => `${path} ${name}`)
    ).toEqual([])
  })
  it("can fail: a declaration without a comment, and a missing declaration, are told apart", () => {
    const file = parse(
      "src/a.ts",
      "/** Said. */\nexport const a = 1\nexport const b = 2\n/** A class. */\nexport class C { static readonly d = 1\n/** Said. */\nstatic readonly e = 2 }"
    )
    expect(["a", "b", "C", "C.d", "C.e", "f", "C.f"].map((name) => documented(file, name))).toEqual([
      true,
      false,
      true,
      false,
      true,
      undefined,
      undefined
    ])
  })
  it("the pages are made from files that exist", () => {
    const { entryPoints, plugin } = JSON.parse(readFileSync(join(root, "typedoc.json"), "utf8")) as {
      readonly entryPoints: ReadonlyArray<string>
      readonly plugin: ReadonlyArray<string>
    }
    expect(
      [...entryPoints, ...plugin.filter((each) => each.startsWith("."))].filter(
        (path) => !existsSync(join(root, path.replace(/\/\*\.ts$/, "")))
      )
    ).toEqual([])
    expect(importsOf(read("test/package/example/node.ts")).length).toBeGreaterThan(10)
  })
  const out = mkdtempSync(join(tmpdir(), "svc-api-"))
  afterAll(() => rmSync(out, { recursive: true, force: true }))
  it.runIf(campaign)(
    "npm run api writes a page for each module, with the words of its file (takes a while: in a campaign)",
    async () => {
      const { code, out: printed } = await run(
        [process.execPath, "node_modules/typedoc/bin/typedoc", "--out", out],
        root
      )
      expect(code, printed.slice(-2000)).toBe(0)
      const page = readFileSync(join(out, "ssp/Memory/README.md"), "utf8")
      expect(page).toContain("A whole SSP in memory")
      expect(page).toContain("functions/ports.md")
      expect(readFileSync(join(out, "ports/Database/classes/Database.md"), "utf8")).toContain("layerSqlite")
    }
  )
})
