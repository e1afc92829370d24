/**
 * `Upstream` on a SurrealDB: its statements, and the meaning of their answers.
 *
 * Two properties of the engine shape the statements. A SELECT over a range of ids stops at its LIMIT only inside a LET;
 * as a statement of its own it reads everything behind the start, and with `WHERE id > ..` everything before it too.
 * The engine in memory needs time that grows with the square of an INSERT's rows, so rows are inserted in parts.
 */
import { Effect, Either, Layer, Option, Stream } from "effect"
import { chunksOf } from "../core/chunksOf.ts"
import { isObj, type Obj, Range, RecordId, RecordRange, type Value } from "../core/surql/values/value.ts"
import * as Schemas from "../core/surreal/databaseSchema.ts"
import * as Schema from "../core/surreal/surrealSchema.ts"
import {
  type Bindings,
  retryingConflicts,
  SurrealClient,
  SurrealError,
  type SurrealShape
} from "../ports/SurrealClient.ts"
import {
  type Edge,
  type EdgesApplied,
  type IntegrityNode,
  type OwnedRegistration,
  Upstream,
  UpstreamError,
  type UpstreamRecord,
  type UpstreamShape,
  type ViewEdges
} from "../ports/Upstream.ts"
import { recordOf } from "./memoryUpstream.ts"
import * as Rights from "./shared/surrealRights.ts"
import * as Rows from "./shared/surrealRows.ts"
import * as Changes from "./surrealChanges.ts"

const rowsPerInsert = 200
const edgeChunk = 1_000

const reasons: { readonly [R in SurrealError["reason"]]: UpstreamError["reason"] } = {
  unreachable: "unreachable",
  timeout: "unreachable",
  conflict: "unreachable",
  locked: "unreachable",
  unauthorized: "unauthorized",
  forbidden: "unauthorized",
  missing: "refused",
  damaged: "refused",
  refused: "refused"
}

const failure = (error: SurrealError): UpstreamError =>
  new UpstreamError({ reason: reasons[error.reason], message: error.message, cause: error })

const isRows = (value: Value): value is ReadonlyArray<Obj> => Array.isArray(value) && value.every(isObj)

const run = (
  client: SurrealShape,
  statements: string,
  bindings?: Bindings
): Effect.Effect<ReadonlyArray<Value>, UpstreamError> => Effect.mapError(client.query(statements, bindings), failure)

/** The last answer that is a list; depending on the version, BEGIN and COMMIT answer nothing or are left out. */
const listOf = (
  client: SurrealShape,
  statements: string,
  bindings?: Bindings
): Effect.Effect<ReadonlyArray<Value>, UpstreamError> =>
  Effect.map(
    run(client, statements, bindings),
    (answers) => answers.findLast((answer): answer is ReadonlyArray<Value> => Array.isArray(answer)) ?? []
  )

/** A table of ours that is not defined counts as empty. */
const unlessMissing = (
  rows: Effect.Effect<ReadonlyArray<Value>, UpstreamError>
): Effect.Effect<ReadonlyArray<Value>, UpstreamError> =>
  Effect.catchIf(
    rows,
    ({ cause }) => cause instanceof SurrealError && cause.reason === "missing",
    () => Effect.succeed([])
  )

/**
 * Reads rows of a table of ours. A foreign row fails the read and is named, because acting on the other rows alone
 * would be worse.
 */
const ownRows = <A>(
  rows: ReadonlyArray<Value>,
  read: (row: Obj) => A | undefined
): Effect.Effect<ReadonlyArray<A>, UpstreamError> =>
  Effect.forEach(rows, (row) => {
    const found = isObj(row) ? read(row) : undefined
    if (found !== undefined) return Effect.succeed(found)
    const name = isObj(row) && row["id"] instanceof RecordId ? row["id"].text : "a row"
    return Effect.fail(
      new UpstreamError({ reason: "refused", message: `${name} in a table of ours is not one of ours: remove it` })
    )
  })

/** The writer of edges handles conflicts itself: it sends smaller batches after one. */
export const make = (given: SurrealShape): UpstreamShape => makeOver(retryingConflicts(given), given)

