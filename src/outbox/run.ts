/**
 * `db.run(backend, path, payload, options?)` (D40): checks a call against the backend's OpenAPI document and writes its
 * job record.
 *
 * The client's own connection writes the record, so its permissions decide; a record that they suppress is an error
 * here, because a job without a record is never missed. The checked value is the written one: the payload as JSON.
 */
import * as JsonText from "../core/jsonText.ts"
import * as Ids from "../core/surql/values/recordId.ts"
import type { AnyBackends, Connection, Outbox, RunOptions } from "./call.ts"
import * as Document from "./document.ts"
import { type Fault, InvalidCall, JobNotCreated, OutboxConfigInvalid, UnknownBackend, UnknownRoute } from "./errors.ts"
import { Validator } from "./validate.ts"

/** A backend of the configuration with the content of its OpenAPI file, references to other files resolved. */
export interface Source {
  readonly name: string
  readonly table: string
  /** Name of the OpenAPI file in the configuration, for faults. */
  readonly spec: string
  readonly document: unknown
}

interface Ready {
  readonly table: string
  readonly document: Document.ApiDocument
  readonly validator: Validator
}

/** Faults of the backends' documents. */
export const faultsOf = (sources: ReadonlyArray<Source>): ReadonlyArray<Fault> => read(sources).faults

const read = (
  sources: ReadonlyArray<Source>
): { readonly ready: ReadonlyMap<string, Ready>; readonly faults: ReadonlyArray<Fault> } => {
  const faults: Array<Fault> = []
  const ready = new Map<string, Ready>()
  for (const { document: content, name, spec, table } of sources) {
    const at = `backends.${name}.spec`
    const document = Document.read(content)
    if (document._tag === "Left") {
      faults.push({ path: at, reason: `(${spec}) ${document.left}` })
      continue
    }
    const validator = new Validator(document.right)
    faults.push(
      ...validator
        .faults(document.right.routes)
        .map(({ path, reason }) => ({ path: at, reason: `(${spec}) ${path} ${reason}` }))
    )
    ready.set(name, { table, document: document.right, validator })
  }
  return { ready, faults }
}

const prepared = (sources: ReadonlyArray<Source>): ReadonlyMap<string, Ready> => {
  const { faults, ready } = read(sources)
  if (faults.length > 0) throw OutboxConfigInvalid.of(faults)
  return ready
}

const optionFaults = ({
  assignedTo,
  max_retries: maxRetries,
  retry_strategy: strategy,
  ...rest
}: RunOptions): ReadonlyArray<Fault> => {
  const faults: Array<Fault> = Object.keys(rest).map((key) => ({
    path: `options.${key}`,
    reason: "is no option; known: assignedTo, max_retries, retry_strategy"
  }))
  if (assignedTo !== undefined && (typeof assignedTo !== "string" || Ids.parse(assignedTo) === undefined))
    faults.push({ path: "options.assignedTo", reason: "must be a record id as text, `table:key`" })
  if (maxRetries !== undefined && !(Number.isSafeInteger(maxRetries) && maxRetries >= 0))
    faults.push({ path: "options.max_retries", reason: "must be a whole number from 0" })
  if (strategy !== undefined && strategy !== "linear" && strategy !== "exponential")
    faults.push({ path: "options.retry_strategy", reason: "must be linear or exponential" })
  return faults
}

/**
 * The payload as JSON carries it. `rounded`: the same with numbers for bigints, which schemas do not know, for
 * validation.
 */
const asJson = (payload: unknown): { readonly json: unknown; readonly rounded: unknown } | Fault => {
  try {
    const text = JsonText.write(payload)
    return text === undefined
      ? { path: "payload", reason: "must be JSON" }
      : { json: JsonText.parse(text), rounded: JSON.parse(text) as unknown }
  } catch (error) {
    return { path: "payload", reason: `is not JSON: ${error instanceof Error ? error.message : String(error)}` }
  }
}

const create = async (
  db: Connection,
  table: string,
  path: string,
  payload: unknown,
  { assignedTo, max_retries: maxRetries = 3, retry_strategy: strategy = "linear" }: RunOptions
): Promise<string> => {
  const link = assignedTo === undefined ? "" : "assigned_to = type::record($assignedTo), "
  const statement = `CREATE type::table($table) SET ${link}path = $path, payload = $payload, retries = 0, max_retries = $maxRetries, retry_strategy = $strategy, status = 'pending', errors = [],
    updated_at = time::now(), created_at = time::now() RETURN VALUE <string> id`
  const answers = await Promise.resolve(
    db.query(statement, {
      table,
      path,
      payload,
      maxRetries,
      strategy,
      ...(assignedTo === undefined ? {} : { assignedTo })
    })
  ).catch((cause: unknown) => {
    throw new JobNotCreated({
      table,
      cause,
      message: `the database refused the job record in ${table}: ${cause instanceof Error ? cause.message : String(cause)}`
    })
  })
  const [ids] = answers
  const id: unknown = Array.isArray(ids) ? ids[0] : ids
  if (typeof id === "string") return id
  throw new JobNotCreated({
    table,
    message: `the database made no job record in ${table} and gave no reason: its permissions do not let this user create it${assignedTo === undefined ? " (no options.assignedTo was given)" : ` for ${assignedTo}`}`
  })
}

/** Makes the outbox of these backends. Throws {@link OutboxConfigInvalid} if a document cannot be used. */
export const make = <T = AnyBackends>(db: Connection, sources: ReadonlyArray<Source>): Outbox<T> => {
  const backends = prepared(sources)
  return {
    run: async (backend, path, payload, options = {}) => {
      const found = backends.get(backend)
      if (found === undefined) throw UnknownBackend.of(String(backend), [...backends.keys()])
      const route = Document.match(found.document, String(path))
      if (route === undefined)
        throw UnknownRoute.of(
          backend,
          String(path),
          found.document.routes.map((known) => known.path)
        )
      const read = asJson(payload)
      const faults = "json" in read ? found.validator.check(route, read.rounded) : [read]
      const all = [...faults, ...optionFaults(options)]
      if (all.length > 0 || !("json" in read)) throw InvalidCall.of(all)
      return await create(db, found.table, path, read.json, options)
    }
  }
}
