/**
 * State machines as total tables: every state answers every event, or it does not compile.
 *
 * Cells are data, so that the table is the implementation, can be printed as documentation, and can be checked whole.
 */

/** `to`: move on; `ignore`: nothing to do, on purpose; `refuse`: must not happen here. */
export type Cell<S extends string> =
  | { readonly kind: "to"; readonly state: S; readonly note: string }
  | { readonly kind: "ignore"; readonly note: string }
  | { readonly kind: "refuse"; readonly note: string }

export type Table<S extends string, E extends string> = { readonly [state in S]: { readonly [event in E]: Cell<S> } }

export const to = <S extends string>(state: S, note: string): Cell<S> => ({ kind: "to", state, note })
export const ignore = (note: string): Cell<never> => ({ kind: "ignore", note })
export const refuse = (note: string): Cell<never> => ({ kind: "refuse", note })

export interface Step<S extends string> {
  readonly state: S
  readonly changed: boolean
  readonly refused: boolean
  readonly note: string
}

/** What `event` does in `state`. */
export const step = <S extends string, E extends string>(table: Table<S, E>, state: S, event: E): Step<S> => {
  const cell: Cell<S> = table[state][event]
  return { state: cell.kind === "to" ? cell.state : state, changed: cell.kind === "to" && cell.state !== state, refused: cell.kind === "refuse", note: cell.note }
}
