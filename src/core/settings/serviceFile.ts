/**
 * The configuration file `svc.yml` (D5a): which keys it may have, and the job tables and backends it describes.
 *
 * One file can serve SSP, scheduler and clients, so keys of the others are known here too; an unknown key is a
 * fault, because a misspelt key would otherwise silently do nothing.
 */

import { isMapping, type Mapping } from "../typeGuards.ts"
import { suggestion } from "./settings.ts"

/** The backend of a job table. */
export interface JobTable {
  readonly table: string
  readonly name: string
  readonly baseUrl: string
  /** Bearer token for the backend. */
  readonly authToken: string | undefined
  /** File with the token, relative to this one, and the key that names it. */
  readonly authTokenFile: { readonly key: string; readonly path: string } | undefined
  readonly timeoutMs: number
  readonly concurrency: number
}

type Token = Pick<JobTable, "authToken" | "authTokenFile">

export interface ServiceFile {
  readonly jobTables: ReadonlyArray<JobTable>
  /** Tables without a backend: the scheduler's form of `job_tables`. */
  readonly tablesWithoutBackend: ReadonlyArray<string>
}

/** Keys of the scheduler (specification, scheduler configuration). */
export const schedulerKeys: ReadonlyArray<string> = [
  "load_balance",
  "heartbeat_interval_ms",
  "heartbeat_timeout_ms",
  "bootstrap_chunk_size",
  "bootstrap_timeout_secs",
  "ingest_host",
  "ingest_port",
  "replica_db_path",
  "wal_path",
  "ssp_poll_interval_ms",
  "max_buffer_per_ssp",
  "snapshot_update_interval_secs"
]

const dbKeys = ["url", "namespace", "database", "username", "password"]
const topKeys = ["db", "job_tables", "backends", ...schedulerKeys]

const defaultTimeoutMs = 30_000
const defaultConcurrency = 4

/** Keys of a job table and what they mean, for documents. */
export const jobTableKeys = {
  name: "Name of the backend.",
  base_url: "Its address; a job's path is added.",
  auth_token: "Bearer token for it.",
  auth_token_file: "File that holds the token, instead; read again on SIGHUP.",
  timeout_ms: `Longest time of a call, ${defaultTimeoutMs} when absent.`,
  concurrency: `Calls at once, ${defaultConcurrency} when absent.`
} as const

/** Keys of a backend and their meanings; a part before a dot is a mapping. */
export const backendKeys = {
  type: "`http`, nothing else.",
  baseUrl: "Its address; a job's path is added.",
  spec: "Its OpenAPI document, 3.0 or 3.1.",
  "auth.type": "`token`, nothing else; without `auth` no token is sent.",
  "auth.token": "Bearer token for it.",
  "auth.token_file": "File that holds the token, instead; read again on SIGHUP.",
  "method.type": "`outbox`, nothing else.",
  "method.table": "Its job table.",
  "method.schema": "File that defines the table; `jobs schema` prints it, `--check-config` reads it."
} as const

const below = (key: string): ReadonlyArray<string> =>
  Object.keys(backendKeys)
    .filter((each) => each.startsWith(`${key}.`))
    .map((each) => each.slice(key.length + 1))
const jobKeys = Object.keys(jobTableKeys)
const backendTopKeys = [...new Set(Object.keys(backendKeys).map((key) => key.split(".")[0] ?? ""))]

/** Reads one mapping, collecting faults with the full key path. */
class Reader {
  readonly map: Mapping

  constructor(
    readonly path: string,
    value: unknown,
    keys: ReadonlyArray<string> | undefined,
    readonly faults: Array<string>
  ) {
    if (!isMapping(value)) this.fault("", `must be a mapping`)
    this.map = isMapping(value) ? value : {}
    if (keys === undefined) return
    for (const key of Object.keys(this.map)) {
      if (!keys.includes(key)) this.fault(key, `is not a known key${suggestion(key, keys)} Known: ${keys.join(", ")}`)
    }
  }

  at(key: string): string {
    return key === "" ? this.path : this.path === "" ? key : `${this.path}.${key}`
  }

  fault(key: string, what: string): void {
    this.faults.push(`${this.at(key) === "" ? "the file" : this.at(key)} ${what}`)
  }

  /** Text; `required` makes a missing key a fault. */
  text(key: string, required: boolean): string | undefined {
    const value = this.map[key]
    if (value === undefined || value === null) {
      if (required) this.fault(key, "is missing; must be text")
      return undefined
    }
    if (typeof value === "string" && value !== "") return value
    this.fault(key, "must be text that is not empty")
    return undefined
  }

  oneOf(key: string, only: string): void {
    const value = this.text(key, true)
    if (value !== undefined && value !== only)
      this.fault(key, `is ${JSON.stringify(value)}; must be ${only}, nothing else is supported`)
  }

