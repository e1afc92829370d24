/**
 * Which rows of a window the database does not even read, and which therefore cannot fail.
 */
import * as Ids from "../../surql/values/recordId.ts"
import type { EngineContext } from "../context.ts"
import { FullRow, noSort, type ViewRow } from "../operators/viewRow.ts"
import type { Bounds } from "../operators/window.ts"
import type { BoundSources } from "../query/boundSources.ts"
import type { Shape } from "../query/shape.ts"
import type { OutputRow } from "./output.ts"

/** The parts of a view that decide. */
interface Windowed {
  readonly knownAt: (position: number) => OutputRow | undefined
  readonly plainShape: Shape
  readonly boundSources: BoundSources | undefined
  readonly bounds: Bounds
  readonly context: EngineContext
}

/** LIMIT 0 behind a START: the rows before START decide where the database stops reading, but nothing is ever shown. */
export const showsNothing = ({ bounds: { limit, start }, plainShape: { windowed } }: Windowed): boolean =>
  windowed && limit === 0 && start > 0

/** Whether a row comes after a full window, in a view whose rows are read in the order of the window. */
export const isBehindWindow = (owner: Windowed, text: string): boolean => {
  const {
    context: { store },
    bounds,
    plainShape: { groups, kind, readInOrder, sort, splitting, windowed },
    boundSources
  } = owner
  const inOrder = readInOrder && (sort.length === 0 || boundSources === undefined || boundSources.isOneRange)
  if (!inOrder || groups !== undefined || splitting !== undefined) return false
  const most = windowed ? bounds.start + bounds.limit : Infinity
  if (most === 0) return true
  const last = owner.knownAt(most - 1) as ViewRow | undefined
  const id = Ids.parse(text)
  const slot = id && store.slotOf(id)
  const sourceIndex = slot && boundSources !== undefined ? boundSources.of(slot.id) : 0
  if (last === undefined || slot?.doc === undefined || sourceIndex === undefined) return false
  const row = new FullRow(owner, slot, {
    key: text,
    version: slot.version,
    digest: undefined,
    children: undefined,
    sourceIndex,
    sort: noSort,
    lead: slot.id,
    failure: undefined,
    keeps: 0,
    part: undefined
  })
  return kind.compare(row, last) > 0
}
