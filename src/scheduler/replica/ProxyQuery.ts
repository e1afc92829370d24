/**
 * `/proxy/query` (D28): read-only statements over the newest frozen state of the replica, else over the current one.
 *
 * Read-only by construction: the language that is parsed has no statement that writes, and reads are of a snapshot.
 * Runs share slices of 10 ms with a turn of the event loop in between, so that ingest goes on; rows and steps are
 * bounded by settings that the error names. So are bytes, those of one query and those of all together: as many run at
 * once as there is room for what each may make, and answers that have not been sent are counted.
 *
 * Two answers to the same query:
 * - **plain** (any client): JSON as the database renders it, records as they are and tables of the database alone, as
 *   an SSP needs them that knows the specification alone (D77); `SELECT *, _svc_rv` has the versions too. It loses
 *   types: a datetime, a duration, a uuid, a decimal
 *   and a record id are text, a set is an array; whole floats are written `2.0`, ints beyond 2^53 with all their
 *   digits. What a reader knows of types it has from `INFO FOR TABLE`.
 * - **exact** (extension): asked for with the request header `accept: application/vnd.svc+json`, and so typed in the
 *   answer. The body is the same value in our own encoding (`core/surql/values/encode.ts`: JSON, in which
 *   `{"$":["d","2020-..."]}` and its like stand for what JSON has no type for), so `Encode.decode(body)` gives exactly
 *   the values that the scheduler has: rows have `id` as a record id and their version in `_svc_rv`. `params` of such a
 *   request are in the same encoding, so a record id can be bound: `JSON.parse(Encode.encode({ last: id }))` is what
 *   goes into the body.
 *
 * Chunks that cost what they hold, whatever the size of the table: `SELECT * FROM t WHERE id > $last ORDER BY id LIMIT
 * 1000` with `$last` a record id (exact; text compares as text, as in the database), and ranges written out, which
 * plain clients can use: `SELECT * FROM t:⟨last⟩>.. LIMIT 1000`, `SELECT * FROM t:1..1000`.
 */
import { Clock, Context, Data, Effect, Either, Layer, type Scope } from "effect"
import * as JsonText from "../../core/jsonText.ts"
import type { Statement } from "../../core/surql/syntax/ast.ts"
import { parseStatements } from "../../core/surql/syntax/parse.ts"
import * as Encode from "../../core/surql/values/encode.ts"
import * as Json from "../../core/surql/values/json.ts"
import { Datetime, type Value } from "../../core/surql/values/value.ts"
import { Slicer } from "../../node/work/Slicer.ts"
import { Heap, ProcessFigures } from "../../ports/ProcessFigures.ts"
import { Replica, ReplicaError } from "../../ports/Replica.ts"
import { steadyOf, Turn } from "../../ports/Turn.ts"
import { exactType } from "../../protocol/wire.ts"
import { QueryAdmission, QueryBusy, type TotalLimits } from "./queryAdmission.ts"
import { answer } from "./queryRun.ts"

export interface Query {
  readonly query: string
  readonly params: { readonly [name: string]: unknown } | undefined
  /** The request's `accept` header. */
  readonly accept: string | undefined
}

export interface Answer {
  readonly seq: number
  /** JSON text in UTF-8, in pieces: one statement's value, or an array of several values. */
  readonly body: ReadonlyArray<Uint8Array>
  readonly length: number
  readonly contentType: string
}

/** 400 `INVALID_QUERY`: the query does not parse, or has a statement that is not allowed. */
class QueryRefused extends Data.TaggedError("QueryRefused")<{
  readonly message: string
  readonly line: number
  readonly column: number
}> {}

/** 500 `QUERY_FAILED`: the query failed while it ran. */
class QueryFailed extends Data.TaggedError("QueryFailed")<{ readonly message: string }> {}

export type QueryError = QueryRefused | QueryFailed | QueryBusy | ReplicaError

/** Whether a header names the media type among others. */
const accepts = (accept: string | undefined): boolean =>
  accept
    ?.toLowerCase()
    .split(",")
    .some((part) => part.split(";")[0]!.trim() === exactType) === true

const paramsOf = (params: Query["params"], exact: boolean): { readonly [name: string]: Value } =>
  (params === undefined ? {} : exact ? Encode.decode(JsonText.write(params)) : Json.fromJson(params)) as {
    readonly [name: string]: Value
  }

const parse = (query: string): Effect.Effect<ReadonlyArray<Statement>, QueryRefused> =>
  Effect.suspend(() =>
    Either.match(parseStatements(query), {
      onLeft: ({ column, line, message }) =>
        Effect.fail(new QueryRefused({ message: `line ${line}, column ${column}: ${message}`, line, column })),
      onRight: Effect.succeed
    })
  )

export class ProxyQuery extends Context.Tag("scheduler/replica/ProxyQuery")<
  ProxyQuery,
  {
    /** Runs a query. The memory of the answer counts until the scope closes, which is when it has been sent. */
    readonly run: (query: Query) => Effect.Effect<Answer, QueryError, Scope.Scope>
  }
>() {
  /**
   * `limits`: settings `SVC_QUERY_ROWS`, `SVC_QUERY_STEPS`, `SVC_QUERY_ROW_STEPS`, `SVC_QUERY_BYTES` and
   * `SVC_QUERY_BYTES_TOTAL`.
   */
  static readonly layer = (limits: TotalLimits): Layer.Layer<ProxyQuery, never, Replica | Turn> =>
    Layer.scoped(ProxyQuery, make(limits))
}

const make = (limits: TotalLimits) =>
  Effect.gen(function* () {
    const replica = yield* Replica
    const clock = yield* Effect.clock
    const slicer = new Slicer(yield* Turn, steadyOf(clock))
    yield* Effect.addFinalizer(() => Effect.sync(() => slicer.close()))
    const room = new QueryAdmission(limits, (yield* yield* ProcessFigures)?.heapLimitBytes, yield* Heap)
    const now = Effect.map(
      Clock.currentTimeNanos,
      (nanos) => new Datetime(Number(nanos / 1_000_000_000n), Number(nanos % 1_000_000_000n))
    )

    const evaluated = (
      statements: ReadonlyArray<Statement>,
      params: { readonly [name: string]: Value },
      exact: boolean
    ) =>
      Effect.gen(function* () {
        const snapshot = yield* replica.snapshot
        const at = yield* now
        const result = yield* slicer
          .run(() => answer(statements, { snapshot, params, limits, now: at, exact }))
          .pipe(
            Effect.catchTag("Closed", () =>
              Effect.fail(new QueryBusy({ message: "the scheduler is shutting down", retryAfterSecs: 1 }))
            ),
            // The query reads synchronously, and throws when the replica fails.
            Effect.catchAllDefect((defect) =>
              defect instanceof ReplicaError ? Effect.fail(defect) : Effect.die(defect)
            )
          )
        if (Either.isLeft(result)) return yield* new QueryFailed({ message: result.left })
        const body = result.right
        const length = body.reduce((sum, chunk) => sum + chunk.length, 0)
        return { seq: snapshot.seq, body, length, contentType: exact ? exactType : "application/json" }
      }).pipe(Effect.scoped)

    const run = ({ accept, params, query }: Query): Effect.Effect<Answer, QueryError, Scope.Scope> => {
      const exact = accepts(accept)
      return Effect.flatMap(parse(query), (statements) =>
        room.run(Effect.suspend(() => evaluated(statements, paramsOf(params, exact), exact)))
      )
    }
    return { run }
  })
