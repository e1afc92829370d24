/**
 * Effects of the current step on each view, for the engine and for rows that show the view.
 */
import { append } from "../../multimap.ts"
import type { Value } from "../../surql/values/value.ts"
import { type Delta, DeltaBuilder } from "./delta.ts"
import type { Hash64 } from "./hash.ts"

/** Effect of a step on the values of a subquery that other views are filed by. */
export interface ValueSetDelta {
  readonly gained: ReadonlyArray<Value>
  readonly lost: ReadonlyArray<Value>
  /** Both the old and the new values can be index keys. */
  readonly exact: boolean
}

/** Effect of a step on a view. */
export interface StepEffect {
  /** The net delta; undefined if there is none. */
  readonly delta: Delta | undefined
  /** Rows that show this view have to be told. */
  readonly moved: boolean
  readonly valueSetDelta: ValueSetDelta | undefined
  /** The moves, with the hash before the step; undefined if no row moved. */
  readonly before: DeltaBuilder | undefined
}

/**
 * The changes of the current step. Results and views keep positions in this log and not the entries themselves: writing
 * a young object into an old one costs more than everything else that a step does to it (layout rule 1).
 */
export class StepLog {
  private builders: Array<DeltaBuilder> | undefined = undefined
  private ends: Array<StepEffect> | undefined = undefined

  clear(): void {
    this.builders = this.ends = undefined
  }

  /** Begins to note the moves of one result. */
  open(hash: Hash64): number {
    this.builders = append(this.builders, new DeltaBuilder(hash))
    return this.builders.length - 1
  }

  at(place: number): DeltaBuilder {
    return this.builders![place]!
  }

  /** Keeps the effect of the step on a view until the next step. Answers its position here. */
  end(ended: StepEffect): number {
    this.ends = append(this.ends, ended)
    return this.ends.length - 1
  }

  /** The effect at a position; undefined after the log was cleared. */
  ended(place: number): StepEffect | undefined {
    return this.ends?.[place]
  }
}
