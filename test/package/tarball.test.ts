/**
 * The packed package, as somebody else gets it: what is in it, whether its entries resolve with their types, and the composed example on every runtime.
 *
 * The example is the one that `docs/compose.md` shows. It is compiled against the unpacked package and runs on each runtime in turn, on one journal, so
 * that each has to read what the ones before it wrote.
 */
import { copyFileSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Door, secret, until } from "../kit/Door.ts"
import { type Body, request } from "../kit/http.ts"
import { create, registration } from "../kit/registration.ts"
import { here, others } from "../kit/runtimes.ts"
import { root } from "../kit/source.ts"
import { pack, type Packed, run } from "../kit/tarball.ts"

const example = "test/package/example/node.ts"
const node = process.execPath

let packed: Packed
beforeAll(async () => { packed = await pack() })
afterAll(() => packed?.remove())

describe("the tarball", () => {
  it("holds what is built and what describes it, nothing else, and no more than it should weigh", () => {
    const paths = packed.files.map(({ path }) => path)
    expect(paths.filter((path) => !/^(?:dist\/.+\.(?:js|d\.ts|html|svg|css)|docs\/[\w-]+\.md|README\.md|package\.json|svc\.yml\.example)$/.test(path))).toEqual([])
    expect(paths).toEqual(expect.arrayContaining(["README.md", "dist/ssp.js", "dist/ssp/Ssp.d.ts", "dist/core/ivm/engine.js", "svc.yml.example"]))
    expect(packed.size).toBeLessThan(1_500_000)
  })
  it("holds no secret and no path of the machine it was packed on", () => {
    const found = packed.files.filter(({ path }) => {
      const text = readFileSync(join(packed.home, path), "utf8")
      return text.includes(root) || /-----BEGIN [A-Z ]*PRIVATE KEY-----|\bnpm_[A-Za-z0-9]{36}\b|\bgh[pousr]_[A-Za-z0-9]{30,}/.test(text)
    })
    expect(found.map(({ path }) => path)).toEqual([])
  })
  it("has programs that start, and they are executable text with an interpreter", async () => {
    const manifest = JSON.parse(readFileSync(join(packed.home, "package.json"), "utf8")) as { readonly bin: { readonly [name: string]: string }; readonly version: string }
    for (const path of Object.values(manifest.bin)) {
      expect(readFileSync(join(packed.home, path), "utf8").split("\n", 1)[0]).toBe("#!/usr/bin/env node")
      expect(existsSync(join(packed.home, path))).toBe(true)
    }
    expect(await run([node, join(packed.home, manifest.bin["ssp"]!), "--version"], packed.folder)).toEqual({ code: 0, out: `${manifest.version}\n` })
  })
  it("publint finds nothing", async () => {
    const { code, out } = await run([node, join(root, "node_modules/publint/src/cli.js"), "run", packed.tarball, "--strict"], packed.folder)
    expect([code, out]).toEqual([0, expect.stringMatching(/All good!/)])
  })
  it("are-the-types-wrong finds nothing, in the entries of every room", async () => {
    const entries = ["core/ivm/engine", "core/surql/parse", "protocol/SspApi", "ports/Database", "ssp/Ssp", "ssp/Memory", "scheduler/Scheduler", "scheduler/Memory", "host/Server", "outbox", "outbox/errors"]
    const { code, out } = await run([node, join(root, "node_modules/@arethetypeswrong/cli/dist/index.js"), packed.tarball, "--profile", "esm-only", "--no-emoji", "--format", "json", "--entrypoints", ...entries], packed.folder)
    const { analysis } = JSON.parse(out) as { readonly analysis: { readonly entrypoints: { readonly [entry: string]: { readonly resolutions: { readonly [kind: string]: { readonly resolution?: object; readonly isWildcard?: boolean } } } } } }
    expect(Object.keys(analysis.entrypoints).length).toBe(entries.length)
    for (const [entry, { resolutions }] of Object.entries(analysis.entrypoints)) for (const kind of ["node16-esm", "bundler"]) expect(resolutions[kind]?.resolution, `${entry} ${kind}`).toBeDefined()
    expect(code, out.slice(0, 2000)).toBe(0)
  })
})

