/**
 * A `POST` that a hot route answers only where it says again what is known: the declared route gets any other, with the
 * body that has been read already.
 */
import { IncomingMessage, type ServerResponse } from "node:http"
import type { HotRepeat } from "../../ports/Front.ts"
import { registrationHeader } from "../../protocol/wire.ts"
import { type ReadParts, replyOf } from "./hotReads.ts"
import { type NoText, readBody } from "./readBody.ts"

/** A request that has been read, as one whose body is still to come. */
const unread = (request: IncomingMessage, body: string): IncomingMessage => {
  const again = new IncomingMessage(request.socket)
  const { headers, httpVersion, httpVersionMajor, httpVersionMinor, method, rawHeaders, url } = request
  Object.assign(again, { headers, httpVersion, httpVersionMajor, httpVersionMinor, method, rawHeaders, url })
  // Node takes a message that is not complete for one that was cut, and closes its connection.
  again.complete = true
  again.push(body)
  again.push(null)
  return again
}

/** Whether the hot route has taken the request; `refuse` answers one without a text. */
export const serveRepeat = (
  route: HotRepeat,
  parts: ReadParts,
  request: IncomingMessage,
  response: ServerResponse,
  refuse: (why: NoText) => void
): boolean => {
  const { authorization, "content-length": length, [registrationHeader]: registration } = request.headers
  if (!(Number(length) <= route.maxBodyBytes) || response.socket === null) return false
  if (!route.wants(authorization, typeof registration === "string" ? registration : undefined)) return false
  readBody(request, route.maxBodyBytes, (body) => {
    if (typeof body !== "string") return refuse(body)
    const pass = (): void => parts.declared(unread(request, body), response)
    try {
      route.accept(body, { ...replyOf(parts, request, response), pass })
    } catch (error) {
      parts.onDefect(error)
      if (response.headersSent) response.destroy()
      else pass()
    }
  })
  return true
}
