/**
 * Talking to a server process: plain requests, bytes on a raw socket, and server-sent events.
 *
 * Why our own: the contract is about exact headers, exact bodies and malformed requests, which `fetch` will not send.
 * Connections are kept alive and shared, because thousands of requests are made.
 */
import { Agent, request as httpRequest, type IncomingMessage } from "node:http"
import { request as httpsRequest } from "node:https"
import { connect } from "node:net"
import * as JsonText from "../../src/core/jsonText.ts"

const agent = new Agent({ keepAlive: true, maxSockets: 32 })

export interface Ask {
  readonly method?: string
  readonly path: string
  readonly headers?: { readonly [name: string]: string | ReadonlyArray<string> }
  /** Sent as the bearer secret. */
  readonly token?: string | undefined
  /** A string or bytes go out as they are; anything else as JSON. */
  readonly body?: unknown
  readonly keepAlive?: boolean
  /**
   * For an `https://` address: what it is verified against, and a certificate to show. Each such request has a
   * connection of its own.
   */
  readonly tls?: { readonly ca: string; readonly cert?: string; readonly key?: string } | undefined
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingMessage["headers"]
  readonly text: string
  /** The body as JSON; undefined when it is none. */
  readonly json: unknown
}

const jsonOf = (text: string): unknown => {
  try {
    return JsonText.parse(text)
  } catch {
    return undefined
  }
}

const bytesOf = (body: unknown): string | Uint8Array =>
  typeof body === "string" || body instanceof Uint8Array ? body : JsonText.write(body)

const headersOf = (
  ask: Ask,
  body: string | Uint8Array | undefined
): Record<string, string | ReadonlyArray<string>> => ({
  ...(body === undefined
    ? {}
    : { "content-type": "application/json", "content-length": String(Buffer.byteLength(body)) }),
  ...(ask.token === undefined ? {} : { authorization: `Bearer ${ask.token}` }),
  ...ask.headers
})

const textOf = async (message: IncomingMessage): Promise<string> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of message) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString("utf8")
}

export const request = (url: string, ask: Ask): Promise<Answer> =>
  new Promise((done, failed) => {
    const body = ask.body === undefined ? undefined : bytesOf(ask.body)
    const { hostname, port, protocol } = new URL(url)
    const isTls = protocol === "https:"
    const outgoing = (isTls ? httpsRequest : httpRequest)(
      {
        hostname,
        port,
        path: ask.path,
        method: ask.method ?? "GET",
        headers: headersOf(ask, body) as Record<string, string>,
        agent: isTls || ask.keepAlive === false ? false : agent,
        ...ask.tls
      },
      (message) => {
        textOf(message).then(
          (text) => done({ status: message.statusCode ?? 0, headers: message.headers, text, json: jsonOf(text) }),
          failed
        )
      }
    )
    outgoing.setTimeout(60_000, () =>
      outgoing.destroy(new Error(`no answer to ${ask.method ?? "GET"} ${ask.path} in 60 s`))
    )
    outgoing.on("error", failed)
    outgoing.end(body)
  })

/** A client bound to one server and one secret. */
export const client = (url: string, token: string | undefined) => ({
  get: (path: string): Promise<Answer> => request(url, { path, token }),
  post: (path: string, body?: unknown): Promise<Answer> => request(url, { method: "POST", path, token, body })
})
export type Client = ReturnType<typeof client>

/** Bodies of answers as the tests read them: an object with anything in it. */
export type Body = { readonly [key: string]: unknown }
export const bodyOf = (answer: Answer): Body => {
  if (typeof answer.json !== "object" || answer.json === null || Array.isArray(answer.json))
    throw new Error(`not a JSON object: ${answer.status} ${answer.text.slice(0, 300)}`)
  return answer.json as Body
}

/**
 * Sends bytes as they are on a socket of their own and reads until the server closes, or has answered once in full.
 * Undefined: the server closed the connection without an answer.
 */
export const rawRequest = (port: number, bytes: string | Uint8Array, boundMs = 20_000): Promise<Answer | undefined> =>
  new Promise((done, failed) => {
    let text = ""
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes))
    const finish = (): void => {
      socket.destroy()
      done(parseAnswer(text))
    }
    socket.setTimeout(boundMs, () => {
      socket.destroy()
      failed(new Error(`no end of the answer in ${boundMs} ms, so far: ${JSON.stringify(text.slice(0, 300))}`))
    })
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1")
      if (isWhole(text)) finish()
    })
    socket.on("end", finish)
    socket.on("error", finish)
  })

const isWhole = (text: string): boolean => {
  const end = text.indexOf("\r\n\r\n")
  if (end < 0) return false
  const length = /^content-length:\s*(\d+)/im.exec(text.slice(0, end))?.[1]
  return length === undefined ? /\r\n0\r\n\r\n$/.test(text) : text.length >= end + 4 + Number(length)
}

const parseAnswer = (text: string): Answer | undefined => {
  const head = /^HTTP\/1\.1 (\d{3})/.exec(text)
  if (head === null) return undefined
  const end = text.indexOf("\r\n\r\n")
  const headers: Record<string, string> = {}
  for (const line of text.slice(0, end).split("\r\n").slice(1)) {
    const colon = line.indexOf(":")
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim()
  }
  const body = Buffer.from(text.slice(end + 4), "latin1").toString("utf8")
  return { status: Number(head[1]), headers, text: body, json: jsonOf(body) }
}