const strict = {
  compilerOptions: { target: "es2022", lib: ["es2023"], module: "nodenext", moduleResolution: "nodenext", strict: true, exactOptionalPropertyTypes: true, skipLibCheck: true, types: ["node"], outDir: "out" },
  files: ["node.ts", "wrong.ts"],
}

/** Each line must be wrong: were the package's types lost, nothing would be. */
const wrong = `import { Effect } from "effect"
import * as Memory from "surreal-live-sidecar/ssp/Memory"
import { Database } from "surreal-live-sidecar/ports/Database"
import * as Ids from "surreal-live-sidecar/core/surql/recordId"
// @ts-expect-error settings are texts by name
Memory.ports(5)
// @ts-expect-error a store without a position
Database.of({ kind: "x" })
// @ts-expect-error an id may not parse
export const table: string = Ids.parse("a:1").table
// @ts-expect-error the commit's type is known
export const store = Effect.map(Database, (database) => database.commit({ records: 5 }))
`

describe("the composed example", () => {
  let door: Door | undefined
  afterAll(() => door?.close())
  const ask = async (method: string, path: string, body?: Body | ReadonlyArray<Body>, token = secret) =>
    request(door!.url, { method, path, token, ...(body === undefined ? {} : { body }) })

  it("compiles against the unpacked package, whose types are there", async () => {
    copyFileSync(join(root, example), join(packed.folder, "node.ts"))
    writeFileSync(join(packed.folder, "wrong.ts"), wrong)
    writeFileSync(join(packed.folder, "package.json"), JSON.stringify({ type: "module" }))
    writeFileSync(join(packed.folder, "tsconfig.json"), JSON.stringify(strict))
    expect(await run([node, join(root, "node_modules/typescript/bin/tsc"), "-p", "."], packed.folder)).toEqual({ code: 0, out: "" })
    expect(statSync(join(packed.folder, "out/node.js")).size).toBeGreaterThan(1000)
  })
  it("is the text that docs/compose.md shows, and 60 lines of it are code", () => {
    const text = readFileSync(join(root, example), "utf8")
    expect(readFileSync(join(root, "docs/compose.md"), "utf8")).toContain(`\`\`\`ts\n${text}\`\`\`\n`)
    expect(text.split("\n").filter((line) => line !== "" && !/^import |^\s*(?:\/?\*|\/\/)/.test(line)).length).toBeLessThanOrEqual(60)
  })
  const seen: Array<string> = []
  for (const { command, installed, name } of [here, ...others]) {
    it.skipIf(!installed)(`${name} runs it: its store keeps what the runs before wrote, its route answers`, async () => {
      // Deno takes the source as it is.
      const file = name === "Deno" ? "node.ts" : "out/node.js"
      door = await Door.start({ command: [...command, join(packed.folder, file)], env: { STORE_ADDR: undefined, SVC_DATA_DIR: undefined, JOURNAL: join(packed.folder, "journal.jsonl") } })
      if (seen.length === 0) expect((await ask("POST", "/view/register", registration("v", "SELECT name FROM ran ORDER BY name"))).status).toBe(200)
      expect((await ask("POST", "/ingest", create(`ran:${seen.length}`, { name, at: "2026-01-01T00:00:00Z" }))).status).toBe(200)
      seen.push(name)
      const answer = await until("the row is there", async () => {
        const { status, text } = await ask("GET", "/csv/v")
        return status === 200 && text.split("\n").length === seen.length && text
      })
      expect(answer.split("\n")).toEqual([...seen].sort().map((each) => JSON.stringify(each)))
      expect([(await ask("GET", "/csv/v", undefined, "wrong")).status, (await ask("GET", "/csv/unknown")).status, (await ask("GET", "/nowhere")).status]).toEqual([401, 404, 404])
      expect(await door.stop()).toEqual({ code: 0, signal: null })
      await door.close()
    })
  }
})
