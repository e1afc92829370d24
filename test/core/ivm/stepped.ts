/**
 * Registrations that are driven slice by slice: how often they pause, with changes in the pauses.
 */
import { Either } from "effect"
import { Engine } from "../../../src/core/ivm/engine.ts"
import type { View } from "../../../src/core/ivm/view/view.ts"
import type { Slices } from "../../../src/core/surql/evaluate/scope.ts"
import { parseSelect } from "../../../src/core/surql/syntax/parse.ts"
import { toJson } from "../../../src/core/surql/values/json.ts"
import { Desk } from "./desk.ts"

/** Runs slices to their end; answers the result and the number of pauses. */
export const stepped = <A>(slices: Slices<A>, pause: (pauses: number) => void = () => {}): readonly [A, number] => {
  for (let pauses = 0; ; pauses++) {
    const step = slices.next()
    if (step.done === true) return [step.value, pauses]
    pause(pauses)
  }
}

/** A registration, as it goes on in slices. */
export const acquiring = ({ engine }: Desk, query: string) =>
  engine.acquireSliced(Either.getOrThrow(parseSelect(query)), {}) as Slices<Either.Either<View, unknown>>

export const shown = (view: View) => Array.from(view.each(), ({ key, value }) => [key, toJson(value())])

/** The view of another engine, which was given the records as they are now. */
export const filledAnew = (desk: Desk, query: string): View => {
  const other = new Desk(new Engine())
  for (const table of desk.engine.store.tableNames())
    for (const { doc, id, version } of desk.engine.store.rows(table)) other.engine.load(id, version, doc!)
  return other.watch(query).view
}
