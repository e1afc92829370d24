/**
 * Exports that no other file takes: a name that is exported is read as a promise to other rooms.
 */
import ts from "typescript"
import type { Faults } from "./rooms.ts"
import { lineOf, resolveImport, type SourceFile, visit } from "./syntax.ts"

/** Rooms that others import from: what they export is the package's own interface. */
const offered = /^src\/(?:[^/]+\.ts$|(?:ports|protocol|client|views|outbox|testing|programs)\/)/

/** Types that no file imports and the compiler writes into the declarations of another one. */
const inDeclarations: ReadonlySet<string> = new Set(["src/node/streams/openStreams.ts NoStream"])

/** The name under which others of the package import a module of it. */
const packageName = "surreal-live-sidecar/"

const targetOf = (from: string, specifier: string): string | undefined =>
  specifier.startsWith(packageName)
    ? `src/${specifier.slice(packageName.length)}.ts`
    : resolveImport(from, specifier)?.replace(/\.js$/, ".ts")

/** Names of an imported namespace that a file reads; `*` where it hands the namespace on as a whole. */
const namesRead = (file: SourceFile, alias: string): ReadonlyArray<string> => {
  const names: Array<string> = []
  visit(file.tree, (node) => {
    if (!ts.isIdentifier(node) || node.text !== alias || ts.isNamespaceImport(node.parent)) return
    const { parent } = node
    if (ts.isPropertyAccessExpression(parent))
      return void (parent.expression === node ? names.push(parent.name.text) : undefined)
    if (ts.isQualifiedName(parent)) return void (parent.left === node ? names.push(parent.right.text) : undefined)
    if (ts.isPropertyAssignment(parent) && parent.name === node) return
    names.push("*")
  })
  return names
}

/** What each file is asked for, by others: names, or `*` for all. */
const takenOf = (files: ReadonlyArray<SourceFile>): ReadonlyMap<string, ReadonlySet<string>> => {
  const taken = new Map<string, Set<string>>()
  const take = (file: SourceFile, specifier: string, names: ReadonlyArray<string>): void => {
    const target = targetOf(file.path, specifier)
    if (target === undefined) return
    const known = taken.get(target) ?? new Set()
    for (const name of names) known.add(name)
    taken.set(target, known)
  }
  for (const file of files)
    visit(file.tree, (node) => {
      if (ts.isImportDeclaration(node) && ts.isStringLiteral(node.moduleSpecifier)) {
        const bindings = node.importClause?.namedBindings
        if (bindings === undefined) return
        const names = ts.isNamespaceImport(bindings)
          ? namesRead(file, bindings.name.text)
          : bindings.elements.map(({ name, propertyName }) => (propertyName ?? name).text)
        take(file, node.moduleSpecifier.text, names)
      } else if (
        (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) ||
        (ts.isNewExpression(node) && node.expression.getText(file.tree) === "URL")
      ) {
        const target = node.arguments?.[0]
        if (target !== undefined && ts.isStringLiteral(target)) take(file, target.text, ["*"])
      } else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument))
        take(file, node.argument.literal.getText(file.tree).slice(1, -1), ["*"])
    })
  return taken
}

const nameOf = (statement: ts.Statement): ReadonlyArray<ts.Node> =>
  ts.isVariableStatement(statement)
    ? statement.declarationList.declarations.map(({ name }) => name)
    : (ts.isFunctionDeclaration(statement) ||
          ts.isClassDeclaration(statement) ||
          ts.isInterfaceDeclaration(statement) ||
          ts.isTypeAliasDeclaration(statement)) &&
        statement.name !== undefined
      ? [statement.name]
      : []

/** Names that a page's table of modules promises, as `path name`. */
const promisedIn = (page: string): ReadonlySet<string> =>
  new Set(
    [...page.matchAll(/^\| `\.\.\.\/([\w/]+)` \| ((?:`\w+`(?:, )?)+) \|/gm)].flatMap(([, module, names = ""]) =>
      (names.match(/\w+/g) ?? []).map((name) => `src/${module}.ts ${name}`)
    )
  )

/**
 * Exports of `src` that only their own file reads, but for rooms that are the package's interface, and names that
 * `page` (docs/compose.md) promises.
 */
export const unused = (files: ReadonlyArray<SourceFile>, page: string): Faults => {
  const taken = takenOf(files)
  const kept = new Set([...inDeclarations, ...promisedIn(page)])
  const faults: Array<string> = []
  for (const file of files) {
    if (!file.path.startsWith("src/") || offered.test(file.path)) continue
    const names = taken.get(file.path)
    if (names?.has("*") === true) continue
    for (const statement of file.tree.statements) {
      const isExported =
        ts.canHaveModifiers(statement) &&
        ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) === true
      if (!isExported) continue
      for (const name of nameOf(statement))
        if (names?.has(name.getText(file.tree)) !== true && !kept.has(`${file.path} ${name.getText(file.tree)}`))
          faults.push(
            `${file.path}:${lineOf(file, name)} exports ${name.getText(file.tree)}, which no other file reads`
          )
    }
  }
  return faults
}
