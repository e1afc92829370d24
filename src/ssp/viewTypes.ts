/**
 * Types of the views service: registrations, answers, stream events, errors.
 */

import { Data } from "effect"
import type { Figures } from "../core/ivm/holdings.ts"
import type { PlanRow } from "../core/ivm/query/explain.ts"
import type { RowError } from "../core/ivm/view/view.ts"
import type { Change } from "../core/record/change.ts"

export interface IngestAnswer {
  readonly views_affected: number
  readonly edges_updated: number
}

export type Format = "flat" | "tree" | "streaming"

/** Parses the name of a format; null for an unknown one. */
export const formatNamed = (text: string): Format | null =>
  text === "tree" || text === "streaming" || text === "flat" ? text : null

/** Format of a result; flat if none is named (D8). */
export const formatGiven = (text: string): Format => formatNamed(text) ?? "flat"

/** Formats of a stream: those of results, and `rows`, rows with their changes (D50). */
export type StreamFormat = Format | "rows"

/** A view registration, checked for shape and typed, not yet compiled. */
export interface ViewRegistration {
  /** The id as the request gave it; answers show it unchanged. */
  readonly id: string
  readonly surql: string
  readonly clientId: string
  readonly ttlMs: number
  /** Parameters as JSON; typed by rule 3 of D1 when the query is compiled. */
  readonly params: { readonly [name: string]: unknown } | null
  /** Unix milliseconds. */
  readonly lastActiveAtMs: number
  /** Null if the registration names none; results are flat then. */
  readonly format: Format | null
  /** Number of the scheduler's assignment (D21); undefined if a client registered the view here. */
  readonly assignment?: number | undefined
  /** Whether only the time to live of a served view starts again: no result is read or answered. */
  readonly isRefresh?: boolean
  /** Asked when the view is installed: an assignment that has ended by then is refused. */
  readonly still?: () => boolean
}

/** Answer of `/view/register` and `GET /view/:id` (D8), and the `snapshot` event of the stream. */
export interface ViewAnswer {
  readonly query_id: string
  readonly format: Format
  readonly result_hash: string
  readonly content_generation: number
  readonly result_data: unknown
  /** Rows left out because an expression fails on them (D2a); absent if there are none. */
  readonly errors?: ReadonlyArray<RowError>
  /** Why the view does not follow each write (D57); absent if it does. */
  readonly warnings?: ReadonlyArray<string>
}

/** Answer to a registration with an `assignment`: a scheduler reads no rows, so none are made for it. */
export type PlacedViewAnswer = Omit<ViewAnswer, "result_data" | "errors"> & { readonly tables: ReadonlyArray<string> }

/** The query does not parse, or is not supported: line and column from 1. */
export class QueryRefused extends Data.TaggedError("QueryRefused")<{
  readonly message: string
  readonly line: number
  readonly column: number
}> {}
export class ViewNotFound extends Data.TaggedError("ViewNotFound")<{ readonly id: string }> {}
/**
 * The query is quarantined (D48): the process ended `ends` times while it evaluated it, last at Unix millisecond
 * `last`.
 */
export class ViewQuarantined extends Data.TaggedError("ViewQuarantined")<{
  readonly id: string
  readonly ends: number
  readonly last: number
}> {}
/** A queue or limit of this SSP is exhausted; the message names the limit, its value and the setting. */
export class Overloaded extends Data.TaggedError("Overloaded")<{
  readonly message: string
  readonly retryAfterSecs: number
}> {}
/** Tables that a view reads are still loading (D61); the client must ask the same SSP again. */
export class TablesJoining extends Data.TaggedError("TablesJoining")<{
  readonly message: string
  readonly retryAfterSecs: number
}> {}
/** A change skipped positions of the scheduler's log (D5); nothing was applied. */
export class SequenceGap extends Data.TaggedError("SequenceGap")<{
  readonly message: string
  readonly expected: number
}> {}
/** A change of an older scheduler start, or of another log (D5); nothing was applied. */
export class StaleEpoch extends Data.TaggedError("StaleEpoch")<{
  readonly message: string
  readonly otherLog: boolean
}> {}
/** The store refused a write; nothing was applied. */
export class StoreFailed extends Data.TaggedError("StoreFailed")<{
  readonly message: string
  readonly cause?: unknown
}> {}

