/**
 * The SSP's own state, what `/health` reports (specification, SSP self-state; D18, D19).
 *
 * `failed` is no end: the SSP keeps trying, and succeeding leads to `ready`.
 */
import { ignore, type Step, step, type Table, to } from "./machine.ts"

export type Phase = "bootstrapping" | "ready" | "failed"

/** `Loaded`: all data is there. `AttemptsExhausted`: too many failures in a row. `DataLost`: pull the data again. */
export type PhaseEvent = "Loaded" | "AttemptsExhausted" | "DataLost"

export const table = {
  bootstrapping: {
    Loaded: to("ready", "data is complete"),
    AttemptsExhausted: to("failed", "registration or bootstrap failed too often in a row"),
    DataLost: ignore("already pulling")
  },
  ready: {
    Loaded: ignore("nothing new"),
    AttemptsExhausted: ignore("attempts count only while there is no data"),
    DataLost: to("bootstrapping", "the data must be pulled again")
  },
  failed: {
    Loaded: to("ready", "an attempt succeeded after all"),
    AttemptsExhausted: ignore("already reported"),
    DataLost: ignore("still trying; failed until it succeeds")
  }
} as const satisfies Table<Phase, PhaseEvent>

export const next = (phase: Phase, event: PhaseEvent): Step<Phase> => step<Phase, PhaseEvent>(table, phase, event)

/** Failures in a row that make `failed` (D18). */
export const maxFailures = 10
