/**
 * The answer to ingested changes (D7), and the changes that watchers add to them.
 */
import type { View } from "../../core/ivm/view/view.ts"
import type { Change } from "../../core/record/change.ts"
import type { IngestAnswer, ViewsWatcher } from "../viewTypes.ts"
import type { AppliedChange } from "./committer.ts"
import type { Registry } from "./registry.ts"

const nothingTouched: IngestAnswer = { views_affected: 0, edges_updated: 0 }

export const ingestAnswerOf = (registry: Registry, applied: ReadonlyArray<AppliedChange>): IngestAnswer => {
  if (applied.every((change) => change.touched.length === 0)) return nothingTouched
  const instances = new Set<View>()
  let views = 0
  let edges = 0
  for (const change of applied) {
    for (const { view: instance, delta } of change.touched) {
      const sharing = registry.sharing(instance)
      if (!instances.has(instance)) views += sharing
      instances.add(instance)
      edges += sharing * (delta.additions.length + delta.updates.length + delta.removals.length)
    }
  }
  return { views_affected: views, edges_updated: edges }
}

/** The changes, followed by those that watchers add to the same commit. */
export const withJoinedChanges = (
  watchers: ReadonlyArray<ViewsWatcher>,
  changes: ReadonlyArray<Change>
): ReadonlyArray<Change> => {
  let all: Array<Change> | undefined
  for (const { joins } of watchers) {
    if (joins === undefined) continue
    for (const change of changes) {
      const more = joins(change)
      if (more !== undefined) (all ??= [...changes]).push(more)
    }
  }
  return all ?? changes
}
