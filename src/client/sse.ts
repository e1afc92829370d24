/**
 * Parser of server-sent events from bytes in pieces of any size.
 *
 * Browsers have `EventSource`, but it can send neither a bearer nor a body, and it drops the field `view` that names
 * the view of an event. Lines end in `\n`, without a `\r` before it; a lone `\r` ends no line, because no server of
 * these streams writes one. The bytes of a character may come in two pieces.
 */

/** A server-sent event. */
export interface SseEvent {
  /** Name of the event; `message` if the stream gives none. */
  readonly event: string
  /** Id of this event; undefined if it has none. */
  readonly id: string | undefined
  /** Field `view`: place of the view on a stream of several; undefined if there is none. */
  readonly view: number | undefined
  readonly data: string
}

/** Most characters of a line, 64 Mi; a longer one is no event of the service. */
export const maxLine = 1 << 26

/** Parser of one stream; a new connection needs a new one. */
export class SseParser {
  readonly #decoder = new TextDecoder()
  /**
   * Pieces of the unfinished line, joined once at its end, so that a long line in small pieces costs only its length.
   */
  #pieces: Array<string> = []
  #pending = 0
  #event = ""
  #id: string | undefined
  #view: number | undefined
  #data: Array<string> = []

  /** The events that these bytes complete. Throws on a line of more than {@link maxLine} characters. */
  push(bytes: Uint8Array): ReadonlyArray<SseEvent> {
    const text = this.#decoder.decode(bytes, { stream: true })
    const events: Array<SseEvent> = []
    let from = 0
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", from)) {
      let line = text.slice(from, end)
      if (this.#pieces.length > 0) {
        line = this.#pieces.join("") + line
        this.#pieces = []
        this.#pending = 0
      }
      from = end + 1
      const event = this.#line(line.endsWith("\r") ? line.slice(0, -1) : line)
      if (event !== undefined) events.push(event)
    }
    if (from < text.length) {
      this.#pieces.push(text.slice(from))
      this.#pending += text.length - from
      if (this.#pending > maxLine) throw new Error(`a line of the stream has more than ${maxLine} characters`)
    }
    return events
  }

  #line(line: string): SseEvent | undefined {
    if (line === "") return this.#whole()
    const colon = line.indexOf(":")
    if (colon === 0) return undefined
    const field = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1)
    if (field === "data") this.#data.push(value)
    else if (field === "event") this.#event = value
    else if (field === "id") this.#id = value
    else if (field === "view" && /^\d+$/.test(value)) this.#view = Number(value)
    return undefined
  }

  /** The event that an empty line completes; undefined if the event has no data, as the standard says. */
  #whole(): SseEvent | undefined {
    const event = {
      event: this.#event || "message",
      id: this.#id,
      view: this.#view,
      data: this.#data.length === 1 ? this.#data[0]! : this.#data.join("\n")
    }
    const isEvent = this.#data.length > 0
    this.#event = ""
    this.#id = undefined
    this.#view = undefined
    if (isEvent) this.#data = []
    return isEvent ? event : undefined
  }
}
