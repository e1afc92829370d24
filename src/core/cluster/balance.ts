/**
 * Which SSP gets a view, and which views move (specification, load balancing; D31, D32): three strategies, ties by
 * fewest views, then by id.
 *
 * A strategy chooses the SSP of a view and says by which measure SSPs are compared; when views move is decided here,
 * alike for all of them, from that measure alone: what `choose` would put back at once must not be moved. Deterministic
 * in what it is given, so that a trace explains every choice. O(SSPs).
 */

export interface Candidate {
  readonly id: string
  /** Views the scheduler has assigned to it. */
  readonly views: number
  /** Percent, and megabytes, as of its last heartbeat. */
  readonly cpu: number | undefined
  readonly memory: number | undefined
}

export interface Strategy {
  readonly name: string
  /** The id chosen for a view; `last` is the one chosen before. Undefined when there is none to choose. */
  readonly choose: (candidates: ReadonlyArray<Candidate>, last: string | undefined) => string | undefined
  /**
   * How much is on each, by id, in the strategy's own unit: views go from where this is more to where it is less, never
   * the other way.
   */
  readonly measure: (candidates: ReadonlyArray<Candidate>) => ReadonlyMap<string, number>
  /**
   * Up to which part of an equal number of views an SSP is given views of others: 1 for all of it, 0 where nothing
   * shall move.
   */
  readonly share: number
}

const mean = (values: ReadonlyArray<number>): number =>
  values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length

const reported = (values: ReadonlyArray<number | undefined>): ReadonlyArray<number> =>
  values.filter((value) => value !== undefined)

/** Share of a CPU plus share of the largest memory; what an SSP does not report counts as the others' average. */
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

/** From the least by a measure to the most; ties by fewest views, then by id. */
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
 * Load is no count of views: SSPs without a report are compared by views, and the SSP with less load gets up to half
 * an equal share moved to it, the rest as views are registered.
 */
const loadOrCounts: Strategy["measure"] = (candidates) =>
  candidates.every(({ cpu, memory }) => cpu === undefined && memory === undefined)
    ? counts(candidates)
    : loads(candidates)

export const strategies = {
  round_robin: { name: "round_robin", choose: next, measure: counts, share: 1 },
  least_queries: { name: "least_queries", choose: leastBy(counts), measure: counts, share: 1 },
  least_load: { name: "least_load", choose: leastBy(loadOrCounts), measure: loadOrCounts, share: 0.5 }
} as const satisfies { readonly [name: string]: Strategy }

export const strategyNames = ["round_robin", "least_queries", "least_load"] as const satisfies ReadonlyArray<
  keyof typeof strategies
>
export const defaultStrategy = "least_queries" satisfies keyof typeof strategies

/** How far above the mean an SSP may be that gets a view, or keeps it, for the tables that it has (D65). */
const tolerance = 0.25

const bound = (measure: ReadonlyMap<string, number>): number => mean([...measure.values()]) * (1 + tolerance)

/** Candidates that lack the fewest tables of a view, of all that are not too far above the mean; one at least. */
export const nearest = (
  { measure }: Pick<Strategy, "measure">,
  candidates: ReadonlyArray<Candidate>,
  /** How many tables each lacks, by id. */
  lacks: ReadonlyMap<string, number>
): ReadonlyArray<Candidate> => {
  if (new Set(lacks.values()).size <= 1) return candidates
  const of = measure(candidates)
  const most = bound(of)
  const roomy = candidates.filter(({ id }) => (of.get(id) ?? 0) <= most)
  const fewest = Math.min(...roomy.map(({ id }) => lacks.get(id)!))
  return roomy.filter(({ id }) => lacks.get(id) === fewest)
}

/** By how much the load of the SSP that gives a view must exceed the load of the SSP that gets it. */
const margin = 0.1

export interface Moves {
  readonly from: string
  readonly to: string
  readonly count: number
  /** The giver is not too far above the mean: only views move whose tables the taker has (D65). */
  readonly onlyNear: boolean
}

/**
 * The views that shall move: to the SSP with the least by the measure among those that lack views, from the one with
 * most views among those with more by the margin. Undefined where that is good for nothing. Behind the moves the giver
 * still has as many views as the taker, and the taker no more than its share: so the next moves do not go back.
 */
export const moves = ({ measure, share }: Strategy, candidates: ReadonlyArray<Candidate>): Moves | undefined => {
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
