/**
 * Reads the files of the outbox: `svc.yml`, the OpenAPI documents its backends name, with references between files
 * resolved, and the schemas of their job tables.
 *
 * Only files are read: a document that names a URL is refused, because reading configuration must not open connections.
 */
import { dirname, resolve } from "node:path"
import { firstLineOf } from "../core/reason.ts"
import * as ServiceFile from "../core/settings/serviceFile.ts"
import { readText } from "./ConfigFile.ts"
import { bundledDocument } from "./documentFiles.ts"
import { parse } from "./yamlFile.ts"

interface BackendFiles extends ServiceFile.OutboxBackend {
  readonly document: unknown
}

type Read = { readonly backends: ReadonlyArray<BackendFiles> } | { readonly faults: ReadonlyArray<string> }

export const read = async (path: string): Promise<Read> => {
  const file = parse(path)
  if (file.fault !== undefined) return { faults: [`${path}: ${file.fault}`] }
  const faults: Array<string> = []
  const backends: Array<BackendFiles> = []
  for (const backend of ServiceFile.outboxBackends(file.content, process.env, faults)) {
    try {
      backends.push({
        ...backend,
        document: await bundledDocument(resolve(dirname(path), backend.spec), resolve(dirname(path)))
      })
    } catch (error) {
      faults.push(`backends.${backend.name}.spec: ${backend.spec} cannot be read: ${firstLineOf(error)}`)
    }
  }
  return faults.length > 0 ? { faults: faults.map((fault) => `${path}: ${fault}`) } : { backends }
}

interface SchemaFile extends ServiceFile.OutboxBackend {
  readonly text: string
}

type Schemas =
  | { readonly schemas: ReadonlyArray<SchemaFile>; readonly tables: ReadonlyArray<string> }
  | { readonly faults: ReadonlyArray<string> }

/** Whether a schema defines this table, however its name is quoted. */
const defines = (text: string, table: string): boolean =>
  [...text.matchAll(/\bDEFINE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+|OVERWRITE\s+)?(`[^`]*`|⟨[^⟩]*⟩|\w+)/gi)].some(
    ([, name = ""]) => name.replace(/^[`⟨]|[`⟩]$/g, "") === table
  )

/** The schema file of each backend; job tables named without a backend have none. */
export const schemas = (path: string): Schemas => {
  const file = parse(path)
  if (file.fault !== undefined) return { faults: [`${path}: ${file.fault}`] }
  const faults: Array<string> = []
  const found: Array<SchemaFile> = []
  for (const backend of ServiceFile.outboxBackends(file.content, process.env, faults)) {
    const { name, schema, table } = backend
    const write = `\`jobs schema --table ${table}\` prints one to begin with`
    const read = readText(resolve(dirname(path), schema))
    if ("fault" in read)
      faults.push(`backends.${name}.method.schema: ${schema} cannot be read: ${read.fault}; ${write}`)
    else if (defines(read.text, table)) found.push({ ...backend, text: read.text })
    else faults.push(`backends.${name}.method.schema: ${schema} has no DEFINE TABLE ${table}; ${write}`)
  }
  const known = new Set(found.map(({ table }) => table))
  return faults.length > 0
    ? { faults: faults.map((fault) => `${path}: ${fault}`) }
    : { schemas: found, tables: ServiceFile.tableNames(file.content).filter((table) => !known.has(table)) }
}
