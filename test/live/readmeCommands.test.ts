/**
 * README's shell lines, run as they are printed against a real process; only the port is another one.
 *
 * Why: they are the first thing a newcomer pastes. Where `curl` is not installed the test is skipped, visibly.
 */
import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { paste } from "../../kit/processes/paste.ts"
import { workshop } from "../../kit/processes/workshop.ts"
import { root } from "../../kit/rules/source.ts"

const hasCurl = spawnSync("curl", ["--version"]).status === 0

describe.skipIf(!hasCurl)("README's commands", () => {
  it("every curl line works as printed: a view, 406 real cars, the result, the stream, and a change that the stream shows as a delta", async ({
    onTestFinished
  }) => {
    const lines = readFileSync(join(root, "README.md"), "utf8")
      .split("\n")
      .filter((line) => /^(?:curl|node -p|sleep) /.test(line))
    expect(lines).toHaveLength(5)
    const door = await workshop(onTestFinished).start({ env: { SVC_AUTH_SECRET: "choose-one", STORE_ADDR: undefined } })
    const printed = await paste(
      lines.map((line) => line.replaceAll("http://127.0.0.1:8667", door.url)),
      root
    )
    expect(JSON.parse(printed[0] ?? "")).toMatchObject({ query_id: "incantation:strong", result_data: [] })
    expect(JSON.parse(printed[1] ?? "")).toMatchObject({
      views_affected: expect.any(Number),
      edges_updated: expect.any(Number)
    })
    expect((JSON.parse(printed[2] ?? "") as { result_data: ReadonlyArray<unknown> }).result_data).toHaveLength(3)
    expect(printed[3]).toMatch(/^: open\n\nevent: snapshot\n[\s\S]*\nevent: delta\n[^\n]*\n[^\n]*cars:gt/)
    expect(JSON.parse(printed[4] ?? "")).toMatchObject({ views_affected: 1 })
  })
})
