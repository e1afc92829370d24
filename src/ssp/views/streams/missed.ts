/**
 * What a client that comes back has missed, by the id of the last event it had.
 */
import type { Feed } from "../../../node/streams/feed.ts"
import type { Registered } from "../registry.ts"

/** Where in the feed it goes on; undefined where it needs a snapshot. `current`: the number of the last event. */
export const missedBy = (
  view: Registered,
  feed: Feed,
  current: number,
  lastEventId: string | undefined
): number | undefined => {
  const [incarnation, n] = lastEventId?.split(".") ?? []
  return incarnation === view.incarnation && n !== undefined && /^\d+$/.test(n)
    ? feed.after(Number(n), current)
    : undefined
}
