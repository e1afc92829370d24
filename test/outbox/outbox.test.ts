/**
 * The outbox without a database: documents read, payloads checked, types printed and compiled.
 *
 * Why compiled for real: types that are only looked at say nothing about what a wrong call does to a build.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import ts from "typescript"
import { afterAll, describe, expect, it } from "vitest"
import { removeFolder, temporaryFolder } from "../../kit/processes/Door.ts"
import { root } from "../../kit/rules/source.ts"
import { read as readFiles } from "../../src/host/outboxFiles.ts"
import * as Document from "../../src/outbox/document.ts"
import { InvalidCall, JobNotCreated, OutboxConfigInvalid } from "../../src/outbox/errors.ts"
import * as Run from "../../src/outbox/run.ts"
import * as Types from "../../src/outbox/types.ts"
import { outbox } from "../../src/outbox.ts"

const folder = temporaryFolder()
afterAll(() => removeFolder(folder))

const schema = {
  openapi: "3.1.0",
  info: { title: "t", version: "1" },
  paths: {
    "/send": { post: { requestBody: { $ref: "#/components/requestBodies/Mail" } } },
    "/tree": { $ref: "#/components/pathItems/tree" },
    "/users/{id}/mail": {
      post: {
        requestBody: {
          content: {
            "application/json; charset=utf-8": {
              schema: { type: "object", required: ["text"], properties: { text: { type: "string" } } }
            }
          }
        }
      }
    },
    "/ping": { post: {} },
    "/read": { get: {} },
    "/strict": {
      post: {
        requestBody: {
          content: {
            "application/json": {
              schema: {
                allOf: [{ $ref: "#/components/schemas/Address" }],
                properties: { tags: { type: "array", prefixItems: [{ type: "string" }], items: false, minItems: 1 } },
                required: ["tags"],
                unevaluatedProperties: false
              }
            }
          }
        }
      }
    }
  },
  components: {
    pathItems: {
      tree: {
        post: { requestBody: { content: { "application/json": { schema: { $ref: "#/components/schemas/Node" } } } } }
      }
    },
    requestBodies: {
      Mail: {
        content: {
          "text/plain": { schema: { type: "string" } },
          "application/json": { schema: { $ref: "#/components/schemas/Mail" } }
        }
      }
    },
    schemas: {
      Mail: {
        type: "object",
        description: "A mail.",
        required: ["to", "count"],
        properties: {
          to: { $ref: "#/components/schemas/Address" },
          count: { type: "integer", minimum: 1 },
          kind: { enum: ["fast", "slow"] },
          note: { type: ["string", "null"] }
        },
        additionalProperties: false
      },
      Address: { type: "object", required: ["mail"], properties: { mail: { type: "string", minLength: 3 } } },
      Node: {
        type: "object",
        required: ["value"],
        properties: {
          value: { type: "number" },
          children: { type: "array", items: { $ref: "#/components/schemas/Node" } }
        }
      }
    }
  }
}

const source: Run.Source = { name: "mail", table: "mail_job", spec: "mail.yml", document: schema }

/** A connection that takes what it is given. */
const connection = (answer: unknown = [["mail_job:1"]]) => {
  const asked: Array<Record<string, unknown>> = []
  return {
    asked,
    query: (_: string, bindings: Record<string, unknown>) => (
      asked.push(bindings), Promise.resolve(answer as ReadonlyArray<unknown>)
    )
  }
}

const box = Run.make(connection(), [source])

const faults = async (path: string, payload: unknown): Promise<ReadonlyArray<string>> => {
  try {
    await box.run("mail", path, payload)
    return []
  } catch (error) {
    if (!(error instanceof InvalidCall)) throw error
    return error.faults.map(({ path, reason }) => `${path} ${reason}`).sort()
  }
}

