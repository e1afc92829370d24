/**
 * Chance for a soak: one sequence per concern, all drawn from one seed.
 *
 * One each, because changes, views, streams and restarts run beside each other: with one sequence for all, what is
 * chosen would hang on who comes first, and the seed would repeat nothing. From Effect and not from the tests' kit,
 * which needs the test runner.
 */
import { PCGRandom } from "effect/Utils"
import type { Rng } from "../../kit/data/random.ts"

export const chance = (seed: number, concern: number): Rng => {
  const generator = new PCGRandom(concern, seed)
  const below = (bound: number): number => (bound <= 1 ? 0 : generator.integer(bound))
  return {
    next: () => generator.number(),
    below,
    chance: (p) => generator.number() < p,
    pick: (items) => {
      if (items.length === 0) throw new Error("nothing to pick from")
      return items[below(items.length)] as (typeof items)[number]
    }
  }
}
