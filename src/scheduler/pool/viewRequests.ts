/**
 * View registrations at the scheduler: decoded, handed to the pool, and the reply turned into an answer (D31, D33).
 *
 * The body goes to the SSP unchanged; only its times are read here, because the scheduler expires assignments by them
 * (D14).
 */
import { Effect, Either, HashMap, ParseResult, Schema } from "effect"
import type { Reply, ViewSpec } from "../../core/cluster/messages.ts"
import * as Quarantine from "../../core/cluster/poolQuarantine.ts"
import * as State from "../../core/cluster/state.ts"
import { fullMessage } from "../../core/record/memory.ts"
import * as RepeatedRegistration from "../../core/view/repeatedRegistration.ts"
import { viewKey } from "../../core/view/viewId.ts"
import * as ViewTimes from "../../core/view/viewTimes.ts"
import { invalidRequest, overloaded } from "../../node/http/answers.ts"
import { Heap } from "../../ports/ProcessFigures.ts"
import type { SspClientShape } from "../../ports/SspClient.ts"
import { steadyAheadMs } from "../../ports/Turn.ts"
import type { QueryRegistration } from "../../protocol/schedulerWire.ts"
import { ViewRegistration } from "../../protocol/wire.ts"
import * as Errors from "../HttpErrors.ts"
import type { PoolShape } from "./Pool.ts"

type RegistrationBody = typeof ViewRegistration.Type
type Assigned = Pick<Reply & { readonly kind: "assigned" }, "ssp" | "url" | "assignedAt">

const noKey = invalidRequest([{ path: "id", reason: "holds no key behind its prefix" }])

const refusal = (state: State.State, id: string, reply: Reply) => {
  switch (reply.kind) {
    case "noSsp":
      return Errors.noSsp(state)
    case "overloaded":
      return Errors.poolOverloaded(reply)
    case "quarantined":
      return Errors.viewQuarantined(id, reply)
    case "refused":
      return Errors.passedOnRefusal(reply.details)
    default:
      return Errors.unexpected(reply)
  }
}

const parsedBefore = new WeakMap<ViewSpec, RepeatedRegistration.ParsedRegistration>()

const parsedOf = (spec: ViewSpec): RepeatedRegistration.ParsedRegistration | undefined => {
  const known = parsedBefore.get(spec)
  if (known !== undefined) return known
  const read = RepeatedRegistration.read(spec.body, spec.lastActiveAt)
  const parsed = read && { ...read, ...State.timesOf(spec) }
  if (parsed !== undefined) parsedBefore.set(spec, parsed)
  return parsed
}

/**
 * The assignment of a view whose registration changes nothing (D63); undefined if the pool must decide. `aheadMs`: how
 * far the pool's steady time is ahead of the time of day.
 */
export const unchangedAssignment = (
  state: State.State,
  registration: RepeatedRegistration.ParsedRegistration,
  aheadMs: number
): Assigned | undefined => {
  const view = State.view(state, viewKey(registration.id) ?? "")
  // A call under way may still change the view.
  if (view === undefined || view.op !== undefined || view.gone || !view.placed) return undefined
  const owner = State.memberAt(state, view.home)
  const before = parsedOf(view.spec)
  const again = { ...registration, lastActiveAtMs: registration.lastActiveAtMs + aheadMs }
  if (owner?.state !== "Ready" || before === undefined || !RepeatedRegistration.isRepeat(before, again))
    return undefined
  if (Quarantine.of(state, view.spec) !== undefined) return undefined
  return { ssp: owner.ssp, url: owner.url, assignedAt: view.assignedAt }
}

/** Answer body of `/view/register`. `aheadMs`: how far the pool's steady time is ahead of the time of day. */
export const placementBody = (id: string, { assignedAt, ssp }: Assigned, aheadMs: number) => ({
  query_id: id,
  ssp_id: ssp,
  assigned_at: Math.floor((assignedAt - aheadMs) / 1000)
})

