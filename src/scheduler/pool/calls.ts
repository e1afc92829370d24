/**
 * Calls of the pool to SSPs, each as an effect that ends with the command that reports it.
 *
 * No call fails: a call without an answer is reported too. A delivery is split into requests below the SSP's limit,
 * sent one after the other in the log's order.
 */
import { type Clock, Effect, Random } from "effect"
import type { Answer } from "../../core/cluster/deliveryQueue.ts"
import type { Action, CallOutcome, Command } from "../../core/cluster/messages.ts"
import * as Event from "../../core/record/event.ts"
import * as Json from "../../core/surql/values/json.ts"
import * as Ids from "../../core/surql/values/recordId.ts"
import { definitionsTable } from "../../core/surreal/definitionsRecord.ts"
import { isOwn } from "../../core/surreal/surrealSchema.ts"
import { isoOf } from "../../core/view/viewTimes.ts"
import type { ReplicaShape } from "../../ports/Replica.ts"
import type { SspClientShape, Target } from "../../ports/SspClient.ts"
import type { TracingShape } from "../../ports/Tracing.ts"
import { steadyAheadMs, steadyOf } from "../../ports/Turn.ts"
import type { Events } from "./Events.ts"
import type { ViewReads } from "./viewReads.ts"

export interface CallContext {
  readonly client: SspClientShape
  readonly events: Events
  readonly replica: Pick<ReplicaShape, "current">
  readonly reads: ViewReads
  readonly tracing: TracingShape | undefined
  /** Largest body of a delivery of several events. */
  readonly maxBodyBytes: number
}

/** Largest number of links of one span. */
const maxLinks = 64

type Execution = Extract<Action, { readonly tag: "ExecuteJob" }>
type Call = Extract<Action, { readonly tag: "Poll" | "Deliver" | "CallRegister" | "CallUnregister" | "ExecuteJob" }>

/** Beginning of an event that carries the database's definitions. */
const definitions = `{"table":"${definitionsTable}",`

/**
 * Request bodies for these events: one event alone, or as many as fit. A character is three bytes at worst, so a third
 * of the limit is always safe.
 */
const requests = (events: ReadonlyArray<string>, maxBytes: number): ReadonlyArray<string> => {
  const bodies: Array<string> = []
  let part: Array<string> = []
  let size = 0
  const flush = (): void => {
    if (part.length > 0) bodies.push(part.length === 1 ? part[0]! : `[${part.join(",")}]`)
    part = []
    size = 0
  }
  for (const event of events) {
    // Definitions type the records behind them, so the SSP applies them before it reads those records.
    const isAlone = event.startsWith(definitions)
    if (isAlone || size + event.length > maxBytes / 3) flush()
    part.push(event)
    size += event.length + 1
    if (isAlone) flush()
  }
  flush()
  return bodies
}

/** A delivery of traced events is a span in the first event's trace, linked to the other traces. */
const deliver = (context: CallContext, action: Call & { readonly tag: "Deliver" }): Effect.Effect<Answer> =>
  Effect.suspend(() => {
    const [parent, ...links] = context.events.tracesOf(action.from, action.to)
    if (parent === undefined) return send(context, action, undefined)
    const span = context.tracing?.begin("deliver", {
      kind: "client",
      parent,
      links: links.slice(0, maxLinks),
      attributes: { "svc.ssp": action.ssp, "svc.from": action.from, "svc.to": action.to }
    })
    return Effect.tap(send(context, action, span?.traceparent ?? parent), ({ kind }) =>
      Effect.sync(() => span?.end(kind === "applied" ? undefined : kind))
    )
  })

const send = Effect.fnUntraced(function* (
  { client, events, maxBodyBytes }: CallContext,
  action: Call & { readonly tag: "Deliver" },
  traceparent: string | undefined
) {
  const read = yield* Effect.either(events.read(action.from, action.to))
  if (read._tag === "Left") {
    yield* Effect.logError(
      `events ${action.from} to ${action.to} cannot be read for ${action.ssp}: ${read.left.message}`
    )
    return { kind: "unavailable" } as const
  }
  const plain = (lines: ReadonlyArray<string>) =>
    lines.filter((line) => !isOwn(Event.tableOf(line))).map((line) => Event.plainChangeOf(line, action.ssp))
  const told = action.plain ? plain(read.right) : read.right
  let answer: Answer = { kind: "applied" }
  for (const body of requests(told, maxBodyBytes)) {
    answer = yield* client.deliver(action, body, traceparent)
    if (answer.kind !== "applied") return answer
  }
  return answer
})

