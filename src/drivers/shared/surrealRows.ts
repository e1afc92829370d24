/**
 * Converts rows of our tables in a SurrealDB to values and back: registrations, edges, integrity hashes.
 *
 * In one place, so that writer and reader agree. A row that cannot be ours reads as undefined, and the reader decides
 * what that means.
 */

import * as Ids from "../../core/surql/values/recordId.ts"
import {
  Datetime,
  Duration,
  isObj,
  type Obj,
  Range,
  RecordId,
  RecordRange,
  type Value
} from "../../core/surql/values/value.ts"
import * as Schema from "../../core/surreal/surrealSchema.ts"
import { isCount, isText } from "../../core/typeGuards.ts"
import type { StoredView } from "../../ports/Database.ts"
import type { Edge, EdgePlace, IntegrityNode, OwnedRegistration } from "../../ports/Upstream.ts"

const items = (value: Value): ReadonlyArray<Value> => (Array.isArray(value) ? (value as ReadonlyArray<Value>) : [])

/** Milliseconds since the epoch, or of a duration; finer parts are cut off. */
const millis = ({ nanos, seconds }: Datetime | Duration): number =>
  Number(seconds) * 1000 + Math.floor(nanos / 1_000_000)

const parts = (ms: number): readonly [number, number] => {
  const seconds = Math.floor(ms / 1000)
  return [seconds, Math.round((ms - seconds * 1000) * 1_000_000)]
}

export const queryId = (key: string): RecordId => Ids.make(Schema.queryTable, key)

export const timeOf = (ms: number): Datetime => new Datetime(...parts(ms))

export const fromView = (view: StoredView): Obj => ({
  id: queryId(view.key),
  view: view.id,
  surql: view.surql,
  clientId: view.clientId,
  ttl: new Duration(...parts(view.ttlMs)),
  params: view.params,
  format: view.format,
  lastActiveAt: timeOf(view.lastActiveAtMs)
})

export const toView = (row: Obj): StoredView | undefined => {
  const { clientId, format, id, lastActiveAt, params, surql, ttl, view } = row
  if (!(id instanceof RecordId) || !(ttl instanceof Duration) || !(lastActiveAt instanceof Datetime)) return undefined
  return isText(id.key) && isText(clientId) && isText(format) && isText(params) && isText(surql) && isText(view)
    ? {
        key: id.key,
        id: view,
        surql,
        clientId,
        params,
        format,
        ttlMs: millis(ttl),
        lastActiveAtMs: millis(lastActiveAt)
      }
    : undefined
}

export const toRegistration = (row: Obj): OwnedRegistration | undefined => {
  const view = toView(row)
  const { assignment, owner } = row
  return view === undefined
    ? undefined
    : { ...view, owner: isText(owner) ? owner : undefined, assignment: isCount(assignment) ? assignment : 0 }
}

/** Id of an edge, made from its content; it begins with the view's key, so that all edges of a view lie together. */
export const edgeId = (key: string, { out, parent, path }: EdgePlace): RecordId =>
  Ids.make(Schema.edgeTable, parent === undefined ? [key, out] : [key, path, parent, out])

const storableKey = (key: Value): boolean =>
  Array.isArray(key)
    ? key.every(storableKey)
    : !isObj(key) || Object.entries(key).every(([name, value]) => name !== "" && storableKey(value))

/**
 * Whether an edge can be stored: an id with an object that has an empty field name is written by the engine (3.0.2) and
 * never read again, and from then on every scan of its table fails. Edge ids hold the ids of records.
 */
export const isStorable = ({ out, parent }: EdgePlace): boolean =>
  storableKey(out.key as Value) && (parent === undefined || storableKey(parent.key as Value))

export const fromEdge = (key: string, clientId: string, edge: Edge): Obj => ({
  id: edgeId(key, edge),
  in: queryId(key),
  out: edge.out,
  version: edge.version,
  clientId,
  parent: edge.parent,
  parent_rel: edge.parent === undefined ? undefined : edge.path
})

export const toEdge = (row: Obj): Edge | undefined => {
  const { out, parent, parent_rel: path, version } = row
  if (!(out instanceof RecordId) || !isCount(version)) return undefined
  return parent instanceof RecordId
    ? { path: isText(path) ? path : "", parent, out, version }
    : { path: "", parent: undefined, out, version }
}

/** Range of all ids that are arrays beginning with `first`, behind the id `after`. */
export const startingWith = (table: string, first: string, after?: RecordId): RecordRange =>
  new RecordRange(
    table,
    new Range(
      after === undefined ? { value: [first], inclusive: true } : { value: after.key as Value, inclusive: false },
      { value: [first, new Range(undefined, undefined)], inclusive: false }
    )
  )

export const fromNode = (node: IntegrityNode): Obj => ({
  id: Ids.make(Schema.integrityTable, [node.table, node.level, node.index]),
  hash: node.hash,
  count: node.count,
  seq: node.seq ?? undefined
})

export const toNode = (row: Obj): IntegrityNode | undefined => {
  const { count, hash, id, seq } = row
  const [table, level, index] = id instanceof RecordId ? items(id.key as Value) : []
  return isText(table) && isCount(level) && isCount(index) && isText(hash) && isCount(count)
    ? { table, level, index, hash, count, seq: isCount(seq) ? seq : null }
    : undefined
}
