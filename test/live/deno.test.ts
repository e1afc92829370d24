/**
 * The same door under Deno, from source and from the build, with `memory://`.
 *
 * Why: nothing above src/host knows which runtime it is on, and this is the proof. Deno comes as an npm package; where
 * it is not installed the tests are skipped, visibly.
 */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { afterEach, describe, expect, it } from "vitest"
import { expectError, send } from "../kit/contract.ts"
import { Door, secret } from "../kit/Door.ts"
import { EventStream } from "../kit/EventStream.ts"
import { bodyOf } from "../kit/http.ts"
import { root } from "../kit/source.ts"
import { create, registration } from "../kit/registration.ts"

const deno = join(root, "node_modules/.bin/deno")

describe.skipIf(!existsSync(deno))("deno", () => {
  let door: Door | undefined
  afterEach(() => door?.close())

  for (const path of ["src/ssp.ts", "dist/ssp.js"]) {
    it(`deno run -A ${path} serves with memory://: records in, views and streams out, a clean stop`, async () => {
      door = await Door.start({ command: [deno, "run", "-A", path] })
      await send(door, { ask: "POST /view/register", body: registration("v", "SELECT * FROM a WHERE n > 1 ORDER BY n DESC LIMIT 2", { format: "tree" }) })
      const stream = await EventStream.open(door.url, "/view/v/stream", secret)
      await stream.atLeast(1)
      for (const n of [1, 2, 3, 4]) expect((await send(door, { ask: "POST /ingest", body: create(`a:${n}`, { n }) })).status).toBe(200)
      expect(bodyOf(await send(door, { ask: "GET /view/v" }))["result_data"]).toEqual([{ id: "a:4", n: 4 }, { id: "a:3", n: 3 }])
      expect((await stream.atLeast(4)).map((event) => event.event)).toEqual(["snapshot", "delta", "delta", "delta"])
      expectError(await send(door, { ask: "POST /ingest", body: "{" }), 400, "INVALID_REQUEST")
      expectError(await send(door, { ask: "POST /ingest", body: create("a:1"), token: "wrong" }), 401, "UNAUTHORIZED")
      expect(await door.stop()).toEqual({ code: 0, signal: null })
    })
  }
})
