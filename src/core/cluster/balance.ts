/**
 * Which SSP gets a view or a job (specification, load balancing; D32): three strategies, ties by fewest views, then by id.
 *
 * Deterministic in what it is given, so that a trace explains every choice. O(SSPs).
 */

export const strategies = ["round_robin", "least_queries", "least_load"] as const
export type Strategy = (typeof strategies)[number]

export const defaultStrategy: Strategy = "least_queries"

export interface Candidate {
  readonly id: string
  /** Views the scheduler has assigned to it. */
  readonly views: number
  /** Percent, and megabytes, as of its last heartbeat. */
  readonly cpu: number | undefined
  readonly memory: number | undefined
}

const mean = (values: ReadonlyArray<number>): number => (values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length)

const reported = (values: ReadonlyArray<number | undefined>): ReadonlyArray<number> => values.filter((value) => value !== undefined)

/** Share of a CPU plus share of the largest memory; what an SSP does not report counts as the others' average. */
export const loads = (candidates: ReadonlyArray<Candidate>): ReadonlyMap<string, number> => {
  const memories = reported(candidates.map((candidate) => candidate.memory))
  const largest = Math.max(0, ...memories)
  const scaled = (memory: number): number => (largest === 0 ? 0 : memory / largest)
  const cpu = mean(reported(candidates.map((candidate) => candidate.cpu))) / 100
  const memory = mean(memories.map(scaled))
  return new Map(candidates.map((candidate) => [candidate.id,
    (candidate.cpu === undefined ? cpu : candidate.cpu / 100) + (candidate.memory === undefined ? memory : scaled(candidate.memory))]))
}

const byId = (a: Candidate, b: Candidate): number => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)

const least = (candidates: ReadonlyArray<Candidate>, weight: (candidate: Candidate) => number): Candidate | undefined => {
  let best: Candidate | undefined
  for (const candidate of candidates) {
    const order = best === undefined ? -1 : weight(candidate) - weight(best) || candidate.views - best.views || byId(candidate, best)
    if (order < 0) best = candidate
  }
  return best
}

/** The id chosen; `last` is the one chosen before, where `round_robin` goes on. Undefined when there is none to choose. */
export const pick = (strategy: Strategy, candidates: ReadonlyArray<Candidate>, last: string | undefined): string | undefined => {
  if (strategy === "least_queries") return least(candidates, (candidate) => candidate.views)?.id
  if (strategy === "least_load") {
    const load = loads(candidates)
    return least(candidates, (candidate) => load.get(candidate.id) ?? 0)?.id
  }
  const sorted = [...candidates].sort(byId)
  return (sorted.find((candidate) => last !== undefined && candidate.id > last) ?? sorted[0])?.id
}
