/**
 * OpenAPI documents and schema files of `svc.yml` that are made to hang or to lead elsewhere (D5a): read as
 * `--check-config` reads them.
 *
 * The table is `attacks/documents.ts`. Each must end, with a fault that names what is wrong, or be read as it is.
 */
import { execFileSync } from "node:child_process"
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { dirname, join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { removeFolder, temporaryFolder } from "../../kit/processes/Door.ts"
import * as OutboxFiles from "../../src/host/outboxFiles.ts"
import * as Generate from "../../src/outbox/generate.ts"
import { rows, withRef } from "./attacks/documents.ts"

const folder = temporaryFolder()
const app = join(folder, "app")
const api = join(app, "api")
let asked = 0
const server = createServer((_, response) => void (asked++, response.end("{}")))

beforeAll(async () => {
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
  mkdirSync(api, { recursive: true })
  execFileSync("mkfifo", [join(api, "pipe.yml")])
  mkdirSync(join(api, "folder.yml"))
  writeFileSync(join(folder, "outside.yml"), "A: { type: string }\n")
  symlinkSync(join(folder, "outside.yml"), join(api, "link.yml"))
  symlinkSync("/dev/zero", join(api, "zero.yml"))
})
afterAll(() => {
  server.close()
  removeFolder(folder)
})

describe("documents of svc.yml", () => {
  for (const { fault, files, what } of rows) {
    it(`D5a ${fault === undefined ? "takes" : "refuses"} ${what}`, async () => {
      for (const [name, text] of Object.entries(files((server.address() as AddressInfo).port)))
        writeFileSync(join(api, name), text)
      writeFileSync(join(app, "t.surql"), "DEFINE TABLE t_job;\n")
      writeFileSync(
        join(app, "svc.yml"),
        "backends:\n  one: { type: http, baseUrl: http://x, spec: ./api/api.json, method: { type: outbox, table: t_job, schema: ./t.surql } }\n"
      )
      const faults = Generate.faultsOf(await OutboxFiles.read(join(app, "svc.yml")))
      if (fault === undefined) expect(faults).toEqual([])
      else expect(faults.join("\n")).toMatch(fault)
    })
  }
  it("D5a and no address was called", () => expect(asked).toBe(0))

  it("D5a a file beside svc.yml may be referred to from a folder below it", async () => {
    writeFileSync(join(app, "common.yml"), "A: { type: object, required: [b] }\n")
    writeFileSync(join(api, "api.json"), withRef("../common.yml#/A"))
    expect(Generate.faultsOf(await OutboxFiles.read(join(app, "svc.yml")))).toEqual([])
  })

  it("D5a a schema file or a document that is a device, a pipe or a folder is refused by its key", async () => {
    for (const path of ["/dev/zero", join(api, "pipe.yml"), dirname(api)]) {
      writeFileSync(
        join(app, "bad.yml"),
        `backends:\n  one: { type: http, baseUrl: http://x, spec: ${path}, method: { type: outbox, table: t_job, schema: ${path} } }\n`
      )
      const read = await OutboxFiles.read(join(app, "bad.yml")),
        schemas = OutboxFiles.schemas(join(app, "bad.yml"))
      expect("faults" in read && read.faults.join("\n")).toMatch(
        /backends\.one\.spec: .* cannot be read: .*it is not a regular file/
      )
      expect("faults" in schemas && schemas.faults.join("\n")).toMatch(
        /backends\.one\.method\.schema: .* cannot be read: it is not a regular file/
      )
    }
  })
})