describe("D40 payloads", () => {
  it("D40 references in bodies, path items and schemas are followed; good payloads pass", async () => {
    expect(await faults("/send", { to: { mail: "a@b" }, count: 1, kind: "fast", note: null })).toEqual([])
    expect(await faults("/tree", { value: 1, children: [{ value: 2, children: [{ value: 3 }] }] })).toEqual([])
    expect([
      await faults("/ping", {}),
      await faults("/users/5/mail", { text: "x" }),
      await faults("/strict", { mail: "a@b", tags: ["x"] })
    ]).toEqual([[], [], []])
  })
  it("D40 every fault is named, where it is", async () => {
    expect(await faults("/send", { to: { mail: "a" }, count: 0.5, kind: "later", extra: 1 })).toEqual([
      "payload.count must be >= 1",
      "payload.count must be integer",
      "payload.extra is not a parameter of this route",
      'payload.kind must be one of ["fast","slow"]',
      "payload.to.mail must NOT have fewer than 3 characters"
    ])
    expect(await faults("/tree", { value: 1, children: [{ value: 2 }, { children: [] }] })).toEqual([
      "payload.children[1].value is missing"
    ])
    expect(await faults("/strict", { mail: "a@b", tags: ["x", 1], other: 1 })).toEqual([
      "payload.other is not a parameter of this route",
      "payload.tags must NOT have more than 1 items"
    ])
    expect(await faults("/ping", { a: 1 })).toEqual(["payload must be an empty object: this route takes no body"])
    const round: { self?: unknown } = {}
    round.self = round
    expect([await faults("/send", undefined), (await faults("/send", round))[0]]).toEqual([
      ["payload must be JSON"],
      expect.stringContaining("is not JSON: nests deeper than")
    ])
  })
  it("D40 what is checked is what is written: the payload as JSON", async () => {
    const db = connection()
    expect(await Run.make(db, [source]).run("mail", "/send", { to: { mail: "a@b", more: undefined }, count: 2 })).toBe(
      "mail_job:1"
    )
    expect(db.asked).toEqual([
      {
        table: "mail_job",
        path: "/send",
        payload: { to: { mail: "a@b" }, count: 2 },
        maxRetries: 3,
        strategy: "linear"
      }
    ])
  })
  it("D66 an integer of 64 bits is one to the schema, and is sent as it is", async () => {
    const db = connection()
    await Run.make(db, [source]).run("mail", "/send", { to: { mail: "a@b" }, count: 987654321987654321n })
    expect(db.asked).toMatchObject([{ payload: { count: 987654321987654321n } }])
  })
  it("D40 only paths that take POST are routes, and a path with braces in it is none", async () => {
    for (const path of [
      "/read",
      "/users/{id}/mail",
      "/users/5/6/mail",
      "/users//mail",
      "/send/",
      "/SEND",
      "/users/5?x/mail",
      ""
    ])
      await expect(faults(path, {}), path).rejects.toThrow(/has no route .* known: \/send, \/tree/)
  })
  it("D40 no record, or a refusal, is an error of its own", async () => {
    const good = { to: { mail: "a@b" }, count: 1 }
    for (const answer of [[[]], [], [null], [[{}]]])
      await expect(Run.make(connection(answer), [source]).run("mail", "/send", good)).rejects.toBeInstanceOf(
        JobNotCreated
      )
    const refusing = { query: () => Promise.reject(new Error("Found NONE for field `assigned_to`")) }
    await expect(Run.make(refusing, [source]).run("mail", "/send", good)).rejects.toThrow(/refused.*assigned_to/)
  })
})

