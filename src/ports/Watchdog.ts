/**
 * The watchdog of the thread that evaluates: it remembers what the thread was doing when the process ended (D48).
 *
 * A reference with a default that neither watches nor remembers: only a runtime has a second thread and a file, and a
 * node without them must do. What is told of a view is put into memory when the view comes and not when it is
 * evaluated, so that a change costs two numbers (`Evaluating`).
 */
import { Context, Effect } from "effect"
import { Evaluating } from "../core/ivm/evaluating.ts"
import { noSlot } from "../core/view/watch.ts"

export interface Watched {
  /** Id of the view, as registered. */
  readonly id: string
  readonly surql: string
  /** Parameters as JSON. */
  readonly params: string
}

/** An evaluation that was under way when the process before this one ended. */
export interface Unfinished {
  /** Id of the view under evaluation, perhaps cut; the first one if several views show the same result. */
  readonly id: string
  /** As {@link WatchdogShape.queryOf} names it. */
  readonly query: string
  /** Unix milliseconds. */
  readonly since: number
}

export interface WatchdogShape {
  readonly evaluating: Evaluating
  /**
   * A slot for a view that is going to be evaluated, which is given back through `evaluating`; {@link noSlot} where it
   * cannot be watched.
   */
  readonly open: (view: Watched) => number
  /** Names a query with its parameters, the same in every process. */
  readonly queryOf: (view: Pick<Watched, "surql" | "params">) => string
  readonly unfinished: Unfinished | undefined
  /** Text last given to {@link keep}, by this process or an earlier one. */
  readonly kept: string | undefined
  /** Keeps a text over restarts, where there is anything to keep it in. Fails with the reason as text. */
  readonly keep: (text: string) => Effect.Effect<void, string>
}

const none = (): WatchdogShape => ({
  evaluating: new Evaluating(),
  open: () => noSlot,
  queryOf: ({ params, surql }) => `${params}\n${surql}`,
  unfinished: undefined,
  kept: undefined,
  keep: () => Effect.void
})

/** The watchdog of this process; without one the thread is not watched, and nothing is remembered. */
export class Watchdog extends Context.Reference<Watchdog>()("ports/Watchdog", { defaultValue: none }) {}
