/**
 * Seeded randomness for tests: a small generator, choices drawn from it, and tests that print how to replay them.
 *
 * `SVC_SEED` replays one seed, `SVC_RUNS` multiplies the work. A plain `npm test` always draws the same numbers, so
 * that a red build is red twice; `npm run campaign` draws new ones each time.
 */
import { it } from "vitest"

export interface Rng {
  /** 0 <= x < 1 */
  readonly next: () => number
  /** Integer, 0 <= x < bound. */
  readonly below: (bound: number) => number
  /** True with probability `p`. */
  readonly chance: (p: number) => boolean
  readonly pick: <A>(items: ReadonlyArray<A>) => A
}

/** mulberry32: 32 bits of state, good enough to choose test inputs and short enough to check by eye. */
export const rng = (seed: number): Rng => {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
  const below = (bound: number): number => Math.floor(next() * bound)
  return {
    next,
    below,
    chance: (p) => next() < p,
    pick: (items) => {
      if (items.length === 0) throw new Error("nothing to pick from")
      return items[below(items.length)] as (typeof items)[number]
    }
  }
}

/** Whether this is a long run: what takes its time and is not needed after every change runs in these alone. */
export const campaign = process.env["SVC_CAMPAIGN"] === "1"
/** Whether what takes many processes runs too: in `npm run test:long` at the size of the default run, and in campaigns. */
export const long = campaign || process.env["SVC_LONG"] === "1"
const usualSeed = 20_260_101
const givenSeed = process.env["SVC_SEED"]

export const seed: number =
  givenSeed !== undefined && givenSeed !== "" ? Number(givenSeed) : campaign ? Date.now() % 2 ** 32 : usualSeed

/** The seed is not the one of `npm test`, whose figures are known. */
export const isDrawn = seed !== usualSeed

/** `count` times `SVC_RUNS`. */
export const runs = (count: number): number => Math.max(1, Math.round(count * Number(process.env["SVC_RUNS"] ?? "1")))

/** Rounds of a costly test: half of them in a default run, all in `npm run test:long` and in campaigns. */
export const rounds = (count: number): number => runs(long ? count : Math.ceil(count / 2))

/** A test that draws from a seed; when it fails, the message ends with the line that replays it. */
export const seeded = (
  name: string,
  file: string,
  body: (random: Rng) => Promise<void> | void,
  timeoutMs?: number
): void => {
  it(
    name,
    async () => {
      try {
        await body(rng(seed))
      } catch (error) {
        const replay = `SVC_SEED=${seed} ${campaign ? "SVC_CAMPAIGN=1 " : long ? "SVC_LONG=1 " : ""}${process.env["SVC_RUNS"] === undefined ? "" : `SVC_RUNS=${process.env["SVC_RUNS"]} `}npx vitest run ${file} -t ${JSON.stringify(name)}`
        if (error instanceof Error) {
          error.message = `${error.message}\nreplay: ${replay}`
          throw error
        }
        throw new Error(`${String(error)}\nreplay: ${replay}`)
      }
    },
    timeoutMs
  )
}
