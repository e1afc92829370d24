/**
 * A database that its test writes to as others would, watches and breaks: `Upstream` over a map.
 *
 * Why beside the memory layer: that one stands still. Here records change between two looks, in the middle of a read,
 * and behind a database that does not answer.
 */
import { Effect, Layer } from "effect"
import * as Ids from "../../src/core/surql/values/recordId.ts"
import type { Obj, Value } from "../../src/core/surql/values/value.ts"
import {
  type ChangeRow,
  type OwnedRegistration,
  Upstream,
  UpstreamError,
  type UpstreamRecord,
  type UpstreamShape
} from "../../src/ports/Upstream.ts"

export const idOf = (text: string) => {
  const id = Ids.parse(text)
  if (id === undefined) throw new Error(`${text} is no id`)
  return id
}

export class FakeDatabase {
  readonly records = new Map<string, UpstreamRecord>()
  readonly registrations = new Map<string, OwnedRegistration>()
  types: { readonly [table: string]: { readonly [path: string]: string } } = {}
  highestVersion = 0
  /** Every call fails with it. */
  failure: UpstreamError | undefined
  /** Runs before a call is answered, named by what is called. */
  before: (call: string) => Effect.Effect<void> = () => Effect.void
  readonly calls: Array<string> = []

  put(id: string, content: Obj, version?: number): void {
    const recordId = idOf(id)
    this.records.set(recordId.text, { id: recordId, doc: { ...content, id: recordId }, version })
  }

  remove(id: string): void {
    this.records.delete(idOf(id).text)
  }

  register(key: string, surql: string, more: Partial<OwnedRegistration> = {}): void {
    this.registrations.set(key, {
      key,
      id: `incantation:${key}`,
      surql,
      clientId: "c",
      ttlMs: 600_000,
      params: "null",
      format: "flat",
      lastActiveAtMs: 0,
      owner: undefined,
      assignment: 0,
      ...more
    })
  }

  down(): void {
    this.failure = new UpstreamError({ reason: "unreachable", message: "nobody answers" })
  }

  up(): void {
    this.failure = undefined
  }

  private answer<A>(call: string, make: () => A): Effect.Effect<A, UpstreamError> {
    return Effect.suspend(() => {
      this.calls.push(call)
      return Effect.zipRight(
        this.before(call),
        Effect.suspend(() => (this.failure === undefined ? Effect.succeed(make()) : Effect.fail(this.failure)))
      )
    })
  }

  private readonly rows: Array<ChangeRow> = []

  /** Names a record in the change table, as its event would. */
  announce(id: string): void {
    this.rows.push({ id: idOf(`_svc_change:${this.rows.length + 1}`), record: idOf(id) })
  }

  /** Gives it a change table. Call it before anything asks. */
  keepChanges(): void {
    const gone = new Set<string>()
    const waiting = (): ReadonlyArray<ChangeRow> => this.rows.filter(({ id }) => !gone.has(id.text))
    Object.assign(this.upstream, {
      lease: {
        acquire: () => Effect.succeed({ held: true, position: undefined }),
        renew: () => Effect.succeed(true),
        release: () => Effect.void
      },
      changes: {
        installed: Effect.succeed(true),
        listen: () => Effect.never,
        announce: () => Effect.void,
        seen: Effect.succeed(undefined),
        see: () => Effect.void,
        answer: () => Effect.void,
        whole: () => Effect.succeed(undefined),
        take: ({ rows: size }, done) =>
          this.answer("take", () => {
            for (const { text } of done) gone.add(text)
            const all = waiting()
            const rows = all.slice(0, size)
            const named = new Map(rows.map(({ record }) => [record.text, this.records.get(record.text)]))
            return {
              rows,
              records: [...named.values()].filter((record) => record !== undefined),
              unreadable: [],
              partial: all.length > rows.length
            }
          })
      }
    } satisfies Pick<UpstreamShape, "changes" | "lease">)
  }

  readonly upstream: UpstreamShape = {
    ...Effect.runSync(Effect.provide(Upstream, Upstream.layerNone)),
    present: true,
    prepare: this.answer("prepare", () => undefined),
    tables: this.answer("tables", () =>
      [...new Set([...this.records.values()].map(({ id }) => id.table).concat(Object.keys(this.types)))]
        .sort()
        .map((name) => ({ name, types: this.types[name] ?? {}, derived: false }))
    ),
    chunk: (table, after, size) =>
      this.answer(`chunk ${table}`, () =>
        [...this.records.values()]
          .filter(({ id }) => id.table === table && (after === undefined || Ids.compareKeys(id.key, after) > 0))
          .sort((a, b) => Ids.compareKeys(a.id.key, b.id.key))
          .slice(0, size)
      ),
    find: (ids) => this.answer(`find ${ids.length}`, () => ids.flatMap((id) => this.records.get(id.text) ?? [])),
    registrations: this.answer("registrations", () => [...this.registrations.values()]),
    register: (view, owner) =>
      this.answer("register", () => {
        this.registrations.set(view.key, { ...view, owner, assignment: 1 })
        return 1
      }),
    unregister: (keys) => this.answer("unregister", () => keys.forEach((key) => this.registrations.delete(key))),
    highestVersion: this.answer("highestVersion", () => this.highestVersion)
  }

  readonly layer: Layer.Layer<Upstream> = Layer.sync(Upstream, () => this.upstream)
}

/** Many records `table:0`, `table:1`, ... of a table. */
export const fill = (
  database: FakeDatabase,
  table: string,
  count: number,
  content: (n: number) => { readonly [name: string]: Value } = (n) => ({ n })
): void => {
  for (let n = 0; n < count; n++) database.put(`${table}:${n}`, content(n))
}
