/**
 * The packed package, as somebody else gets it: what is in it, whether its entries resolve with their types, and the
 * composed example on every runtime.
 *
 * The example is the one that `docs/compose.md` shows. It is compiled against the unpacked package and runs on each
 * runtime in turn, on one journal, so that each has to read what the ones before it wrote.
 */
import { copyFileSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { basename, join } from "node:path"
import { runInNewContext } from "node:vm"
import { gzipSync } from "node:zlib"
import { build } from "esbuild"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Body, request } from "../../kit/checks/http.ts"
import { campaign, long } from "../../kit/data/random.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { named as browserNamed, Chromium, missing } from "../../kit/processes/browser.ts"
import { Door, secret, until } from "../../kit/processes/Door.ts"
import { here, others } from "../../kit/processes/runtimes.ts"
import { type Packed, pack, run } from "../../kit/processes/tarball.ts"
import { root } from "../../kit/rules/source.ts"

/** Named whole, for those who look for files that nothing leads to. */
const example = "test/package/example/node.ts",
  workerExample = "test/package/example/worker.ts"
const more = [
  "test/package/example/jobs.ts",
  "test/package/example/machines.ts",
  "test/package/example/conformance.ts",
  "test/package/example/retries.ts"
]
const node = process.execPath

let packed: Packed
beforeAll(async () => {
  packed = await pack()
})
afterAll(() => packed?.remove())

describe("the tarball", () => {
  it("holds built files and their documents, no others, and stays below its size limit", () => {
    const paths = packed.files.map(({ path }) => path)
    expect(
      paths.filter(
        (path) =>
          !/^(?:dist\/.+\.(?:js|d\.ts|html|svg|css)|docs\/[\w-]+\.md|docs\/example\/[\w.]+|README\.md|package\.json|svc\.yml\.example)$/.test(
            path
          )
      )
    ).toEqual([])
    expect(paths).toEqual(
      expect.arrayContaining([
        "README.md",
        "dist/ssp.js",
        "dist/ssp/Ssp.d.ts",
        "dist/core/ivm/engine.js",
        "svc.yml.example"
      ])
    )
    expect(packed.size).toBeLessThan(2_500_000)
  })
  it("holds no secret and no path of the machine it was packed on", () => {
    const found = packed.files.filter(({ path }) => {
      const text = readFileSync(join(packed.home, path), "utf8")
      return (
        text.includes(root) ||
        /-----BEGIN [A-Z ]*PRIVATE KEY-----|\bnpm_[A-Za-z0-9]{36}\b|\bgh[pousr]_[A-Za-z0-9]{30,}/.test(text)
      )
    })
    expect(found.map(({ path }) => path)).toEqual([])
  })
  it("has programs that start, and they are executable text with an interpreter", async () => {
    const manifest = JSON.parse(readFileSync(join(packed.home, "package.json"), "utf8")) as {
      readonly bin: { readonly [name: string]: string }
      readonly version: string
    }
    for (const path of Object.values(manifest.bin)) {
      expect(readFileSync(join(packed.home, path), "utf8").split("\n", 1)[0]).toBe("#!/usr/bin/env node")
      expect(existsSync(join(packed.home, path))).toBe(true)
    }
    // `npx name` is run by a shell, where a command of the shell's own would answer in place of the program.
    for (const name of Object.keys(manifest.bin))
      expect(await run(["/bin/sh", "-c", `PATH= command -v ${name}`], packed.folder), name).toMatchObject({ out: "" })
    expect(await run([node, join(packed.home, manifest.bin["ssp"]!), "--version"], packed.folder)).toEqual({
      code: 0,
      out: `${manifest.version}\n`
    })
  })
  it("publint finds nothing", async () => {
    const { code, out } = await run(
      [node, join(root, "node_modules/publint/src/cli.js"), "run", packed.tarball, "--strict"],
      packed.folder
    )
    expect([code, out]).toEqual([0, expect.stringMatching(/All good!/)])
  })
  it.runIf(campaign)("are-the-types-wrong finds nothing, in the entries of every room", async () => {
    const entries = [
      "core/ivm/engine",
      "core/surql/syntax/parse",
      "protocol/SspApi",
      "ports/Database",
      "ssp/Ssp",
      "ssp/Memory",
      "scheduler/Scheduler",
      "scheduler/Memory",
      "host/http/Server",
      "outbox",
      "outbox/errors",
      "testing",
      "client",
      "views"
    ]
    const { code, out } = await run(
      [
        node,
        join(root, "node_modules/@arethetypeswrong/cli/dist/index.js"),
        packed.tarball,
        "--profile",
        "esm-only",
        "--no-emoji",
        "--format",
        "json",
        "--entrypoints",
        ...entries
      ],
      packed.folder
    )
    const { analysis } = JSON.parse(out) as {
      readonly analysis: {
        readonly entrypoints: {
          readonly [entry: string]: {
            readonly resolutions: {
              readonly [kind: string]: { readonly resolution?: object; readonly isWildcard?: boolean }
            }
          }
        }
      }
    }
    expect(Object.keys(analysis.entrypoints).length).toBe(entries.length)
    for (const [entry, { resolutions }] of Object.entries(analysis.entrypoints))
      for (const kind of ["node16-esm", "bundler"])
        expect(resolutions[kind]?.resolution, `${entry} ${kind}`).toBeDefined()
    expect(code, out.slice(0, 2000)).toBe(0)
  })
})

