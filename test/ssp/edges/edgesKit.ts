/**
 * Views and the writer of their edges over a database that the test holds in its hand: away, slow, asked by others,
 * counted.
 *
 * Why in memory: who fails when is the test's to say here; that the real database does the same is the port's suite,
 * and that all of it works together is the end-to-end test.
 */
import { Cause, Effect, Exit, Layer, Logger, LogLevel, Scope, Stream } from "effect"
import { expect } from "vitest"
import * as Memory from "../../../src/drivers/memoryUpstream.ts"
import { Database } from "../../../src/ports/Database.ts"
import { SavedState } from "../../../src/ports/SavedState.ts"
import { Turn } from "../../../src/ports/Turn.ts"
import { UpstreamError, type UpstreamShape, type ViewEdges } from "../../../src/ports/Upstream.ts"
import type { EdgesShape } from "../../../src/ssp/edges/EdgeWriter.ts"
import { makeWriter } from "../../../src/ssp/edges/writer.ts"
import type { Views } from "../../../src/ssp/views/Views.ts"
import type { ViewLimits } from "../../../src/ssp/views/viewLimits.ts"
import { makeViews } from "../../../src/ssp/views/viewService.ts"

const limits: ViewLimits = {
  streamBuffer: 100,
  maxViews: 1000,
  databaseWaitMs: 4000,
  maxStreams: 10,
  maxPendingChanges: 10_000,
  maxTombstones: 1000,
  stateDebounceMs: 60_000,
  rowSteps: 100_000,
  changeSteps: 1_000_000,
  querySteps: 1_000_000,
  queryBytes: 67_108_864,
  viewBytesTotal: 0,
  resultBytes: 67_108_864
}

export const away = new UpstreamError({ reason: "unreachable", message: "nobody answers" })

export interface Beside {
  /** What every call to the database does first. */
  before: Effect.Effect<void, UpstreamError>
  /** What comes between a registration that is written and its answer. */
  afterRegister: Effect.Effect<void, UpstreamError>
  /** What a batch does before it is written. */
  beforeApply: Effect.Effect<void, UpstreamError>
  /** Edges to these records are refused. */
  refuses: ReadonlySet<string>
  readonly batches: Array<ReadonlyArray<ViewEdges>>
  /** The database itself, which is never away. */
  readonly database: UpstreamShape
  readonly shape: UpstreamShape
}

const beside = (database: UpstreamShape): Beside => {
  const first = <A>(effect: Effect.Effect<A, UpstreamError>): Effect.Effect<A, UpstreamError> =>
    Effect.zipRight(
      Effect.suspend(() => self.before),
      effect
    )
  const self: Beside = {
    before: Effect.void,
    afterRegister: Effect.void,
    beforeApply: Effect.void,
    refuses: new Set(),
    batches: [],
    database,
    shape: {
      ...database,
      registrations: first(database.registrations),
      register: (view, owner) => Effect.tap(first(database.register(view, owner)), () => self.afterRegister),
      claim: (keys, owner) => first(database.claim(keys, owner)),
      expire: (keys, owner, nowMs) => first(database.expire(keys, owner, nowMs)),
      unregister: (keys, owner) => first(database.unregister(keys, owner)),
      edges: (key) => Stream.unwrap(first(Effect.succeed(database.edges(key)))),
      apply: (parts) =>
        first(Effect.suspend(() => self.beforeApply)).pipe(
          Effect.zipRight(
            Effect.suspend(() => {
              self.batches.push(parts)
              const refused = parts.flatMap(({ key, puts }) =>
                puts.filter(({ out }) => self.refuses.has(out.text)).map((edge) => ({ key, edge, reason: "odd" }))
              )
              return Effect.map(
                database.apply(
                  parts.map((part) => ({ ...part, puts: part.puts.filter(({ out }) => !self.refuses.has(out.text)) }))
                ),
                ({ lost }) => ({ lost, refused })
              )
            })
          )
        )
    }
  }
  return self
}

