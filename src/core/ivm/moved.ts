/**
 * What a step did to one instance, as the engine hears it and as its owner is told.
 *
 * Why a class for the latter: the hash is kept as numbers and becomes text when somebody reads it; most steps nobody streams.
 */
import type { Delta } from "./delta.ts"
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
