/**
 * The shell blocks of the run book and of the security page, run as they are printed and in their order, in one shell
 * beside a cluster of real processes.
 *
 * Why: what an operator pastes at night must work. Only ports are others, and the programs are ours wherever the shell
 * stands.
 */
import { execFile, spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { describe, expect, it } from "vitest"
import { client } from "../../kit/checks/http.ts"
import { campaign } from "../../kit/data/random.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { Door, freePort, until } from "../../kit/processes/Door.ts"
import { workshop } from "../../kit/processes/workshop.ts"
import { root } from "../../kit/rules/source.ts"

const page = readFileSync(join(root, "docs/runbook.md"), "utf8")
const blocksOf = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block]) => block ?? "")
const blocks = blocksOf(page)
const security = readFileSync(join(root, "docs/security.md"), "utf8")
const tools = ["bash", "curl", "tar", "openssl", "du"].every(
  (tool) => spawnSync(tool, ["--version"]).error === undefined
)
const run = promisify(execFile)

describe.skipIf(!tools)("the run book", () => {
  it.runIf(campaign)("every shell block works as printed, one after the other", async ({ onTestFinished }) => {
    expect(blocks.length).toBeGreaterThan(7)
    const shop = workshop(onTestFinished)
    const folder = shop.folder(),
      port = await freePort(),
      spare = await freePort()
    const scheduler = await Door.spawn({
      command: [process.execPath, "dist/scheduler.js"],
      dataDir: folder,
      env: {
        SVC_AUTH_SECRET: "choose-one",
        SVC_SCHEDULER_REPLICA_DB_PATH: join(folder, "data/replica"),
        SVC_SCHEDULER_WAL_PATH: join(folder, "data/event_wal.log"),
        SVC_SCHEDULER_INGEST_HOST: "127.0.0.1",
        SVC_SCHEDULER_INGEST_PORT: String(port),
        LISTEN_ADDR: undefined,
        STORE_ADDR: undefined,
        SVC_DATA_DIR: undefined
      }
    })
    onTestFinished(() => scheduler.close())
    const at = client(`http://127.0.0.1:${port}`, undefined)
    await until("the scheduler serves", async () => (await at.get("/livez").catch(() => undefined))?.status === 200)
    mkdirSync(join(folder, "ssp"))
    const ssp = await shop.start({
      env: {
        SVC_AUTH_SECRET: "choose-one",
        SCHEDULER_URL: `http://127.0.0.1:${port}`,
        SSP_ID: "one",
        HEARTBEAT_INTERVAL_MS: "100"
      },
      dataDir: join(folder, "ssp")
    })
    await until("the SSP is ready", async () => (await at.get("/health")).status === 200)
    for (let n = 0; n < 20; n++) expect((await at.post("/ingest", create(`t:${n}`))).status).toBe(200)
    expect((await at.post("/view/register", registration("incantation:v", "SELECT VALUE id FROM t"))).status).toBe(200)

    const script = [
      "set -eo pipefail",
      ...blocks.flatMap((block, n) => [`echo; echo "=== block ${n} after $SECONDS s"`, block])
    ]
      .join("\n")
      .replaceAll("http://127.0.0.1:9667", `http://127.0.0.1:${port}`)
      .replaceAll("http://127.0.0.1:8667", ssp.url)
      .replaceAll("node dist/", `node ${root}/dist/`)
    // What the operator's surroundings hold, and whatever still runs at the end is ended.
    const env = {
      PATH: process.env["PATH"] ?? "",
      HOME: folder,
      MAIN_PID: String(scheduler.pid),
      SPARE_PORT: String(spare),
      SVC_SCHEDULER_INGEST_HOST: "127.0.0.1",
      SVC_SCHEDULER_INGEST_PORT: String(port)
    }
    const { stdout } = await run(
      "bash",
      ["-c", `trap 'kill $MAIN_PID $ROTATED_PID 2>/dev/null || true' EXIT\n${script}`],
      { cwd: folder, env, timeout: 110_000, maxBuffer: 1 << 24 }
    ).catch((error: { readonly stdout: string; readonly stderr: string; readonly code: unknown }) =>
      expect.fail(`${String(error.code)}\n${error.stdout}\n${error.stderr}`)
    )
    const told = stdout.split(/^=== block \d+ after \d+ s$/m)
    const of = (text: string): string => told[blocks.findIndex((block) => block.includes(text)) + 1] ?? ""
    expect(of("$SCHEDULER/info")).toMatch(
      /"entity":"scheduler"[\s\S]*svc_scheduler_ssp_lag_events[\s\S]*"status":"ready"/
    )
    expect(of("--verify-wal $WAL\n")).toContain("20 records, all as they were written")
    expect(of("tail -n 2")).toMatch(/^[0-9a-f]{8} 20 \{/m)
    expect(existsSync(join(folder, "backup.tgz"))).toBe(true)
    expect(of("--check-config")).toMatch(/the configuration is fine[\s\S]*the configuration is fine/)
    expect(of("ssp-previous")).toMatch(/dependency_map[\s\S]*dependency_map[\s\S]*UNAUTHORIZED/)
    expect(of("replica.headers")).toContain("whole")
    expect(page).not.toContain("@@")
  })
  it("the secure settings of the security page are taken by both programs, without a warning about a missing secret", async ({
    onTestFinished
  }) => {
    const folder = workshop(onTestFinished).folder()
    const { stderr, stdout } = await run(
      "bash",
      ["-c", `set -e\n${blocksOf(security).join("\n").replaceAll("node dist/", `node ${root}/dist/`)}`],
      { cwd: folder, env: { PATH: process.env["PATH"] ?? "", HOME: folder } }
    )
    expect(stdout.match(/the configuration is fine/g)).toHaveLength(2)
    expect(stderr).not.toContain("secret")
  })
})