export type IngestError = Overloaded | SequenceGap | StaleEpoch | StoreFailed

export interface DebugView {
  readonly view_id: string
  readonly cache_size: number
  readonly last_hash: string
  /** Format of the registration. */
  readonly format: Format | null
  readonly cache: ReadonlyArray<{ readonly key: string; readonly version: number; readonly weight: number }>
  readonly subquery_tables: ReadonlyArray<string>
  readonly referenced_tables: ReadonlyArray<string>
  readonly content_generation: number
  readonly subquery_cache: { readonly [alias: string]: { readonly [parent: string]: ReadonlyArray<string> } }
  /** Extension (D13): the operators, and why one is recomputed rather than maintained. */
  readonly plan: ReadonlyArray<PlanRow>
  readonly errors: ReadonlyArray<RowError>
  /** Extension (D57): why the view does not follow each write; absent if it does. */
  readonly warnings?: ReadonlyArray<string>
  /** Extension (D21): edges that the database has refused; absent if there are none. */
  readonly edges_refused?: { readonly count: number; readonly edge: string; readonly reason: string }
  /** Extension (D48): present while the view is quarantined; the other fields are empty then. */
  readonly quarantined?: { readonly ends: number; readonly last: string }
}

/** A quarantined query and a view that has it; `query` null if no registration of it is stored. */
export interface QuarantinedView {
  readonly id: string
  readonly query: string | null
  readonly ends: number
  /** ISO 8601. */
  readonly last: string
}

export interface DebugDeps {
  readonly dependency_map: { readonly [table: string]: ReadonlyArray<string> }
  readonly tables_in_store: ReadonlyArray<string>
  readonly view_count: number
  /** Extension: the query shapes and how many instances each has. */
  readonly shapes: ReadonlyArray<{ readonly shape: string; readonly instances: number }>
}

/** A page of the registered views, by key or by the cost of their changes. */
export interface Listing {
  readonly after: string | undefined
  readonly limit: number
  readonly search: string | undefined
  readonly order: "id" | "cost"
}

export interface ListedView {
  readonly id: string
  readonly query: string
  readonly params: unknown
  readonly format: Format
  readonly client_id: string
  readonly ttl_seconds: number
  readonly last_active_at: string
  readonly rows: number
  readonly errors: number
  readonly generation: number
  readonly last_cost: number
  readonly total_cost: number
  readonly streams: number
  readonly incremental: boolean
}

export interface ListedViews {
  readonly views: ReadonlyArray<ListedView>
  readonly total: number
  readonly next: string | null
}

/** Figures that the views service counts anyway, for the overview. */
export interface ViewFigures {
  readonly writes: number
  readonly seq: number | null
  readonly views: number
  readonly streams: number
  /** Characters of the rows that are kept as text for streams in format rows. */
  readonly streamedChars: number
  readonly records: number
  /** Rows of all results: a pass over the views, so only on request. */
  readonly rows: () => number
  /** Bytes held by views; a pass over the instances. */
  readonly held: () => Figures
  readonly record_bytes: number
  readonly tables: ReadonlyArray<{ readonly table: string; readonly records: number; readonly bytes: number }>
  readonly pendingChanges: number
  readonly pendingEdges: number
  readonly quarantined: ReadonlyArray<QuarantinedView>
}

/** A listener for changes applied to the records. Called in the turn in which they are applied, before the answer. */
export interface ViewsWatcher {
  /** A change that must be made in the same commit as this one; undefined or absent: none. */
  readonly joins?: (change: Change) => Change | undefined
  readonly applied: (changes: ReadonlyArray<Change>) => void
  /** Called when all records were replaced. */
  readonly replaced: () => void
}
