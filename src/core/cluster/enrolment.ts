/**
 * An SSP's own side of membership: registering, pulling, being a member, starting over, giving up, stopping (D18, D19,
 * D20).
 *
 * Pure, because endless 409 loops, a first failure that is final and a process that fights its own successor are the
 * faults to test for here. Every event is a fact. An attempt is one registration and what follows from it; facts of an
 * older attempt are ignored. The shell carries out the orders and decides nothing.
 */
import { type Backoff, ceilingMs } from "../backoff.ts"
import * as Phase from "./phase.ts"

/**
 * `registering` and `pulling` are the two halves of an attempt; `member`: it has its data; `fenced`: a newer process
 * has its id.
 */
type Step = "registering" | "pulling" | "member" | "fenced"

export interface Enrolment {
  readonly attempt: number
  readonly step: Step
  readonly phase: Phase.Phase
  /** Number of this attempt's registration, if the scheduler numbers them. */
  readonly registration: number | undefined
  /**
   * `failures`: attempts in a row that failed. `tries`: attempts in a row without success; a scheduler that is cloning
   * makes only this number grow.
   */
  readonly failures: number
  readonly tries: number
  /** Times at which this SSP lost its data within the last 10 minutes. */
  readonly losses: ReadonlyArray<number>
}

/** The state at the start of the process. */
export const initial: Enrolment = {
  attempt: 1,
  step: "registering",
  phase: "bootstrapping",
  registration: undefined,
  failures: 0,
  tries: 0,
  losses: []
}

/** `ok` 200, `unknown` 404, `conflict` 409, `fenced` 409 `SSP_FENCED`; `none`: anything else, or no answer. */
export type HeartbeatAnswer = "ok" | "unknown" | "conflict" | "fenced" | "none"

/** An event that the enrolment decides about. */
export type Fact =
  | { readonly tag: "Registered"; readonly attempt: number; readonly registration: number | undefined }
  | { readonly tag: "Loaded"; readonly attempt: number }
  /** `counts`: whether the failure counts towards `failed`; `waitMs`: delay that the scheduler asked for. */
  | {
      readonly tag: "Failed"
      readonly attempt: number
      readonly counts: boolean
      readonly waitMs: number
      readonly message: string
    }
  /** Answer to a heartbeat, which was sent in `attempt` after its registration. */
  | { readonly tag: "Answered"; readonly attempt: number; readonly answer: HeartbeatAnswer; readonly message: string }
  /** A call of the scheduler named this number as the SSP's registration. */
  | { readonly tag: "Named"; readonly registration: number }
  | { readonly tag: "Lost"; readonly reason: string }
  | { readonly tag: "Fenced"; readonly message: string }

/** An effect that the shell carries out. */
export type Order =
  /** Begin an attempt and cancel the one before: wait `waitMs` and an even draw below `jitterMs`, then register. */
  | { readonly tag: "Begin"; readonly attempt: number; readonly waitMs: number; readonly jitterMs: number }
  /** End the process with this message. */
  | { readonly tag: "Stop"; readonly message: string }
  | { readonly tag: "Log"; readonly level: "info" | "warn" | "error"; readonly message: string }

/** Backoff between registrations, and between reads of the database. */
export const backoff: Backoff = { baseMs: 500, capMs: 30_000 }

/** More losses than this within the window are logged as errors (D19). */
const quietLosses = 3
const lossWindowMs = 600_000

const log = (level: "info" | "warn" | "error", message: string): Order => ({ tag: "Log", level, message })

type Decision = readonly [state: Enrolment, orders: ReadonlyArray<Order>]

const moved = (state: Enrolment, event: Phase.PhaseEvent): readonly [Phase.Phase, ReadonlyArray<Order>] => {
  const step = Phase.next(state.phase, event)
  return [step.state, step.changed ? [log("info", `${state.phase} -> ${step.state}: ${step.note}`)] : []]
}

const startOver = (state: Enrolment, now: number, reason: string): Decision => {
  const losses = [...state.losses.filter((at) => now - at < lossWindowMs), now].slice(-100)
  const attempt = state.attempt + 1
  const often = losses.length > quietLosses
  const [phase, orders] = moved(state, "DataLost")
  const message = `${reason}; registering and bootstrapping again${often ? `, for the ${losses.length}th time in 10 minutes: the scheduler's log says why it sends this SSP back` : ""}`
  return [
    { ...state, attempt, phase, losses, step: "registering", registration: undefined, tries: 0 },
    [
      log(often ? "error" : "warn", message),
      ...orders,
      { tag: "Begin", attempt, waitMs: 0, jitterMs: ceilingMs(backoff, losses.length - 1) }
    ]
  ]
}

