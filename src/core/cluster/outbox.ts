/**
 * What waits for one SSP, as positions in the log (D5, D26): everything after `acked`, in order, one delivery in
 * flight.
 *
 * Events are not copied here: the log holds them, so that replay and live delivery are one queue without a seam, and
 * the buffer of an SSP costs the same whether one event waits or ten thousand. O(1) for everything.
 */

export interface Range {
  readonly from: number
  readonly to: number
}

export interface Outbox {
  /** The last position the SSP is known to have applied. */
  readonly acked: number
  /** The last `acked` that was persisted; the log is kept from here. */
  readonly saved: number
  readonly flight: Range | undefined
  /** Failed deliveries in a row, and when the next one may begin. */
  readonly failures: number
  readonly retryAt: number
  /** 409s in a row that brought nothing. */
  readonly conflicts: number
  /** It did not keep up once; answers do not wait for it until it has caught up. */
  readonly late: boolean
}

/** What an SSP answered to a delivery; `unavailable` is 503, other 5xx, time-out and transport. */
export type Answer =
  | { readonly kind: "applied" }
  /** `refused`: the connection was, so nobody listens there. */
  | { readonly kind: "unavailable"; readonly refused?: true }
  | { readonly kind: "unauthorized" }
  | { readonly kind: "gap"; readonly expected: number }
  | { readonly kind: "stale" }
  | { readonly kind: "rejected"; readonly status: number }

/** The part of the log that can be read: `first` is the oldest position kept, `head` the last appended. */
export interface Log {
  readonly first: number
  readonly head: number
}

export interface Limits {
  readonly maxBuffer: number
  readonly retryBaseMs: number
  readonly retryMaxMs: number
  readonly unauthorizedMs: number
  /** 409s without progress after which the SSP must bootstrap again. */
  readonly maxConflicts: number
}

/** `unable`: it must bootstrap again, for `reason`. */
export type Outcome =
  | { readonly kind: "progress"; readonly outbox: Outbox }
  | { readonly kind: "retry"; readonly outbox: Outbox; readonly unauthorized: boolean }
  | { readonly kind: "unable"; readonly event: "BufferExceeded" | "Rejected"; readonly reason: string }

export const after = (seq: number): Outbox => ({
  acked: seq,
  saved: seq,
  flight: undefined,
  failures: 0,
  retryAt: 0,
  conflicts: 0,
  late: false
})

/** How many events wait. */
export const waiting = (outbox: Outbox, log: Log): number => Math.max(0, log.head - outbox.acked)

/**
 * Whether what waits can no longer be delivered, or no longer may. Up to the position `excused` nothing counts: the SSP
 * is known to lack it (D55).
 */
export const exceeded = (outbox: Outbox, log: Log, limits: Limits, excused: number): string | undefined => {
  const counted = log.head - Math.max(outbox.acked, excused)
  if (counted > limits.maxBuffer) return `${counted} events wait, max_buffer_per_ssp is ${limits.maxBuffer}`
  return outbox.acked < log.first - 1 ? `the log begins at ${log.first}, the SSP stands at ${outbox.acked}` : undefined
}

/**
 * The next delivery, at most `most` events; undefined while one is in flight, after a failure, or when nothing waits.
 */
export const due = (outbox: Outbox, log: Log, now: number, most: number): Range | undefined =>
  outbox.flight !== undefined || now < outbox.retryAt || outbox.acked >= log.head
    ? undefined
    : { from: outbox.acked + 1, to: Math.min(log.head, outbox.acked + most) }

export const launched = (outbox: Outbox, flight: Range): Outbox => ({ ...outbox, flight })

/** Full jitter: between half and the whole of a delay that doubles up to the cap. `jitter` is 0 <= x < 1. */
export const backoffMs = (failures: number, jitter: number, limits: Limits): number =>
  Math.ceil(Math.min(limits.retryMaxMs, limits.retryBaseMs * 2 ** Math.min(failures, 30)) * (0.5 + jitter / 2))

const advanced = (outbox: Outbox, acked: number, log: Log): Outbox => ({
  ...outbox,
  acked,
  flight: undefined,
  failures: 0,
  retryAt: 0,
  conflicts: 0,
  late: outbox.late && acked < log.head
})

const delayed = (outbox: Outbox, waitMs: number, now: number): Outbox => ({
  ...outbox,
  flight: undefined,
  failures: outbox.failures + 1,
  retryAt: now + waitMs,
  late: true
})

const rewound = (
  outbox: Outbox,
  expected: number,
  log: Log,
  now: number,
  jitter: number,
  limits: Limits,
  excused: number
): Outcome => {
  const acked = expected - 1
  if (acked > log.head)
    return { kind: "unable", event: "Rejected", reason: `it expects ${expected}, the log ends at ${log.head}` }
  if (acked > outbox.acked) return { kind: "progress", outbox: advanced(outbox, acked, log) }
  const conflicts = outbox.conflicts + 1
  if (conflicts > limits.maxConflicts)
    return { kind: "unable", event: "Rejected", reason: `${conflicts} times 409 without progress` }
  const moved = {
    ...delayed(outbox, conflicts === 1 ? 0 : backoffMs(conflicts, jitter, limits), now),
    acked,
    saved: Math.min(outbox.saved, acked),
    conflicts
  }
  const reason = exceeded(moved, log, limits, excused)
  return reason === undefined
    ? { kind: "retry", outbox: moved, unauthorized: false }
    : { kind: "unable", event: "BufferExceeded", reason }
}

/** What the answer to the delivery in flight means (D26); `excused` as in `exceeded`. */
export const answered = (
  outbox: Outbox,
  answer: Answer,
  log: Log,
  now: number,
  jitter: number,
  limits: Limits,
  excused: number
): Outcome => {
  switch (answer.kind) {
    case "applied":
      return { kind: "progress", outbox: advanced(outbox, outbox.flight?.to ?? outbox.acked, log) }
    case "unavailable":
      return {
        kind: "retry",
        outbox: delayed(outbox, backoffMs(outbox.failures, jitter, limits), now),
        unauthorized: false
      }
    case "unauthorized":
      return { kind: "retry", outbox: delayed(outbox, limits.unauthorizedMs, now), unauthorized: true }
    case "gap":
      return rewound(outbox, answer.expected, log, now, jitter, limits, excused)
    case "stale":
      return { kind: "unable", event: "Rejected", reason: "it follows another log or a newer scheduler" }
    case "rejected":
      return { kind: "unable", event: "Rejected", reason: `it answered ${answer.status} to what the log holds` }
  }
}
