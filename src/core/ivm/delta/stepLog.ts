/**
 * What the running step does to each view, as the engine hears it.
 */
import { append } from "../../multimap.ts"
import type { Value } from "../../surql/values/value.ts"
import { type Delta, DeltaBuilder } from "./delta.ts"
import type { Hash64 } from "./hash.ts"

/** What a step did to the values of a subquery that views are filed by. */
export interface ValueSetDelta {
  readonly gained: ReadonlyArray<Value>
  readonly lost: ReadonlyArray<Value>
  /** Followers can be filed under the values, before and after. */
  readonly exact: boolean
}

/** What a step did to a view. */
export interface StepEnd {
  /** Its net effect; undefined where there is none. */
  readonly delta: Delta | undefined
  /** Rows that hold it have to hear of it. */
  readonly moved: boolean
  readonly valueSetDelta: ValueSetDelta | undefined
  /** What has moved, and what it hashed to before; undefined where no row moved. */
  readonly before: DeltaBuilder | undefined
}

/**
 * What the running step has changed so far. Results and views keep positions in this log and not the entries
 * themselves: writing a young object into an old one costs more than everything else that a step does to it (layout
 * rule 1).
 */
export class StepLog {
  private builders: Array<DeltaBuilder> | undefined = undefined
  private ends: Array<StepEnd> | undefined = undefined

  clear(): void {
    this.builders = this.ends = undefined
  }

  /** Notes the moves of one result from here on. */
  open(hash: Hash64): number {
    this.builders = append(this.builders, new DeltaBuilder(hash))
    return this.builders.length - 1
  }

  at(place: number): DeltaBuilder {
    return this.builders![place]!
  }

  /** Keeps what the step did to a view until the next one. */
  end(ended: StepEnd): number {
    this.ends = append(this.ends, ended)
    return this.ends.length - 1
  }

  /** Undefined once it is cleared. */
  ended(place: number): StepEnd | undefined {
    return this.ends?.[place]
  }
}
