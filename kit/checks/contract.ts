/**
 * Rows of the endpoint tables as tests: one row, one request to a running server, one answer checked whole.
 *
 * Why rows: the specification is tables, and a table of tests can be read beside it line by line. Every error answer is
 * held to the one shape that all of them share, whatever else a row looks at.
 */
import { expect, it } from "vitest"
import { secret } from "../processes/Door.ts"
import { type Answer, type Ask, type Body, bodyOf, request } from "./http.ts"

export interface Row {
  readonly name: string
  /** `POST /ingest`; the path may be any text that goes out as it is. */
  readonly ask: string
  readonly body?: unknown
  readonly headers?: Ask["headers"]
  /** Secret to send; null sends no header. Default: the right one. */
  readonly token?: string | null
  readonly status: number
  /** The `code` of an error answer. */
  readonly code?: string
  /** The whole body of the answer. */
  readonly is?: unknown
  readonly check?: (answer: Answer, body: Body) => void | Promise<void>
}

/** Whatever listens: a process, or a node inside the test. */
export interface Served {
  readonly url: string
}

export const send = (door: Served, row: Pick<Row, "ask" | "body" | "headers" | "token">): Promise<Answer> => {
  const space = row.ask.indexOf(" ")
  return request(door.url, {
    method: row.ask.slice(0, space),
    path: row.ask.slice(space + 1),
    body: row.body,
    token: row.token === null ? undefined : (row.token ?? secret),
    ...(row.headers === undefined ? {} : { headers: row.headers })
  })
}

/** D6: JSON, `code` upper-case, a message for people, `details` or nothing else. */
export const expectError = (answer: Answer, status: number, code: string | undefined): Body => {
  expect(
    { status: answer.status, code: (answer.json as Body | undefined)?.["code"] },
    answer.text.slice(0, 500)
  ).toEqual({ status, code: code ?? expect.stringMatching(/^[A-Z][A-Z_]+$/) })
  expect(answer.headers["content-type"]).toMatch(/^application\/json/)
  const body = bodyOf(answer)
  expect(body["message"]).toEqual(expect.stringMatching(/\S/))
  expect(Object.keys(body).filter((key) => !["code", "message", "details"].includes(key))).toEqual([])
  return body
}

/** Faults of an INVALID_REQUEST answer: `{ path, reason }`, one per fault. */
export const faultsOf = (body: Body): ReadonlyArray<{ readonly path: string; readonly reason: string }> => {
  const details = body["details"]
  expect(details).toEqual(expect.any(Array))
  const faults = details as ReadonlyArray<{ path: string; reason: string }>
  for (const fault of faults) expect(fault).toEqual({ path: expect.any(String), reason: expect.stringMatching(/\S/) })
  return faults
}

/** A check of an INVALID_REQUEST answer: one of its faults is at this path. */
export const faultAt =
  (path: string) =>
  (_: Answer, body: Body): void =>
    expect(
      faultsOf(body)
        .map((fault) => fault.path)
        .join(" ")
    ).toContain(path)

/** Runs the rows against a door, in order. */
export const contract = (door: () => Served, rows: ReadonlyArray<Row>): void => {
  for (const row of rows) {
    it(row.name, async () => {
      const answer = await send(door(), row)
      if (row.code !== undefined) expectError(answer, row.status, row.code)
      else expect(answer.status, answer.text.slice(0, 500)).toBe(row.status)
      if (row.is !== undefined) expect(answer.json).toEqual(row.is)
      if (row.check !== undefined) await row.check(answer, bodyOf(answer))
    })
  }
}
