/** `POST /stream` as a client without the library sees it: its bytes, and the events in them. */
import { request as node } from "node:http"
import { SseParser } from "../../src/client/sse.ts"
import { secret, until } from "../processes/Door.ts"

export interface Many {
  readonly status: number
  readonly headers: { readonly [name: string]: unknown }
  text: string
  isOver: boolean
}

const closing: Array<() => void> = []

/** Hangs up on all that were opened. */
export const hangUp = (): void => {
  for (const close of closing.splice(0)) close()
}

/** Opens a stream of several views. */
export const follow = (url: string, body: object, token = secret, path = "/stream", method = "POST"): Promise<Many> =>
  new Promise((done, failed) => {
    const sent = node(new URL(path, url), {
      method,
      agent: false,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" }
    })
    closing.push(() => sent.destroy())
    sent.on("response", (response) => {
      const { connection: _, date: __, "keep-alive": ___, "transfer-encoding": ____, ...headers } = response.headers
      const many: Many = { status: response.statusCode ?? 0, headers, text: "", isOver: false }
      response.setEncoding("utf8").on("data", (text: string) => void (many.text += text))
      for (const event of ["close", "error"]) response.on(event, () => void (many.isOver = true))
      done(many)
    })
    sent.on("error", failed)
    sent.end(method === "POST" ? JSON.stringify(body) : undefined)
  })

export const eventsOf = ({ text }: Many) =>
  new SseParser().push(new TextEncoder().encode(text)).map(({ data, event, view }) => ({
    event,
    view,
    data: JSON.parse(data) as { readonly [name: string]: unknown }
  }))
/** Each as `<place> <event><reason or code>`. */
export const brief = (many: Many): ReadonlyArray<string> =>
  eventsOf(many).map(({ data, event, view }) => `${view ?? "-"} ${event}${data["reason"] ?? data["code"] ?? ""}`)
export const streamOf = (many: Many): string => String(eventsOf(many)[0]?.data["stream"])
export const heard = (many: Many, expected: ReadonlyArray<string>): Promise<unknown> =>
  until(`${expected} of ${JSON.stringify(many.text.slice(-2000))}`, () => String(brief(many)) === String(expected))
