/**
 * A scheduler that does what its test says: a snapshot that is really queried, and answers that may be replaced.
 *
 * Everything it is asked is kept with its time, so that a test reads what an SSP did as one list.
 */
import { Clock, Effect, Either, Layer } from "effect"
import { fromRecords } from "../../src/core/surql/evaluate/memory.ts"
import { queryBudget } from "../../src/core/surql/evaluate/scope.ts"
import { evaluate } from "../../src/core/surql/evaluate/select/select.ts"
import { parseStatements } from "../../src/core/surql/syntax/parse.ts"
import * as Encode from "../../src/core/surql/values/encode.ts"
import * as Json from "../../src/core/surql/values/json.ts"
import * as Ids from "../../src/core/surql/values/recordId.ts"
import type { Obj } from "../../src/core/surql/values/value.ts"
import {
  type ProxyAnswer,
  SchedulerClient,
  type SchedulerClientShape,
  SchedulerError
} from "../../src/ports/SchedulerClient.ts"
import type { Heartbeat, SspDeregistration, SspRegistered, SspRegistration } from "../../src/protocol/wire.ts"

type SspBody = typeof SspRegistration.Type
type Beat = typeof Heartbeat.Type

export type Asked =
  | { readonly at: number; readonly what: "register"; readonly body: SspBody }
  | { readonly at: number; readonly what: "heartbeat"; readonly body: Beat }
  | { readonly at: number; readonly what: "deregister"; readonly body: typeof SspDeregistration.Type }
  | { readonly at: number; readonly what: "signin" | "use" }
  | { readonly at: number; readonly what: "query"; readonly query: string; readonly params: Obj | undefined }

export const refusing = (
  reason: SchedulerError["reason"],
  more: { readonly retryAfterMs?: number } = {}
): Effect.Effect<never, SchedulerError> =>
  Effect.fail(new SchedulerError({ reason, message: `${reason} on purpose`, ...more }))

export class FakeScheduler {
  readonly asked: Array<Asked> = []
  /** Records as JSON rows, `_svc_rv` included. */
  rows: ReadonlyArray<{ readonly id: string; readonly [field: string]: unknown }> = []
  /** Declared types by table and field. */
  fields: { readonly [table: string]: { readonly [field: string]: string } } = {}
  seq = 10
  logId = "log"
  epoch = 1
  registrations = 0
  /** Whether answers of the proxy name their position, and lose nothing. */
  says = { header: true, exact: true }
  /** What an SSP may follow it by (D61); nothing: as a scheduler that knows the specification alone. */
  feed: Pick<SchedulerClientShape, "feed" | "applied" | "openAcks" | "ingest"> = {}
  /** Replace the answers; undefined: as it is. */
  onRegister: (registration: SspBody) => Effect.Effect<typeof SspRegistered.Type, SchedulerError> | undefined = () =>
    undefined
  onHeartbeat: (beat: Beat) => Effect.Effect<void, SchedulerError> | undefined = () => undefined
  onDeregister: () => Effect.Effect<void, SchedulerError> = () => Effect.void
  onQuery: (query: string) => Effect.Effect<ProxyAnswer, SchedulerError> | undefined = () => undefined

  count(what: Asked["what"]): number {
    return this.asked.filter((each) => each.what === what).length
  }

  get heartbeats(): ReadonlyArray<Beat> {
    return this.asked.flatMap((each) => (each.what === "heartbeat" ? [each.body] : []))
  }

  get queries(): ReadonlyArray<string> {
    return this.asked.flatMap((each) => (each.what === "query" ? [each.query] : []))
  }

  readonly client: SchedulerClientShape = {
    register: (body) =>
      this.notedAs(
        (at) => ({ at, what: "register", body }),
        () =>
          this.onRegister(body) ??
          Effect.sync(() => ({
            snapshot_seq: this.seq,
            registration: ++this.registrations,
            log_id: this.logId,
            epoch: this.epoch
          }))
      ),
    heartbeat: (body) =>
      this.notedAs(
        (at) => ({ at, what: "heartbeat", body }),
        () => this.onHeartbeat(body) ?? Effect.void
      ),
    deregister: (body) =>
      this.notedAs(
        (at) => ({ at, what: "deregister", body }),
        () => this.onDeregister()
      ),
    signin: Effect.suspend(() =>
      this.notedAs(
        (at) => ({ at, what: "signin" }),
        () => Effect.void
      )
    ),
    use: Effect.suspend(() =>
      this.notedAs(
        (at) => ({ at, what: "use" }),
        () => Effect.void
      )
    ),
    query: (query, params) =>
      this.notedAs(
        (at) => ({ at, what: "query", query, params }),
        () =>
          this.onQuery(query) ??
          Effect.sync(() => ({
            seq: this.says.header ? this.seq : undefined,
            exact: this.says.exact,
            text: this.answer(query, params ?? {})
          }))
      )
  }

  readonly layer: Layer.Layer<SchedulerClient> = Layer.sync(SchedulerClient, () => ({ ...this.client, ...this.feed }))

  private notedAs<A>(
    asked: (at: number) => Asked,
    answer: () => Effect.Effect<A, SchedulerError>
  ): Effect.Effect<A, SchedulerError> {
    return Effect.flatMap(Clock.currentTimeMillis, (at) => {
      this.asked.push(asked(at))
      return answer()
    })
  }

  private answer(query: string, params: Obj): string {
    const write = this.says.exact ? Encode.encode : Json.stringify
    const tables = [
      ...new Set([...this.rows.map(({ id }) => id.slice(0, id.indexOf(":"))), ...Object.keys(this.fields)])
    ]
    if (query === "INFO FOR DB")
      return write({ tables: Object.fromEntries(tables.map((name) => [name, `DEFINE TABLE ${name}`])) })
    const [, info] = /^INFO FOR TABLE (\w+)$/.exec(query) ?? []
    if (info !== undefined)
      return write({
        fields: Object.fromEntries(
          Object.entries(this.fields[info] ?? {}).map(([name, type]) => [
            name,
            `DEFINE FIELD ${name} ON ${info} TYPE ${type} PERMISSIONS FULL`
          ])
        )
      })
    const [statement] = Either.getOrThrowWith(parseStatements(query), (error) => new Error(error.message))
    const records = this.rows.map((row) => ({
      ...(Json.fromJsonTyped(row, this.fields[row.id.slice(0, row.id.indexOf(":"))] ?? {}) as Obj),
      id: Ids.parseLenient(row.id)!
    }))
    const value = Either.getOrThrowWith(
      evaluate(statement!, { source: fromRecords(records), params, budget: queryBudget() }),
      (error) => new Error(JSON.stringify(error))
    )
    return write(value)
  }
}
