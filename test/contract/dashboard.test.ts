/**
 * The dashboard's files as both doors serve them: status, type, headers, caching, and nothing but these files.
 *
 * Against real processes, because where the files lie differs between the source and the build.
 */
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { expectError, type Served } from "../../kit/checks/contract.ts"
import { rawRequest, request } from "../../kit/checks/http.ts"
import { Door, removeFolder, schedulerEnv, temporaryFolder, until } from "../../kit/processes/Door.ts"
import { root } from "../../kit/rules/source.ts"

const files = readdirSync(join(root, "src/dashboard")).filter((name) => name !== "index.html")
const types: { readonly [ending: string]: string } = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml"
}
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const suite = (name: string, start: () => Promise<Door>): void => {
  describe(`the dashboard of the ${name}`, () => {
    let door: Door
    beforeAll(async () => {
      door = await start()
    })
    afterAll(() => door.close())
    const get = (path: string, headers: Record<string, string> = {}, method = "GET") =>
      request((door as Served).url, { path, headers, method })

    it("D34 GET / 200 without a secret, with headers that keep everything else out", async () => {
      const answer = await get("/")
      expect([
        answer.status,
        answer.headers["content-type"],
        answer.headers["content-security-policy"],
        answer.headers["x-content-type-options"],
        answer.headers["referrer-policy"],
        answer.headers["cache-control"]
      ]).toEqual([200, "text/html; charset=utf-8", policy, "nosniff", "no-referrer", "no-cache"])
      expect(answer.text).not.toMatch(/https?:\/\/(?!www\.w3\.org)|<script(?![^>]*src=)|style=|\son\w+=/)
    })
    it("GET /dashboard/:file 200 every file, each with its type", async () => {
      for (const file of [...files, "uPlot.js", "uPlot.css"]) {
        const answer = await get(`/dashboard/${file}`)
        expect([
          file,
          answer.status,
          answer.headers["content-type"],
          answer.headers["content-security-policy"]
        ]).toEqual([file, 200, types[file.slice(file.lastIndexOf(".") + 1)], policy])
        expect(answer.text.length).toBeGreaterThan(100)
      }
    })
    it("GET /favicon.ico 200 the icon, for pages that name none", async () => {
      const [asked, icon] = [await get("/favicon.ico"), await get("/dashboard/icon.svg")]
      expect([asked.status, asked.headers["content-type"], asked.text]).toEqual([200, "image/svg+xml", icon.text])
    })
    it("GET / 304 for the ETag it gave, 200 for another; HEAD answers the headers alone", async () => {
      const { headers, text } = await get("/")
      const etag = String(headers["etag"])
      const same = await get("/", { "if-none-match": `W/${etag}, "x"` })
      expect([same.status, same.text, same.headers["etag"]]).toEqual([304, "", etag])
      expect((await get("/", { "if-none-match": '"x"' })).status).toBe(200)
      const head = await rawRequest(door.port, "HEAD / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
      expect([head?.status, head?.text, head?.headers["content-length"]]).toEqual([
        200,
        "",
        String(Buffer.byteLength(text))
      ])
    })
    it("D6 GET of a target that is odd 404 or 400, and the page only for its own path (RFC 9112, 3.2)", async () => {
      const refused = ["*", "*?x", "*/", "ftp://x/", "//", "/*", "/%2A", "/%2F", "/%2e%2e/", "/./", "/%", "/\\"]
      const broken = ["", "x:80", "docs", "?x", "#", "http:/"]
      const statusOf = async (method: string, target: string): Promise<number | undefined> => {
        const head = `${method} ${target} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`
        return (await rawRequest(door.port, head))?.status
      }
      for (const [status, targets] of [
        [404, refused],
        [400, broken],
        [200, ["/", "/?x", "/#x", "http://x/"]]
      ] as const)
        for (const target of targets) expect([target, await statusOf("GET", target)]).toEqual([target, status])
      for (const method of ["POST", "OPTIONS", "CONNECT"])
        for (const target of ["*", "/", "http://x/"])
          expect([method, target, await statusOf(method, target)]).toEqual([method, target, 404])
    })
    it("GET 404 NOT_FOUND for whatever is no file of the dashboard, steps out of its folder first of all", async () => {
      for (const path of [
        "/dashboard",
        "/dashboard/",
        "/dashboard/index.html",
        "/dashboard/../package.json",
        "/dashboard/%2e%2e/package.json",
        "/dashboard/..%2fpackage.json",
        "/dashboard/..%5cpackage.json",
        "/dashboard//main.js",
        "/dashboard/main.js/",
        "/dashboard/MAIN.js",
        "/dashboard/main.js%00.css",
        "/dashboard/main.d.ts",
        "/index.html"
      ]) {
        const answer = await rawRequest(door.port, `GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`)
        expectError(answer!, 404, "NOT_FOUND")
      }
    })
    it("POST / 404 NOT_FOUND and says what the path takes", async () => {
      for (const path of ["/", "/dashboard/main.js"]) {
        const answer = await get(path, {}, "POST")
        expectError(answer, 404, "NOT_FOUND")
        expect(answer.headers["allow"]).toBe("GET, HEAD")
      }
    })
  })
}

suite("SSP", () => Door.start())

const folder = temporaryFolder()
afterAll(() => removeFolder(folder))
suite("scheduler", async () => {
  const door = await Door.spawn({
    command: [process.execPath, "dist/scheduler.js"],
    env: {
      ...schedulerEnv(folder)
    }
  })
  await until(
    "the scheduler serves",
    async () => (await request(door.url, { path: "/livez", keepAlive: false }).catch(() => undefined))?.status === 200,
    60_000
  )
  return door
})
