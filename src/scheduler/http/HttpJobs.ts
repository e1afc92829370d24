/**
 * Jobs of a cluster for operators: list and read by an SSP that runs the table, retry and cancel by the writer of its
 * records.
 *
 * The SSP checks the caller's secret each time, also before the scheduler writes: an open scheduler must not let every
 * caller cancel.
 */
import { Effect, HashMap, Stream } from "effect"
import * as State from "../../core/cluster/state.ts"
import * as JsonText from "../../core/jsonText.ts"
import * as Ids from "../../core/surql/values/recordId.ts"
import type { RecordId } from "../../core/surql/values/value.ts"
import * as Answers from "../../node/http/answers.ts"
import type { Call, RouteAnswer } from "../../node/http/routes.ts"
import type { JobListing } from "../../protocol/jobs.ts"
import { SchedulerConfig } from "../Config.ts"
import * as Errors from "../HttpErrors.ts"
import { Jobs } from "../jobs/Jobs.ts"
import { Pool } from "../pool/Pool.ts"
import { toSsp } from "./HttpPass.ts"

const words = {
  Retried: ["retry", "retried: only a failed job can"],
  Cancelled: ["cancel", "cancelled: it is over"]
} as const

/** Whether a known SSP or the configuration runs jobs of this table. */
const isTable = (state: State.State, configured: ReadonlySet<string>, table: string): boolean =>
  configured.has(table) ||
  [...HashMap.values(state.members)].some(({ jobTables }) => jobTables === undefined || jobTables.includes(table))

/** The ready SSP to ask: the owner of the job, else one that names its table, else any. */
const whom = (state: State.State, table: string, id: string | undefined): State.SspMember | undefined => {
  const ready = State.ready(state)
  const holder = id === undefined ? undefined : State.memberAt(state, State.job(state, id)?.home)
  return (
    ready.find((member) => member === holder) ??
    ready.find(({ jobTables }) => jobTables?.includes(table)) ??
    ready.find(({ jobTables }) => jobTables === undefined)
  )
}

const ok = Answers.plainJson({ status: "ok" })

const noTable = Answers.invalidRequest([
  { path: "table", reason: "is a job table of no SSP, nor of this scheduler's configuration" }
])

const pathOf = (ref: RecordId, what = ""): string => `/jobs/${encodeURIComponent(ref.text)}${what}`

interface Shown {
  readonly id?: unknown
  readonly status?: unknown
  readonly result?: unknown
}

/** An SSP's answer about jobs, completed with results reported here: another SSP may have run the job. */
const withResults = (answer: RouteAnswer, resultOf: (id: string) => unknown) => {
  if (answer.status !== 200 || !("flow" in answer)) return Effect.succeed(answer)
  const shown = (job: Shown): Shown => {
    const result = job.status === "success" ? resultOf(String(job.id)) : undefined
    return result === undefined ? job : { ...job, result }
  }
  return Stream.mkString(Stream.decodeText(answer.flow)).pipe(
    Effect.flatMap((text) =>
      Effect.try(() => JsonText.parse(text) as Shown & { readonly jobs?: ReadonlyArray<Shown> })
    ),
    Effect.map(
      (read): RouteAnswer =>
        Answers.json(read.jobs === undefined ? shown(read) : { ...read, jobs: read.jobs.map(shown) })
    ),
    Effect.mapError((error) =>
      Errors.unreachable({
        message: `the SSP's answer broke off: ${error instanceof Error ? error.message : String(error)}`
      })
    )
  )
}

export const make = Effect.gen(function* () {
  const pool = yield* Pool
  const jobs = yield* Jobs
  const pass = yield* toSsp
  const { jobTables } = yield* SchedulerConfig
  /** `otherwise`: failure if no SSP runs jobs of this table. */
  const asked = <E>(call: Call, table: string, id: string | undefined, path: string, otherwise: E, as?: "GET") =>
    Effect.gen(function* () {
      const state = pool.state()
      const ssp = whom(state, table, id)
      if (ssp !== undefined) return yield* pass(call, ssp, path, as)
      const mayCome = HashMap.size(state.members) === 0 || isTable(state, jobTables, table)
      return yield* mayCome
        ? Effect.fail(Errors.noSsp(state, ` and run jobs of table ${JSON.stringify(table)}`))
        : Effect.fail(otherwise)
    })
  const askedOf = (call: Call, { table, text }: RecordId, path: string, as?: "GET") =>
    asked(call, table, text, path, Errors.jobNotFound(text), as)
  const of = (id: string) =>
    Effect.fromNullable(Ids.parseLenient(id)).pipe(Effect.mapError(() => Errors.jobNotFound(id)))
  const write = (id: RecordId, event: keyof typeof words, amend: NonNullable<typeof jobs.amend>) =>
    Effect.gen(function* () {
      const result = yield* Effect.mapError(amend(id, event), Errors.ingestError)
      if (result.kind === "missing") return yield* Effect.fail(Errors.jobNotFound(id.text))
      if (result.kind === "refused")
        return yield* Effect.fail({
          code: "JOB_STATUS" as const,
          message: `job ${id.text.slice(0, 200)} is ${result.status} and cannot be ${words[event][1]}`,
          details: { status: result.status }
        })
      return ok
    })
  return {
    list: (call: Call, listing: { readonly [K in keyof typeof JobListing.Type]: (typeof JobListing.Type)[K] }) =>
      asked(
        call,
        listing.table,
        undefined,
        `/jobs?${new URLSearchParams(Object.entries(listing).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)] as [string, string]])))}`,
        noTable
      ).pipe(Effect.flatMap((answer) => withResults(answer, jobs.resultOf))),
    look: (call: Call, id: string) =>
      Effect.flatMap(of(id), (ref) => askedOf(call, ref, pathOf(ref))).pipe(
        Effect.flatMap((answer) => withResults(answer, jobs.resultOf))
      ),
    amend: (call: Call, id: string, event: keyof typeof words) =>
      Effect.gen(function* () {
        const ref = yield* of(id)
        if (jobs.amend === undefined) return yield* askedOf(call, ref, pathOf(ref, `/${words[event][0]}`))
        const seen = yield* askedOf(call, ref, pathOf(ref), "GET")
        if (seen.status !== 200) return seen
        // The answer proves that the caller may see the job; its body is discarded.
        if ("flow" in seen) yield* Effect.ignore(Stream.runDrain(seen.flow))
        return yield* write(ref, event, jobs.amend)
      })
  }
})
