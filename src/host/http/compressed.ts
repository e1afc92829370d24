/**
 * Compresses results of views with gzip, for clients that accept it: an SSP's own, and those that a scheduler passes
 * on.
 *
 * Bytes go through zlib's threads piece by piece, so that a large result neither blocks other work nor is held whole.
 * Compressed bytes are not cached: a client that reads again has the tag, and is answered 304.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import { createGzip } from "node:zlib"

/** Least length of an answer that is compressed: a shorter one is one packet either way. */
const minBytes = 1024

/** Level of compression: a third of the time of zlib's default level, for a tenth more bytes. */
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

/** Names of headers and their values in turn, each name once: Node writes them in half the time of an object's. */
type FlatHeaders = Array<string>

const valueOf = (headers: FlatHeaders, name: string): string | undefined => {
  for (let i = 0; i < headers.length; i += 2) if (headers[i] === name) return headers[i + 1]
  return undefined
}

const without = (headers: FlatHeaders, ...names: ReadonlyArray<string>): FlatHeaders =>
  headers.filter((_, i) => !names.includes(headers[i - (i % 2)]!))

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
 * The headers of an answer that begins with `given`. Where the request reads a view, its client accepts gzip and the
 * answer is long enough, everything written from now on is compressed; a connection that is idle for `silenceMs`
 * meanwhile is closed.
 */
export const headersFor = (
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  given: FlatHeaders,
  silenceMs: number
): FlatHeaders => {
  if (request.method !== "GET" || !path.test(request.url ?? "")) return given
  const isResult = status === 200 && valueOf(given, "content-type")?.startsWith("application/json") === true
  if (!isResult && status !== 304) return given
  const before = valueOf(given, "vary") ?? response.getHeader("vary")
  const vary = before === undefined ? "accept-encoding" : `accept-encoding, ${before}`
  const length = valueOf(given, "content-length")
  const isShort = length !== undefined && Number(length) < minBytes
  if (!isResult || isShort || !takesGzip(request.headers["accept-encoding"]))
    return [...(before === undefined ? given : without(given, "vary")), "vary", vary]
  compress(response)
  request.socket.setTimeout(silenceMs)
  // The compressed bytes differ, the result is the same: its tag is weak.
  const etag = valueOf(given, "etag")
  const tagged = etag === undefined ? [] : ["etag", `W/${etag}`]
  const kept = without(given, "content-length", "etag", "vary")
  return [...kept, ...tagged, "vary", vary, "content-encoding", "gzip"]
}
