/**
 * The watchdog of the thread that evaluates: it remembers what the thread was doing when the process ended (D48).
 *
 * A reference with a default that neither watches nor remembers: only a runtime has a second thread and a file, and a
 * node without them must do. A view's text is put into shared memory when the view is made and not when it is
 * evaluated, so that a change costs two numbers (`EvaluationNote`).
 */
import { Context, Effect } from "effect"
import { EvaluationNote } from "../core/ivm/evaluating.ts"
import { noSlot } from "../core/view/watch.ts"

/** A view as the watchdog names it. */
export interface WatchedView {
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
  /** Key of the query, as {@link WatchdogShape.queryOf} makes it. */
  readonly query: string
  /** Begin of the evaluation, Unix milliseconds. */
  readonly since: number
}

/** Watches evaluations and keeps a note over restarts. */
export interface WatchdogShape {
  readonly evaluating: EvaluationNote
  /** A slot for a view that will be evaluated, freed through `evaluating`; {@link noSlot} if it cannot be watched. */
  readonly open: (view: WatchedView) => number
  /** Key of a query with its parameters, the same in every process. */
  readonly queryOf: (view: Pick<WatchedView, "surql" | "params">) => string
  readonly unfinished: Unfinished | undefined
  /** Text last given to {@link keep}, by this process or an earlier one. */
  readonly kept: string | undefined
  /** Stores a text over restarts, if there is a file for it. Fails with the reason as text. */
  readonly keep: (text: string) => Effect.Effect<void, string>
}

const none = (): WatchdogShape => ({
  evaluating: new EvaluationNote(),
  open: () => noSlot,
  queryOf: ({ params, surql }) => `${params}\n${surql}`,
  unfinished: undefined,
  kept: undefined,
  keep: () => Effect.void
})

/** The watchdog of this process; without one the thread is not watched, and nothing is remembered. */
export class Watchdog extends Context.Reference<Watchdog>()("ports/Watchdog", { defaultValue: none }) {}
