/**
 * One random run of the laws: a swarm mask, a dozen queries, a history of changes, the database at the end.
 *
 * Why apart from the tests: the default run and the long campaign are the same run, told how often and how long.
 */

import type { Rng } from "../../../kit/data/random.ts"
import type { Engines } from "../../../kit/processes/surreal/engines.ts"
import { GroupedView } from "../../../src/core/ivm/view/groupedView.ts"
import { SharedView } from "../../../src/core/ivm/view/sharedView.ts"
import { type Asked, compareWithDatabase } from "./database.ts"
import { features, history, swarm } from "./generateData.ts"
import { queries, type Tag } from "./generateQuery.ts"
import type { Model } from "./model.ts"
import { newTally, runCase, type Tally } from "./runCase.ts"
import { report, shrink } from "./shrink.ts"

export interface Seen {
  /** Queries that used the feature. */
  queries: number
  /** Steps that changed a result of such a query. */
  steps: number
}

export interface Totals {
  readonly tally: Tally
  readonly seen: Map<Tag, Seen>
  queries: number
  compared: number
  /** Views that showed the rows of another one. */
  sharing: number
  /** Groups over the rows of another view. */
  groupsSharing: number
  /** Answers in which the database's two evaluators differ from each other and from us. */
  readonly disputed: Array<string>
}

export const newTotals = (): Totals => ({
  tally: newTally(),
  seen: new Map(),
  queries: 0,
  compared: 0,
  sharing: 0,
  groupsSharing: 0,
  disputed: []
})

const note = (totals: Totals, tag: Tag, steps: number): void => {
  const seen = totals.seen.get(tag)
  if (seen === undefined) totals.seen.set(tag, { queries: 1, steps })
  else {
    seen.queries++
    seen.steps += steps
  }
}

/** The text of what went wrong, undefined when nothing did. */
export const lawRun = async (
  random: Rng,
  engines: Engines | undefined,
  totals: Totals,
  {
    changes = 500,
    quick = false,
    views = 14
  }: { readonly changes?: number; readonly quick?: boolean; readonly views?: number } = {}
): Promise<string | undefined> => {
  const mask = swarm(random)
  const asked = queries(random, mask, views)
  const steps = history(
    random,
    mask,
    changes,
    asked.map(({ params, text }, i) => ({ watch: `v${i}`, query: text, params }))
  )
  totals.queries += asked.length
  let end: { readonly model: Model; readonly views: ReadonlyArray<Asked> } | undefined
  const violation = runCase(steps, totals.tally, {
    quick,
    after: (model, held) => {
      const like: Array<Asked> = []
      asked.forEach(({ params, tags, text }, i) => {
        const instance = held.get(`v${i}`)?.instance
        if (instance === undefined) return
        if (instance instanceof SharedView) totals.sharing++
        if (instance instanceof GroupedView) totals.groupsSharing++
        for (const tag of tags) note(totals, tag, instance.generation - 1)
        if (!tags.has("unlike")) like.push({ query: text, params, view: instance })
      })
      end = { model, views: like }
    }
  })
  if (violation !== undefined)
    return `${report(shrink(steps, violation))}\n  without ${features.filter((feature) => !mask.has(feature)).join(" ")}`
  if (engines === undefined || end === undefined) return undefined
  const { compared, disputed, wrong } = await compareWithDatabase(engines, end.model, end.views)
  totals.compared += compared
  totals.disputed.push(...disputed)
  return wrong.length === 0 ? undefined : `L1 the database answers otherwise\n${wrong.join("\n")}`
}
