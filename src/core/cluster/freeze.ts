/**
 * The frozen snapshot and the SSPs that pull it (D27): one at a time, shared by SSPs that register soon enough, held by
 * owners until a deadline.
 *
 * Every owner has a deadline of its own, so a dead SSP cannot hold the log and the snapshot for ever; and an old
 * snapshot takes no new owners, so a stream of registrations cannot either.
 */

export interface Freeze {
  readonly id: number
  /** The position the snapshot shows. */
  readonly seq: number
  readonly at: number
  /** SSP id to the deadline of its share. */
  readonly owners: ReadonlyMap<string, number>
}

/** `wait`: the snapshot is too old to share and not yet free. */
type Share =
  | { readonly kind: "new"; readonly freeze: Freeze }
  | { readonly kind: "shared"; readonly freeze: Freeze }
  | { readonly kind: "wait"; readonly retryAfterMs: number }

/** A share for `owner` at `now`; `head` is the position a new snapshot would show. */
export const share = (
  freeze: Freeze | undefined,
  owner: string,
  now: number,
  timeoutMs: number,
  head: number,
  id: number
): Share => {
  const deadline = now + timeoutMs
  if (freeze === undefined)
    return { kind: "new", freeze: { id, seq: head, at: now, owners: new Map([[owner, deadline]]) } }
  if (now - freeze.at <= timeoutMs / 2)
    return { kind: "shared", freeze: { ...freeze, owners: new Map(freeze.owners).set(owner, deadline) } }
  return { kind: "wait", retryAfterMs: Math.max(1, Math.min(...freeze.owners.values(), deadline) - now) }
}

/** The freeze without `owner`; undefined if that was the last owner. */
export const release = (freeze: Freeze | undefined, owner: string): Freeze | undefined => {
  if (freeze === undefined || !freeze.owners.has(owner)) return freeze
  const owners = new Map(freeze.owners)
  owners.delete(owner)
  return owners.size === 0 ? undefined : { ...freeze, owners }
}
