/**
 * State machines as total tables: every state answers every event, or it does not compile.
 *
 * Cells are data, so that the table is the implementation, can be printed as documentation, and can be checked whole.
 */

/**
 * `to`: the next state; `ignore`: nothing to do, on purpose; `refuse`: must not happen in this state. `emit`: effects,
 * in order.
 */
type Cell<S extends string, F extends string = never> =
  | { readonly kind: "to"; readonly state: S; readonly note: string; readonly emit: ReadonlyArray<F> }
  | { readonly kind: "ignore"; readonly note: string; readonly emit: ReadonlyArray<F> }
  | { readonly kind: "refuse"; readonly note: string; readonly emit: readonly [] }

export type Table<S extends string, E extends string, F extends string = never> = {
  readonly [state in S]: { readonly [event in E]: Cell<S, F> }
}

/** A cell that leads to another state. */
export const to = <S extends string, F extends string = never>(
  state: S,
  note: string,
  ...emit: ReadonlyArray<F>
): Cell<S, F> => ({ kind: "to", state, note, emit })
/** A cell for an event that changes nothing, on purpose; `note` says why. */
export const ignore = <F extends string = never>(note: string, ...emit: ReadonlyArray<F>): Cell<never, F> => ({
  kind: "ignore",
  note,
  emit
})
/** A cell for an event that must not happen in this state. */
export const refuse = (note: string): Cell<never> => ({ kind: "refuse", note, emit: [] })

/** The answer of a table to an event. */
export interface Step<S extends string, F extends string = never> {
  readonly state: S
  readonly changed: boolean
  readonly refused: boolean
  readonly note: string
  readonly emit: ReadonlyArray<F>
}

/** The move that the table has for `event` in `state`. */
export const step = <S extends string, E extends string, F extends string = never>(
  table: Table<S, E, F>,
  state: S,
  event: E
): Step<S, F> => {
  const cell: Cell<S, F> = table[state][event]
  return {
    state: cell.kind === "to" ? cell.state : state,
    changed: cell.kind === "to" && cell.state !== state,
    refused: cell.kind === "refuse",
    note: cell.note,
    emit: cell.emit
  }
}

/** The table as text with one line per cell, for readers and for tests that compare it. */
export const print = (table: {
  readonly [state: string]: { readonly [event: string]: Cell<string, string> }
}): string =>
  Object.entries(table)
    .flatMap(([state, row]) =>
      Object.entries(row).map(([event, cell]) => {
        const outcome = cell.kind === "to" ? `-> ${cell.state}` : cell.kind === "ignore" ? "stays" : "REFUSED"
        const emit = cell.emit.length === 0 ? "" : ` [${cell.emit.join(", ")}]`
        return `${state.padEnd(14)} ${event.padEnd(18)} ${outcome.padEnd(17)}${emit} ${cell.note}`
      })
    )
    .join("\n")
