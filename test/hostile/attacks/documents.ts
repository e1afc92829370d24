/**
 * OpenAPI documents of `svc.yml` that are made to hang or to lead elsewhere (D5a).
 *
 * `documents.test.ts` has each read as `--check-config` reads them. Beside the document lie a pipe (`pipe.yml`), a
 * folder (`folder.yml`), links to a device (`zero.yml`) and to a file outside (`link.yml`, `../../outside.yml`).
 */

/** A document with one route, whose body is this schema. */
const withSchema = (schema: unknown, more: object = {}): string =>
  JSON.stringify({
    openapi: "3.1.0",
    paths: { "/a": { post: { requestBody: { content: { "application/json": { schema } } } } } },
    ...more
  })

export const withRef = (ref: string): string => withSchema({ $ref: ref })
const nested = (depth: number): unknown => (depth === 0 ? { type: "string" } : { items: nested(depth - 1) })
const many = (count: number, ref: (n: number) => string): { readonly [name: string]: unknown } =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`S${n}`, { $ref: ref(n) }]))

export interface Row {
  readonly what: string
  /** Files below the folder of the document, by name; `api.json` is the document itself. `port`: one that must not be asked. */
  readonly files: (port: number) => { readonly [name: string]: string }
  /** Undefined: it is read. */
  readonly fault: RegExp | undefined
}

const refs: ReadonlyArray<readonly [what: string, ref: (port: number) => string, fault: RegExp]> = [
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
    (port) => `http://127.0.0.1:${port}/a.json`,
    /\$ref names the address http:\/\/127\.0\.0\.1:\d+\/a\.json; only files are read/
  ],
  [
    "an address with a scheme of its own",
    () => "data:application/json,{}",
    /\$ref names the address data:.*only files are read/
  ],
  ["a place that is not there", () => "./types.yml#/Nowhere", /Nowhere/]
]

export const rows: ReadonlyArray<Row> = [
  ...refs.map(
    ([what, ref, fault]): Row => ({
      what: `$ref to ${what}`,
      files: (port) => ({ "api.json": withRef(ref(port)), "types.yml": "A: { type: string }\n" }),
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
