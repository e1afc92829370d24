/**
 * Ports that count and time their calls: same shape, measured from outside (D34).
 *
 * So neither the code that decides nor the drivers know metrics, and every layer of a port is measured alike. Once per
 * batch or call, never per change.
 */
import { type Clock, Effect, Exit } from "effect"
import type { Answer } from "../../core/cluster/deliveryQueue.ts"
import type { Meters } from "../../core/telemetry/meters.ts"
import type { BackendShape } from "../../ports/Backend.ts"
import type { DatabaseShape } from "../../ports/Database.ts"
import type { ReplicaShape } from "../../ports/Replica.ts"
import type { SspClientShape } from "../../ports/SspClient.ts"
import type { UpstreamShape } from "../../ports/Upstream.ts"
import type { WalShape } from "../../ports/Wal.ts"

interface Gauge {
  readonly meters: Meters
  readonly clock: Clock.Clock
}

/** `ended` is called on success and failure, not on an interrupt. */
const timed = <A, E>(
  { clock }: Gauge,
  effect: Effect.Effect<A, E>,
  ended: (seconds: number, exit: Exit.Exit<A, E>) => void
): Effect.Effect<A, E> =>
  Effect.suspend(() => {
    const from = clock.unsafeCurrentTimeNanos()
    return Effect.onExit(effect, (exit) =>
      Effect.sync(() => {
        if (!Exit.isInterrupted(exit)) ended(Number(clock.unsafeCurrentTimeNanos() - from) / 1e9, exit)
      })
    )
  })

/** `shape` with these members replaced. */
const over = <S extends object>(shape: S, members: Partial<S>): S =>
  Object.create(
    shape,
    Object.fromEntries(Object.entries(members).map(([name, value]) => [name, { value, enumerable: true }]))
  ) as S

/** A store in memory is not timed: it never waits. */
export const database = (shape: DatabaseShape, gauge: Gauge): DatabaseShape => {
  const { storeCommit, storeFailures } = gauge.meters
  if (shape.kind === "memory") return shape
  return over(shape, {
    commit: (commit) =>
      timed(gauge, shape.commit(commit), (seconds, exit) =>
        Exit.isSuccess(exit) ? storeCommit.observe(seconds) : storeFailures.add()
      )
  })
}

export const upstream = (shape: UpstreamShape, gauge: Gauge): UpstreamShape => {
  const { edgeFlush } = gauge.meters
  return over(shape, {
    apply: (views) =>
      timed(gauge, shape.apply(views), (seconds, exit) => Exit.isSuccess(exit) && edgeFlush.observe(seconds))
  })
}

const classes = { 2: "2xx", 3: "3xx", 4: "4xx", 5: "5xx" } as const

const classOf = (status: number): "2xx" | "3xx" | "4xx" | "5xx" | "none" => {
  const first = Math.floor(status / 100)
  return first === 2 || first === 3 || first === 4 || first === 5 ? classes[first] : "none"
}

export const backend = (shape: BackendShape, gauge: Gauge): BackendShape => {
  const { jobCalls } = gauge.meters
  return over(shape, {
    call: (call) =>
      timed(gauge, shape.call(call), (seconds, exit) =>
        jobCalls[Exit.isSuccess(exit) ? classOf(exit.value.status) : "none"].observe(seconds)
      )
  })
}

export const wal = (shape: WalShape, gauge: Gauge): WalShape => {
  const { walAppend, walFailures } = gauge.meters
  return over(shape, {
    append: (lines) =>
      timed(gauge, shape.append(lines), (seconds, exit) =>
        Exit.isSuccess(exit) ? walAppend.observe(seconds) : walFailures.add()
      )
  })
}

export const replica = (shape: ReplicaShape, gauge: Gauge): ReplicaShape => {
  const { replicaCommit, replicaFailures } = gauge.meters
  const ended = (seconds: number, exit: Exit.Exit<void, unknown>): void =>
    Exit.isSuccess(exit) ? replicaCommit.observe(seconds) : replicaFailures.add()
  return over(shape, {
    commit: (batch) => timed(gauge, shape.commit(batch), ended),
    catchUp: timed(gauge, shape.catchUp, ended)
  })
}

const results: { readonly [K in Answer["kind"]]: "applied" | "retry" | "refused" } = {
  applied: "applied",
  unavailable: "retry",
  unauthorized: "retry",
  gap: "retry",
  stale: "refused",
  rejected: "refused"
}

export const sspClient = (shape: SspClientShape, gauge: Gauge): SspClientShape => {
  const { deliveries } = gauge.meters
  return over(shape, {
    deliver: (target, body, traceparent) =>
      timed(
        gauge,
        shape.deliver(target, body, traceparent),
        (seconds, exit) => Exit.isSuccess(exit) && deliveries[results[exit.value.kind]].observe(seconds)
      )
  })
}
