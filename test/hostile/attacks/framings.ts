/**
 * Requests whose end can be read in two ways: what one server takes for a body, another takes for a second request.
 *
 * Behind each stands a whole request, {@link hidden}: a server that answers it has been talked into a request that
 * somebody before it has never seen. `framings.test.ts` sends each to every kind of route, `storm.campaign.test.ts` to
 * built processes.
 */

/** The request that must not be answered; it needs no secret, so nothing but the framing keeps it from being. */
export const hidden = "GET /version HTTP/1.1\r\nhost: localhost\r\n\r\n"

/** The request of a line, of header lines, and of what stands behind them. */
export interface Framing {
  readonly what: string
  readonly lines: ReadonlyArray<string>
  readonly body: string
  /** What is allowed besides 400 and a closed connection: it is a body to everybody. */
  readonly isBody?: boolean
}

const length = (text: string): string => `content-length: ${text.length}`
const chunked = "transfer-encoding: chunked"
const empty = "0\r\n\r\n"

export const framings: ReadonlyArray<Framing> = [
  { what: "a length and chunks", lines: ["content-length: 4", chunked], body: empty + hidden },
  { what: "chunks and a length", lines: [chunked, "content-length: 4"], body: empty + hidden },
  { what: "chunks, and a length of all", lines: [chunked, length(empty + hidden)], body: empty + hidden },
  { what: "two lengths", lines: ["content-length: 0", length(hidden)], body: hidden },
  { what: "two lengths in one line", lines: [`content-length: 0, ${hidden.length}`], body: hidden },
  { what: "a length with a sign", lines: ["content-length: +0"], body: hidden },
  { what: "a negative length", lines: ["content-length: -1"], body: hidden },
  { what: "a length in hex", lines: ["content-length: 0x0"], body: hidden },
  { what: "a length with an exponent", lines: ["content-length: 0e0"], body: hidden },
  { what: "a length beyond 64 bits", lines: ["content-length: 18446744073709551616"], body: hidden },
  { what: "a length that is none", lines: ["content-length: "], body: hidden },
  { what: "blanks before the colon of the length", lines: ["content-length : 0"], body: hidden },
  { what: "a tab before the colon of the coding", lines: ["transfer-encoding\t: chunked"], body: empty + hidden },
  { what: "a coding on a folded line", lines: ["transfer-encoding:", " chunked"], body: empty + hidden },
  { what: "a length on a folded line", lines: ["content-length:", " 0"], body: hidden },
  { what: "two codings", lines: [chunked, "transfer-encoding: identity"], body: empty + hidden },
  { what: "chunks, and then something else", lines: ["transfer-encoding: chunked, identity"], body: empty + hidden },
  { what: "a coding in quotes", lines: ['transfer-encoding: "chunked"'], body: empty + hidden },
  { what: "a coding with a letter in front", lines: ["transfer-encoding: xchunked"], body: empty + hidden },
  { what: "a coding with a vertical tab", lines: ["transfer-encoding: \u000bchunked"], body: empty + hidden },
  { what: "a coding behind a bare line feed", lines: ["x: y\ntransfer-encoding: chunked"], body: empty + hidden },
  { what: "a coding behind a bare carriage return", lines: ["x: y\rtransfer-encoding: chunked"], body: empty + hidden },
  { what: "a coding behind a NUL", lines: ["x: y\u0000", chunked], body: empty + hidden },
  { what: "a chunk's size with a sign", lines: [chunked], body: `+0\r\n\r\n${hidden}` },
  { what: "a chunk's size in hex with a prefix", lines: [chunked], body: `0x0\r\n\r\n${hidden}` },
  { what: "a chunk's size beyond 64 bits", lines: [chunked], body: `10000000000000000\r\n${hidden}` },
  { what: "a chunk without its end", lines: [chunked], body: `1\r\n{0\r\n\r\n${hidden}` },
  { what: "a chunk that ends with a line feed alone", lines: [chunked], body: `2\n{}\n0\n\n${hidden}` },
  { what: "an extension of a chunk with a line feed", lines: [chunked], body: `0;a\nb\r\n\r\n${hidden}` },
  { what: "a chunk's size behind a blank", lines: [chunked], body: ` 0\r\n\r\n${hidden}` },
  { what: "a request as the body of a length", lines: [length(hidden)], body: hidden, isBody: true },
  {
    what: "a request as a chunk",
    lines: [chunked],
    body: `${hidden.length.toString(16)}\r\n${hidden}\r\n0\r\n\r\n`,
    isBody: true
  }
]

/** The bytes of a request. */
export const bytesOf = ({ body, lines }: Framing, path: string, token: string): string =>
  `POST ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\n${lines.join("\r\n")}\r\n\r\n${body}`
