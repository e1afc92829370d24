/**
 * A view's answer as the bytes of its JSON, written with pauses: a result may take hundreds of megabytes, and writing
 * it in one turn would hold up all other work.
 */
import * as Bytes from "../../core/bytes.ts"
import type { RowError } from "../../core/ivm/view/view.ts"
import * as JsonText from "../../core/jsonText.ts"
import type { Slices } from "../../core/surql/evaluate/scope.ts"
import { compareStrings } from "../../core/surql/values/order.ts"
import { headOf, type ViewEvent, withBytes } from "../../node/streams/viewEvent.ts"
import type { Sees } from "../../protocol/access.ts"
import type { ViewAnswer, ViewPlaced } from "../viewTypes.ts"

const encoder = new TextEncoder()

const kindOf = ({ failure: { kind }, id }: RowError): string => (id === "" ? kind : `rows are left out: ${kind}`)

/**
 * The errors of an answer (D2a). An expression fails on rows that the view does not show, and on values of them; a
 * reader of the view's rows must learn neither (D72), so what the engine keeps is of another type than what is told.
 * `whole`: each row with its id and the values that it failed on. `kinds`: what failed, once for each kind, under an
 * empty id; the same whichever and however many rows fail.
 */
export const toldOf = (
  errors: ReadonlyArray<RowError>,
  sees: Sees
): ReadonlyArray<{ readonly id: string; readonly reason: string }> =>
  sees === "whole"
    ? errors.map(({ failure, id }) => ({ id, reason: failure.reason }))
    : [...new Set(errors.map(kindOf))].sort(compareStrings).map((reason) => ({ id: "", reason }))

/** Characters that are written between two pauses, and the least that one piece holds. */
const charsPerSlice = 262_144

/** The text that `JsonText.write` gives, in pieces; rows are written one by one. */
export function* written(answer: ViewAnswer | ViewPlaced, sees: Sees): Slices<ReadonlyArray<Uint8Array>> {
  const pieces: Array<Uint8Array> = []
  let text = "{"
  let comma = ""
  const told = "errors" in answer ? { ...answer, errors: toldOf(answer.errors, sees) } : answer
  for (const [name, value] of Object.entries(told)) {
    text += `${comma}${JSON.stringify(name)}:`
    comma = ","
    if (!Array.isArray(value)) {
      text += JsonText.write(value)
      continue
    }
    text += "["
    for (let i = 0; i < value.length; i++) {
      if (text.length > charsPerSlice) {
        pieces.push(encoder.encode(text))
        text = ""
        yield
      }
      text += i === 0 ? JsonText.write(value[i]) : `,${JsonText.write(value[i])}`
    }
    text += "]"
  }
  pieces.push(encoder.encode(`${text}}`))
  return pieces
}

/** A snapshot of a view, with its bytes made before it is told. All followers share them, so they tell kinds (D72). */
export function* snapshotEvent(id: string, answer: ViewAnswer): Slices<ViewEvent> {
  const event: ViewEvent = { event: "snapshot", id, data: answer }
  const pieces = yield* written(answer, "kinds")
  return withBytes(event, Bytes.joined([encoder.encode(headOf(event)), ...pieces, encoder.encode("\n\n")]))
}
