/**
 * The error answers of the contract: codes, statuses, exact bodies, and what the OpenAPI document says about them.
 *
 * Why: clients branch on `code`, and a schema library likes to add fields of its own.
 */
import { OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { describe, expect, it } from "vitest"
import * as Errors from "../../src/protocol/errors.ts"
import { SspApi } from "../../src/protocol/SspApi.ts"

const document = JSON.parse(JSON.stringify(OpenApi.fromApi(SspApi))) as {
  paths: {
    [path: string]: { [method: string]: { responses: { [status: string]: unknown }; security: ReadonlyArray<unknown> } }
  }
}

describe("D6 errors", () => {
  it("D6 every code has its status", () => {
    expect(Errors.statusOf).toEqual({
      SSP_NOT_READY: 503,
      SCHEDULER_CLONING: 503,
      NO_SSP_AVAILABLE: 503,
      OVERLOADED: 503,
      TABLES_JOINING: 503,
      NOT_LEADER: 503,
      UNAUTHORIZED: 401,
      SCOPE_REQUIRED: 403,
      FORBIDDEN: 403,
      MISDIRECTED_REQUEST: 421,
      UNSUPPORTED_MEDIA_TYPE: 415,
      RATE_LIMITED: 429,
      INVALID_REQUEST: 400,
      INVALID_OPERATION: 400,
      INVALID_QUERY: 400,
      NOT_FOUND: 404,
      VIEW_NOT_FOUND: 404,
      SSP_NOT_REGISTERED: 404,
      SSP_UNREACHABLE: 502,
      JOB_NOT_FOUND: 404,
      STREAM_NOT_FOUND: 404,
      JOB_STATUS: 409,
      VIEW_QUARANTINED: 409,
      BUFFER_OVERFLOW: 409,
      SSP_FENCED: 409,
      SEQUENCE_GAP: 409,
      STALE_EPOCH: 409,
      PAYLOAD_TOO_LARGE: 413,
      REPLICA_FAILED: 500,
      QUERY_FAILED: 500,
      STORE_FAILED: 500,
      INTERNAL: 500
    })
  })
  it("D6 bodies carry code, message and details only", () => {
    expect(Schema.encodeSync(Errors.SspNotReady)({ code: "SSP_NOT_READY", message: "m" })).toEqual({
      code: "SSP_NOT_READY",
      message: "m"
    })
    expect(
      Schema.encodeSync(Errors.InvalidQuery)({ code: "INVALID_QUERY", message: "m", details: { line: 1, column: 2 } })
    ).toEqual({ code: "INVALID_QUERY", message: "m", details: { line: 1, column: 2 } })
  })
  it("an error is told by its code, not by a failure that only looks like one", () => {
    expect(
      [
        { code: "INTERNAL", message: "m" },
        { code: "ERR_X", message: "m" },
        { code: "toString", message: "" },
        new Error("x"),
        null
      ].map(Errors.isWireError)
    ).toEqual([true, false, false, false, false])
  })
})

describe("OpenAPI document", () => {
  const statuses = (path: string, method: string): string =>
    Object.keys(document.paths[path]?.[method]?.responses ?? {})
      .sort()
      .join(" ")
  for (const [method, path, expected] of [
    ["post", "/ingest", "200 400 401 409 413 500 503"],
    ["post", "/view/register", "200 400 401 413 500 503"],
    ["post", "/view/unregister", "200 400 401 413 500"],
    ["get", "/view/{view_id}", "200 400 401 404 500 503"],
    ["get", "/view/{view_id}/stream", "200 400 401 404 500 503"],
    ["post", "/reset", "200 400 401 404 500"],
    ["get", "/health", "200 503"],
    ["get", "/debug/view/{view_id}", "200 401 404"],
    ["get", "/debug/deps", "200 401"],
    ["post", "/log", "200 400 401 413"],
    ["get", "/version", "200"],
    ["get", "/info", "200"]
  ] as const) {
    it(`${method.toUpperCase()} ${path} declares ${expected}`, () => {
      for (const status of expected.split(" ")) expect(statuses(path, method).split(" ")).toContain(status)
    })
  }
  it("only health, version and info are open", () => {
    const open = Object.entries(document.paths)
      .filter(([, methods]) => Object.values(methods).some((operation) => operation.security.length === 0))
      .map(([path]) => path)
    expect(open.sort()).toEqual(["/health", "/info", "/version"])
  })
  it("names none of the library's own errors", () => {
    expect(JSON.stringify(document)).not.toMatch(/HttpApiDecodeError|_tag/)
  })
})
