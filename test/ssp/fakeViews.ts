/**
 * A `Views` that does what its test says, and an SSP's HTTP face over it on a real server.
 *
 * Why a fake: every error a service can have must reach the wire, and the real one does not fail on demand. The query
 * text of a registration, or the table of a change, names what happens.
 */

import { Effect, Exit, Layer, Logger, LogLevel } from "effect"
import { StoreTrees } from "../../src/core/integrity/storeTrees.ts"
import { Store } from "../../src/core/ivm/store/store.ts"
import { drain } from "../../src/core/surql/evaluate/scope.ts"
import * as Interest from "../../src/core/surql/syntax/interest.ts"
import { layerNode } from "../../src/host/http/readBody.ts"
import * as Server from "../../src/host/http/Server.ts"
import type { EventReceiver, Subscription } from "../../src/node/streams/feed.ts"
import type { ViewEvent } from "../../src/node/streams/viewEvent.ts"
import { startPosition } from "../../src/ports/Database.ts"
import { Front, Serving } from "../../src/ports/Front.ts"
import { Release } from "../../src/ports/Release.ts"
import { SchedulerClient } from "../../src/ports/SchedulerClient.ts"
import { Upstream } from "../../src/ports/Upstream.ts"
import { SspConfig } from "../../src/ssp/Config.ts"
import { EdgeWriter, noEdges } from "../../src/ssp/edges/EdgeWriter.ts"
import * as JobPorts from "../../src/ssp/jobs/jobPorts.ts"
import * as Ssp from "../../src/ssp/Ssp.ts"
import * as AnswerBytes from "../../src/ssp/views/answerBytes.ts"
import * as ResultTag from "../../src/ssp/views/resultTag.ts"
import { Views } from "../../src/ssp/views/Views.ts"
import {
  type IngestAnswer,
  type IngestError,
  Overloaded,
  QueryRefused,
  SequenceGap,
  StaleEpoch,
  StoreFailed,
  type ViewAnswer,
  ViewNotFound,
  type ViewRegistration
} from "../../src/ssp/viewTypes.ts"

export const secret = "s3cret"

const ingested: { readonly [table: string]: IngestAnswer | IngestError } = {
  overloaded: new Overloaded({ message: "the queue holds 5, the limit (setting X)", retryAfterSecs: 2.2 }),
  gap: new SequenceGap({ message: "expected 5", expected: 5 }),
  stale: new StaleEpoch({ message: "older", otherLog: false }),
  broken: new StoreFailed({ message: "disk full", cause: new Error("not for the wire") })
}

const answer = ({ format, id }: Pick<ViewRegistration, "format" | "id">): ViewAnswer => ({
  query_id: id,
  format: format ?? "flat",
  result_hash: "h",
  content_generation: 1,
  result_data: []
})

const registered = (
  registration: ViewRegistration
): Effect.Effect<ViewAnswer, QueryRefused | Overloaded | StoreFailed> => {
  switch (registration.surql) {
    case "REFUSED":
      return Effect.fail(new QueryRefused({ message: "no", line: 2, column: 3 }))
    case "DEFECT":
      return Effect.die(new Error("inner secret"))
    case "SLOW":
      return Effect.delay(Effect.succeed(answer(registration)), "300 millis")
    case "NEVER":
      return Effect.never
    default:
      return Effect.succeed(answer(registration))
  }
}

const result = (table: string): IngestAnswer | IngestError => ingested[table] ?? { views_affected: 1, edges_updated: 2 }

const snapshot: ViewEvent = { event: "snapshot", id: "a.0", data: { text: "two\nlines" } }

/** A follower that is given these events and then nothing more. */
export const told = (taker: EventReceiver, events: ReadonlyArray<ViewEvent>): Subscription => {
  const left = [...events]
  return { resume: () => void (left.length > 0 && taker.take(left.splice(0))), close: () => {} }
}

