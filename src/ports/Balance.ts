/**
 * How SSPs are chosen for views, as a service: one of the specification's strategies, or a deployment's own.
 *
 * A strategy is pure (`core/cluster/balance.ts`): it is given what the scheduler knows of the SSPs that are Ready and
 * answers at once, within the decision.
 */
import { Context, Layer } from "effect"
import { type Strategy, strategies } from "../core/cluster/balance.ts"

/** Which SSP gets a view, and when one moves: one of the strategies of the specification, or your own. */
export class Balance extends Context.Tag("ports/Balance")<Balance, Strategy>() {
  /** The specification's strategy of this name (setting `load_balance`). */
  static readonly layerNamed = (name: keyof typeof strategies): Layer.Layer<Balance> =>
    Layer.succeed(Balance, strategies[name])
}
