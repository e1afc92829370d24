/**
 * The files of the outbox: `svc.yml` and the OpenAPI documents its backends name, references between files resolved.
 *
 * Only files are read: a document that names an address is refused, because reading configuration must not call anybody.
 */
import { $RefParser } from "@apidevtools/json-schema-ref-parser"
import { dirname, resolve } from "node:path"
import * as ServiceFile from "../core/serviceFile.ts"
import { parse } from "./ConfigFile.ts"

export interface BackendFiles extends ServiceFile.OutboxBackend {
  readonly document: unknown
}

export type Read = { readonly backends: ReadonlyArray<BackendFiles> } | { readonly faults: ReadonlyArray<string> }

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message.split("\n")[0] ?? "" : String(error))

/** Everything in one document: references to other files become references within it. */
const bundled = (path: string): Promise<unknown> => new $RefParser().bundle(path, { resolve: { http: false } })

export const read = async (path: string): Promise<Read> => {
  const file = parse(path)
  if (file.fault !== undefined) return { faults: [`${path}: ${file.fault}`] }
  const faults: Array<string> = []
  const backends: Array<BackendFiles> = []
  for (const backend of ServiceFile.outboxBackends(file.content, process.env, faults)) {
    try {
      backends.push({ ...backend, document: await bundled(resolve(dirname(path), backend.spec)) })
    } catch (error) {
      faults.push(`backends.${backend.name}.spec: ${backend.spec} cannot be read: ${reasonOf(error)}`)
    }
  }
  return faults.length > 0 ? { faults: faults.map((fault) => `${path}: ${fault}`) } : { backends }
}