const strict = {
  compilerOptions: {
    target: "es2022",
    lib: ["es2023", "dom"],
    module: "nodenext",
    moduleResolution: "nodenext",
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: true,
    types: ["node"],
    outDir: "out"
  },
  files: ["node.ts", "worker.ts", "jobs.ts", "machines.ts", "conformance.ts", "retries.ts", "wrong.ts"]
}

/** Each line must be wrong: were the package's types lost, nothing would be. */
const wrong = `import { Effect } from "effect"
import * as Memory from "surreal-live-sidecar/ssp/Memory"
import { Database } from "surreal-live-sidecar/ports/Database"
import * as Ids from "surreal-live-sidecar/core/surql/values/recordId"
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
    for (const path of [example, workerExample, ...more])
      copyFileSync(join(root, path), join(packed.folder, basename(path)))
    writeFileSync(join(packed.folder, "wrong.ts"), wrong)
    writeFileSync(join(packed.folder, "package.json"), JSON.stringify({ type: "module" }))
    writeFileSync(join(packed.folder, "tsconfig.json"), JSON.stringify(strict))
    expect(await run([node, join(root, "node_modules/typescript/bin/tsc"), "-p", "."], packed.folder)).toEqual({
      code: 0,
      out: ""
    })
    expect(statSync(join(packed.folder, "out/node.js")).size).toBeGreaterThan(1000)
  })
  it("names the versions of vitest that the conformance suites need as the package's peers are", () => {
    const { peerDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
    expect(readFileSync(join(root, "docs/compose.md"), "utf8")).toContain(
      `Needs \`vitest\` ${peerDependencies.vitest} and \`@effect/vitest\` ${peerDependencies["@effect/vitest"]} `
    )
  })
  it("is the text that docs/compose.md shows, and no more than 80 lines of it are code", () => {
    const text = readFileSync(join(root, example), "utf8")
    for (const each of [example, workerExample, ...more].map((path) => readFileSync(join(root, path), "utf8")))
      expect(readFileSync(join(root, "docs/compose.md"), "utf8")).toContain(`\`\`\`ts\n${each}\`\`\`\n`)
    expect(
      text.split("\n").filter((line) => line !== "" && !/^import |^\s*(?:\/?\*|\/\/)/.test(line)).length
    ).toBeLessThanOrEqual(80)
  })
  it("D37 runs the jobs of a file given as data, against a backend over fetch", async () => {
    const calls: Array<string> = []
    const backend = createServer((request, response) => {
      let body = ""
      request
        .setEncoding("utf8")
        .on("data", (chunk) => (body += chunk))
        .on("end", () => {
          calls.push(`${request.method} ${request.url} ${body}`)
          response.end("{}")
        })
    })
    await new Promise<void>((done) => void backend.listen(0, "127.0.0.1", done))
    writeFileSync(
      join(packed.folder, "runJobs.mjs"),
      `
      import { nodeWithJobs } from "./out/jobs.js"
      const node = nodeWithJobs("s", "http://127.0.0.1:${(backend.address() as AddressInfo).port}")
      const ask = async (method, path, body) => (await node.handler(new Request("http://node" + path, { method, headers: { authorization: "Bearer s" }, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })))
      while ((await ask("GET", "/health")).status !== 200) await new Promise((done) => setTimeout(done, 10))
      await ask("POST", "/ingest", { table: "mail_job", op: "CREATE", id: "mail_job:1", record: { path: "/send", payload: { to: "ann" }, status: "pending" } })
      let job
      do { await new Promise((done) => setTimeout(done, 10)); job = await (await ask("GET", "/jobs/mail_job:1")).json() } while (!["success", "failed"].includes(job.status))
      console.log(job.status)
      await node.dispose()
    `
    )
    try {
      expect(await run([node, "runJobs.mjs"], packed.folder)).toEqual({
        code: 0,
        out: expect.stringMatching(/success\n/)
      })
      expect(calls).toEqual([`POST /send {"to":"ann"}`])
    } finally {
      backend.close()
    }
  })
  it.runIf(long)(
    "runs the shipped suite over a composer's layer under vitest, and finds a layer that forgets its commits",
    async () => {
      const text = readFileSync(join(root, more[2]!), "utf8")
      writeFileSync(join(packed.folder, "conformance.test.ts"), text)
      const forgetful =
        "Layer.effect(Database, Effect.map(Database, (kept) => ({ ...kept, commit: () => Effect.void }))).pipe(Layer.provide(Layer.fresh(Database.layerMemory)))"
      writeFileSync(
        join(packed.folder, "forgetful.test.ts"),
        text
          .replace("import { Layer }", "import { Effect, Layer }")
          .replace("Layer.fresh(Database.layerMemory)", forgetful)
      )
      const { code, out } = await run(
        [node, join(root, "node_modules/vitest/vitest.mjs"), "run", "--root", ".", "--reporter=json"],
        packed.folder
      )
      const { testResults } = JSON.parse(out.slice(out.indexOf('{"'))) as {
        readonly testResults: ReadonlyArray<{
          readonly name: string
          readonly assertionResults: ReadonlyArray<{ readonly status: string }>
        }>
      }
      const ends = Object.fromEntries(
        testResults.map(({ assertionResults, name }) => [
          basename(name, ".test.ts"),
          [...new Set(assertionResults.map(({ status }) => status))].sort()
        ])
      )
      expect([code, ends]).toEqual([1, { conformance: ["passed"], forgetful: ["failed", "passed"] }])
    }
  )
  it("the property of a state machine holds, every module of the page's table has what it names, and no table of states is missing there", async () => {
    const rows = [
      ...readFileSync(join(root, "docs/compose.md"), "utf8").matchAll(
        /^\| `\.\.\.\/(core\/[\w/]+)` \| ((?:`\w+`(?:, )?)+) \|/gm
      )
    ].map(([, module = "", names = ""]) => [module, names.match(/\w+/g) ?? []] as const)
    const machines = readdirSync(join(root, "src/core"), { recursive: true, encoding: "utf8" }).filter(
      (path) =>
        path.endsWith(".ts") &&
        /^export const (?:table|decide)\b/m.test(readFileSync(join(root, "src/core", path), "utf8"))
    )
    expect(rows.map(([module]) => module)).toEqual(
      expect.arrayContaining(machines.map((path) => `core/${path.slice(0, -3)}`))
    )
    writeFileSync(
      join(packed.folder, "runMachines.mjs"),
      `
      import { FastCheck as fc } from "effect"
      import { property } from "./out/machines.js"
      fc.assert(property, { numRuns: 1000 })
      for (const [module, names] of ${JSON.stringify(rows)}) {
        const found = await import("surreal-live-sidecar/" + module)
        for (const name of names) if (found[name] === undefined) throw new Error(module + " has no " + name)
      }
    `
    )
    expect(await run([node, "runMachines.mjs"], packed.folder)).toEqual({ code: 0, out: "" })
  })
  const seen: Array<string> = []
  for (const { command, installed, name } of [here, ...others]) {
    it.skipIf(!installed || (!long && name !== here.name && name !== "Deno"))(
      `${name} runs it: its store keeps what the runs before wrote, its route answers`,
      async () => {
        // Deno takes the source as it is.
        const file = name === "Deno" ? "node.ts" : "out/node.js"
        door = await Door.start({
          command: [...command, join(packed.folder, file)],
          env: { STORE_ADDR: undefined, SVC_DATA_DIR: undefined, JOURNAL: join(packed.folder, "journal.jsonl") }
        })
        if (seen.length === 0)
          expect(
            (await ask("POST", "/view/register", registration("v", "SELECT name FROM ran ORDER BY name"))).status
          ).toBe(200)
        expect(
          (await ask("POST", "/ingest", create(`ran:${seen.length}`, { name, at: "2026-01-01T00:00:00Z" }))).status
        ).toBe(200)
        seen.push(name)
        const answer = await until("the row is there", async () => {
          const { status, text } = await ask("GET", "/csv/v")
          return status === 200 && text.split("\n").length === seen.length && text
        })
        expect(answer.split("\n")).toEqual([...seen].sort().map((each) => JSON.stringify(each)))
        expect([
          (await ask("GET", "/csv/v", undefined, "wrong")).status,
          (await ask("GET", "/csv/unknown")).status,
          (await ask("GET", "/nowhere")).status
        ]).toEqual([401, 404, 404])
        expect(await door.stop()).toEqual({ code: 0, signal: null })
        await door.close()
      }
    )
  }
})

