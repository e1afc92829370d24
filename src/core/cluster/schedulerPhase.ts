/**
 * The scheduler's own states (D30): cloning, ready, frozen while an SSP pulls, updating while a checkpoint runs.
 *
 * Only `Cloning` refuses requests; the other states tell an operator what the node is doing, and keep a checkpoint from
 * beginning while a snapshot is held.
 */
import { ignore, refuse, type Step, step, type Table, to } from "./machine.ts"

export type SchedulerPhase = "Cloning" | "Ready" | "Frozen" | "Updating"

/** `Froze`: the first owner came; `Thawed`: the last one left. */
export type SchedulerEvent = "Cloned" | "Froze" | "Thawed" | "CheckpointBegan" | "CheckpointEnded"

export const table = {
  Cloning: {
    Cloned: to("Ready", "the replica is whole"),
    Froze: refuse("no SSP registers while the replica is not whole"),
    Thawed: refuse("nothing was frozen"),
    CheckpointBegan: ignore("put off until the replica is whole"),
    CheckpointEnded: ignore("none runs")
  },
  Ready: {
    Cloned: ignore("already whole"),
    Froze: to("Frozen", "an SSP pulls"),
    Thawed: refuse("nothing was frozen"),
    CheckpointBegan: to("Updating", "the replica is synced, the log cut"),
    CheckpointEnded: ignore("none runs")
  },
  Frozen: {
    Cloned: ignore("already whole"),
    Froze: ignore("another snapshot follows the last one"),
    Thawed: to("Ready", "no SSP pulls any more"),
    CheckpointBegan: ignore("put off until no SSP pulls"),
    CheckpointEnded: ignore("it began before the freeze")
  },
  Updating: {
    Cloned: ignore("already whole"),
    Froze: to("Frozen", "an SSP need not wait for a checkpoint"),
    Thawed: refuse("nothing was frozen"),
    CheckpointBegan: ignore("one at a time"),
    CheckpointEnded: to("Ready", "synced")
  }
} as const satisfies Table<SchedulerPhase, SchedulerEvent>

export const next = (phase: SchedulerPhase, event: SchedulerEvent): Step<SchedulerPhase> =>
  step<SchedulerPhase, SchedulerEvent>(table, phase, event)
