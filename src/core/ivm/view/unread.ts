/**
 * Which rows of a window the database does not even read, and which therefore cannot fail.
 *
 * Why apart: only a result that has failing rows asks, and all of it is about the window and nothing about the rows inside.
 */
import * as Ids from "../../surql/recordId.ts"
import { FullMember, type Member, noSort } from "./viewRow.ts"
import type { Output } from "./output.ts"
import type { Shape } from "../query/shape.ts"
import type { Slots } from "../query/boundSources.ts"
import type { Surroundings } from "../context.ts"
import type { Bounds } from "../operators/window.ts"

/** What of an instance decides. */
export interface Windowed {
  readonly knownAt: (position: number) => Output | undefined
  readonly plainShape: Shape
  readonly slots: Slots | undefined
  readonly bounds: Bounds
  readonly around: Surroundings
}

/** LIMIT 0 behind a START: rows that end the reading come and go, and nothing shown moves. */
export const isBlind = ({ bounds: { limit, start }, plainShape: { windowed } }: Windowed): boolean => windowed && limit === 0 && start > 0

/** Where rows come in the order of the window, those behind a full one are not read. */
export const isBehindWindow = (owner: Windowed, text: string): boolean => {
  const { around: { store }, bounds, plainShape: { groups, kind, readInOrder, sort, splitting, windowed }, slots } = owner
  const inOrder = readInOrder && (sort.length === 0 || slots === undefined || slots.isOneRange)
  if (!inOrder || groups !== undefined || splitting !== undefined) return false
  const most = windowed ? bounds.start + bounds.limit : Infinity
  if (most === 0) return true
  const last = owner.knownAt(most - 1) as Member | undefined
  const id = Ids.parse(text)
  const place = id && store.placeOf(id)
  const slot = place && slots !== undefined ? slots.of(place.id) : 0
  if (last === undefined || place?.doc === undefined || slot === undefined) return false
  const row = new FullMember(owner, place, { key: text, version: place.version, digest: undefined, children: undefined, slot, sort: noSort, lead: place.id, failure: undefined, part: undefined })
  return kind.compare(row, last) > 0
}
