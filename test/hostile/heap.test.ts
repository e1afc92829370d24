/**
 * The attacks of `attacks/queries.ts` and `attacks/doubling.ts` in a process that may hold the bytes of one query's
 * budget, 64 MiB more, and itself (D48).
 *
 * Why a process: an engine that runs out of memory ends its process, and takes everybody's views with it. One process
 * takes them all, one after the other: what one leaves behind would end the next.
 */
import { fork } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { root } from "../../kit/rules/source.ts"
import { limits } from "../../src/core/surql/evaluate/scope.ts"
import { doubling } from "./attacks/doubling.ts"
import { declared, queries } from "./attacks/queries.ts"

const mebibyte = 1024 * 1024

/** What the modules and 200 records take, 9 MiB, rounded up. */
const base = 16 * mebibyte

describe("a heap of the budget and 64 MiB", () => {
  it("D48 outlives every query of the table, one after the other", async () => {
    const most = (limits.queryBytes.value + 64 * mebibyte + base) / mebibyte
    const child = fork(join(root, "test/hostile/evaluated.mjs"), {
      cwd: root,
      execArgv: [`--max-old-space-size=${most}`],
      stdio: ["ignore", "ignore", "pipe", "ipc"]
    })
    let said = ""
    child.stderr?.on("data", (chunk: Buffer) => (said = (said + chunk.toString("utf8")).slice(-2000)))
    const ended = once(child, "exit").then(
      ([code, signal]) => `the process ended with ${String(code ?? signal)}: ${said}`
    )
    const next = (): Promise<string> => Promise.race([once(child, "message").then(([text]) => String(text)), ended])
    expect(await next()).toBe("ready")
    const wrong: Array<string> = []
    for (const [what, query] of [...queries, ...doubling]) {
      child.send(query)
      const outcome = await next()
      if (!(outcome === "answered" || outcome === "refused" || declared.test(outcome)))
        wrong.push(`${what}: ${outcome}`)
      if (child.exitCode !== null || child.signalCode !== null) break
    }
    expect(wrong).toEqual([])
    child.disconnect()
    await ended
  })
})
