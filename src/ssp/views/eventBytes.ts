/**
 * A view's events as the bytes of `text/event-stream`: made once per event, however many clients follow.
 */
import * as Bytes from "../../core/bytes.ts"
import type { ViewEvent } from "./viewTypes.ts"

const encoder = new TextEncoder()

/** JSON has no line breaks, so one `data` line carries it. */
const encode = ({ data, event, id }: ViewEvent): Uint8Array =>
  encoder.encode(`event: ${event}\n${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`)

const made = new WeakMap<ViewEvent, Uint8Array>()

export const bytesOf = (event: ViewEvent): Uint8Array => {
  let bytes = made.get(event)
  if (bytes === undefined) made.set(event, (bytes = encode(event)))
  return bytes
}

/** Several as one piece: a piece is what a client costs, not the events in it. */
export const joined = (events: ReadonlyArray<ViewEvent>): Uint8Array => Bytes.joined(events.map(bytesOf))