interface Car {
  readonly Origin: string
  readonly Horsepower: number | null
}

/** The strongest cars by origin, counted here. */
const plainly = (cars: ReadonlyArray<Car>): ReadonlyArray<unknown> =>
  [...new Set(cars.map(({ Origin }) => Origin))].sort().map((Origin) => {
    const own = cars.filter((car) => car.Origin === Origin)
    return { Origin, cars: own.length, strongest: Math.max(...own.map(({ Horsepower }) => Horsepower ?? 0)) }
  })

describe("the client alone", () => {
  it("is at most 8 KB compressed, and imports nothing", async () => {
    const { metafile, outputFiles } = await build({
      stdin: {
        contents: `export { connect } from "surreal-live-sidecar/client"`,
        resolveDir: packed.folder,
        sourcefile: "page.js"
      },
      bundle: true,
      platform: "browser",
      format: "esm",
      target: "es2022",
      minify: true,
      write: false,
      metafile: true
    })
    const { contents } = outputFiles[0]!
    const bytes = gzipSync(contents, { level: 9 }).length
    console.log(`the client as a bundle: ${contents.length} bytes, ${bytes} compressed`)
    expect(bytes).toBeLessThanOrEqual(8192)
    expect(Object.values(metafile.outputs).flatMap(({ imports }) => imports)).toEqual([])
    expect(Object.keys(metafile.inputs).filter((path) => !/page\.js$|dist\/client(?:\/\w+)?\.js$/.test(path))).toEqual(
      []
    )
  })
  it("lets a program end that only looked at a view, however long the view's grace is", async () => {
    const program = `import { connect } from "surreal-live-sidecar/client"
      const live = connect({ url: "http://127.0.0.1:1", token: async () => "", graceMs: 2_000_000_000 })
      console.log(live.view("a").state.status)
      // Does not hold the program either: it comes where something else does.
      setTimeout(() => process.exit(3), 20_000).unref()`
    const command = [node, "--input-type=module", "--eval", program]
    expect(await run(command, packed.folder)).toEqual({ code: 0, out: "loading\n" })
  })
})

