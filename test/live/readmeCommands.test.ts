/**
 * README's shell lines, run as they are printed against a real process; only the port is another one.
 *
 * Why: they are the first thing a newcomer pastes. Where `curl` is not installed the test is skipped, visibly.
 */
import { execFile, spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { describe, expect, it } from "vitest"
import { root } from "../kit/source.ts"
import { workshop } from "../kit/workshop.ts"

const hasCurl = spawnSync("curl", ["--version"]).status === 0
const run = promisify(execFile)

describe.skipIf(!hasCurl)("README's commands", () => {
  it("every curl line works as printed: a view, 406 real cars, the result, a change, the stream", async ({ onTestFinished }) => {
    const lines = readFileSync(join(root, "README.md"), "utf8").split("\n").filter((line) => /^(?:curl|node -p) /.test(line))
    expect(lines).toHaveLength(5)
    const door = await workshop(onTestFinished).start({ env: { SVC_AUTH_SECRET: "choose-one", STORE_ADDR: undefined } })
    const printed: Array<string> = []
    for (const line of lines) {
      const { stdout } = await run("sh", ["-c", line.replaceAll("http://127.0.0.1:8667", door.url)], { cwd: root }).catch((error: { stdout: string; code: number }) => {
        if (error.code !== 28) throw error
        return error
      })
      printed.push(stdout)
    }
    expect(JSON.parse(printed[0] ?? "")).toMatchObject({ query_id: "incantation:strong", result_data: [] })
    expect(JSON.parse(printed[1] ?? "")).toMatchObject({ views_affected: expect.any(Number), edges_updated: expect.any(Number) })
    expect((JSON.parse(printed[2] ?? "") as { result_data: ReadonlyArray<unknown> }).result_data).toHaveLength(3)
    expect(JSON.parse(printed[3] ?? "")).toMatchObject({ views_affected: 1 })
    expect(printed[4]).toMatch(/^event: snapshot\n[\s\S]*a fast one/)
  })
})
