/**
 * What clients have sent when they leave: nothing of it may stay behind.
 *
 * `leaving.test.ts` counts the fibers and streams that are left.
 */
import { unfinished } from "./bodies.ts"

const get = (path: string, token: string): string =>
  `GET ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\n\r\n`

export const leaving: ReadonlyArray<readonly [what: string, bytes: (token: string) => string]> = [
  ...unfinished,
  ["a stream", (token) => get("/view/here/stream", token)],
  ["streams behind a stream", (token) => get("/view/here/stream", token).repeat(4)],
  ["questions behind a stream", (token) => get("/view/here/stream", token) + get("/overview", token).repeat(4)],
  ["questions, without waiting for an answer", (token) => get("/overview", token).repeat(20)],
  ["a long answer, behind another", (token) => get("/openapi.json", token).repeat(4)]
]
