/**
 * OpenAPI documents and schema files of `svc.yml` that are made to hang or to lead elsewhere (D5a): read as
 * `--check-config` reads them.
 *
 * A table: add a row for every document that somebody finds. Each must end, with a fault that names what is wrong, or
 * be read as it is.
 */
import { execFileSync } from "node:child_process"
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { dirname, join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as OutboxFiles from "../../src/host/outboxFiles.ts"
import * as Generate from "../../src/outbox/generate.ts"
import { removeFolder, temporaryFolder } from "../kit/Door.ts"

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

/** A document with one route, whose body is this schema. */
const withSchema = (schema: unknown, more: object = {}): string =>
  JSON.stringify({
    openapi: "3.1.0",
    paths: { "/a": { post: { requestBody: { content: { "application/json": { schema } } } } } },
    ...more
  })

const withRef = (ref: string): string => withSchema({ $ref: ref })
const nested = (depth: number): unknown => (depth === 0 ? { type: "string" } : { items: nested(depth - 1) })
const many = (count: number, ref: (n: number) => string): { readonly [name: string]: unknown } =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`S${n}`, { $ref: ref(n) }]))

interface Row {
  readonly what: string
  /** Files below the folder of the document, by name; `api.json` is the document itself. */
  readonly files: () => { readonly [name: string]: string }
  /** Undefined: it is read. */
  readonly fault: RegExp | undefined
}

const refs: ReadonlyArray<readonly [what: string, ref: () => string, fault: RegExp]> = [
  ["a device", () => "/dev/zero", /\$ref names \/dev\/zero, which is outside/],
  ["a device as an address of a file", () => "file:///dev/zero", /\$ref names \/dev\/zero, which is outside/],
  ["a device behind a link", () => "./zero.yml", /\$ref names \/dev\/zero, which is outside/],
  ["a pipe", () => "./pipe.yml", /pipe\.yml: it is not a regular file/],
  ["a folder", () => "./folder.yml", /folder\.yml: it is not a regular file/],
  ["what is not there", () => "./nowhere.yml#/A", /ENOENT/],
  ["a file outside by dots", () => "../../outside.yml#/A", /outside\.yml, which is outside/],
  ["a file outside by dots in disguise", () => "..%2f..%2foutside.yml#/A", /outside\.yml, which is outside/],
  ["a file outside behind a link", () => "./link.yml#/A", /outside\.yml, which is outside/],
  ["the list of users", () => "/etc/passwd", /\$ref names \/etc\/passwd, which is outside/],
  [
    "an address",
    () => `http://127.0.0.1:${(server.address() as AddressInfo).port}/a.json`,
    /\$ref names the address http:\/\/127\.0\.0\.1:\d+\/a\.json; only files are read/
  ],
  [
    "an address with a scheme of its own",
    () => "data:application/json,{}",
    /\$ref names the address data:.*only files are read/
  ],
  ["a place that is not there", () => "./types.yml#/Nowhere", /Nowhere/]
]