export interface Node {
  readonly views: Views["Type"]
  readonly edges: EdgesShape
}

export interface Kit extends Node {
  readonly beside: Beside
  /** What was logged at warning or above, of all nodes. */
  readonly warnings: ReadonlyArray<string>
  readonly stop: Effect.Effect<void>
  /** Another process on the same local store and the same database, by the same name or another. */
  readonly start: (owner?: string) => Effect.Effect<Node, never, Scope.Scope>
}

/** A node with views and edges; `maxPending` small enough to be reached where a test says so. */
export const withEdges = <A>(
  body: (kit: Kit) => Effect.Effect<A, unknown, Scope.Scope>,
  maxPending = 100_000,
  maxHealMs = 600_000
): Promise<A> => {
  const warnings: Array<string> = []
  const logger = Logger.make(
    ({ logLevel, message }) =>
      void (LogLevel.greaterThanEqual(logLevel, LogLevel.Warning) && warnings.push(String(message)))
  )
  return Effect.gen(function* () {
    const database = yield* Database
    const saved = yield* SavedState
    const turn = yield* Turn
    const around = beside(Memory.make([]))
    let scope = yield* Scope.make()
    const fork = (loop: Effect.Effect<never>) => Effect.asVoid(Effect.forkScoped(loop))
    const crash = (cause: Cause.Cause<unknown>): void => {
      throw new Error(Cause.pretty(cause))
    }
    const start = (owner = "me") =>
      Effect.gen(function* () {
        const edges = yield* makeWriter(around.shape, { owner, maxPending, held: () => true, maxHealMs }, fork)
        const views = yield* makeViews(limits, database, saved, turn, edges, { fork, crash })
        yield* views.restore.pipe(Effect.orDie)
        edges.allowWhen(() => true)
        return { views, edges }
      })
    const stop = Effect.suspend(() => Scope.close(scope, Exit.void))
    const restarted = (owner?: string) =>
      Effect.gen(function* () {
        yield* stop
        scope = yield* Scope.make()
        return yield* Scope.extend(start(owner), scope)
      })
    const result = yield* body({
      ...(yield* Scope.extend(start(), scope)),
      beside: around,
      warnings,
      stop,
      start: restarted
    })
    yield* stop
    return result
  }).pipe(
    Effect.scoped,
    Effect.provide(
      Layer.mergeAll(
        Layer.fresh(Database.layerMemory),
        Layer.fresh(SavedState.layerMemory),
        Turn.layerYield,
        Logger.replace(Logger.defaultLogger, logger)
      )
    ),
    Effect.runPromise
  )
}

/** The edges of a view as the database has them: `[alias path of parent] record v version`. */
export const edgesOf = ({ database }: Beside, key: string) =>
  Effect.map(
    Stream.runFold(database.edges(key), [] as ReadonlyArray<string>, (all, chunk) => [
      ...all,
      ...chunk.map(
        ({ out, parent, path, version }) =>
          `${parent === undefined ? "" : `${path} of ${parent.text}: `}${out.text} v${version}`
      )
    ]),
    (all) => [...all].sort()
  )

/** Waits until nothing is left to write, then says what is there. */
export const atRest = (node: Node, around: Beside, key: string) =>
  Effect.zipRight(Effect.timeout(node.edges.settled, "20 seconds"), edgesOf(around, key))

/** The main rows of a view as edges of them would read. */
export const rowsOf = (views: Views["Type"], id: string) =>
  Effect.map(views.read(id, "flat"), ({ result_data }) =>
    (result_data as ReadonlyArray<readonly [string, number]>).map(([key, version]) => `${key} v${version}`).sort()
  )

export const until = (what: string, holds: () => boolean) =>
  Effect.gen(function* () {
    for (let tries = 0; !holds(); tries++) {
      expect(tries, what).toBeLessThan(5_000)
      yield* Effect.sleep(2)
    }
  })
