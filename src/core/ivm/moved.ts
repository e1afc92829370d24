/**
 * What a step did to one instance, as its owner is told.
 *
 * Why a class: the hash is kept as numbers and becomes text when somebody reads it; most steps nobody streams.
 */
import type { Delta } from "./delta.ts"
import { type Hash64, hashText } from "./hash.ts"
import type { Instance, Touched } from "./instance.ts"

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