  url(key: string): string | undefined {
    const value = this.text(key, true)
    if (value === undefined) return undefined
    if (URL.canParse(value) && /^https?:\/\//i.test(value)) return value
    this.fault(key, "is not shown here; must be an http:// or https:// address")
    return undefined
  }

  integer(key: string, fallback: number, max: number): number {
    const value = this.map[key]
    if (value === undefined) return fallback
    if (typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= max) return value
    this.fault(key, `is ${JSON.stringify(value)}; must be a whole number from 1 to ${max}`)
    return fallback
  }
}

const noToken: Token = { authToken: undefined, authTokenFile: undefined }

/** A token, or the file that has it: exactly one. */
const tokenOf = (reader: Reader, key: string, required: boolean): Token => {
  const fileKey = `${key}_file`
  const path = reader.text(fileKey, false)
  const authToken = reader.text(key, required && path === undefined)
  if (authToken !== undefined && path !== undefined) reader.fault(fileKey, `is set beside ${key}; set one of them`)
  return { authToken, authTokenFile: path === undefined ? undefined : { key: reader.at(fileKey), path } }
}

const jobTable = (table: string, value: unknown, faults: Array<string>): JobTable | undefined => {
  const reader = new Reader(`job_tables.${table}`, value, jobKeys, faults)
  if (!isMapping(value)) return undefined
  const name = reader.text("name", true)
  const baseUrl = reader.url("base_url")
  const token = tokenOf(reader, "auth_token", false)
  const timeoutMs = reader.integer("timeout_ms", defaultTimeoutMs, 3_600_000)
  const concurrency = reader.integer("concurrency", defaultConcurrency, 1000)
  return name === undefined || baseUrl === undefined
    ? undefined
    : { table, name, baseUrl, ...token, timeoutMs, concurrency }
}

const backend = (name: string, value: unknown, faults: Array<string>): JobTable | undefined => {
  const reader = new Reader(`backends.${name}`, value, backendTopKeys, faults)
  if (!isMapping(value)) return undefined
  reader.oneOf("type", "http")
  const baseUrl = reader.url("baseUrl")
  reader.text("spec", true)
  const method = new Reader(reader.at("method"), reader.map["method"], below("method"), faults)
  method.oneOf("type", "outbox")
  const table = method.text("table", true)
  method.text("schema", true)
  let token = noToken
  if (reader.map["auth"] !== undefined) {
    const auth = new Reader(reader.at("auth"), reader.map["auth"], below("auth"), faults)
    auth.oneOf("type", "token")
    token = tokenOf(auth, "token", true)
  }
  return baseUrl === undefined || table === undefined
    ? undefined
    : { table, name, baseUrl, ...token, timeoutMs: defaultTimeoutMs, concurrency: defaultConcurrency }
}

/** The tables of `job_tables`, in either form. */
export const tableNames = (content: unknown): ReadonlyArray<string> => {
  const jobs = isMapping(content) ? content["job_tables"] : undefined
  return Array.isArray(jobs)
    ? jobs.filter((table) => typeof table === "string")
    : isMapping(jobs)
      ? Object.keys(jobs)
      : []
}

/** A backend for clients of the outbox: its job table and its API document. */
export interface OutboxBackend {
  readonly name: string
  readonly table: string
  /** Path of the document, relative to the file. */
  readonly spec: string
  readonly schema: string
}

/** The backends of the parsed file. Tokens are not read: clients have none. */
export const outboxBackends = (
  content: unknown,
  env: { readonly [name: string]: string | undefined },
  faults: Array<string>
): ReadonlyArray<OutboxBackend> => {
  const top = isMapping(content) ? content["backends"] : undefined
  if (top === undefined) return []
  const map = new Reader("backends", top, undefined, faults).map
  return Object.entries(map).flatMap(([name, value]) => {
    const { auth: _, ...rest } = isMapping(value) ? value : {}
    const reader = new Reader(
      `backends.${name}`,
      isMapping(value) ? interpolate(rest, env, faults, `backends.${name}`) : value,
      backendTopKeys,
      faults
    )
    if (!isMapping(value)) return []
    const method = new Reader(reader.at("method"), reader.map["method"], below("method"), faults)
    const table = method.text("table", true),
      schema = method.text("schema", true),
      spec = reader.text("spec", true)
    return table === undefined || schema === undefined || spec === undefined ? [] : [{ name, table, spec, schema }]
  })
}

/** Replaces `${NAME}` in every text by the environment variable; an unset one is a fault. */
export const interpolate = (
  value: unknown,
  env: { readonly [name: string]: string | undefined },
  faults: Array<string>,
  path = ""
): unknown => {
  if (typeof value === "string") {
    return value.replace(/\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g, (_, name: string) => {
      const found = env[name]
      if (found === undefined) faults.push(`${path} refers to \${${name}}, which is not set in the environment`)
      return found ?? "unset"
    })
  }
  if (Array.isArray(value)) return value.map((item, index) => interpolate(item, env, faults, `${path}[${index}]`))
  if (!isMapping(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      key,
      interpolate(item, env, faults, path === "" ? key : `${path}.${key}`)
    ])
  )
}

/** Reads the SSP's part of the parsed file, after {@link interpolate}; other processes check their own values. */
export const read = (content: unknown, faults: Array<string>): ServiceFile => {
  if (content === null || content === undefined) return { jobTables: [], tablesWithoutBackend: [] }
  const top = new Reader("", content, topKeys, faults)
  if (top.map["db"] !== undefined) new Reader("db", top.map["db"], dbKeys, faults)
  const tables = new Map<string, JobTable>()
  const without: Array<string> = []
  const keep = (entry: JobTable | undefined): void => {
    if (entry !== undefined) tables.set(entry.table, entry)
  }
  if (top.map["backends"] !== undefined) {
    const backends = new Reader("backends", top.map["backends"], undefined, faults)
    for (const [name, value] of Object.entries(backends.map)) keep(backend(name, value, faults))
  }
  const jobs = top.map["job_tables"]
  if (Array.isArray(jobs)) {
    for (const [index, table] of jobs.entries()) {
      if (typeof table !== "string" || table === "") faults.push(`job_tables[${index}] must be the name of a table`)
      else if (!tables.has(table)) without.push(table)
    }
  } else if (jobs !== undefined) {
    const map = new Reader("job_tables", jobs, undefined, faults)
    for (const [table, value] of Object.entries(map.map)) keep(jobTable(table, value, faults))
  }
  return { jobTables: [...tables.values()], tablesWithoutBackend: without }
}
