/**
 * Reading bodies, generic layer: bound, strict UTF-8, as web servers of other deployments use it.
 *
 * Why beside the Node layer's tests: both promise the same, and only the Node one is behind our own server.
 */

import { HttpServerRequest } from "@effect/platform"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { RequestBody } from "../../src/ports/RequestBody.ts"

const read = (
  body: string | Uint8Array<ArrayBuffer>,
  maxBytes: number,
  headers: { readonly [name: string]: string } = {}
) =>
  Effect.flatMap(RequestBody, ({ text }) =>
    text(HttpServerRequest.fromWeb(new Request("http://x/", { method: "POST", body, headers })), maxBytes)
  ).pipe(
    Effect.catchAll((error) => Effect.succeed(error.reason)),
    Effect.provide(RequestBody.layer)
  )

describe("RequestBody", () => {
  it.effect("D17 a body of exactly the bound passes, one byte more does not, declared or not", () =>
    Effect.gen(function* () {
      expect(yield* read("x".repeat(10), 10)).toBe("x".repeat(10))
      expect(yield* read("x".repeat(11), 10)).toBe("too large")
      expect(yield* read("", 10)).toBe("")
      expect(yield* read("x", 10, { "content-length": "11" })).toBe("too large")
    })
  )
  it.effect("bytes that are no UTF-8 are refused, never replaced", () =>
    Effect.gen(function* () {
      expect(yield* read(new Uint8Array([0x61, 0xff]), 10)).toBe("not utf-8")
      expect(yield* read("aé𝄞", 10)).toBe("aé𝄞")
    })
  )
})
