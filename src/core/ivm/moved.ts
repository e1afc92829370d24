/**
 * What a step did to one instance, as the engine hears it and as its owner is told.
 *
 * Why a class for the latter: the hash is kept as numbers and becomes text when somebody reads it; most steps nobody streams.
 */
import { type Delta, DeltaBuilder } from "./delta.ts"
import { type Hash64, hashText } from "./hash.ts"
import type { Instance, Touched } from "./instance.ts"
import type { Turnover } from "./liveList.ts"

/** What a step did to an instance. */
export interface Ended {
  /** Its net effect; undefined where there is none. */
  readonly delta: Delta | undefined
  /** Rows that hold it have to hear of it. */
  readonly moved: boolean
  readonly turnover: Turnover | undefined
  /** What it hashed to before; undefined where no row moved. */
  readonly hash: Hash64 | undefined
}

/**
 * What the running step has moved so far. Results and instances keep the place of theirs here and not the thing: they are old
 * and cold, and to put something new into each costs the garbage collector more than all else a step does to it.
 */
export class Moves {
  private builders: Array<DeltaBuilder> = []
  private ends: Array<Ended> = []

  clear(): void {
    if (this.builders.length > 0) this.builders = []
    if (this.ends.length > 0) this.ends = []
  }

  /** Notes the moves of one result from here on. */
  open(hash: Hash64): number {
    return this.builders.push(new DeltaBuilder(hash)) - 1
  }

  at(place: number): DeltaBuilder {
    return this.builders[place]!
  }

  /** Keeps what the step did to an instance until the next one. */
  end(ended: Ended): number {
    return this.ends.push(ended) - 1
  }

  ended(place: number): Ended {
    return this.ends[place]!
  }
}

export class Moved implements Touched {
  readonly instance: Instance
  readonly delta: Delta
  readonly generation: number
  private readonly sum: Hash64

  constructor(instance: Instance & { readonly hashNow: () => Hash64 }, delta: Delta) {
    this.instance = instance
    this.delta = delta
    this.generation = instance.generation
    this.sum = instance.hashNow()
  }

  get hash(): string {
    return hashText(this.sum)
  }
}
