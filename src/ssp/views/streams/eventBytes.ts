/**
 * A view's events as the bytes of `text/event-stream`: made once per event, however many clients follow.
 */
import * as Bytes from "../../../core/bytes.ts"
import type { Slices } from "../../../core/surql/evaluate/scope.ts"
import * as AnswerBytes from "../answerBytes.ts"
import type { ViewAnswer, ViewEvent } from "../viewTypes.ts"

const encoder = new TextEncoder()

const headOf = ({ event, id }: ViewEvent): string => `event: ${event}\n${id === undefined ? "" : `id: ${id}\n`}data: `

/** An event whose data is written by its own maker, when it is asked for. */
export class WrittenEvent implements ViewEvent {
  readonly event: ViewEvent["event"]
  readonly id: string | undefined
  readonly text: () => string

  constructor(event: ViewEvent["event"], id: string | undefined, text: () => string) {
    this.event = event
    this.id = id
    this.text = text
  }

  get data(): unknown {
    return JSON.parse(this.text())
  }
}

const textOf = (event: ViewEvent): string => (event instanceof WrittenEvent ? event.text() : JSON.stringify(event.data))

/** JSON has no line breaks, so one `data` line carries it. */
const encode = (event: ViewEvent): Uint8Array => encoder.encode(`${headOf(event)}${textOf(event)}\n\n`)

const made = new WeakMap<ViewEvent, Uint8Array>()

export const bytesOf = (event: ViewEvent): Uint8Array => {
  let bytes = made.get(event)
  if (bytes === undefined) made.set(event, (bytes = encode(event)))
  return bytes
}

/** Several as one piece: a piece is what a client costs, not the events in it. */
export const joined = (events: ReadonlyArray<ViewEvent>): Uint8Array => Bytes.joined(events.map(bytesOf))

/** A snapshot of a view, with its bytes made in slices before it is told. */
export function* prepared(id: string, answer: ViewAnswer): Slices<ViewEvent> {
  const event: ViewEvent = { event: "snapshot", id, data: answer }
  const pieces = yield* AnswerBytes.written(answer)
  made.set(event, Bytes.joined([encoder.encode(headOf(event)), ...pieces, encoder.encode("\n\n")]))
  return event
}