const makeOver = (client: SurrealShape, edgeClient: SurrealShape): UpstreamShape => ({
  present: true,
  changes: Changes.make(client, failure),
  lease: Changes.makeLease(client, failure),
  prepare: Effect.mapError(
    Rights.defineTables(
      client,
      Schema.sharedDefinitions,
      Schema.ownTables.map(({ name }) => name)
    ),
    failure
  ),
  tables: Effect.map(Effect.mapError(schemaNow(client, undefined), failure), ({ tables }) => tables),
  schema: (known) => Effect.mapError(schemaNow(client, known), failure),
  chunk: (table, after, size) => chunk(client, table, after, size),
  find: (ids) => find(client, ids),
  nowMs: Effect.map(run(client, "RETURN time::millis(time::now())"), (answers) => Number(answers.at(-1))),
  registrations: Effect.flatMap(listOf(client, `SELECT * FROM ${Schema.queryTable}`).pipe(unlessMissing), (rows) =>
    ownRows(rows, Rows.toRegistration)
  ),
  register: (view, owner) => register(client, Rows.fromView(view), owner),
  claim: (keys, owner) => claim(client, { ids: keys.map(Rows.queryId), owner }),
  expire: (keys, owner, nowMs) => expire(client, { ids: keys.map(Rows.queryId), owner, now: Rows.timeOf(nowMs) }),
  unregister: (keys, owner) => unregister(client, keys, owner),
  edges: (key) => edges(client, key),
  highestVersion: Effect.map(
    listOf(client, `SELECT math::max(version) AS version FROM ${Schema.edgeTable} GROUP ALL`).pipe(unlessMissing),
    ([row]) => (isObj(row) && Number.isSafeInteger(row["version"]) ? Number(row["version"]) : 0)
  ),
  apply: (views) => applyStorable(edgeClient, views),
  putNodes: (nodes) => putNodes(client, nodes),
  nodes: (table) =>
    Effect.flatMap(
      listOf(client, "SELECT * FROM $range", { range: Rows.startingWith(Schema.integrityTable, table) }),
      (rows) => ownRows(rows, Rows.toNode)
    )
})

/** Reads the names first, then all definitions in one statement; repeated if a table was defined in between. */
const wholeSchema = (client: SurrealShape): Effect.Effect<Schemas.DatabaseSchema, SurrealError> =>
  Effect.gen(function* () {
    const [db] = yield* client.query(Schemas.tableNamesStatement)
    const names = Schemas.namesOf(db)
    const schema = Schemas.schemaOf((yield* client.query(Schemas.wholeOf(names))).at(-1))
    const same = schema.tables.length === names.length && schema.tables.every(({ name }, i) => name === names[i])
    return same ? schema : yield* wholeSchema(client)
  }).pipe(
    Effect.catchIf(
      ({ reason }) => reason === "missing",
      () => wholeSchema(client)
    )
  )

/** The current schema; `known` itself if nothing has changed. */
const schemaNow = (
  client: SurrealShape,
  known: Schemas.DatabaseSchema | undefined
): Effect.Effect<Schemas.DatabaseSchema, SurrealError> =>
  known === undefined
    ? wholeSchema(client)
    : client.query(Schemas.markStatement(known.tables.map(({ name }) => name))).pipe(
        Effect.map((answers) => answers.at(-1)),
        Effect.catchIf(
          ({ reason }) => reason === "missing",
          () => Effect.succeed(undefined)
        ),
        Effect.flatMap((mark) => (mark === known.mark ? Effect.succeed(known) : wholeSchema(client)))
      )

const toRecords = (rows: ReadonlyArray<Value>): ReadonlyArray<UpstreamRecord> =>
  rows.flatMap((row) => (isObj(row) ? (recordOf(row) ?? []) : []))

const chunk: (client: SurrealShape, ...args: Parameters<UpstreamShape["chunk"]>) => ReturnType<UpstreamShape["chunk"]> =
  (client, table, after, size) => {
    const range = new RecordRange(
      table,
      new Range(after === undefined ? undefined : { value: after as Value, inclusive: false }, undefined)
    )
    return client.query("LET $rows = (SELECT * FROM $range LIMIT $size); RETURN $rows", { range, size }).pipe(
      Effect.map((answers) => toRecords(isRows(answers.at(-1)) ? (answers.at(-1) as ReadonlyArray<Obj>) : [])),
      Effect.catchIf(
        (error) => error.reason === "missing",
        () => Effect.succeed([])
      ),
      Effect.mapError(failure)
    )
  }

