/**
 * A record change as the scheduler's log keeps it and as SSPs get it: one line of JSON, the decided version inside the
 * record (D4, D5).
 *
 * Built by joining texts: the record is encoded once, on arrival, and each delivery only adds the position to that
 * line, so a hundred deliveries cost no encoding.
 */
import { Either } from "effect"
import * as JsonText from "../jsonText.ts"
import { type Change, type ChangeRefused, decodeChange, type Schema, versionField } from "./change.ts"

/** Field of a change whose step continues at the next position. */
const continuing = ',"step_continues":true'

/**
 * Whether a log that ends with this line ends within a step: its writer died during the append, before any answer. A
 * record that ends with the same text does not match, because the record's closing brace follows.
 */
export const endsWithin = (line: string): boolean => line.endsWith(`${continuing}}`)

const tablePattern = /^\{"table":("(?:[^"\\]|\\.)*")/

/** The table of a line, which is its first field. */
export const tableOf = (line: string): string => {
  const name = tablePattern.exec(line)?.[1]
  if (name === undefined) throw new Error("broken invariant: a line of the log does not begin with its table")
  return JSON.parse(name) as string
}

/** A line that ends a step whose rest was never written: it deletes a record that never existed. */
export const stepEndLine = `{"table":"_svc_step","op":"DELETE","id":"_svc_step:end","record":{"${versionField}":0}}`

/** A change as it came, already checked by `decodeChange`. */
export interface RawChange {
  readonly table: string
  readonly id: string
  readonly record: { readonly [key: string]: unknown }
  readonly types?: { readonly [path: string]: string } | null
}

/** A change with the JSON it was read from, which the log stores. */
export interface ReceivedChange {
  readonly change: Change
  readonly raw: RawChange
}

/** Pairs the changes that `decodeChanges` read from a body with the elements of that body. */
export const receivedChangesOf = (changes: ReadonlyArray<Change>, json: unknown): ReadonlyArray<ReceivedChange> => {
  const elements = (Array.isArray(json) ? json : [json]) as ReadonlyArray<RawChange>
  return changes.map((change, i) => ({ change, raw: elements[i]! }))
}

/** A change made by the service itself, decoded as SSPs will decode it; a fault in it is a defect. */
export const fromRaw = (raw: RawChange, op: Change["op"], schema?: Schema): ReceivedChange => ({
  raw,
  change: Either.getOrThrowWith(
    decodeChange({ ...raw, op }, schema),
    ({ message }) => new Error(`broken invariant: a change of table ${raw.table} cannot be read: ${message}`)
  )
})

const recordText = (record: { readonly [key: string]: unknown }, version: number): string => {
  if (Object.hasOwn(record, versionField)) return JsonText.write({ ...record, [versionField]: version })
  const text = JsonText.write(record)
  return `${text.slice(0, -1)}${text.length > 2 ? "," : ""}"${versionField}":${version}}`
}

/**
 * The line for the log, with only the specification's fields and the types. `continues`: the next line belongs to the
 * same step.
 */
export const toLine = (
  raw: RawChange,
  op: Change["op"],
  version: number,
  assignee: string | undefined,
  continues = false
): string => {
  const record = op === "DELETE" ? `{"${versionField}":${version}}` : recordText(raw.record, version)
  const types = raw.types === undefined || raw.types === null ? "" : `,"types":${JSON.stringify(raw.types)}`
  const job = assignee === undefined ? "" : `,"job_assignee":${JSON.stringify(assignee)}`
  return `{"table":${JSON.stringify(raw.table)},"op":"${op}","id":${JSON.stringify(raw.id)},"record":${record}${types}${job}${continues ? continuing : ""}}`
}

/** The event for an SSP: the line with its position, and with its trace if that is known and well-formed. */
export const forwardedLine = (line: string, seq: number, logId: string, epoch: number, traceparent?: string): string =>
  `${line.slice(0, -1)},"seq":${seq},"log_id":${JSON.stringify(logId)},"epoch":${epoch}${traceparent === undefined ? "" : `,"traceparent":"${traceparent}"`}}`

const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"(:\d+)?|[{}[\]]/g

/**
 * The change of a line for an SSP without extensions: four fields, and a record without its version. Such an SSP runs
 * every pending job it sees, so a job of another SSP is shown as `processing` (D82).
 */
export const plainChangeOf = (line: string, ssp: string): string => {
  let depth = 0
  let version: readonly [start: number, end: number] = [0, 0]
  let end = line.length
  for (const { 0: text, 1: count, index } of line.matchAll(tokens)) {
    if (text === "{" || text === "[") depth++
    // Before the record there is only text, so the record is the first object to end.
    else if ((text === "}" || text === "]") && --depth === 1) {
      end = index + 1
      break
    } else if (depth === 2 && count !== undefined && text.startsWith(`"${versionField}"`))
      version = [index, index + text.length]
  }
  const before = line.slice(0, version[0])
  const after = line.slice(version[1], end)
  const plain = after.startsWith(",") ? `${before}${after.slice(1)}}` : `${before.replace(/,$/, "")}${after}}`
  const rest = line.slice(end)
  if (!rest.includes('"job_assignee":')) return plain
  const { job_assignee = ssp } = JSON.parse(`{${rest.slice(1)}`) as { readonly job_assignee?: string }
  return job_assignee === ssp ? plain : JsonText.write(processing(JsonText.parse(plain) as RawChange))
}

const processing = (change: RawChange): RawChange => ({
  ...change,
  record: { ...change.record, status: "processing" }
})

interface Logged {
  readonly change: Change
  readonly version: number
}

/** Decodes a line, typed as on arrival, by the same declarations; Left: not a line of this format. */
export const ofLine = (line: string, schema?: Schema): Either.Either<Logged, ChangeRefused> => {
  const json = JsonText.parse(line) as { readonly record?: { readonly [key: string]: unknown } }
  return Either.map(decodeChange(json, schema), (change) => ({
    change,
    version: Number(json.record?.[versionField] ?? 0)
  }))
}
