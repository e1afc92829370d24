/**
 * Compresses results of views with gzip, for clients that accept it: an SSP's own, and those that a scheduler passes
 * on.
 *
 * Bytes go through zlib's threads piece by piece, so that a large result neither blocks other work nor is held whole.
 * Compressed bytes are not cached: a client that reads again has the tag, and is answered 304.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import { createGzip } from "node:zlib"

/** An answer shorter than this is one packet either way. */
const minBytes = 1024

/** A third of the time of zlib's default level, for a tenth more bytes. */
const level = 1

const path = /^\/view\/[^/?#]+(?:\?|$)/

/** Whether `Accept-Encoding` names gzip or `*` without refusing it (RFC 9110, 12.5.3). */
const takesGzip = (acceptEncoding: string | ReadonlyArray<string> | undefined): boolean => {
  if (typeof acceptEncoding !== "string") return false
  const codings = acceptEncoding.split(",").map((coding) =>
    coding
      .trim()
      .toLowerCase()
      .split(/\s*;\s*/)
  )
  const named = codings.find(([name]) => name === "gzip") ?? codings.find(([name]) => name === "*")
  return named?.slice(1).every((weight) => !/^q=0(?:\.0*)?$/.test(weight)) ?? false
}

type Headers = { readonly [name: string]: unknown }

/** Makes the entity tag weak: the compressed bytes differ, the result is the same. */
const weakened = ({ etag, ...headers }: Headers): Headers =>
  etag === undefined ? headers : { ...headers, etag: `W/${etag}` }

type Call<A> = (...args: ReadonlyArray<unknown>) => A

/** Compresses everything written to the response from now on. */
const compress = (response: ServerResponse): void => {
  const write = response.write.bind(response) as Call<boolean>
  const end = response.end.bind(response) as Call<ServerResponse>
  const gzip = createGzip({ level })
  gzip.on("data", (chunk) => {
    if (!write(chunk)) gzip.pause()
  })
  gzip.on("end", () => end())
  gzip.on("error", (error) => response.destroy(error))
  gzip.on("drain", () => response.emit("drain"))
  response.on("drain", () => gzip.resume())
  response.on("close", () => gzip.destroy())
  Object.assign(response, {
    write: (chunk: Uint8Array): boolean => gzip.write(chunk),
    end: (...args: ReadonlyArray<unknown>): ServerResponse => {
      gzip.end(...(args as []))
      return response
    }
  })
}

/**
 * Compresses the answer to a read of a view if the client accepts that and the answer is long enough. A connection that
 * is idle for `silenceMs` meanwhile is closed.
 */
export const offer = (request: IncomingMessage, response: ServerResponse, silenceMs: number): void => {
  if (!path.test(request.url ?? "")) return
  const writeHead = response.writeHead.bind(response) as Call<ServerResponse>
  const decided = (status: number, given: Headers = {}): ServerResponse => {
    const isResult = status === 200 && String(given["content-type"]).startsWith("application/json")
    if (!isResult && status !== 304) return writeHead(status, given)
    const before = given["vary"] ?? response.getHeader("vary")
    const vary = before === undefined ? "accept-encoding" : `accept-encoding, ${before}`
    const { "content-length": length, ...headers } = given
    const isShort = length !== undefined && Number(length) < minBytes
    if (!isResult || isShort || !takesGzip(request.headers["accept-encoding"]))
      return writeHead(status, { ...given, vary })
    compress(response)
    request.socket.setTimeout(silenceMs)
    return writeHead(status, { ...weakened(headers), vary, "content-encoding": "gzip" })
  }
  Object.assign(response, { writeHead: decided })
}
