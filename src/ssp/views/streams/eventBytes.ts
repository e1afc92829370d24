/** The snapshot of a view as an event whose bytes are made in slices. */
import * as Bytes from "../../../core/bytes.ts"
import type { Slices } from "../../../core/surql/evaluate/scope.ts"
import { headOf, type ViewEvent, withBytes } from "../../../node/streams/viewEvent.ts"
import type { ViewAnswer } from "../../viewTypes.ts"
import * as AnswerBytes from "../answerBytes.ts"

const encoder = new TextEncoder()

/** A snapshot of a view, with its bytes made before it is told. All followers share them, so they tell kinds (D72). */
export function* prepared(id: string, answer: ViewAnswer): Slices<ViewEvent> {
  const event: ViewEvent = { event: "snapshot", id, data: answer }
  const pieces = yield* AnswerBytes.written(answer, "kinds")
  return withBytes(event, Bytes.joined([encoder.encode(headOf(event)), ...pieces, encoder.encode("\n\n")]))
}
