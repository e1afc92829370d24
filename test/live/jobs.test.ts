/**
 * The jobs door as a process: the polling runner beside a database, what it prints, and questions to an SSP.
 *
 * Why as a process: exit codes, a clean stop while a call is under way, and what is printed exist nowhere else.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import ts from "typescript"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { request } from "../../kit/checks/http.ts"
import { create } from "../../kit/data/registration.ts"
import { TestBackend } from "../../kit/processes/backend.ts"
import { Door, removeFolder, secret, temporaryFolder, until } from "../../kit/processes/Door.ts"
import { RpcServer } from "../../kit/processes/surreal/RpcServer.ts"
import { rootClient } from "../../kit/processes/surreal/sdk.ts"
import { serviceUser } from "../../kit/processes/surreal/serviceUser.ts"
import { root } from "../../kit/rules/source.ts"
import { jobTable } from "../../src/core/surreal/jobTableSchema.ts"
import { printed } from "../../src/core/surreal/surrealSchema.ts"
import { outbox } from "../../src/outbox.ts"

const folder = temporaryFolder()
const doors: Array<Door> = []
let backend: TestBackend
beforeAll(async () => {
  backend = await TestBackend.start()
  writeFileSync(
    join(folder, "mail.json"),
    JSON.stringify({
      openapi: "3.1.0",
      paths: {
        "/send": {
          post: {
            requestBody: {
              content: {
                "application/json": {
                  schema: { type: "object", required: ["to"], properties: { to: { type: "string" } } }
                }
              }
            }
          }
        }
      }
    })
  )
  writeFileSync(
    join(folder, "mail_job.surql"),
    `${printed([jobTable("mail_job")])}DEFINE FIELD IF NOT EXISTS note ON mail_job TYPE option<string>;\n`
  )
  writeFileSync(
    join(folder, "svc.yml"),
    `backends:\n  mail: { type: http, baseUrl: "${backend.url}", spec: mail.json, auth: { type: token, token: "\${BACKEND_TOKEN}" }, method: { type: outbox, table: mail_job, schema: mail_job.surql } }\n`
  )
})
afterAll(async () => {
  for (const door of doors) await door.close()
  await backend.close()
  removeFolder(folder)
})

const env = (more: Record<string, string> = {}) => ({
  SVC_CONFIG_PATH: join(folder, "svc.yml"),
  BACKEND_TOKEN: backend.token,
  STORE_ADDR: undefined,
  ...more
})

const jobs = async (args: ReadonlyArray<string>, more: Record<string, string | undefined> = {}): Promise<Door> => {
  const door = await Door.spawn({ command: [process.execPath, "dist/jobs.js"], env: { ...env(), ...more } }, ...args)
  doors.push(door)
  return door
}
const ended = async (
  args: ReadonlyArray<string>,
  more: Record<string, string | undefined> = {}
): Promise<readonly [number | null | undefined, string]> => {
  const door = await jobs(args, more)
  await door.exited
  return [door.exit?.code, door.logs]
}

describe.concurrent("commands", () => {
  it("D40 types prints a module that compiles, without the backend's token; schema prints the job table with its permissions", async () => {
    const [[code, text], [also, surql]] = await Promise.all([
      ended(["types"], { BACKEND_TOKEN: undefined }),
      ended(["schema"])
    ])
    expect([code, also]).toEqual([0, 0])
    expect([
      ts.transpileModule(text, { reportDiagnostics: true }).diagnostics,
      text.includes(`readonly "to": string`)
    ]).toEqual([[], true])
    expect(surql).toContain("DEFINE FIELD IF NOT EXISTS note ON mail_job")
    expect(surql).toContain(
      "DEFINE TABLE IF NOT EXISTS mail_job TYPE NORMAL SCHEMAFULL PERMISSIONS FOR select, create, update, delete WHERE $access = 'account' AND assigned_to.author = $auth.id"
    )
  })
  it("svc.yml.example works as it is: types, schema, --check-config of both servers, and db.run() against its document", async () => {
    const shipped = { SVC_CONFIG_PATH: join(root, "svc.yml.example"), BACKEND_TOKEN: undefined }
    const checked = async (door: string) => {
      const process_ = await Door.spawn(
        { command: [process.execPath, door], env: { ...shipped, STORE_ADDR: "memory://" } },
        "--check-config"
      )
      doors.push(process_)
      await process_.exited
      return [process_.exit?.code, process_.logs] as const
    }
    const [[code, text], [also, surql], ssp, scheduler, [made, fresh]] = await Promise.all([
      ended(["types"], shipped),
      ended(["schema"], shipped),
      checked("dist/ssp.js"),
      checked("dist/scheduler.js"),
      ended(["schema", "--table", "report_job"], shipped)
    ])
    expect([code, also, made, ssp, scheduler]).toEqual([
      0,
      0,
      0,
      [0, expect.stringContaining("the configuration is fine")],
      [0, expect.stringContaining("the configuration is fine")]
    ])
    expect([
      ts.transpileModule(text, { reportDiagnostics: true }).diagnostics,
      text.includes(`readonly "month": string`),
      text.includes(`readonly "note"?: (string | null)`)
    ]).toEqual([[], true, true])
    expect([...surql.matchAll(/DEFINE TABLE IF NOT EXISTS (\w+)/g)].map(([, table]) => table)).toEqual([
      "report_job",
      "email_job"
    ])
    expect(readFileSync(join(root, "docs/example/report_job.surql"), "utf8").trim()).toBe(fresh.trim())
    const asked: Array<unknown> = []
    const { run } = await outbox(
      { query: (_, bindings) => Promise.resolve((asked.push(bindings), [["report_job:1"]])) },
      { path: shipped.SVC_CONFIG_PATH }
    )
    expect(await run("reports", "/reports", { month: "2026-07", to: ["ann@example.com"] })).toBe("report_job:1")
    await expect(run("reports", "/reports", { month: "July" })).rejects.toThrow(
      /payload\.month .*payload\.to is missing|payload\.to is missing.*payload\.month/
    )
    expect(asked.length).toBe(1)
  })
  it("D5a a schema file that is missing or defines another table, and a document that is no OpenAPI, fail --check-config of both servers; jobs types and outbox() refuse the document, jobs schema the file", async () => {
    const backend = (name: string, spec: string, schema: string): string =>
      `  ${name}: { type: http, baseUrl: "http://x", spec: ${spec}, method: { type: outbox, table: mail_job, schema: ${schema} } }\n`
    const written = (name: string, ...backends: ReadonlyArray<string>): string => {
      const path = join(folder, `${name}.yml`)
      writeFileSync(path, `backends:\n${backends.join("")}`)
      return path
    }
    writeFileSync(join(folder, "other.surql"), "DEFINE TABLE mail_jobs SCHEMAFULL; -- DEFINE FIELD x ON mail_job\n")
    writeFileSync(join(folder, "swagger.json"), JSON.stringify({ swagger: "2.0", paths: { "/send": { post: {} } } }))
    const missing = backend("missing", "mail.json", "none.surql"),
      swagger = backend("swagger", "swagger.json", "mail_job.surql")
    written("missing", missing)
    written("swagger", swagger)
    const faulty = written("faulty", missing, backend("other", "mail.json", "other.surql"), swagger)
    // Each start names every fault, so that one per server is enough.
    for (const file of ["dist/ssp.js", "dist/scheduler.js"]) {
      const door = await Door.spawn(
        { command: [process.execPath, file], env: { SVC_CONFIG_PATH: faulty } },
        "--check-config"
      )
      doors.push(door)
      await door.exited
      expect(door.exit?.code).toBe(2)
      expect(door.logs).toMatch(
        /backends\.missing\.method\.schema: none\.surql cannot be read: .*jobs schema --table mail_job/
      )
      expect(door.logs).toContain("other.surql has no DEFINE TABLE mail_job")
      expect(door.logs).toContain("swagger.json) is no OpenAPI 3.0 or 3.1 document")
    }
    expect(await ended(["types"], { SVC_CONFIG_PATH: join(folder, "swagger.yml") })).toEqual([
      2,
      expect.stringContaining("is no OpenAPI 3.0 or 3.1 document")
    ])
    await expect(outbox({ query: () => Promise.resolve([]) }, { path: join(folder, "swagger.yml") })).rejects.toThrow(
      "is no OpenAPI 3.0 or 3.1 document"
    )
    expect(await ended(["schema"], { SVC_CONFIG_PATH: join(folder, "missing.yml") })).toEqual([
      2,
      expect.stringContaining("none.surql cannot be read")
    ])
  })
  it("run without a database server, and a command that is none, exit 2 and say why", async () => {
    const [[code, text], [wrong, why]] = await Promise.all([ended(["run"]), ended(["lsit", "mail_job"])])
    expect([code, text, wrong, why]).toEqual([
      2,
      expect.stringContaining("STORE_ADDR"),
      2,
      expect.stringContaining("did you mean list?")
    ])
  })
})

describe("beside others", () => {
  it("D39 run takes up the jobs in the database's job table, and a stop lets the call under way end", async () => {
    const server = await RpcServer.start()
    const db = await rootClient(server)
    try {
      await db.query(printed([jobTable("mail_job")]))
      backend.reply = ({ key }, response) =>
        void setTimeout(() => response.end("{}"), key === "mail_job:slow" ? 1500 : 0)
      await db.query("CREATE mail_job:before SET path = '/send', payload = { to: 'x' }")
      const door = await jobs(["run"], {
        STORE_ADDR: `127.0.0.1:${server.port}`,
        STORE_NS: "n",
        STORE_DB: "d",
        STORE_USER: "root",
        STORE_PASS: "root"
      })
      const status = async (id: string) =>
        (await db.query<[ReadonlyArray<string>]>(`SELECT VALUE status FROM ${id}`))[0][0]
      await until("the job that was there has run", async () => (await status("mail_job:before")) === "success")
      await db.query("CREATE mail_job:slow SET path = '/send', payload = { to: 'y' }")
      await until("the slow call is under way", () => backend.calls("mail_job:slow").length === 1)
      door.signal("SIGTERM")
      expect([(await door.exited).code, await status("mail_job:slow")]).toEqual([0, "success"])
      expect(door.logs).not.toContain(backend.token)
    } finally {
      await db.close()
      await server.kill()
    }
  })
  it("D35 D39 an SSP beside a database runs the jobs in its job table, claimed and written there, and jobs that /ingest announces", async () => {
    const server = await RpcServer.start()
    const db = await rootClient(server)
    try {
      const { pass, user } = await serviceUser(server, ["mail_job"])
      await db.query("CREATE mail_job:swept SET path = '/send', payload = { to: 'x' }")
      backend.reply = ({ key }, response, n) =>
        void (key === "mail_job:told" && n === 1 ? response.writeHead(500).end("once") : response.end("{}"))
      const door = await Door.start({
        env: env({
          STORE_ADDR: `127.0.0.1:${server.port}`,
          STORE_NS: "n",
          STORE_DB: "d",
          STORE_USER: user,
          STORE_PASS: pass,
          SVC_JOB_RETRY_BASE_MS: "5"
        })
      })
      doors.push(door)
      const row = async (id: string) =>
        (
          await db.query<[ReadonlyArray<{ status: string; errors: ReadonlyArray<object> }>]>(
            `SELECT status, errors FROM ${id}`
          )
        )[0][0]
      await until("the job that was there has run", async () => (await row("mail_job:swept"))?.status === "success")
      await db.query("CREATE mail_job:told SET path = '/send', payload = { to: 'y' }")
      const announced = create("mail_job:told", { path: "/send", payload: { to: "y" }, status: "pending" })
      for (let i = 0; i < 2; i++)
        await request(door.url, { method: "POST", path: "/ingest", token: secret, body: announced })
      await until("the job that was announced has run", async () => (await row("mail_job:told"))?.status === "success")
      expect((await row("mail_job:told"))?.errors).toMatchObject([
        { attempt: 1, code: 500, reason: "the backend answered 500: once" }
      ])
      // D74: deleted and created again as it was, done and then while it is called, long before a sweep.
      let answer: (() => void) | undefined
      const calls = () => backend.calls("mail_job:told").length
      backend.reply = (_, response, n) => void (n === 3 ? (answer = () => response.end("{}")) : response.end("{}"))
      const again = async () => {
        await db.query("DELETE mail_job:told; CREATE mail_job:told SET path = '/send', payload = { to: 'y' }")
        const changes = [{ ...announced, op: "DELETE", record: {} }, announced]
        await request(door.url, { method: "POST", path: "/ingest", token: secret, body: changes })
      }
      await again()
      await until("it is called again", () => answer !== undefined)
      await again()
      expect((await row("mail_job:told"))?.status).toBe("pending")
      answer!()
      await until("it is called behind that", () => calls() === 4, 20_000)
      await until("it is done", async () => (await row("mail_job:told"))?.status === "success")
      expect([(await row("mail_job:told"))?.errors, backend.overlaps]).toEqual([[], []])
      const figures = (await request(door.url, { path: "/metrics", token: secret })).text
      expect(figures.split("\n").filter((line) => line.startsWith("svc_ssp_job_attempts_total{"))).toEqual(
        [
          ["success", 4],
          ["retry", 1],
          ["failed", 0]
        ].map(([result, n]) => `svc_ssp_job_attempts_total{table="mail_job",result="${result}"} ${n}`)
      )
      expect([
        backend.calls("mail_job:told").length,
        backend.calls("mail_job:swept").length,
        (await db.query<[ReadonlyArray<unknown>]>("SELECT * FROM _svc_job"))[0]
      ]).toEqual([4, 1, []])
    } finally {
      await db.close()
      await server.kill()
    }
  })
})

describe("an SSP without a database", () => {
  let ssp: Door
  beforeAll(async () => {
    ssp = await Door.start({ env: env({ STORE_ADDR: "memory://" }) })
    doors.push(ssp)
  })
  // First of all, because what it lists is every job that there is.
  it("list, show, retry and cancel ask the SSP, in its words", async () => {
    const ask = (...args: ReadonlyArray<string>) => ended([...args, "--url", ssp.url])
    backend.reply = (_, response) => void response.writeHead(404).end("no such user")
    await request(ssp.url, {
      method: "POST",
      path: "/ingest",
      token: secret,
      body: create("mail_job:a", { path: "/send", payload: {}, status: "pending" })
    })
    await until("it failed", async () =>
      (await request(ssp.url, { path: "/jobs/mail_job:a", token: secret })).text.includes('"failed"')
    )
    const [listed, shown] = await Promise.all([ask("list", "mail_job"), ask("show", "mail_job:a")])
    expect(listed).toEqual([
      0,
      expect.stringMatching(/^mail_job:a\tfailed\t\/send\t1 errors\tthe backend answered 404: no such user\n$/)
    ])
    expect(JSON.parse(shown[1])).toMatchObject({ id: "mail_job:a", errors: [{ attempt: 1, code: 404 }] })
    backend.reply = (_, response) => void response.end("{}")
    expect((await ask("retry", "mail_job:a"))[1]).toBe("done\n")
    await until("it succeeded", async () =>
      (await request(ssp.url, { path: "/jobs/mail_job:a", token: secret })).text.includes('"success"')
    )
    expect(await ask("cancel", "mail_job:a")).toEqual([
      1,
      expect.stringContaining("answered 409: job mail_job:a is success")
    ])
  })
  it("D37 the trace context of POST /ingest arrives at the backend: of the request, of each change, and what the record itself names first", async () => {
    backend.reply = (_, response) => void response.end("{}")
    const trace = (digit: string) => `00-${digit.repeat(32)}-${digit.repeat(16)}-01`
    const job = (key: string, more: object = {}) =>
      create(`mail_job:${key}`, { path: "/send", payload: {}, status: "pending", ...more })
    const post = (body: unknown, traceparent: string) =>
      request(ssp.url, { method: "POST", path: "/ingest", token: secret, body, headers: { traceparent } })
    await post(
      [job("t1"), { ...job("t2"), traceparent: trace("b") }, job("t3", { traceparent: trace("c") })],
      trace("a")
    )
    await post(job("t4"), "00-nonsense-01")
    await until("all four are called", () =>
      ["t1", "t2", "t3", "t4"].every((key) => backend.calls(`mail_job:${key}`).length === 1)
    )
    expect(["t1", "t2", "t3", "t4"].map((key) => backend.calls(`mail_job:${key}`)[0]!.headers["traceparent"])).toEqual([
      trace("a"),
      trace("b"),
      trace("c"),
      undefined
    ])
  })
})
