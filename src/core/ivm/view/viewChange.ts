/**
 * The effect of a step on one view, as the engine answers it.
 *
 * The hash is kept as numbers and becomes text when it is read: most steps are never streamed.
 */
import type { Delta } from "../delta/delta.ts"
import { type Hash64, hashText } from "../delta/hash.ts"
import type { Touched, View } from "./view.ts"

export class ViewChange implements Touched, Hash64 {
  readonly view: View
  readonly delta: Delta
  readonly generation: number
  readonly high: number
  readonly low: number

  constructor(instance: View & { readonly sum: Hash64 }, delta: Delta) {
    this.view = instance
    this.delta = delta
    this.generation = instance.generation
    this.high = instance.sum.high
    this.low = instance.sum.low
  }

  get hash(): string {
    return hashText(this)
  }
}