describe("documents and files", () => {
  it("documents other than OpenAPI 3.0 or 3.1, and schemas that lead nowhere, are faults of the configuration, all at once", async () => {
    const broken = {
      ...schema,
      paths: {
        "/x": {
          post: { requestBody: { content: { "application/json": { schema: { $ref: "#/components/schemas/None" } } } } }
        }
      }
    }
    try {
      Run.make(connection(), [
        { ...source, name: "old", document: { openapi: "2.0.3", paths: {} } },
        { ...source, name: "none", document: [] },
        { ...source, name: "gone", document: broken },
        {
          ...source,
          name: "dynamic",
          document: {
            ...schema,
            components: {
              ...schema.components,
              schemas: { ...schema.components.schemas, List: { items: { $dynamicRef: "#x" } } }
            }
          }
        }
      ])
      expect.unreachable()
    } catch (error) {
      expect(error).toBeInstanceOf(OutboxConfigInvalid)
      expect((error as OutboxConfigInvalid).faults.map(({ path, reason }) => `${path} ${reason}`)).toEqual([
        expect.stringMatching(/^backends\.old\.spec .*2\.0\.3/),
        expect.stringMatching(/^backends\.none\.spec .*mapping/),
        expect.stringMatching(/^backends\.gone\.spec .*\/x.*None/),
        expect.stringMatching(/^backends\.dynamic\.spec .*List\/items\/\$dynamicRef is not supported/)
      ])
    }
  })
  it("D40 an OpenAPI 3.0 document: its schemas mean what they do in 3.0, names and examples that look like keywords stay what they are", async () => {
    const body = (schema: unknown) => ({ post: { requestBody: { content: { "application/json": { schema } } } } })
    const old = {
      openapi: "3.0.3",
      info: { title: "t", version: "1" },
      paths: {
        "/a": body({ $ref: "#/components/schemas/A", nullable: true, required: ["nothing"] }),
        "/pet": body({
          oneOf: [{ $ref: "#/components/schemas/Cat" }, { $ref: "#/components/schemas/Dog" }],
          discriminator: { propertyName: "kind", mapping: { cat: "#/components/schemas/Cat" } }
        })
      },
      components: {
        schemas: {
          A: {
            type: "object",
            required: ["id", "n", "nullable"],
            additionalProperties: false,
            example: { nullable: true, type: "object" },
            properties: {
              id: { type: "string", readOnly: true },
              n: {
                type: "integer",
                minimum: 0,
                exclusiveMinimum: true,
                maximum: 10,
                exclusiveMaximum: false,
                example: 5
              },
              nullable: { type: "boolean", nullable: true },
              kind: { type: "string", nullable: true, enum: ["x", "y"] },
              any: { nullable: true },
              self: { $ref: "#/components/schemas/A" },
              list: {
                type: "array",
                nullable: true,
                items: { type: "number", nullable: true, maximum: 1, exclusiveMaximum: true }
              }
            }
          },
          Cat: { type: "object", required: ["kind"], properties: { kind: { type: "string", enum: ["cat"] } } },
          Dog: { type: "object", required: ["kind"], properties: { kind: { type: "string", enum: ["dog"] } } }
        }
      }
    }
    const before = JSON.stringify(old)
    const own = Run.make(connection(), [{ ...source, document: old }])
    const faults = async (payload: unknown, path = "/a"): Promise<ReadonlyArray<string>> =>
      own.run("mail", path, payload).then(
        () => [],
        (error: InvalidCall) => error.faults.map(({ path, reason }) => `${path} ${reason}`)
      )
    expect(
      await faults({ n: 10, nullable: null, list: [null, 0.5], any: "x", self: { n: 1, nullable: true, list: null } })
    ).toEqual([])
    expect(await faults({ n: 0, nullable: true })).toEqual(["payload.n must be > 0"])
    expect(await faults({ n: 11, nullable: "x", kind: null, list: [1], self: { n: 1, nullable: true, m: 1 } })).toEqual(
      expect.arrayContaining([
        "payload.n must be <= 10",
        "payload.nullable must be boolean,null",
        'payload.kind must be one of ["x","y"]',
        "payload.list[0] must be < 1",
        "payload.self.m is not a parameter of this route"
      ])
    )
    expect(await faults(null)).not.toEqual([])
    expect([await faults({ kind: "dog" }, "/pet"), (await faults({ kind: "cow" }, "/pet")).length > 0]).toEqual([
      [],
      true
    ])
    expect(Types.print([{ ...source, document: old }])).toContain(`readonly "nullable": (boolean | null)`)
    expect(JSON.stringify(old)).toBe(before)
  })
  it("D40 $dynamicRef leads to the one $dynamicAnchor of its name, in components and in $defs; where there are several, or an $id, it is refused", async () => {
    const route = (ref: unknown) => ({
      "/x": { post: { requestBody: { content: { "application/json": { schema: ref } } } } }
    })
    const tree = {
      $dynamicAnchor: "node",
      type: "object",
      required: ["v"],
      properties: { v: { type: "integer" }, kids: { type: "array", items: { $dynamicRef: "#node" } } },
      unevaluatedProperties: false
    }
    const list = {
      type: "object",
      properties: { items: { type: "array", items: { $dynamicRef: "#item" } } },
      $defs: { "a/b ~": { $dynamicAnchor: "item", type: "string" } }
    }
    const made = (schemas: object, ref = { $ref: "#/components/schemas/S" }) => ({
      ...source,
      document: { openapi: "3.1.0", paths: route(ref), components: { schemas } }
    })
    const faults = async (schemas: object, payload: object): Promise<ReadonlyArray<string>> => {
      try {
        await Run.make(connection(), [made(schemas)]).run("mail", "/x", payload)
        return []
      } catch (error) {
        return (error as { readonly faults: ReadonlyArray<{ readonly path: string }> }).faults.map(({ path }) => path)
      }
    }
    expect(await faults({ S: tree }, { v: 1, kids: [{ v: 2, kids: [{ v: 3 }] }] })).toEqual([])
    expect(await faults({ S: tree }, { v: 1, kids: [{ v: 2, kids: [{ v: "3" }] }, { w: 1 }] })).toEqual([
      "payload.kids[0].kids[0].v",
      "payload.kids[1].v",
      "payload.kids[1].w"
    ])
    expect(await faults({ S: list }, { items: ["a"] })).toEqual([])
    expect(await faults({ S: list }, { items: ["a", 1] })).toEqual(["payload.items[1]"])
    const several = { S: list, T: { $dynamicAnchor: "item", type: "integer" } }
    for (const schemas of [
      several,
      { S: { ...tree, $id: "https://example.com/tree" } },
      { S: { items: { $dynamicRef: "#gone" } } }
    ]) {
      expect(() => Run.make(connection(), [made(schemas)])).toThrow(/\$dynamicRef is not supported: .*once/)
    }
    expect(() => Run.make(connection(), [made({ S: { $anchor: "a" }, T: { $anchor: "a" } })])).toThrow(
      OutboxConfigInvalid
    )
  })
  it("D5a files: paths are relative to svc.yml, references go over files, an address is not read, and faults name file and key", async () => {
    const at = join(folder, "a")
    mkdirSync(join(at, "api"), { recursive: true })
    const backend = (spec: string) =>
      `{ type: http, baseUrl: http://x, spec: ${spec}, method: { type: outbox, table: t_job, schema: ./t.surql } }`
    writeFileSync(join(at, "api", "m.yml"), "openapi: 3.1.0\npaths:\n  /a: { $ref: ./items.yml#/a }\n")
    writeFileSync(
      join(at, "api", "items.yml"),
      "a: { post: { requestBody: { content: { application/json: { schema: { $ref: ./schemas.json#/A } } } } } }\n"
    )
    writeFileSync(
      join(at, "api", "schemas.json"),
      JSON.stringify({
        A: { type: "object", required: ["b"], properties: { b: { $ref: "#/B" } } },
        B: { type: "object", properties: { a: { $ref: "#/A" } } }
      })
    )
    writeFileSync(join(at, "svc.yml"), `backends:\n  one: ${backend("./api/m.yml")}\n`)
    const read = await outbox(connection(), { path: join(at, "svc.yml") })
    await expect(read.run("one", "/a", { b: { a: {} } })).rejects.toThrow("payload.b.a.b is missing")
    writeFileSync(
      join(at, "bad.yml"),
      `backends:\n  one: ${backend("./none.yml")}\n  two: ${backend("http://127.0.0.1:1/x.yml")}\n  three: { type: http }\n`
    )
    const files = await readFiles(join(at, "bad.yml"))
    expect("faults" in files && files.faults.join("\n")).toMatch(
      /bad\.yml: [\s\S]*backends\.three\.method[\s\S]*backends\.one\.spec[\s\S]*backends\.two\.spec/
    )
  })
})

