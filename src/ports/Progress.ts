/**
 * Progress of long work, in one place for all of it: a bar on a terminal, else a line of the log every 5 s, and figures
 * for `/progress` (D34).
 *
 * A report costs the work an addition; the display reads on its own schedule, so a million records cost a million
 * additions and one line. Without a layer nothing is shown, as with `ports/Meters`.
 */
import { Clock, Context, Duration, Effect, Exit, Layer, Queue } from "effect"
import { type TaskKind, taskKinds } from "../core/telemetry/metrics.ts"
import { line, type Task } from "../core/telemetry/progress.ts"
import { Meters } from "./Meters.ts"
import { steadyOf } from "./Turn.ts"

/** Progress of one task, as its work reports it. */
export interface Step {
  /** Adds `count` to the units done. */
  readonly add: (count: number) => void
  /** Sets the number of units done. */
  readonly reach: (done: number) => void
  readonly expect: (total: number) => void
  /** Names the current part of the work, such as a table; undefined for none. */
  readonly at: (what: string | undefined) => void
}

interface Open extends Step {
  /** Ends the task. `ended`: whether the work was completed. */
  readonly close: (ended: boolean) => void
}

/** Running and completed tasks. */
export interface ProgressShape {
  readonly open: (kind: TaskKind, what: string, unit: string) => Open
  /** Running tasks, the oldest first. */
  readonly tasks: () => ReadonlyArray<Task>
  /**
   * Time at which work of this kind was last completed, in milliseconds of the steady clock (`steadyOf`); undefined if
   * it never was.
   */
  readonly endedAt: (kind: TaskKind) => number | undefined
}

/** Shows running tasks: called repeatedly while there are any, and once after the last. */
export interface Display {
  readonly everyMs: number
  readonly show: (tasks: ReadonlyArray<Task>) => Effect.Effect<void>
}

const logLines: Display = {
  everyMs: 5000,
  show: (tasks) => Effect.forEach(tasks, (task) => Effect.logInfo(line(task)), { discard: true })
}

/** How progress is shown; lines of the log by default. */
export class ProgressDisplay extends Context.Reference<ProgressDisplay>()("ports/ProgressDisplay", {
  defaultValue: (): Display => logLines
}) {}

type Ended = (kind: TaskKind, seconds: number, ended: boolean) => void

const make = (nowMs: () => number, begun: () => void, over: Ended): ProgressShape => {
  const running = new Set<{
    kind: TaskKind
    what: string
    unit: string
    at: string | undefined
    done: number
    total: number | undefined
    from: number
  }>()
  const ended = new Map<TaskKind, number>()
  return {
    endedAt: (kind) => ended.get(kind),
    tasks: () =>
      Array.from(running, ({ from, ...task }) => ({
        ...task,
        elapsedMs: Math.max(0, nowMs() - from)
      })),
    open: (kind, what, unit) => {
      const task = {
        kind,
        what,
        unit,
        at: undefined as string | undefined,
        done: 0,
        total: undefined as number | undefined,
        from: nowMs()
      }
      running.add(task)
      begun()
      return {
        add: (count) => void (task.done += count),
        reach: (done) => void (task.done = done),
        expect: (total) => void (task.total = total),
        at: (now) => void (task.at = now),
        close: (well) => {
          if (!running.delete(task)) return
          const now = nowMs()
          if (well) ended.set(kind, now)
          over(kind, Math.max(0, now - task.from) / 1000, well)
        }
      }
    }
  }
}

/** Collects the progress of long work; without a layer reports are dropped. */
export class Progress extends Context.Reference<Progress>()("ports/Progress", {
  defaultValue: (): ProgressShape =>
    make(
      steadyOf(Clock.make()),
      () => {},
      () => {}
    )
}) {
  static readonly layer: Layer.Layer<Progress> = Layer.scoped(
    Progress,
    Effect.gen(function* () {
      const { taskDuration, taskFailures } = yield* Meters
      const { everyMs, show } = yield* ProgressDisplay
      const begun = yield* Queue.sliding<void>(1)
      const progress = make(
        steadyOf(yield* Effect.clock),
        () => begun.unsafeOffer(undefined),
        (kind, seconds, ended) => (ended ? taskDuration[kind].observe(seconds) : taskFailures[kind].add())
      )
      const look: Effect.Effect<void> = Effect.suspend(() => {
        const tasks = progress.tasks()
        return tasks.length === 0
          ? show(tasks)
          : Effect.zipRight(show(tasks), Effect.zipRight(Effect.sleep(Duration.millis(everyMs)), look))
      })
      // A task is shown only after a while, because most tasks are over by then.
      yield* Effect.forkScoped(
        Effect.forever(
          Effect.zipRight(Queue.take(begun), Effect.zipRight(Effect.sleep(Duration.millis(everyMs)), look))
        )
      )
      return progress
    })
  )

  /** Runs work that reports its progress; the task ends with the work. */
  static readonly during = <A, E, R>(
    kind: TaskKind,
    what: string,
    unit: string,
    work: (step: Step) => Effect.Effect<A, E, R>
  ): Effect.Effect<A, E, R> =>
    Effect.flatMap(Progress, (progress) =>
      Effect.suspend(() => {
        const step = progress.open(kind, what, unit)
        return Effect.onExit(work(step), (exit) => Effect.sync(() => step.close(Exit.isSuccess(exit))))
      })
    )
}

/** Number of running tasks by kind. */
export const running = (tasks: ReadonlyArray<Task>): ReadonlyArray<readonly [ReadonlyArray<string>, number]> =>
  taskKinds.map((kind) => [[kind], tasks.filter((task) => task.kind === kind).length] as const)