const rows: ReadonlyArray<Row> = [
  ...refs.map(
    ([what, ref, fault]): Row => ({
      what: `$ref to ${what}`,
      files: () => ({ "api.json": withRef(ref()), "types.yml": "A: { type: string }\n" }),
      fault
    })
  ),
  {
    what: "$ref to a large file",
    files: () => ({ "api.json": withRef("./large.yml"), "large.yml": `A: ${"x".repeat(1024 * 1024)}\n` }),
    fault: /large\.yml: it has \d+ bytes, and 1048576 are allowed/
  },
  {
    what: "three files of YAML",
    files: () => ({
      "api.json": withSchema({ allOf: ["a", "b", "c"].map((name) => ({ $ref: `./${name}.yml` })) }),
      ...Object.fromEntries(["a", "b", "c"].map((name) => [`${name}.yml`, `a: ${"x".repeat(1_000_000)}\n`]))
    }),
    fault: /more than 16777216 bytes together, YAML counted eightfold/
  },
  {
    what: "a large document",
    files: () => ({ "api.json": " ".repeat(9 * 1024 * 1024) }),
    fault: /it has 9437184 bytes, and 8388608 are allowed/
  },
  {
    what: "three files that are too large together",
    files: () => ({
      "api.json": withSchema({ allOf: ["a", "b", "c"].map((name) => ({ $ref: `./${name}.json` })) }),
      ...Object.fromEntries(
        ["a", "b", "c"].map((name) => [`${name}.json`, JSON.stringify({ description: "x".repeat(6 * 1024 * 1024) })])
      )
    }),
    fault: /more than 16777216 bytes together/
  },
  {
    what: "200 files, each of which refers to the next",
    files: () => ({
      "api.json": withRef("./f0.json"),
      ...Object.fromEntries(
        Array.from({ length: 200 }, (_, n) => [`f${n}.json`, JSON.stringify({ items: { $ref: `./f${n + 1}.json` } })])
      )
    }),
    fault: /more than 100 files/
  },
  {
    what: "a million values",
    files: () => ({ "api.json": withSchema({ enum: Array.from({ length: 1_000_001 }, () => 1) }) }),
    fault: /more than 1000000 values/
  },
  {
    what: "nesting as JSON",
    files: () => ({ "api.json": withSchema(nested(100)) }),
    fault: /nested more than 64 levels/
  },
  {
    what: "nesting as YAML",
    files: () => ({ "api.json": withRef("./deep.yml"), "deep.yml": `a: ${"[".repeat(5_000)}${"]".repeat(5_000)}\n` }),
    fault: /YAML|nested/
  },
  { what: "JSON that does not end", files: () => ({ "api.json": "[".repeat(100_000) }), fault: /JSON/ },
  {
    what: "an alias inside what it stands for",
    files: () => ({ "api.json": withRef("./self.yml"), "self.yml": "a: &a { b: *a }\n" }),
    fault: /has the alias \*a inside what it stands for/
  },
  {
    what: "a file that refers to itself",
    files: () => ({ "api.json": withRef("./self.yml#/A"), "self.yml": "A: { $ref: './self.yml#/A' }\n" }),
    fault: /./
  },
  {
    what: "two files that refer to each other, as trees do",
    files: () => ({
      "api.json": withRef("./one.json"),
      "one.json": JSON.stringify({ properties: { b: { $ref: "./two.json" } } }),
      "two.json": JSON.stringify({ properties: { a: { $ref: "./one.json" } } })
    }),
    fault: undefined
  },
  {
    what: "30,000 references within the document",
    files: () => ({
      "api.json": withSchema(
        { $ref: "#/components/schemas/S0" },
        { components: { schemas: { ...many(30_000, () => "#/components/schemas/T"), T: { type: "string" } } } }
      )
    }),
    fault: undefined
  },
  {
    what: "30,000 references, each to the next",
    files: () => ({
      "api.json": withSchema(
        { $ref: "#/components/schemas/S0" },
        { components: { schemas: many(30_000, (n) => `#/components/schemas/S${(n + 1) % 30_000}`) } }
      )
    }),
    fault: /./
  },
  {
    what: "60,000 references within the document",
    files: () => ({ "api.json": withSchema({ properties: many(60_000, () => "#/paths") }) }),
    fault: /more than 50000 references/
  },
  {
    what: "30,000 references to another file",
    files: () => ({
      "api.json": withSchema({ properties: many(30_000, () => "./types.yml#/A") }),
      "types.yml": "A: { type: string }\n"
    }),
    fault: /more than 2000 references and refers to other files/
  },
  {
    what: "1,900 references in another file, each to the next",
    files: () => ({
      "api.json": withRef("./types.json#/S0"),
      "types.json": JSON.stringify({ ...many(1_900, (n) => `#/S${n + 1}`), S1900: { type: "string" } })
    }),
    fault: /./
  },
  {
    what: "references that lead to all references",
    files: () => ({
      "api.json": withSchema({ properties: many(1_900, () => "./types.json") }),
      "types.json": JSON.stringify({
        properties: many(90, () => "./api.json#/paths/~1a/post/requestBody/content/application~1json/schema")
      })
    }),
    fault: /more than 200000 steps/
  }
]

describe("documents of svc.yml", () => {
  for (const { fault, files, what } of rows) {
    it(`D5a ${fault === undefined ? "takes" : "refuses"} ${what}`, async () => {
      for (const [name, text] of Object.entries(files())) writeFileSync(join(api, name), text)
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