describe("types", () => {
  const errorsOf = (calls: string): ReadonlyArray<string> => {
    const at = join(root, "test/outbox", `.generated-${process.pid}`)
    mkdirSync(at, { recursive: true })
    try {
      writeFileSync(join(at, "backends.ts"), Types.print([source]))
      writeFileSync(
        join(at, "calls.ts"),
        `import type { Backends } from "./backends.ts"\nimport type { Outbox } from "../../../src/outbox/call.ts"\ndeclare const db: Outbox<Backends>\n${calls}`
      )
      const options = ts.parseJsonConfigFileContent(
        ts.readConfigFile(join(root, "tsconfig.json"), (path) => readFileSync(path, "utf8")).config,
        ts.sys,
        root
      ).options
      const program = ts.createProgram([join(at, "calls.ts")], { ...options, noEmit: true, types: [] })
      return ts
        .getPreEmitDiagnostics(program)
        .map(
          ({ file, messageText, start }) =>
            `${file === undefined || start === undefined ? "" : file.getLineAndCharacterOfPosition(start).line - 2} ${ts.flattenDiagnosticMessageText(messageText, " ")}`
        )
    } finally {
      removeFolder(at)
    }
  }
  it("D40 right calls compile; a wrong backend, route, type, a missing and an unknown parameter do not", () => {
    const errors = errorsOf(
      [
        `void db.run("mail", "/send", { to: { mail: "a" }, count: 1, kind: "fast", note: null }, { assignedTo: "note:a", max_retries: 2, retry_strategy: "linear" })`,
        `void db.run("mail", "/tree", { value: 1, children: [{ value: 2 }] }); void db.run("mail", "/users/5/mail", { text: "x" }); void db.run("mail", "/ping", {}); void db.run("mail", "/strict", { mail: "x", tags: ["a"] })`,
        `void db.run("post", "/send", {})`,
        `void db.run("mail", "/sent", {})`,
        `void db.run("mail", "/send", { to: { mail: "a" } })`,
        `void db.run("mail", "/send", { to: { mail: 1 }, count: 1 })`,
        `void db.run("mail", "/send", { to: { mail: "a" }, count: 1, extra: 1 })`,
        `void db.run("mail", "/users/5/mail", {})`,
        `void db.run("mail", "/ping", {}, { retry_strategy: "never" })`
      ].join("\n")
    )
    expect(errors.map((error) => Number(error.split(" ")[0]))).toEqual([3, 4, 5, 6, 7, 8, 9])
    expect(errors[2]).toContain("count")
  })
  it("names that would collide or break out of the text do not", () => {
    const odd = {
      openapi: "3.1.0",
      paths: {
        '/a`${x}"': {
          post: {
            requestBody: {
              content: {
                "application/json": {
                  schema: {
                    type: "object",
                    description: "ends */ here",
                    properties: { "a-b": { type: "string" }, '"': {} },
                    required: ["z"]
                  }
                }
              }
            }
          }
        }
      }
    }
    const text = Types.print([{ ...source, name: "1 odd-name", document: odd }])
    expect(ts.transpileModule(text, { reportDiagnostics: true }).diagnostics).toEqual([])
    expect([Document.read(odd)._tag, text.includes("ends */ here")]).toEqual(["Right", false])
  })
})
