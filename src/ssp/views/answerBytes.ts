/**
 * A view's answer as JSON bytes, written with pauses: a result may take hundreds of megabytes, and writing it in one
 * turn would block all other work.
 */
import * as Bytes from "../../core/bytes.ts"
import type { RowError } from "../../core/ivm/view/view.ts"
import * as JsonText from "../../core/jsonText.ts"
import type { Slices } from "../../core/surql/evaluate/scope.ts"
import { compareStrings } from "../../core/surql/values/order.ts"
import { headLinesOf, type ViewEvent, withBytes } from "../../node/streams/viewEvent.ts"
import type { Sees } from "../../protocol/access.ts"
import type { PlacedViewAnswer, ViewAnswer } from "../viewTypes.ts"

const encoder = new TextEncoder()

const kindOf = ({ failure: { kind }, id }: RowError): string => (id === "" ? kind : `rows are left out: ${kind}`)

/**
 * Errors of an answer, reduced to what a reader may see (D2a). An expression fails on rows that the view does not show,
 * and its message quotes their values; readers of the view must learn neither (D72). `whole`: each row with its id and
 * reason. `kinds`: each kind of failure once, under an empty id; the same text however many rows fail.
 */
export const visibleErrors = (
  errors: ReadonlyArray<RowError>,
  sees: Sees
): ReadonlyArray<{ readonly id: string; readonly reason: string }> =>
  sees === "whole"
    ? errors.map(({ failure, id }) => ({ id, reason: failure.reason }))
    : [...new Set(errors.map(kindOf))].sort(compareStrings).map((reason) => ({ id: "", reason }))

/** Characters written between two pauses; also the least size of a piece but the last. */
const charsPerSlice = 262_144

/** The text of `JsonText.write` as UTF-8 pieces. */
export function* answerPieces(answer: ViewAnswer | PlacedViewAnswer, sees: Sees): Slices<ReadonlyArray<Uint8Array>> {
  const pieces: Array<Uint8Array> = []
  let text = "{"
  let comma = ""
  const told = "errors" in answer ? { ...answer, errors: visibleErrors(answer.errors, sees) } : answer
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

/** A view's snapshot event with its bytes. All followers share the bytes, so errors are reduced to kinds (D72). */
export function* snapshotEvent(id: string, answer: ViewAnswer): Slices<ViewEvent> {
  const event: ViewEvent = { event: "snapshot", id, data: answer }
  const pieces = yield* answerPieces(answer, "kinds")
  return withBytes(event, Bytes.joined([encoder.encode(headLinesOf(event)), ...pieces, encoder.encode("\n\n")]))
}
