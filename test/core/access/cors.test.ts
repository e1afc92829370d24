/**
 * Which page may call: exact origins, any origin, none; and what a preflight is.
 */
import { describe, expect, it } from "vitest"
import * as Cors from "../../../src/core/access/cors.ts"
import { corsOrigins } from "../../../src/core/settings/settings.ts"

const app = "https://app.example"

describe("CORS", () => {
  it("without the setting no answer says anything", () => {
    expect(Cors.headersFor([], app)).toBeUndefined()
    expect(Cors.preflight([], "OPTIONS", app, "POST")).toBeUndefined()
  })
  it("a listed origin is told, another is not, and caches keep them apart", () => {
    expect(Cors.headersFor([app], app)).toMatchObject({ "access-control-allow-origin": app, vary: "Origin" })
    for (const origin of [
      undefined,
      "https://app.example.evil",
      "http://app.example",
      "https://app.example:8443",
      "null"
    ])
      expect(Cors.headersFor([app], origin)).toEqual({ vary: "Origin" })
  })
  it("any origin may be let in, never with credentials", () => {
    const all = [
      Cors.headersFor(["*"], app),
      Cors.preflight(["*"], "OPTIONS", app, "POST"),
      Cors.headersFor([app], app),
      Cors.preflight([app], "OPTIONS", app, "GET")
    ]
    expect(all[0]).toMatchObject({ "access-control-allow-origin": "*" })
    for (const headers of all) expect(Object.keys(headers ?? {})).not.toContain("access-control-allow-credentials")
  })
  it("a preflight names the secret's header and is answered to listed origins only", () => {
    expect(Cors.preflight([app], "OPTIONS", app, "POST")).toMatchObject({
      "access-control-allow-headers": expect.stringContaining("authorization"),
      "access-control-allow-origin": app
    })
    expect([
      Cors.preflight([app], "OPTIONS", app, undefined),
      Cors.preflight([app], "POST", app, "POST"),
      Cors.preflight([app], "OPTIONS", "https://evil.example", "POST")
    ]).toEqual([undefined, undefined, undefined])
  })
  it("SVC_CORS_ORIGINS takes origins as browsers send them, or `*` alone", () => {
    expect(corsOrigins.read("https://App.example, http://localhost:5173")).toEqual([
      "https://app.example",
      "http://localhost:5173"
    ])
    expect(corsOrigins.read("*")).toEqual(["*"])
    for (const text of [
      "app.example",
      "https://app.example/",
      "https://app.example/x",
      "https://*.example",
      "*, https://app.example",
      "https://app.example:443",
      "null",
      ","
    ])
      expect(corsOrigins.read(text), text).toBeUndefined()
  })
})