/** What a test may watch or replace. */
export const fakeViews = (own: Partial<typeof Views.Service> = {}): Layer.Layer<Views> =>
  Layer.sync(Views, () => ({
    failing: () => [],
    restore: Effect.succeed({ records: 0, views: 0 }),
    isKnown: () => false,
    touch: () => Effect.succeed(true),
    refusal: (id) =>
      id === "here"
        ? undefined
        : id === "full"
          ? new Overloaded({ message: "no room for streams", retryAfterSecs: 5 })
          : new ViewNotFound({ id }),
    whenSettled: () => false,
    written: (answer, sees) => Effect.sync(() => drain(AnswerBytes.answerPieces(answer, sees))),
    watch: () => {},
    ingest: (changes, done) => {
      if (changes[0]?.id.table === "defect") throw new Error("inner secret")
      done(result(changes[0]?.id.table ?? ""))
    },
    repair: (changes) => Effect.succeed(changes),
    records: new Store(),
    exclusive: false,
    position: Effect.succeed(startPosition),
    trees: { read: (_tables, look) => Effect.sync(() => look(new StoreTrees(new Store()), 7)), stamp: () => 0 },
    tables: {
      follow: () => {},
      held: () => undefined,
      interestOf: () => Interest.noInterest,
      apply: () => Effect.void,
      load: () => Effect.void,
      differences: () => [],
      forget: () => Effect.succeed(true)
    },
    registrations: Effect.succeed([]),
    clientOf: () => undefined,
    register: registered,
    unregister: () => Effect.void,
    free: (id) => Effect.fail(new ViewNotFound({ id })),
    reset: Effect.void,
    replace: () => Effect.void,
    read: (id, format) =>
      id === "here" ? Effect.succeed(answer({ id, format: format ?? "flat" })) : Effect.fail(new ViewNotFound({ id })),
    follow: (id, _, last, taker) =>
      id === "here" ? told(taker, [last === undefined ? snapshot : { ...snapshot, id: last }]) : undefined,
    look: (id, { format, ifNoneMatch, sees }, done) => {
      if (id !== "here") return void done(Exit.fail(new ViewNotFound({ id })))
      const shown = answer({ id, format: format ?? "flat" })
      const tag = ResultTag.tagOf(shown)
      const isKnown = ResultTag.namesTag(ifNoneMatch, tag)
      done(Exit.succeed({ tag, pieces: isKnown ? undefined : drain(AnswerBytes.answerPieces(shown, sees)) }))
    },
    debugView: (id) => Effect.fail(new ViewNotFound({ id })),
    define: () => Effect.void,
    tablesOf: () => [],
    debugDeps: Effect.succeed({ dependency_map: {}, tables_in_store: [], view_count: 0, shapes: [] }),
    list: ({ search }) => Effect.succeed({ views: [], total: search === "ODD" ? 1.5 : 7, next: null }),
    figures: () => ({
      writes: 0,
      seq: null,
      views: 7,
      streams: 0,
      streamedChars: 0,
      records: 0,
      record_bytes: 0,
      tables: [],
      rows: () => 0,
      held: () => ({ instances: 0, heldRows: 0, tombstones: 0 }),
      pendingChanges: 0,
      pendingEdges: 0,
      quarantined: []
    }),
    count: Effect.succeed(7),
    expire: () => Effect.succeed([]),
    ...own
  }))

/** Everything but the server. */
export const node = (
  views: Layer.Layer<Views>,
  env: { readonly [name: string]: string } = {},
  scheduler: Layer.Layer<SchedulerClient> = SchedulerClient.layerNone
) =>
  Ssp.layerOver.pipe(
    Layer.provideMerge(views),
    Layer.provideMerge(Serving.layer),
    Layer.provide([
      layerNode,
      Release.layerOf("1.2.3"),
      scheduler,
      JobPorts.layerNone,
      Upstream.layerNone,
      Layer.succeed(EdgeWriter, noEdges)
    ]),
    Layer.provideMerge(SspConfig.layerOf({ SVC_AUTH_SECRET: secret, SSP_ID: "me", ...env })),
    Layer.provideMerge(Logger.minimumLogLevel(LogLevel.None))
  )

const listen = { host: "127.0.0.1", port: 0, setting: "LISTEN_ADDR", maxConnections: 100 }

/** With `front: false` the server leaves every request to the app, as one that is not the package's. */
export const served = (
  views: Layer.Layer<Views>,
  options: { readonly front: boolean; readonly env?: { readonly [name: string]: string } } = { front: true }
) => {
  const inner = node(views, options.env)
  const server = Server.layer(listen)
  return Layer.fresh(
    (options.front
      ? server
      : Layer.provide(server, Layer.succeed(Front, { serve: () => false, pageHeaders: () => undefined }))
    ).pipe(Layer.provideMerge(inner))
  )
}
