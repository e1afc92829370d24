/**
 * The project's own source as data: syntax trees, imports, functions with their length.
 *
 * Why: the house rules are tests (test/tidy.test.ts), and rules read better when the reading of files is elsewhere.
 * The TypeScript parser does the parsing, so a rule never trips over a string or a comment that looks like code.
 */
import { readFileSync } from "node:fs"
import { join, posix } from "node:path"
import ts from "typescript"
import { root, trackedFiles } from "./source.ts"

export interface SourceFile {
  /** Path from the root of the project, with `/`. */
  readonly path: string
  readonly text: string
  readonly tree: ts.SourceFile
}

export const parse = (path: string, text: string): SourceFile => ({
  path,
  text,
  tree: ts.createSourceFile(path, text, ts.ScriptTarget.ES2022, true)
})

/** Every TypeScript file of the project. */
export const sourceFiles = (): ReadonlyArray<SourceFile> =>
  trackedFiles()
    .filter((path) => path.endsWith(".ts"))
    .map((path) => parse(path, readFileSync(join(root, path), "utf8")))

export const lineOf = (file: SourceFile, node: ts.Node): number =>
  file.tree.getLineAndCharacterOfPosition(node.getStart(file.tree)).line + 1

export const visit = (node: ts.Node, see: (node: ts.Node) => void): void => {
  see(node)
  ts.forEachChild(node, (child) => visit(child, see))
}

export interface Import {
  readonly specifier: string
  /** Names taken, by their name in the other module; `["*"]` for a namespace, `["default"]` for a default. */
  readonly names: ReadonlyArray<string>
  readonly line: number
}

const importedNames = (clause: ts.ImportClause | undefined): ReadonlyArray<string> => {
  if (clause === undefined) return []
  const names: Array<string> = clause.name === undefined ? [] : ["default"]
  const bindings = clause.namedBindings
  if (bindings === undefined) return names
  if (ts.isNamespaceImport(bindings)) return [...names, "*"]
  return [...names, ...bindings.elements.map((element) => (element.propertyName ?? element.name).text)]
}

/** What a file takes from elsewhere: imports, dynamic imports, and `new URL("./x.ts", import.meta.url)`. */
export const importsOf = (file: SourceFile): ReadonlyArray<Import> => {
  const found: Array<Import> = []
  visit(file.tree, (node) => {
    if (ts.isImportDeclaration(node) && ts.isStringLiteral(node.moduleSpecifier)) {
      found.push({
        specifier: node.moduleSpecifier.text,
        names: importedNames(node.importClause),
        line: lineOf(file, node)
      })
    } else if (
      ts.isExportDeclaration(node) &&
      node.moduleSpecifier !== undefined &&
      ts.isStringLiteral(node.moduleSpecifier)
    ) {
      found.push({ specifier: node.moduleSpecifier.text, names: ["*"], line: lineOf(file, node) })
    } else if (
      ts.isImportTypeNode(node) &&
      ts.isLiteralTypeNode(node.argument) &&
      ts.isStringLiteral(node.argument.literal)
    ) {
      found.push({ specifier: node.argument.literal.text, names: ["*"], line: lineOf(file, node) })
    } else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      const target = node.arguments[0]
      if (target !== undefined && ts.isStringLiteral(target))
        found.push({ specifier: target.text, names: ["*"], line: lineOf(file, node) })
    } else if (ts.isNewExpression(node) && node.expression.getText(file.tree) === "URL") {
      const target = node.arguments?.[0]
      if (
        target !== undefined &&
        ts.isStringLiteral(target) &&
        target.text.endsWith(".ts") &&
        target.text.startsWith(".")
      ) {
        found.push({ specifier: target.text, names: ["*"], line: lineOf(file, node) })
      }
    }
  })
  return found
}

/** The project file a relative specifier means, from the root; undefined for a package. */
export const resolveImport = (from: string, specifier: string): string | undefined =>
  specifier.startsWith(".") ? posix.normalize(posix.join(posix.dirname(from), specifier)) : undefined

/** Identifiers that refer to a global: not declared in the file, not a property or key. */
export const globalsOf = (file: SourceFile): ReadonlyArray<{ readonly name: string; readonly node: ts.Identifier }> => {
  const declared = new Set<string>()
  visit(file.tree, (node) => {
    const named =
      ts.isVariableDeclaration(node) ||
      ts.isParameter(node) ||
      ts.isBindingElement(node) ||
      ts.isFunctionDeclaration(node) ||
      ts.isClassDeclaration(node) ||
      ts.isImportSpecifier(node) ||
      ts.isImportClause(node) ||
      ts.isNamespaceImport(node)
    if (named && node.name !== undefined && ts.isIdentifier(node.name)) declared.add(node.name.text)
  })
  const found: Array<{ name: string; node: ts.Identifier }> = []
  visit(file.tree, (node) => {
    if (!ts.isIdentifier(node) || declared.has(node.text) || isLabel(node)) return
    found.push({ name: node.text, node })
  })
  return found
}

const isLabel = (node: ts.Identifier): boolean => {
  const parent = node.parent
  if (ts.isPropertyAccessExpression(parent)) return parent.name === node
  if (ts.isQualifiedName(parent)) return parent.right === node
  if (ts.isShorthandPropertyAssignment(parent)) return false
  const keyed =
    ts.isPropertyAssignment(parent) ||
    ts.isMethodDeclaration(parent) ||
    ts.isPropertySignature(parent) ||
    ts.isMethodSignature(parent) ||
    ts.isPropertyDeclaration(parent) ||
    ts.isGetAccessor(parent) ||
    ts.isSetAccessor(parent)
  return (
    (keyed && parent.name === node) ||
    (ts.isBindingElement(parent) && parent.propertyName === node) ||
    ts.isTypeReferenceNode(parent)
  )
}

/** Text of a string or template literal, with `${}` parts left out; undefined for anything else. */
export const literalText = (node: ts.Expression | undefined): string | undefined => {
  if (node === undefined) return undefined
  if (ts.isStringLiteralLike(node)) return node.text
  if (ts.isTemplateExpression(node))
    return node.head.text + node.templateSpans.map((span) => span.literal.text).join("")
  return undefined
}
