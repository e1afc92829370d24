/**
 * `npm start` as a newcomer runs it: a whole cluster comes up, changes, does jobs, and leaves nothing behind however it
 * ends.
 *
 * As processes, because orphans, signals and exit codes exist nowhere else. Where there is no /proc, what is left
 * cannot be seen.
 */
import { execFile } from "node:child_process"
import { once } from "node:events"
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import type { AddressInfo } from "node:net"
import { createServer } from "node:net"
import { join } from "node:path"
import { promisify } from "node:util"
import { describe, expect, it } from "vitest"
import { type Body, bodyOf, request } from "../../kit/checks/http.ts"
import { campaign, long } from "../../kit/data/random.ts"
import { removeFolder, temporaryFolder, until } from "../../kit/processes/Door.ts"
import { LocalCluster } from "../../kit/processes/localCluster.ts"
import { paste } from "../../kit/processes/paste.ts"
import { root } from "../../kit/rules/source.ts"

const run = promisify(execFile)
const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  readonly scripts: { readonly [name: string]: string }
}

type Later = (close: () => Promise<void> | void) => void

const start = async (later: Later, ...asked: Parameters<typeof LocalCluster.spawn>): Promise<LocalCluster> => {
  const cluster = await LocalCluster.spawn(...asked)
  later(() => cluster.close())
  return cluster
}

const query = async (url: string, text: string): Promise<ReadonlyArray<{ readonly [field: string]: unknown }>> => {
  const answer = await request(url, { method: "POST", path: "/proxy/query", body: { query: text } })
  if (answer.status !== 200) throw new Error(`${text}: ${answer.status} ${answer.text}`)
  return answer.json as ReadonlyArray<{ readonly [field: string]: unknown }>
}