/** Registers a view; answers its SSP. */
export const register = (pool: PoolShape, { assignment: _, ...body }: RegistrationBody) =>
  Effect.gen(function* () {
    const key = viewKey(body.id)
    if (key === undefined) return yield* Effect.fail(noKey)
    const clock = yield* Effect.clock
    const times = ViewTimes.read(body, clock.unsafeCurrentTimeMillis())
    if (Either.isLeft(times)) return yield* Effect.fail(invalidRequest(times.left))
    const { lastActiveAtMs, ttlMs } = times.right
    const memory = (yield* Heap).memory()
    if (memory.isFull && !HashMap.has(pool.state().views, key))
      return yield* Effect.fail(overloaded({ message: fullMessage(memory, "deletes"), retryAfterSecs: 5 }))
    const reply = yield* pool.ask((ref) => ({
      tag: "RegisterView",
      ref,
      view: key,
      spec: { body, ttlMs, lastActiveAt: lastActiveAtMs + steadyAheadMs(clock) }
    }))
    return reply.kind === "assigned" ? reply : yield* Effect.fail(refusal(pool.state(), body.id, reply))
  })

export const unregister = (pool: PoolShape, id: string) =>
  Effect.gen(function* () {
    const key = viewKey(id)
    if (key === undefined) return yield* Effect.fail(Errors.viewNotFound(id))
    const reply = yield* pool.ask((ref) => ({ tag: "UnregisterView", ref, view: key }))
    if (reply.kind === "ok") return
    return yield* Effect.fail(reply.kind === "overloaded" ? Errors.poolOverloaded(reply) : Errors.viewNotFound(id))
  })

/**
 * Frees the query of a quarantined view at every SSP that answers, and then here. An SSP that is away reports its
 * quarantine again.
 */
export const free = (pool: PoolShape, client: Pick<SspClientShape, "freeView">, id: string) =>
  Effect.gen(function* () {
    const key = viewKey(id)
    if (key === undefined) return yield* Effect.fail(Errors.viewNotFound(id))
    const freedAt = (ssp: State.SspMember, query: object) =>
      Effect.flatMap(client.freeView(ssp, { id, ...query }), (outcome) =>
        outcome.kind === "unreachable" && outcome.secret === true
          ? Effect.fail(Errors.unreachable({ message: `SSP ${State.secretFault(ssp.ssp)}` }))
          : Effect.void
      )
    for (const query of Quarantine.under(pool.state(), key))
      yield* Effect.forEach(State.ready(pool.state()), (ssp) => freedAt(ssp, query), {
        concurrency: "unbounded",
        discard: true
      })
    const reply = yield* pool.ask((ref) => ({ tag: "FreeView", ref, view: key }))
    if (reply.kind !== "ok") return yield* Effect.fail(Errors.viewNotFound(id))
  })

/** Fields that a client of the flow description may omit (D33). */
const defaults = (queryId: string) => ({ clientId: queryId, ttl: "1h" })

/** The view registration of a query plan; faults name their path in the request. */
export const registrationOfPlan = ({
  query_id: id,
  view_plan: plan
}: typeof QueryRegistration.Type): Either.Either<RegistrationBody, ReturnType<typeof invalidRequest>> => {
  const fields = typeof plan === "string" ? { surql: plan } : plan
  return Schema.decodeUnknownEither(ViewRegistration, { errors: "all" })({ ...defaults(id), ...fields, id }).pipe(
    Either.mapLeft((error) => {
      // One fault for each path: of a union's members the first is what the client meant.
      const byPath = new Map<string, string>()
      for (const { message, path } of ParseResult.ArrayFormatter.formatErrorSync(error)) {
        const at = ["view_plan", ...path].join(".")
        if (!byPath.has(at)) byPath.set(at, message)
      }
      return invalidRequest([...byPath].map(([path, reason]) => ({ path, reason })))
    })
  )
}
