/**
 * What clients send that open connections and keep them.
 *
 * `connections.test.ts` has one address take its share with each; `storm.campaign.test.ts` throws them at built
 * processes.
 */

/** Bytes that are sent on the connection, which then stays open. */
export const held: ReadonlyArray<readonly [what: string, bytes: string]> = [
  ["nothing", ""],
  ["a line that does not end", "GET /inf"],
  ["a head that does not end", "GET /info HTTP/1.1\r\nhost: localhost\r\n"],
  ["a header that does not end", `GET /info HTTP/1.1\r\nhost: localhost\r\nx: ${"y".repeat(1000)}`],
  ["a body that does not come", "POST /ingest HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n"],
  ["line breaks", "\r\n\r\n"],
  ["a question, and nothing after its answer", "GET /version HTTP/1.1\r\nhost: localhost\r\n\r\n"],
  ["a refused question", "GET /view/a/stream HTTP/1.1\r\nhost: localhost\r\n\r\n"]
]