describe.skipIf(!existsSync("/proc/self/cwd")).concurrent("npm start", () => {
  it("brings up a scheduler and two SSPs, views change, jobs end well, badly and after retries, its commands work, an SSP that is killed comes back, Ctrl-C ends all with 0", async ({
    onTestFinished
  }) => {
    const cluster = await start(onTestFinished, "npm", ["--rate", "300"])
    const { board, commands, dashboard, secret } = await cluster.greeting()
    expect((await request(dashboard, { path: "/readyz" })).status).toBe(200)
    expect(cluster.processes()).toHaveLength(3)
    expect(bodyOf(await request(dashboard, { path: "/metrics" }))).toMatchObject({
      scheduler: { ready_ssps: 2, total_queries: 8 }
    })

    const page = await fetch(board)
    const cookie = page.headers.get("set-cookie")!.split(";")[0]!
    const json = { method: "POST", headers: { cookie, "content-type": "application/json" } }
    const said = await Promise.all([page, ...["board.js", "board.css"].map((name) => fetch(board + name))])
    expect((await Promise.all(said.map((each) => each.text()))).join()).not.toContain(secret)
    const asked = { view: "posts", params: { page: 0 } }
    const given = await fetch(`${board}views`, { ...json, body: JSON.stringify(asked) })
    const { token, url, view: posts } = (await given.json()) as { readonly [name: string]: string }
    expect(url).toBe(dashboard.slice(0, -1))
    const edited = await fetch(`${board}edits`, { ...json, body: JSON.stringify({ kind: "vote", post: "post:1" }) })
    expect(edited.status).toBe(200)
    const first = bodyOf(await request(dashboard, { path: `/view/${posts}`, token: token! }))["result_data"]
    expect(first).toMatchObject([{ id: "post:1", votes: 9, comments: [{ replies: [] }, {}] }, {}, {}, {}, {}])

    const kill = commands.at(-1)!
    expect(commands).toHaveLength(4)
    // Other films change meanwhile.
    const [found, followed, changed] = await paste(commands.slice(0, -1), process.cwd(), "film:mine")
    expect(JSON.parse(found!)).toHaveLength(3)
    expect(JSON.parse(changed!)).toMatchObject({ seq: expect.any(Number) })
    expect(followed).toMatch(/^: open\n\nevent: snapshot\n[\s\S]*\nevent: delta\n[\s\S]*film:mine/)

    const view = async () => bodyOf(await request(dashboard, { path: "/view/demo:best-films", token: secret }))
    await until("my own film is among the best", async () =>
      JSON.stringify((await view())["result_data"]).includes("My own")
    )
    const before = (await view())["result_hash"]
    await until("the view changes by itself", async () => (await view())["result_hash"] !== before)
    await until(
      "jobs that ended well, failed, and were tried again",
      async () => {
        const alerts = await query(dashboard, "SELECT status, array::len(errors) AS failed FROM alert")
        return (
          alerts.some(({ status }) => status === "success") &&
          alerts.some(({ status }) => status === "failed") &&
          alerts.some(({ failed, status }) => status === "success" && Number(failed) > 0)
        )
      },
      60_000
    )

    await run("sh", ["-c", kill])
    await until("the other SSP has all views", async () => {
      const views = bodyOf(await request(dashboard, { path: "/views" }))["views"] as ReadonlyArray<{
        readonly owner: string | null
      }>
      return views.length === 9 && views.every(({ owner }) => owner === "ssp-2")
    })
    await until(
      "it is back",
      async () =>
        cluster.door.logs.includes("ssp-1 is ready again") &&
        (bodyOf(await request(dashboard, { path: "/metrics" }))["scheduler"] as Body)["ready_ssps"] === 2,
      60_000
    )
    expect(cluster.door.logs).toMatch(/^ssp-1 \(process \d+\) ended by SIGKILL: .* started again in 8 seconds$/m)

    cluster.ctrlC()
    expect(await cluster.door.exited).toEqual({ code: 0, signal: null })
    expect(cluster.processes()).toEqual([])
    expect(readdirSync(cluster.folder).filter((name) => name.startsWith("live-sidecar-start"))).toEqual([])
  })
  it.runIf(long)(
    "builds both doors without the type checker before the first start, again after a source has changed, and not when nothing has",
    async ({ onTestFinished }) => {
      const folder = temporaryFolder()
      onTestFinished(() => removeFolder(folder))
      for (const name of ["src", "scripts/bundle.mjs", "package.json", "package-lock.json"])
        cpSync(join(root, name), join(folder, name), { recursive: true })
      symlinkSync(join(root, "node_modules"), join(folder, "node_modules"))
      const build = async () =>
        (await run(process.execPath, ["scripts/bundle.mjs", "--if-changed"], { cwd: folder })).stdout
      const version = async () =>
        (await run(process.execPath, ["dist/ssp.js", "--version"], { cwd: folder })).stdout.trim()
      expect(scripts["prestart"]).toBe("node scripts/bundle.mjs --if-changed")
      expect(await build()).toMatch(/^building .*\nbuilt in [\d.]+ s/)
      const before = await version()
      expect(before).toMatch(/^\d+\.\d+\.\d+/)
      // Nothing that only the compiler writes is loaded, by whichever way through the doors.
      const bundled = join(folder, "dist/bundle")
      const imports = readdirSync(bundled)
        .filter((name) => name.endsWith(".js"))
        .flatMap((name) =>
          [...readFileSync(join(bundled, name), "utf8").matchAll(/\b(?:from|import) ?\(?"(\.[^"]+)"/g)].map(
            ([, at]) => at!
          )
        )
      expect(imports.length).toBeGreaterThan(10)
      expect(imports.filter((at) => !existsSync(join(bundled, at)))).toEqual([])
      expect(await build()).toBe("built before, and no source has changed since\n")
      const file = join(folder, "src/dashboard/theme.js")
      writeFileSync(file, `${readFileSync(file, "utf8")}// changed\n`)
      expect(await build()).toMatch(/^building/)
      expect(readFileSync(join(folder, "dist/dashboard/theme.js"), "utf8")).toMatch(/\/\/ changed\n$/)
      if (campaign) {
        rmSync(join(folder, "dist/scheduler.js"))
        expect(await build()).toMatch(/^building/)
      }
      expect(await version()).toBe(before)
    }
  )
  it.runIf(campaign)(
    "takes a secret of one's own, prints it nowhere, and prints lines that work in a terminal that does not know it",
    async ({ onTestFinished }) => {
      const chosen = "one's-own-$HOME"
      const cluster = await start(onTestFinished, "launcher", ["--rate", "50"], { SVC_AUTH_SECRET: chosen })
      const { commands } = await cluster.greeting()
      expect(cluster.door.logs).not.toContain(chosen)
      expect((await paste(commands.slice(0, -1)))[1]).toMatch(/^: open\n\nevent: snapshot\n[\s\S]*\nevent: delta\n/)
      expect(await cluster.door.stop()).toEqual({ code: 0, signal: null })
      expect(readdirSync(cluster.folder).filter((name) => name.startsWith("live-sidecar-start"))).toEqual([])
    }
  )
  it.runIf(long)(
    "--standalone with a secret of one's own prints lines that work in a terminal that does not know it, and takes the secret's file away with it",
    async ({ onTestFinished }) => {
      const chosen = "another-of-one's-own"
      const cluster = await start(onTestFinished, "launcher", ["--standalone"], {
        STORE_ADDR: "memory://",
        SVC_AUTH_SECRET: chosen
      })
      const lines = await until(
        "the lines to try",
        () => {
          const found = [...cluster.door.logs.matchAll(/^ {2}((?:curl|sleep) .*)$/gm)].map(([, line]) => line!)
          return found.length === 4 ? found : undefined
        },
        120_000
      )
      expect(cluster.door.logs).not.toContain(chosen)
      const [registered, followed, , result] = await paste(lines)
      expect(JSON.parse(registered!)).toMatchObject({ query_id: "incantation:fast" })
      expect(followed).toMatch(/^: open\n\nevent: snapshot\n[\s\S]*\nevent: delta\n[\s\S]*car:gto/)
      expect(result).toContain("Pontiac GTO")
      const [, file = ""] = /-H '@([^']+)'/.exec(lines[0]!) ?? []
      expect(statSync(file).mode & 0o777).toBe(0o600)
      expect(await cluster.door.stop()).toEqual({ code: 0, signal: null })
      expect(existsSync(file)).toBe(false)
    }
  )
  it.runIf(campaign)(
    "leaves nothing behind when the launcher, or npm above it, is killed with SIGKILL",
    async ({ onTestFinished }) => {
      for (const by of ["launcher", "npm"] as const) {
        const cluster = await start(onTestFinished, by, ["--rate", "1"])
        await cluster.greeting()
        expect(cluster.processes()).toHaveLength(3)
        await cluster.door.kill()
        await cluster.gone()
      }
    }
  )
  it.runIf(campaign)("says that the scheduler died and ends the rest with its code", async ({ onTestFinished }) => {
    const cluster = await start(onTestFinished, "launcher")
    await cluster.greeting()
    const scheduler = cluster
      .processes()
      .find((pid) => readFileSync(`/proc/${pid}/environ`, "utf8").includes("SCHEDULER_ID="))
    process.kill(scheduler!, "SIGKILL")
    expect(await cluster.door.exited).toEqual({ code: 137, signal: null })
    expect(cluster.door.logs).toContain(`scheduler (process ${scheduler}) ended by SIGKILL`)
    expect(cluster.processes()).toEqual([])
  })
  it.runIf(campaign)(
    "names the setting when the chosen port is taken, and what it takes when the command line is not understood",
    async ({ onTestFinished }) => {
      const taken = createServer().listen(0, "127.0.0.1")
      await once(taken, "listening")
      onTestFinished(() => void taken.close())
      const [busy, odd, rate] = await Promise.all([
        start(onTestFinished, "launcher", [], {
          SVC_SCHEDULER_INGEST_PORT: String((taken.address() as AddressInfo).port)
        }),
        start(onTestFinished, "launcher", ["--alone"]),
        start(onTestFinished, "launcher", ["--rate", "fast"])
      ])
      expect(await busy.door.exited).toEqual({ code: 1, signal: null })
      expect(busy.door.logs).toMatch(/is in use by another process; set SVC_SCHEDULER_INGEST_PORT/)
      expect([await odd.door.exited, await rate.door.exited]).toEqual([
        { code: 2, signal: null },
        { code: 2, signal: null }
      ])
      expect(odd.door.logs).toMatch(/--alone[\s\S]*npm start -- --standalone/)
      expect(rate.door.logs).toContain(`--rate is "fast"; must be a number from 0 to 10000`)
    }
  )
  it.runIf(campaign)(
    "--standalone serves one SSP that greets with its address and a secret, and ends with 0 on SIGTERM",
    async ({ onTestFinished }) => {
      const cluster = await start(onTestFinished, "launcher", ["--standalone"], { STORE_ADDR: "memory://" })
      const address = await until(
        "the greeting of the SSP",
        () => /address +(\S+)/.exec(cluster.door.logs)?.[1],
        120_000
      )
      const secret = /secret +(\S+)/.exec(cluster.door.logs)?.[1]
      expect(address).toBe(cluster.door.url)
      expect(
        (
          await request(address, {
            method: "POST",
            path: "/ingest",
            token: secret,
            body: { table: "a", op: "CREATE", id: "a:1", record: {} }
          })
        ).status
      ).toBe(200)
      expect(await cluster.door.stop()).toEqual({ code: 0, signal: null })
      await expect(request(address, { path: "/livez", keepAlive: false })).rejects.toThrow()
    }
  )
})