const find = (
  client: SurrealShape,
  ids: ReadonlyArray<RecordId>
): Effect.Effect<ReadonlyArray<UpstreamRecord>, UpstreamError> => {
  if (ids.length === 0) return Effect.succeed([])
  // A dropped table fails its statement, so each table has its own.
  const byTable = [...new Set(ids.map(({ table }) => table))].map((table) => ids.filter((id) => id.table === table))
  const bindings = Object.fromEntries(byTable.map((list, i) => [`ids${i}`, list]))
  return client.ask(byTable.map((_, i) => `SELECT * FROM $ids${i}`).join(";"), bindings).pipe(
    Effect.flatMap((answers) =>
      Effect.forEach(answers, (answer) =>
        Either.isRight(answer)
          ? Effect.succeed(isRows(answer.right) ? answer.right : [])
          : answer.left.reason === "missing"
            ? Effect.succeed([])
            : Effect.fail(answer.left)
      )
    ),
    Effect.map((found) => toRecords(found.flat())),
    Effect.mapError(failure)
  )
}

/** In two steps: an UPSERT that reads the row it replaces sees its own new values. */
const register = (client: SurrealShape, row: Obj, owner: string): Effect.Effect<number, UpstreamError> =>
  listOf(
    client,
    `BEGIN; LET $old = (SELECT VALUE [owner, assignment, lastActiveAt] FROM $row.id)[0];
    UPSERT $row.id MERGE $row RETURN NONE;
    UPDATE $row.id SET owner = $owner, assignment = ($old[1] ?? 0) + (IF $old[0] = $owner THEN 0 ELSE 1 END),
      lastActiveAt = (IF $old[2] > $row.lastActiveAt THEN $old[2] ELSE $row.lastActiveAt END) RETURN VALUE assignment; COMMIT`,
    { row, owner }
  ).pipe(Effect.map(([assignment]) => Number(assignment)))

/** In two steps: a row read in the transaction that wrote it comes without its id (3.0.2). */
const claim = (
  client: SurrealShape,
  bindings: Bindings
): Effect.Effect<ReadonlyArray<OwnedRegistration>, UpstreamError> =>
  listOf(
    client,
    "UPDATE $ids SET owner = $owner, assignment = (assignment ?? 0) + 1 WHERE owner != $owner RETURN NONE; SELECT * FROM $ids WHERE owner = $owner",
    bindings
  ).pipe(
    unlessMissing,
    Effect.flatMap((rows) => ownRows(rows, Rows.toRegistration))
  )

/** Answers rows that lose their owner here and rows that had none alike: no service keeps either alive. */
const expire = (
  client: SurrealShape,
  bindings: Bindings
): Effect.Effect<ReadonlyArray<OwnedRegistration>, UpstreamError> =>
  listOf(
    client,
    `BEGIN; UPDATE $ids SET owner = NONE WHERE owner = $owner AND lastActiveAt + ttl <= $now AND lastActiveAt + ttl <= time::now() RETURN NONE; LET $rows = (SELECT * FROM $ids WHERE owner != NONE); RETURN $rows; COMMIT`,
    bindings
  ).pipe(Effect.flatMap((rows) => ownRows(rows, Rows.toRegistration)))

/**
 * A writer of edges reads the row of their view, and every part writes it: of two writers one commits first and the
 * other gets a conflict.
 */
const unregisterStatements = `BEGIN;
  LET $mine = (UPDATE $row SET owner = NONE, assignment = (assignment ?? 0) + 1 WHERE owner = $owner OR owner = NONE RETURN VALUE id);
  LET $edges = (SELECT VALUE id FROM $range LIMIT $size);
  DELETE $edges WHERE array::len($mine) > 0 RETURN NONE;
  DELETE $mine WHERE array::len($edges) < $size RETURN NONE;
  LET $left = [array::len($mine) > 0 AND array::len($edges) = $size];
  RETURN $left; COMMIT`