describe("the engine alone", () => {
  let bundle = ""
  const cars = JSON.parse(
    readFileSync(join(root, "node_modules/vega-datasets/data/cars.json"), "utf8")
  ) as ReadonlyArray<Car>
  const changes = cars.map(({ Horsepower, Origin }, n) =>
    create(`cars:${n}`, Horsepower === null ? { Origin } : { Origin, Horsepower })
  )

  it("is made of core and value libraries: a bundle for browsers needs nothing of a runtime, nor of the service", async () => {
    copyFileSync(join(root, workerExample), join(packed.folder, "worker.ts"))
    const { metafile, outputFiles } = await build({
      entryPoints: [join(packed.folder, "worker.ts")],
      absWorkingDir: packed.folder,
      bundle: true,
      platform: "browser",
      format: "iife",
      minify: true,
      write: false,
      metafile: true
    })
    bundle = outputFiles[0]!.text
    const used = Object.values(metafile.outputs)
      .flatMap(({ inputs }) => Object.entries(inputs))
      .filter(([path, { bytesInOutput }]) => bytesInOutput > 0 && path !== "worker.ts")
    const libraries = new Set(
      used
        .map(([path]) => path)
        .map(
          (path) =>
            /node_modules\/(surreal-live-sidecar\/dist\/core|@[\w-]+\/[\w-]+|[\w.-]+)\/(?!.*node_modules)/.exec(
              path
            )?.[1] ?? path
        )
    )
    expect([...libraries].sort()).toEqual([
      "@noble/hashes",
      "decimal.js",
      "effect",
      "sorted-btree",
      "surreal-live-sidecar/dist/core"
    ])
    console.log(
      `the engine and the query language as a bundle: ${Math.round(bundle.length / 1000)} kB, ${Math.round(gzipSync(bundle).length / 1000)} kB compressed`
    )
    expect(bundle.length).toBeLessThan(1_500_000)
  })

  it("runs where there is nothing but the language", () => {
    const answers: Array<unknown> = []
    const self: {
      onmessage?: (event: { readonly data: unknown }) => void
      readonly postMessage: (rows: unknown) => void
    } = { postMessage: (rows) => answers.push(JSON.parse(JSON.stringify(rows))) }
    runInNewContext(bundle, { self, TextEncoder, TextDecoder })
    self.onmessage!({ data: changes })
    self.onmessage!({ data: { table: "cars", op: "DELETE", id: "cars:0", record: {} } })
    expect(answers).toEqual([plainly(cars), plainly(cars.slice(1))])
  })

  describe.skipIf(missing !== undefined)(browserNamed("in Chromium"), () => {
    it("keeps a view of real records in a worker of a page", async () => {
      const server = createServer((request, response) => {
        response.setHeader("content-type", request.url === "/worker.js" ? "text/javascript" : "text/html")
        response.end(
          request.url === "/worker.js" ? bundle : "<!doctype html><title>engine</title><link rel=icon href=data:,>"
        )
      })
      await new Promise<void>((done) => void server.listen(0, "127.0.0.1", done))
      const browser = await Chromium.launch()
      try {
        const visit = await browser.visit(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
        await visit.go("/")
        const rows = await visit.page.evaluate(`new Promise((done, failed) => {
          const worker = new Worker("/worker.js")
          worker.onerror = (event) => failed(new Error(event.message))
          worker.onmessage = ({ data }) => done(data)
          worker.postMessage(${JSON.stringify(changes)})
        })`)
        expect(rows).toEqual(plainly(cars))
        expect(visit.faults).toEqual([])
      } finally {
        await browser.close()
        server.close()
      }
    })
  })
})
