/**
 * Events that wait for one SSP, as positions in the log (D5, D26): everything after `acked`, in order, one delivery in
 * flight.
 *
 * The log holds the events and nothing is copied, so that replay and live delivery are one queue, and the buffer of an
 * SSP costs the same for one waiting event and for ten thousand. O(1) for everything.
 */

interface Range {
  readonly from: number
  readonly to: number
}

export interface DeliveryQueue {
  /** The last position the SSP is known to have applied. */
  readonly acked: number
  /** The last `acked` that was persisted; the log is kept from here. */
  readonly saved: number
  readonly flight: Range | undefined
  /** Failed deliveries in a row, and when the next one may begin. */
  readonly failures: number
  readonly retryAt: number
  /** Answers 409 in a row after which `acked` had not grown. */
  readonly conflicts: number
  /** Whether the SSP fell behind: answers to `/ingest` do not wait for it until it has caught up. */
  readonly late: boolean
}

/** Answer of an SSP to a delivery. `unavailable`: 503, other 5xx, time-out, transport. */
export type Answer =
  | { readonly kind: "applied" }
  /** `refused`: the connection was refused, so no process listens there. */
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

/** Result of an answer. `unable`: the SSP must bootstrap again, for `reason`. */
type Outcome =
  | { readonly kind: "progress"; readonly queue: DeliveryQueue }
  | { readonly kind: "retry"; readonly queue: DeliveryQueue; readonly unauthorized: boolean }
  | { readonly kind: "unable"; readonly event: "BufferExceeded" | "Rejected"; readonly reason: string }

export const after = (seq: number): DeliveryQueue => ({
  acked: seq,
  saved: seq,
  flight: undefined,
  failures: 0,
  retryAt: 0,
  conflicts: 0,
  late: false
})

/** Number of events that wait. */
export const waiting = (queue: DeliveryQueue, log: Log): number => Math.max(0, log.head - queue.acked)

/**
 * Why the events that wait can or may no longer be delivered; undefined if they can. Events up to the position
 * `excused` do not count: the SSP is known to lack them (D55).
 */
export const exceeded = (queue: DeliveryQueue, log: Log, limits: Limits, excused: number): string | undefined => {
  const counted = log.head - Math.max(queue.acked, excused)
  if (counted > limits.maxBuffer) return `${counted} events wait, max_buffer_per_ssp is ${limits.maxBuffer}`
  return queue.acked < log.first - 1 ? `the log begins at ${log.first}, the SSP stands at ${queue.acked}` : undefined
}

/**
 * The next delivery, at most `most` events; undefined while one is in flight, after a failure, or when nothing waits.
 */
export const due = (queue: DeliveryQueue, log: Log, now: number, most: number): Range | undefined =>
  queue.flight !== undefined || now < queue.retryAt || queue.acked >= log.head
    ? undefined
    : { from: queue.acked + 1, to: Math.min(log.head, queue.acked + most) }

export const withFlight = (queue: DeliveryQueue, flight: Range): DeliveryQueue => ({ ...queue, flight })

/**
 * Delay with equal jitter: between half and the whole of a delay that doubles up to the cap. `jitter` is 0 <= x < 1.
 */
export const backoffMs = (failures: number, jitter: number, limits: Limits): number =>
  Math.ceil(Math.min(limits.retryMaxMs, limits.retryBaseMs * 2 ** Math.min(failures, 30)) * (0.5 + jitter / 2))

/** The queue after the SSP has applied everything up to `acked`. */
export const advanced = (queue: DeliveryQueue, acked: number, log: Log): DeliveryQueue => ({
  ...queue,
  acked,
  flight: undefined,
  failures: 0,
  retryAt: 0,
  conflicts: 0,
  late: queue.late && acked < log.head
})

const delayed = (queue: DeliveryQueue, waitMs: number, now: number): DeliveryQueue => ({
  ...queue,
  flight: undefined,
  failures: queue.failures + 1,
  retryAt: now + waitMs,
  late: true
})

const rewound = (
  queue: DeliveryQueue,
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
  if (acked > queue.acked) return { kind: "progress", queue: advanced(queue, acked, log) }
  const conflicts = queue.conflicts + 1
  if (conflicts > limits.maxConflicts)
    return { kind: "unable", event: "Rejected", reason: `${conflicts} times 409 without progress` }
  const moved = {
    ...delayed(queue, conflicts === 1 ? 0 : backoffMs(conflicts, jitter, limits), now),
    acked,
    saved: Math.min(queue.saved, acked),
    conflicts
  }
  const reason = exceeded(moved, log, limits, excused)
  return reason === undefined
    ? { kind: "retry", queue: moved, unauthorized: false }
    : { kind: "unable", event: "BufferExceeded", reason }
}

/** Result of the answer to the delivery in flight (D26); `excused` as in {@link exceeded}. */
export const answered = (
  queue: DeliveryQueue,
  answer: Answer,
  log: Log,
  now: number,
  jitter: number,
  limits: Limits,
  excused: number
): Outcome => {
  switch (answer.kind) {
    case "applied":
      return { kind: "progress", queue: advanced(queue, queue.flight?.to ?? queue.acked, log) }
    case "unavailable":
      return {
        kind: "retry",
        queue: delayed(queue, backoffMs(queue.failures, jitter, limits), now),
        unauthorized: false
      }
    case "unauthorized":
      return { kind: "retry", queue: delayed(queue, limits.unauthorizedMs, now), unauthorized: true }
    case "gap":
      return rewound(queue, answer.expected, log, now, jitter, limits, excused)
    case "stale":
      return { kind: "unable", event: "Rejected", reason: "it follows another log or a newer scheduler" }
    case "rejected":
      return { kind: "unable", event: "Rejected", reason: `it answered ${answer.status} to what the log holds` }
  }
}