const unregister = (
  client: SurrealShape,
  keys: ReadonlyArray<string>,
  owner: string
): Effect.Effect<void, UpstreamError> => {
  const clear = (key: string): Effect.Effect<void, UpstreamError> =>
    Effect.flatMap(
      listOf(client, unregisterStatements, {
        row: Rows.queryId(key),
        owner,
        range: Rows.startingWith(Schema.edgeTable, key),
        size: edgeChunk
      }).pipe(unlessMissing),
      ([left]) => (left === true ? clear(key) : Effect.void)
    )
  return Effect.forEach(keys, clear, { discard: true, concurrency: 4 })
}

const edges = (client: SurrealShape, key: string): Stream.Stream<ReadonlyArray<Edge>, UpstreamError> =>
  Stream.paginateEffect(undefined as RecordId | undefined, (after) =>
    listOf(client, "LET $rows = (SELECT * FROM $range LIMIT $size); RETURN $rows", {
      range: Rows.startingWith(Schema.edgeTable, key, after),
      size: edgeChunk
    }).pipe(
      Effect.flatMap((rows) => {
        const last = rows.at(-1)
        const next =
          rows.length === edgeChunk && isObj(last) && last["id"] instanceof RecordId
            ? Option.some(last["id"])
            : Option.none()
        return Effect.map(ownRows(rows, Rows.toEdge), (found) => [found, next] as const)
      })
    )
  )

const applyStatements = `BEGIN;
  LET $held = (SELECT VALUE [record::id(id), owner, assignment] FROM $ids);
  LET $good = (SELECT * FROM $views WHERE [key, owner, assignment] IN $held);
  FOR $view IN $good {
    DELETE $view.gone RETURN NONE;
    FOR $part IN $view.puts { INSERT INTO ${Schema.edgeTable} $part ON DUPLICATE KEY UPDATE version = $input.version, clientId = $input.clientId RETURN NONE }
  };
  LET $keys = (SELECT VALUE key FROM $good);
  RETURN $keys; COMMIT`

const bound = ({ assignment, clientId, key, owner, puts, removals }: ViewEdges): Obj => ({
  key,
  owner,
  assignment,
  gone: removals.map((edge) => Rows.edgeId(key, edge)),
  puts: chunksOf(
    puts.map((edge) => Rows.fromEdge(key, clientId, edge)),
    rowsPerInsert
  )
})

const weight = (views: ReadonlyArray<ViewEdges>): number =>
  views.reduce((sum, { puts, removals }) => sum + puts.length + removals.length, 0)

/** Two halves of a batch, by operations; the order within a view is kept. */
const halves = (views: ReadonlyArray<ViewEdges>): readonly [ReadonlyArray<ViewEdges>, ReadonlyArray<ViewEdges>] => {
  let room = Math.floor(weight(views) / 2)
  const first: Array<ViewEdges> = [],
    second: Array<ViewEdges> = []
  for (const view of views) {
    const removed = Math.min(room, view.removals.length)
    const put = Math.min(room - removed, view.puts.length)
    room -= removed + put
    if (removed + put > 0)
      first.push({ ...view, removals: view.removals.slice(0, removed), puts: view.puts.slice(0, put) })
    if (removed + put < view.removals.length + view.puts.length)
      second.push({ ...view, removals: view.removals.slice(removed), puts: view.puts.slice(put) })
  }
  return [first, second]
}

/**
 * Most refused operations that are then sent one by one, in one request. With many more, each would cost more: the
 * database carries all parameters of the request into every statement.
 */
const mostSingles = 400

/** One operation in a transaction of its own, which answers whether the writer still owns the view. */
const singleStatement = (i: number): string => `{
  LET $view = $view${i};
  LET $held = (SELECT VALUE [record::id(id), owner, assignment] FROM $id${i});
  IF [$view.key, $view.owner, $view.assignment] NOT IN $held { RETURN false };
  DELETE $view.gone RETURN NONE;
  FOR $part IN $view.puts { INSERT INTO ${Schema.edgeTable} $part ON DUPLICATE KEY UPDATE version = $input.version, clientId = $input.clientId RETURN NONE };
  RETURN true
}`

