/**
 * The events of a view's stream (D11, D50), and their bytes as `text/event-stream`: made once per event, however many
 * clients follow.
 */
import * as Bytes from "../../core/bytes.ts"
import * as JsonText from "../../core/jsonText.ts"

export type EndReason =
  | "unauthorized"
  | "revoked"
  | "unregistered"
  | "expired"
  | "replaced"
  | "reset"
  | "moved"
  | "rebootstrap"
  | "shutdown"
  | "behind"
  | "quarantined"
  | "tooLarge"

/** One server-sent event: `data` is sent as JSON. `end` and, among several views, `refused` are the last of a view. */
export interface ViewEvent {
  readonly event: "snapshot" | "delta" | "end" | "refused"
  /** `<incarnation>.<n>`; `end` has none. */
  readonly id: string | undefined
  readonly data: unknown
}

export const isLast = ({ event }: ViewEvent): boolean => event === "end" || event === "refused"

export const endEvent = (reason: EndReason, message?: string): ViewEvent => ({
  event: "end",
  id: undefined,
  data: message === undefined ? { reason } : { reason, message }
})

const encoder = new TextEncoder()

/** Lines of an event before the JSON of its data. */
export const headLinesOf = ({ event, id }: ViewEvent): string =>
  `event: ${event}\n${id === undefined ? "" : `id: ${id}\n`}data: `

/** An event whose data is written on demand. */
export class WrittenEvent implements ViewEvent {
  constructor(
    readonly event: ViewEvent["event"],
    readonly id: string | undefined,
    readonly text: () => string
  ) {}

  get data(): unknown {
    return JsonText.parse(this.text())
  }
}

const textOf = (event: ViewEvent): string => (event instanceof WrittenEvent ? event.text() : JsonText.write(event.data))

/** JSON has no line breaks, so one `data` line carries it. */
const encode = (event: ViewEvent): Uint8Array => encoder.encode(`${headLinesOf(event)}${textOf(event)}\n\n`)

const made = new WeakMap<ViewEvent, Uint8Array>()

export const bytesOf = (event: ViewEvent): Uint8Array => {
  let bytes = made.get(event)
  if (bytes === undefined) made.set(event, (bytes = encode(event)))
  return bytes
}

/** The event, with bytes that exist already. */
export const withBytes = (event: ViewEvent, bytes: Uint8Array): ViewEvent => {
  made.set(event, bytes)
  return event
}

/** Joins events to one piece: a client costs per piece, not per event. */
export const joinEvents = (events: ReadonlyArray<ViewEvent>): Uint8Array => Bytes.joined(events.map(bytesOf))
