/**
 * `npm start` as a newcomer runs it: a whole cluster comes up, changes, does jobs, and leaves nothing behind however it ends.
 *
 * As processes, because orphans, signals and exit codes exist nowhere else. Where there is no /proc, what is left cannot be seen.
 */
import { execFile } from "node:child_process"
import { once } from "node:events"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { createServer } from "node:net"
import type { AddressInfo } from "node:net"
import { promisify } from "node:util"
import { describe, expect, it } from "vitest"
import { until } from "../kit/Door.ts"
import { bodyOf, request } from "../kit/http.ts"
import { LocalCluster } from "../kit/localCluster.ts"
import { campaign } from "../kit/random.ts"

const run = promisify(execFile)

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
  it("brings up a scheduler and two SSPs, views change, jobs end well, badly and after retries, its commands work, Ctrl-C ends all with 0", async ({ onTestFinished }) => {
    const cluster = await start(onTestFinished, "npm", ["--rate", "300"])
    const { commands, dashboard, secret } = await cluster.greeting()
    expect((await request(dashboard, { path: "/readyz" })).status).toBe(200)
    expect(cluster.processes()).toHaveLength(3)
    expect(bodyOf(await request(dashboard, { path: "/metrics" }))).toMatchObject({ scheduler: { ready_ssps: 2, total_queries: 8 } })

    expect(commands).toHaveLength(3)
    const [asked, changed, followed] = await Promise.all(commands.map((line) => run("sh", ["-c", line.replace("curl -sN", "curl -sN --max-time 3")]).catch((error: { readonly code: number; readonly stdout: string }) => {
      if (error.code !== 28) throw error
      return error
    })))
    expect(JSON.parse(asked!.stdout)).toHaveLength(3)
    expect(JSON.parse(changed!.stdout)).toMatchObject({ seq: expect.any(Number) })
    expect(followed!.stdout).toMatch(/^event: snapshot\n/)

    const [, home = ""] = /(http:\S+)\/view\//.exec(commands[2]!) ?? []
    const view = async () => bodyOf(await request(home, { path: "/view/demo:best-films", token: secret }))
    await until("my own film is among the best", async () => JSON.stringify((await view())["result_data"]).includes("My own"))
    const before = (await view())["result_hash"]
    await until("the view changes by itself", async () => (await view())["result_hash"] !== before)
    await until("jobs that ended well, failed, and were tried again", async () => {
      const alerts = await query(dashboard, "SELECT status, array::len(errors) AS failed FROM alert")
      return alerts.some(({ status }) => status === "success") && alerts.some(({ status }) => status === "failed") && alerts.some(({ failed, status }) => status === "success" && Number(failed) > 0)
    }, 60_000)

    cluster.ctrlC()
    expect(await cluster.door.exited).toEqual({ code: 0, signal: null })
    expect(cluster.processes()).toEqual([])
    expect(readdirSync(cluster.folder).filter((name) => name.startsWith("live-sidecar-start"))).toEqual([])
  })
  it.runIf(campaign)("leaves nothing behind when the launcher, or npm above it, is killed with SIGKILL", async ({ onTestFinished }) => {
    for (const by of ["launcher", "npm"] as const) {
      const cluster = await start(onTestFinished, by, ["--rate", "1"])
      await cluster.greeting()
      expect(cluster.processes()).toHaveLength(3)
      await cluster.door.kill()
      await cluster.gone()
    }
  })
  it.runIf(campaign)("says which process died and ends the rest with its code", async ({ onTestFinished }) => {
    const cluster = await start(onTestFinished, "launcher")
    await cluster.greeting()
    const ssp = cluster.processes().find((pid) => readFileSync(`/proc/${pid}/environ`, "utf8").includes("SSP_ID=ssp-2"))
    process.kill(ssp!, "SIGKILL")
    expect(await cluster.door.exited).toEqual({ code: 137, signal: null })
    expect(cluster.door.logs).toContain(`ssp-2 (process ${ssp}) ended by SIGKILL`)
    expect(cluster.processes()).toEqual([])
  })
  it.runIf(campaign)("names the setting when the chosen port is taken, and what it takes when the command line is not understood", async ({ onTestFinished }) => {
    const taken = createServer().listen(0, "127.0.0.1")
    await once(taken, "listening")
    onTestFinished(() => void taken.close())
    const [busy, odd, rate] = await Promise.all([
      start(onTestFinished, "launcher", [], { SVC_SCHEDULER_INGEST_PORT: String((taken.address() as AddressInfo).port) }), start(onTestFinished, "launcher", ["--alone"]), start(onTestFinished, "launcher", ["--rate", "fast"])
    ])
    expect(await busy.door.exited).toEqual({ code: 1, signal: null })
    expect(busy.door.logs).toMatch(/is in use by another process; set SVC_SCHEDULER_INGEST_PORT/)
    expect([await odd.door.exited, await rate.door.exited]).toEqual([{ code: 2, signal: null }, { code: 2, signal: null }])
    expect(odd.door.logs).toMatch(/--alone[\s\S]*npm start -- --standalone/)
    expect(rate.door.logs).toContain(`--rate is "fast"; must be a number from 0 to 10000`)
  })
  it.runIf(campaign)("--standalone serves one SSP that greets with its address and a secret, and ends with 0 on SIGTERM", async ({ onTestFinished }) => {
    const cluster = await start(onTestFinished, "launcher", ["--standalone"], { STORE_ADDR: "memory://" })
    const address = await until("the greeting of the SSP", () => /address +(\S+)/.exec(cluster.door.logs)?.[1], 120_000)
    const secret = /secret +(\S+)/.exec(cluster.door.logs)?.[1]
    expect(address).toBe(cluster.door.url)
    expect((await request(address, { method: "POST", path: "/ingest", token: secret, body: { table: "a", op: "CREATE", id: "a:1", record: {} } })).status).toBe(200)
    expect(await cluster.door.stop()).toEqual({ code: 0, signal: null })
    await expect(request(address, { path: "/livez", keepAlive: false })).rejects.toThrow()
  })
})