/** Each operation in a transaction of its own: a refused edge blocks no other, and costs no request of its own. */
const applySingly = (
  client: SurrealShape,
  views: ReadonlyArray<ViewEdges>
): Effect.Effect<EdgesApplied, SurrealError> => {
  const singles = views.flatMap((view) => [
    ...view.removals.map((edge) => ({ edge, view: { ...view, removals: [edge], puts: [] } })),
    ...view.puts.map((edge) => ({ edge, view: { ...view, removals: [], puts: [edge] } }))
  ])
  const bindings = Object.fromEntries(
    singles.flatMap(({ view }, i) => [
      [`id${i}`, Rows.queryId(view.key)],
      [`view${i}`, bound(view)]
    ])
  )
  return Effect.flatMap(client.ask(singles.map((_, i) => singleStatement(i)).join(";"), bindings), (answers) => {
    const lost = new Set<string>()
    const refused: Array<EdgesApplied["refused"][number]> = []
    for (const [i, answer] of answers.entries()) {
      const { edge, view } = singles[i]!
      if (Either.isRight(answer)) {
        if (answer.right === false) lost.add(view.key)
      } else if (answer.left.reason !== "refused") return Effect.fail(answer.left)
      else refused.push({ key: view.key, edge, reason: answer.left.message })
    }
    return Effect.succeed({ lost: [...lost], refused })
  })
}

/**
 * A refused batch is halved until few enough operations are left to be sent one by one: an edge that the database
 * refuses must not block the others.
 */
const apply = (client: SurrealShape, views: ReadonlyArray<ViewEdges>): Effect.Effect<EdgesApplied, UpstreamError> =>
  Effect.suspend(() => {
    if (views.length === 0) return Effect.succeed({ lost: [], refused: [] })
    const bindings = { ids: views.map(({ key }) => Rows.queryId(key)), views: views.map(bound) }
    return client.query(applyStatements, bindings).pipe(
      Effect.map((answers) => {
        const good = new Set(answers.findLast((answer) => Array.isArray(answer)) as ReadonlyArray<Value>)
        return { lost: views.filter(({ key }) => !good.has(key)).map(({ key }) => key), refused: [] }
      }),
      Effect.catchIf(
        (error) => error.reason === "refused",
        (error): Effect.Effect<EdgesApplied, SurrealError | UpstreamError> => {
          if (weight(views) === 0) return Effect.fail(error)
          if (weight(views) <= mostSingles) return applySingly(client, views)
          const [first, second] = halves(views)
          return Effect.zipWith(apply(client, first), apply(client, second), (a, b) => ({
            lost: [...new Set([...a.lost, ...b.lost])],
            refused: [...a.refused, ...b.refused]
          }))
        }
      ),
      Effect.mapError((error) => (error instanceof UpstreamError ? error : failure(error)))
    )
  })

const unstorable = "the database cannot read back an id with an empty field name"

const applyStorable = (
  client: SurrealShape,
  views: ReadonlyArray<ViewEdges>
): Effect.Effect<EdgesApplied, UpstreamError> => {
  const odd = views.flatMap(({ key, puts, removals }) =>
    [...removals, ...puts].filter((edge) => !Rows.isStorable(edge)).map((edge) => ({ key, edge, reason: unstorable }))
  )
  if (odd.length === 0) return apply(client, views)
  const rest = views.map((view) => ({
    ...view,
    puts: view.puts.filter(Rows.isStorable),
    removals: view.removals.filter(Rows.isStorable)
  }))
  return Effect.map(apply(client, rest), ({ lost, refused }) => ({ lost, refused: [...odd, ...refused] }))
}

const putNodes = (client: SurrealShape, nodes: ReadonlyArray<IntegrityNode>): Effect.Effect<void, UpstreamError> =>
  run(
    client,
    `BEGIN; FOR $part IN $parts { INSERT INTO ${Schema.integrityTable} $part ON DUPLICATE KEY UPDATE hash = $input.hash, count = $input.count, seq = $input.seq RETURN NONE }; COMMIT`,
    { parts: chunksOf(nodes.map(Rows.fromNode), rowsPerInsert) }
  ).pipe(Effect.asVoid)

/** The `Upstream` of a SurrealDB. */
export const layer: Layer.Layer<Upstream, never, SurrealClient> = Layer.effect(
  Upstream,
  Effect.map(SurrealClient, make)
)
