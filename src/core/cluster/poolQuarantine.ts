/**
 * Queries that are given to no further SSP, because two have died of them (D48): counted, quarantined, freed.
 *
 * An SSP that dies during a registration may have died of that one, or of another in flight beside it. So every view in
 * flight becomes a suspect, and an SSP gets one suspect at a time: the second death names the culprit. A view that an
 * SSP has taken is no suspect any more.
 */
import { HashMap } from "effect"
import * as JsonText from "../jsonText.ts"
import type { CallOutcome, QuarantineRow, ViewSpec } from "./messages.ts"
import * as State from "./state.ts"
import { emit, set, type Turn } from "./turn.ts"

/** SSPs that died of a query, after which it is set aside. */
export const deathsToSetAside = 2

/** Key of a query: its parameters as JSON and its text, as in the registration. */
export const queryOf = ({ body }: ViewSpec): string => {
  const { params, surql } =
    typeof body === "object" && body !== null ? (body as { readonly params?: unknown; readonly surql?: unknown }) : {}
  return `${JsonText.write(params ?? null)}\n${typeof surql === "string" ? surql : ""}`
}

/** JSON has no line breaks, so the first one ends the parameters. */
export const partsOf = (query: string): { readonly params: unknown; readonly surql: string } => {
  const end = query.indexOf("\n")
  return { params: JsonText.parse(query.slice(0, end)) as unknown, surql: query.slice(end + 1) }
}

const rowsOf = (state: State.State, key: string): ReadonlyArray<QuarantineRow> => {
  const spec = State.view(state, key)?.spec
  const own = spec === undefined ? undefined : queryOf(spec)
  return [...HashMap.values(state.quarantined)].filter((row) => row.view === key || row.query === own)
}

/** Quarantined views, by key of the query. */
export const under = (
  state: State.State,
  key: string
): ReadonlyArray<{ readonly params: unknown; readonly surql: string }> =>
  rowsOf(state, key).map(({ query }) => partsOf(query))

/** Quarantine of a registration's query; undefined if it may be placed. */
export const of = (state: State.State, spec: ViewSpec): QuarantineRow | undefined => {
  if (HashMap.size(state.quarantined) === 0) return undefined
  const found = HashMap.get(state.quarantined, queryOf(spec))
  return found._tag === "Some" ? found.value : undefined
}

/**
 * Time in which answers arrive that an SSP sent before it began with a call. An answer after that shows that its thread
 * is not held by the call.
 */
const onTheWayMs = 1000

/**
 * Whether an SSP that did not answer a registration seems to have died of it: the connection broke off, or no answer
 * came in time, and the SSP gave no sign of life while it had the call. An SSP that a query holds answers nothing. One
 * that answers health calls, applies events or says goodbye meanwhile was ended by something else, such as an operator.
 * If all SSPs are silent together, none of them counts as dead: the scheduler is cut off, or the machine gives the
 * processes no time.
 */
export const hasDied = (state: State.State, now: number, { at, ssp }: State.ViewOp, outcome: CallOutcome): boolean => {
  if (outcome.kind !== "unreachable" || now - at < state.config.slowCallMs) return false
  const isAlive = (id: string): boolean => State.aliveAt(state, id) > at + onTheWayMs
  if (isAlive(ssp)) return false
  return outcome.lost === true || (outcome.late === true && [...HashMap.keys(state.members)].some(isAlive))
}

/** Number of SSPs that may have died of a view. */
export const deathsOf = (state: State.State, key: string): number => {
  const found = HashMap.get(state.deaths, key)
  return found._tag === "Some" ? found.value : 0
}

/** Counts one more SSP that died while it had this view in flight; answers the count. */
export const countDeath = (turn: Turn, key: string): number => {
  const deaths = deathsOf(turn.state, key) + 1
  set(turn, { deaths: HashMap.set(turn.state.deaths, key, deaths) })
  return deaths
}

/** Forgets the deaths counted for a view, once an SSP has taken it or the view is removed. */
export const forgetDeaths = (turn: Turn, key: string): void => {
  if (HashMap.has(turn.state.deaths, key)) set(turn, { deaths: HashMap.remove(turn.state.deaths, key) })
}

/** Whether another suspect is in flight to this SSP. */
export const isTrying = (state: State.State, ssp: string, key: string): boolean => {
  for (const suspect of HashMap.keys(state.deaths)) {
    const op = suspect === key ? undefined : State.view(state, suspect)?.op
    if (op?.kind === "register" && op.ssp === ssp) return true
  }
  return false
}

/** Quarantines a query until {@link free}. */
export const quarantine = (turn: Turn, key: string, spec: ViewSpec, ends: number): QuarantineRow => {
  const row: QuarantineRow = { query: queryOf(spec), view: key, ends, at: turn.now }
  forgetDeaths(turn, key)
  set(turn, { quarantined: HashMap.set(turn.state.quarantined, row.query, row) })
  emit(turn, { tag: "PersistQuarantine", row })
  emit(turn, {
    tag: "Log",
    level: "error",
    message: `view ${key} is quarantined: ${ends} SSPs ended while they evaluated its query; POST /view/free with its id lets it be placed again`
  })
  return row
}

/** Frees the query of a view, or the query quarantined under its key; answers the freed queries. */
export const free = (turn: Turn, key: string): ReadonlySet<string> => {
  const freed = new Set<string>()
  for (const row of rowsOf(turn.state, key)) {
    freed.add(row.query)
    set(turn, { quarantined: HashMap.remove(turn.state.quarantined, row.query) })
    emit(turn, { tag: "ForgetQuarantine", query: row.query })
  }
  return freed
}
