/**
 * Which SSP gets a view, and which views move (specification, load balancing; D31, D32): three strategies, ties by
 * fewest views, then by id.
 *
 * A strategy chooses the SSP of a view and measures SSPs; `moves` decides from that measure alone when views move,
 * alike for all strategies: a view that `choose` would put back at once must not be moved. Deterministic, so that a
 * trace explains every choice. O(SSPs).
 */

export interface Candidate {
  readonly id: string
  /** Number of views that the scheduler has assigned to the SSP. */
  readonly views: number
  /** Percent of the CPU and megabytes, by the last heartbeat; undefined if not reported. */
  readonly cpu: number | undefined
  readonly memory: number | undefined
}

/** How an SSP is chosen for a view, and by which measure views are moved. */
export interface Strategy {
  readonly name: string
  /** The id chosen for a view; `last` is the one chosen before. Undefined when there is none to choose. */
  readonly choose: (candidates: ReadonlyArray<Candidate>, last: string | undefined) => string | undefined
  /** Load of each SSP by id, in the strategy's own unit: views move only from a higher load to a lower one. */
  readonly measure: (candidates: ReadonlyArray<Candidate>) => ReadonlyMap<string, number>
  /**
   * Fraction of an equal share of the views, 0 to 1: an SSP with fewer views than that is given views of others. 0: no
   * view is moved.
   */
  readonly share: number
}

const mean = (values: ReadonlyArray<number>): number =>
  values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length

const reported = (values: ReadonlyArray<number | undefined>): ReadonlyArray<number> =>
  values.filter((value) => value !== undefined)

/**
 * Load of each SSP: share of a CPU plus share of the largest memory; the others' average for an SSP without a report.
 */
export const loads = (candidates: ReadonlyArray<Candidate>): ReadonlyMap<string, number> => {
  const memories = reported(candidates.map((candidate) => candidate.memory))
  const largest = Math.max(0, ...memories)
  const scaled = (memory: number): number => (largest === 0 ? 0 : memory / largest)
  const cpu = mean(reported(candidates.map((candidate) => candidate.cpu))) / 100
  const memory = mean(memories.map(scaled))
  return new Map(
    candidates.map((candidate) => [
      candidate.id,
      (candidate.cpu === undefined ? cpu : candidate.cpu / 100) +
        (candidate.memory === undefined ? memory : scaled(candidate.memory))
    ])
  )
}

const counts = (candidates: ReadonlyArray<Candidate>): ReadonlyMap<string, number> =>
  new Map(candidates.map(({ id, views }) => [id, views]))

const byId = (a: Candidate, b: Candidate): number => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)

/** Ascending by a measure; ties by fewest views, then by id. */
const ordered = (
  candidates: ReadonlyArray<Candidate>,
  measure: ReadonlyMap<string, number>
): ReadonlyArray<Candidate> =>
  [...candidates].sort((a, b) => (measure.get(a.id) ?? 0) - (measure.get(b.id) ?? 0) || a.views - b.views || byId(a, b))

const leastBy =
  (measure: Strategy["measure"]): Strategy["choose"] =>
  (candidates) =>
    ordered(candidates, measure(candidates))[0]?.id

const next: Strategy["choose"] = (candidates, last) => {
  const sorted = [...candidates].sort(byId)
  return (sorted.find(({ id }) => last !== undefined && id > last) ?? sorted[0])?.id
}

/**
 * Load by CPU and memory, or by number of views if no SSP reports any load. Because load does not follow the number of
 * views, moves give an SSP with less load at most half of an equal share; new registrations bring the rest.
 */
const loadOrCounts: Strategy["measure"] = (candidates) =>
  candidates.every(({ cpu, memory }) => cpu === undefined && memory === undefined)
    ? counts(candidates)
    : loads(candidates)

/** The strategies by the names of the setting. */
export const strategies = {
  round_robin: { name: "round_robin", choose: next, measure: counts, share: 1 },
  least_queries: { name: "least_queries", choose: leastBy(counts), measure: counts, share: 1 },
  least_load: { name: "least_load", choose: leastBy(loadOrCounts), measure: loadOrCounts, share: 0.5 }
} as const satisfies { readonly [name: string]: Strategy }

export const strategyNames = ["round_robin", "least_queries", "least_load"] as const satisfies ReadonlyArray<
  keyof typeof strategies
>
export const defaultStrategy = "least_queries" satisfies keyof typeof strategies

/** How far above the mean an SSP may be and still get, or keep, a view because it has the view's tables (D65). */
const tolerance = 0.25

const bound = (measure: ReadonlyMap<string, number>): number => mean([...measure.values()]) * (1 + tolerance)

/** The candidates, among those not too far above the mean, that lack the fewest tables of a view; at least one. */
export const withFewestMissing = (
  { measure }: Pick<Strategy, "measure">,
  candidates: ReadonlyArray<Candidate>,
  /** Number of the view's tables that each candidate lacks, by id. */
  lacks: ReadonlyMap<string, number>
): ReadonlyArray<Candidate> => {
  if (new Set(lacks.values()).size <= 1) return candidates
  const of = measure(candidates)
  const most = bound(of)
  const roomy = candidates.filter(({ id }) => (of.get(id) ?? 0) <= most)
  const fewest = Math.min(...roomy.map(({ id }) => lacks.get(id)!))
  return roomy.filter(({ id }) => lacks.get(id) === fewest)
}

/** Least difference in load between the SSP that gives a view and the one that takes it. */
const margin = 0.1

export interface Moves {
  readonly from: string
  readonly to: string
  readonly count: number
  /** The giver is not far above the mean: only views whose tables the taker has may move (D65). */
  readonly onlyNear: boolean
}

/**
 * The views to move: to the SSP with the least load among those that lack views, from the SSP with most views among
 * those whose load is higher by the margin. Undefined if no move helps. After the moves the giver has at least as many
 * views as the taker, and the taker at most its share, so the next moves do not go back.
 */
export const planMoves = ({ measure, share }: Strategy, candidates: ReadonlyArray<Candidate>): Moves | undefined => {
  const of = measure(candidates)
  const fair = candidates.reduce((sum, { views }) => sum + views, 0) / Math.max(1, candidates.length)
  const taker = ordered(candidates, of).find(({ views }) => views < Math.floor(share * fair))
  if (taker === undefined) return undefined
  const more = candidates.filter(({ id }) => (of.get(id) ?? 0) > (of.get(taker.id) ?? 0) * (1 + margin))
  const giver = ordered(more, counts(more)).at(-1)
  const count =
    giver === undefined
      ? 0
      : Math.min(Math.floor((giver.views - taker.views) / 2), Math.floor(share * fair) - taker.views)
  return giver === undefined || count <= 0
    ? undefined
    : { from: giver.id, to: taker.id, count, onlyNear: (of.get(giver.id) ?? 0) <= bound(of) }
}
