/**
 * `Upstream` in memory: a database that is always reachable, for tests above the port.
 *
 * It passes the conformance suite of the real one, so that tests against it hold there too.
 */
import { Effect, Layer, Stream } from "effect"
import { versionField } from "../core/record/change.ts"
import * as Ids from "../core/surql/values/recordId.ts"
import { type Obj, RecordId } from "../core/surql/values/value.ts"
import { isOwn } from "../core/surreal/surrealSchema.ts"
import {
  type Edge,
  type EdgePlace,
  type IntegrityNode,
  type OwnedRegistration,
  Upstream,
  type UpstreamRecord,
  type UpstreamShape,
  type ViewEdges
} from "../ports/Upstream.ts"

/** A row as a record, with the reserved version field taken out (D4). */
export const recordOf = (row: Obj): UpstreamRecord | undefined => {
  const { id, [versionField]: version, ...rest } = row
  if (!(id instanceof RecordId)) return undefined
  return {
    id,
    doc: { ...rest, id },
    version: typeof version === "number" && Number.isSafeInteger(version) && version >= 0 ? version : undefined
  }
}

const placeText = ({ out, parent, path }: EdgePlace): string => JSON.stringify([path, parent?.text, out.text])

interface View {
  registration: OwnedRegistration
  readonly edges: Map<string, Edge>
}

const nodeText = ({ index, level, table }: IntegrityNode): string => JSON.stringify([table, level, index])

/** A registration under an owner: a new owner makes a new assignment, and the last activity never goes back. */
const takenOver = (
  old: OwnedRegistration | undefined,
  view: Omit<OwnedRegistration, "owner" | "assignment">,
  owner: OwnedRegistration["owner"]
): OwnedRegistration => ({
  ...view,
  owner,
  assignment: (old?.assignment ?? 0) + (old?.owner === owner ? 0 : 1),
  lastActiveAtMs: Math.max(view.lastActiveAtMs, old?.lastActiveAtMs ?? view.lastActiveAtMs)
})

export const make = (records: Iterable<Obj>): UpstreamShape => {
  const found = new Map<string, UpstreamRecord>()
  for (const row of records) {
    const record = recordOf(row)
    if (record !== undefined && !isOwn(record.id.table)) found.set(record.id.text, record)
  }
  const tables = [...new Set([...found.values()].map(({ id }) => id.table))].sort()
  const views = new Map<string, View>()
  const nodes = new Map<string, IntegrityNode>()
  const held = ({ assignment, key, owner }: ViewEdges): View | undefined => {
    const view = views.get(key)
    return view?.registration.owner === owner && view.registration.assignment === assignment ? view : undefined
  }
  return {
    present: true,
    prepare: Effect.void,
    tables: Effect.succeed(tables.map((name) => ({ name, types: {}, derived: false }))),
    chunk: (table, after, size) =>
      Effect.sync(() => {
        const sorted = [...found.values()]
          .filter(({ id }) => id.table === table)
          .sort((a, b) => Ids.compareKeys(a.id.key, b.id.key))
        return sorted.filter(({ id }) => after === undefined || Ids.compareKeys(id.key, after) > 0).slice(0, size)
      }),
    find: (ids) => Effect.sync(() => ids.flatMap((id) => found.get(id.text) ?? [])),
    registrations: Effect.sync(() => [...views.values()].map(({ registration }) => registration)),
    register: (view, owner) =>
      Effect.sync(() => {
        const before = views.get(view.key)
        const registration = takenOver(before?.registration, view, owner)
        views.set(view.key, { registration, edges: before?.edges ?? new Map() })
        return registration.assignment
      }),
    claim: (keys, owner) =>
      Effect.sync(() =>
        keys.flatMap((key) => {
          const view = views.get(key)
          if (view !== undefined && view.registration.owner !== owner)
            view.registration = { ...view.registration, owner, assignment: view.registration.assignment + 1 }
          return view?.registration ?? []
        })
      ),
    expire: (keys, owner, nowMs) =>
      Effect.sync(() => {
        for (const key of keys) {
          const view = views.get(key)
          if (view?.registration.owner === owner && view.registration.lastActiveAtMs + view.registration.ttlMs <= nowMs)
            view.registration = { ...view.registration, owner: undefined }
        }
        return keys
          .flatMap((key) => views.get(key)?.registration ?? [])
          .filter((registration) => registration.owner !== undefined)
      }),
    unregister: (keys, owner) =>
      Effect.sync(() => {
        for (const key of keys) if ([owner, undefined].includes(views.get(key)?.registration.owner)) views.delete(key)
      }),
    edges: (key) => Stream.suspend(() => Stream.make([...(views.get(key)?.edges.values() ?? [])])),
    highestVersion: Effect.sync(() =>
      [...views.values()]
        .flatMap(({ edges }) => [...edges.values()])
        .reduce((highest, { version }) => Math.max(highest, version), 0)
    ),
    apply: (batch) =>
      Effect.sync(() => {
        for (const part of batch) {
          const view = held(part)
          for (const edge of part.removals) view?.edges.delete(placeText(edge))
          for (const edge of part.puts) view?.edges.set(placeText(edge), edge)
        }
        return { lost: batch.filter((part) => held(part) === undefined).map(({ key }) => key), refused: [] }
      }),
    putNodes: (put) => Effect.sync(() => put.forEach((node) => nodes.set(nodeText(node), node))),
    nodes: (table) => Effect.sync(() => [...nodes.values()].filter((node) => node.table === table))
  }
}

/** A database in memory with these records, for tests and demonstrations. */
export const layer = (records: Iterable<Obj> = []): Layer.Layer<Upstream> => Layer.sync(Upstream, () => make(records))
