/**
 * Both doors as the image runs them: process 1, no privileges, a read-only tree with one folder to write to, the
 * image's environment.
 *
 * What a container engine would add is packaging; what may break is a write to the wrong place, a missing right, or a
 * signal that process 1 does not get.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { request } from "../../kit/checks/http.ts"
import { create } from "../../kit/data/registration.ts"
import { confined, dataFolder, end, inner, missing } from "../../kit/processes/confined.ts"
import { Door, removeFolder, secret, temporaryFolder, until } from "../../kit/processes/Door.ts"
import * as Dockerfile from "../../kit/processes/dockerfile.ts"
import { root } from "../../kit/rules/source.ts"

const image = Dockerfile.envHere(Dockerfile.stages(readFileSync(join(root, "Dockerfile"), "utf8")).at(-1) ?? [])

/** The image's environment with its volume in `folder` and a port of the test. */
const envIn = (folder: string): { readonly [name: string]: string | undefined } => ({
  STORE_ADDR: undefined,
  // That of the image sizes the heap by the container, which Node 20 cannot.
  NODE_OPTIONS: undefined,
  ...Object.fromEntries(Object.entries(image).map(([name, value]) => [name, value.replace(/^\/data\b/, folder)])),
  LISTEN_ADDR: ":{port}",
  SVC_SCHEDULER_INGEST_PORT: "{port}",
  SVC_SCHEDULER_AUTH_SECRET: "t",
  HOME: "/nowhere"
})

const doors = [
  {
    door: "dist/ssp.js",
    alive: "/version",
    posted: { path: "/ingest", token: secret },
    asked: { path: "/metrics", token: secret }
  },
  {
    door: "dist/scheduler.js",
    alive: "/livez",
    posted: { path: "/ingest", token: "t" },
    asked: { path: "/metrics", token: "t" }
  }
] as const

describe
  .skipIf(missing !== undefined)
  .concurrent(`confined as in a container${missing === undefined ? "" : ` [skipped: ${missing}]`}`, () => {
    for (const { alive, asked, door, posted } of doors) {
      it(`${door} serves, writes to its volume alone, answers --health, and ends with 0 on SIGTERM as process 1`, async ({
        onTestFinished
      }) => {
        const outer = temporaryFolder()
        onTestFinished(() => removeFolder(outer))
        const folder = dataFolder(outer)
        const run = async (...args: ReadonlyArray<string>): Promise<Door> => {
          const started = await Door.spawn({
            command: [...confined(folder), process.execPath, ...args],
            dataDir: folder,
            env: envIn(folder)
          })
          onTestFinished(() => end(started))
          return started
        }
        const serving = await run(door)
        await until(
          "it serves",
          async () =>
            (await request(serving.url, { path: alive, keepAlive: false }).catch(() => undefined))?.status === 200,
          60_000
        )
        expect((await request(serving.url, { method: "POST", ...posted, body: create("a:1") })).status).toBe(200)
        expect((await request(serving.url, asked)).status).toBe(200)

        const env = {
          ...envIn(folder),
          LISTEN_ADDR: `:${serving.port}`,
          SVC_SCHEDULER_INGEST_PORT: String(serving.port)
        }
        const health = await Door.spawn({
          command: [...confined(folder), process.execPath, door, "--health"],
          dataDir: folder,
          env
        })
        expect([await health.exited, health.logs]).toEqual([{ code: 0, signal: null }, ""])
        process.kill(inner(serving.pid)!, "SIGTERM")
        expect(await serving.exited).toEqual({ code: 0, signal: null })
        expect(serving.logs).not.toMatch(/EROFS|EACCES|EPERM/)

        const dead = await Door.spawn({
          command: [...confined(folder), process.execPath, door, "--health"],
          dataDir: folder,
          env
        })
        expect(await dead.exited).toEqual({ code: 1, signal: null })
        expect(dead.logs).toContain(`${alive} does not answer`)
      })
    }
    it("the kit can fail: outside its folder nothing can be written, inside it can, and its user has no rights", async ({
      onTestFinished
    }) => {
      const outer = temporaryFolder()
      onTestFinished(() => removeFolder(outer))
      const folder = dataFolder(outer)
      const code = `for (const path of [${JSON.stringify(join(root, "x"))}, ${JSON.stringify(join(outer, "x"))}, ${JSON.stringify(join(folder, "x"))}]) try { fs.writeFileSync(path, ""); console.log("written") } catch (error) { console.log(error.code) }; console.log(process.pid, process.getuid())`
      const tried = await Door.spawn({ command: [...confined(folder), process.execPath, "-e", code], dataDir: folder })
      await tried.exited
      expect(tried.logs).toMatch(/^(?:EROFS|EACCES)\n(?:EROFS|EACCES)\nwritten\n1 1000\n$/)
    })
  })