const failed = (
  state: Enrolment,
  { counts, message, waitMs }: Pick<Fact & { readonly tag: "Failed" }, "counts" | "message" | "waitMs">
): Decision => {
  const failures = state.failures + (counts ? 1 : 0)
  const attempt = state.attempt + 1
  const what = state.step === "registering" ? "registration" : "bootstrap"
  const exhausted = counts && failures === Phase.maxFailures
  const [phase, orders] = exhausted ? moved(state, "AttemptsExhausted") : [state.phase, []]
  const loud = log(
    "error",
    `registration or bootstrap failed ${failures} times in a row; /health reports failed until it succeeds. Check SCHEDULER_URL and the scheduler`
  )
  return [
    { ...state, attempt, phase, failures, step: "registering", registration: undefined, tries: state.tries + 1 },
    [
      log("warn", `${what} failed${failures > 0 ? ` (${failures} in a row)` : ""}: ${message}; trying again`),
      ...(exhausted ? [loud] : []),
      ...orders,
      { tag: "Begin", attempt, waitMs: Math.min(waitMs, backoff.capMs), jitterMs: ceilingMs(backoff, state.tries) }
    ]
  ]
}

const fenced = (state: Enrolment, message: string): Decision => [
  { ...state, step: "fenced" },
  [
    {
      tag: "Stop",
      message: `another process has registered under this SSP_ID and is newer, so this one stops; give every SSP an id of its own (${message})`
    }
  ]
]

const answered = (
  state: Enrolment,
  now: number,
  { answer, attempt, message }: Fact & { readonly tag: "Answered" }
): Decision => {
  if (answer === "fenced") return fenced(state, message)
  if (answer === "none") return [state, [log("warn", `heartbeat failed: ${message}; going on`)]]
  // An answer about an earlier registration, or before the first one, says nothing about the present registration.
  if (answer === "ok" || attempt !== state.attempt || state.step === "registering") return [state, []]
  const reason =
    answer === "unknown"
      ? "the scheduler does not know this SSP (404 to a heartbeat)"
      : "the scheduler wants it to bootstrap again (409 to a heartbeat)"
  return state.step === "member"
    ? startOver(state, now, reason)
    : failed(state, { counts: true, waitMs: 0, message: reason })
}

/** The enrolment after `fact` at `now`, and the orders to carry out in order. */
export const decide = (state: Enrolment, now: number, fact: Fact): Decision => {
  if (state.step === "fenced") return [state, []]
  if ("attempt" in fact && fact.tag !== "Answered" && fact.attempt !== state.attempt) return [state, []]
  switch (fact.tag) {
    case "Registered":
      return state.step === "registering"
        ? [{ ...state, step: "pulling", registration: fact.registration }, []]
        : [state, []]
    case "Loaded": {
      if (state.step !== "pulling") return [state, []]
      const [phase, orders] = moved(state, "Loaded")
      return [{ ...state, phase, step: "member", failures: 0, tries: 0 }, orders]
    }
    case "Failed":
      return state.step === "member" ? [state, []] : failed(state, fact)
    case "Answered":
      return answered(state, now, fact)
    case "Named": {
      const newer =
        state.step === "member" && state.registration !== undefined && fact.registration > state.registration
      return newer
        ? startOver(
            state,
            now,
            `the scheduler counts a newer registration (${fact.registration}) than the one this SSP pulled its data for (${state.registration})`
          )
        : [state, []]
    }
    // An SSP that registers or pulls gets all its data again anyway.
    case "Lost":
      return state.step === "member" ? startOver(state, now, fact.reason) : [state, []]
    case "Fenced":
      return fenced(state, fact.message)
  }
}

/**
 * Whether a call is meant for the current registration: it names that one, or names none because its scheduler does not
 * number registrations.
 */
export const isForRegistration = (state: Enrolment, named: number | undefined): boolean =>
  named === undefined || state.registration === undefined || named === state.registration

/**
 * Heartbeat periods without an answer after which an SSP assumes that the scheduler has given it up, unless the
 * scheduler says how long (D21).
 */
const silentPeriods = 3

/** The scheduler's time-out for heartbeats, in milliseconds: `told` by the scheduler, else an estimate. */
export const silenceMs = (heartbeatIntervalMs: number, told: number | undefined): number =>
  told ?? silentPeriods * heartbeatIntervalMs