const idOf = (view: string): string => `incantation:${view}`

/** Fields of a view registration in the specification, besides its id. */
const specified = ["surql", "clientId", "ttl", "params", "lastActiveAt", "format"] as const

/**
 * Body of a registration call: the client's own, the assignment, and `idleMs` since the last activity instead of a
 * time, because an SSP's clock may differ. An SSP of the specification gets one form of the id, and the last activity
 * as a time of day if that is later than the registration's own.
 */
const registrationBody = (
  { assignment, plain, spec, view }: Action & { readonly tag: "CallRegister" },
  clock: Clock.Clock
) => {
  const given = spec.body as { readonly [field: string]: unknown }
  if (!plain) return { ...given, idleMs: steadyOf(clock)() - spec.lastActiveAt, assignment }
  const lastActiveAt = spec.lastActiveAt - steadyAheadMs(clock)
  const known = typeof given["lastActiveAt"] === "string" ? Date.parse(given["lastActiveAt"]) : undefined
  const later = known === undefined || known < lastActiveAt
  const registration: typeof given = { ...given, ...(later ? { lastActiveAt: isoOf(lastActiveAt) } : {}) }
  return {
    id: idOf(view),
    ...Object.fromEntries(specified.flatMap((name) => (name in registration ? [[name, registration[name]]] : [])))
  }
}

const triedFields = ["max_retries", "retry_strategy", "errors"] as const

/**
 * A job in the replica: the body of its dispatch with its attempts so far, and the change that tells an SSP of the
 * specification to run it. Undefined: no such record.
 */
const jobOf = Effect.fnUntraced(function* ({ replica }: CallContext, { created, job, plain, table }: Execution) {
  const id = Ids.parseLenient(job)
  const found =
    id === undefined ? undefined : (yield* Effect.orElseSucceed(replica.current([id]), () => undefined))?.get(id.text)
  const doc = found?.doc
  if (doc === undefined) return undefined
  const body = {
    job_id: job,
    table,
    payload: { path: typeof doc["path"] === "string" ? doc["path"] : "", body: Json.toJson(doc["payload"]) ?? {} }
  }
  const tried = triedFields.flatMap((name) => (name in doc ? [[name, Json.toJson(doc[name])]] : []))
  const record = { ...(Json.toJson(doc) as { readonly [field: string]: unknown }), status: "pending" }
  return {
    body: plain ? body : { ...body, created_seq: created, ...Object.fromEntries(tried) },
    change: { table, op: "UPDATE", id: job, record }
  }
})

/** Carries the call out; answers the command that reports it. */
export const run = (context: CallContext, action: Call): Effect.Effect<Command> => {
  const { client } = context
  const { registration, ssp } = action
  const target: Target = action
  switch (action.tag) {
    case "Poll":
      return Effect.map(client.health(target), (health) => ({ tag: "Polled", ssp, registration, health }))
    case "Deliver":
      return Effect.zipWith(deliver(context, action), Random.next, (answer, jitter) => ({
        tag: "Delivered",
        ssp,
        registration,
        answer,
        jitter
      }))
    case "CallRegister":
      return Effect.map(
        Effect.flatMap(Effect.clock, (clock) => client.registerView(target, registrationBody(action, clock))),
        (outcome) => {
          if (outcome.kind === "done") context.reads.learn(action.spec, outcome.tables ?? [])
          return { tag: "ViewCalled", op: action.op, view: action.view, ssp, registration, outcome }
        }
      )
    case "CallUnregister":
      return Effect.map(
        client.unregisterView(target, {
          id: idOf(action.view),
          ...(action.plain ? {} : { assignment: action.assignment, ...(action.gone ? {} : { moved: true }) })
        }),
        (outcome) => ({ tag: "ViewCalled", op: action.op, view: action.view, ssp, registration, outcome })
      )
    case "ExecuteJob":
      return Effect.map(
        Effect.flatMap(jobOf(context, action), (job) =>
          job === undefined
            ? Effect.succeed<CallOutcome>({ kind: "unreachable" })
            : client.executeJob(target, job.body, job.change)
        ),
        (outcome) => ({ tag: "JobCalled", op: action.op, job: action.job, outcome })
      )
  }
}
