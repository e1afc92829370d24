/** The SSP that owns a view, for requests that are passed on to it. */
import * as Quarantine from "../../core/cluster/poolQuarantine.ts"
import * as State from "../../core/cluster/state.ts"
import { viewKey } from "../../core/view/viewId.ts"
import * as Errors from "../HttpErrors.ts"

/** `refused`: no SSP owns the view now, for the reason in this error. `isGone`: no view has this id. */
export type ViewOwner =
  | { readonly owner: State.SspMember }
  | { readonly refused: ReturnType<typeof Errors.viewQuarantined | typeof Errors.viewUnplaced> }
  | { readonly isGone: true }

const gone = { isGone: true } as const

export const ownerOf = (state: State.State, id: string): ViewOwner => {
  const key = viewKey(id)
  const view = key === undefined ? undefined : State.view(state, key)
  if (view === undefined || view.gone) return gone
  const owner = State.memberAt(state, view.home)
  if (owner !== undefined) return { owner }
  const aside = Quarantine.of(state, view.spec)
  return { refused: aside === undefined ? Errors.viewUnplaced(id, state) : Errors.viewQuarantined(id, aside) }
}
