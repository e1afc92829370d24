/**
 * Which SQLite driver is taken, what it says when none loads, and that the runtime's own does what better-sqlite3 does.
 *
 * The stores' conformance suites decide that: they run once more inside the other runtimes, where better-sqlite3 as it
 * was installed here does not load.
 */
import { spawn } from "node:child_process"
import { mkdtempSync, readdirSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { afterAll, describe, expect, it } from "vitest"
import { campaign } from "../../../kit/data/random.ts"
import { Door, removeFolder } from "../../../kit/processes/Door.ts"
import { others, type Runtime } from "../../../kit/processes/runtimes.ts"
import { root } from "../../../kit/rules/source.ts"
import { classify } from "../../../src/drivers/shared/sqliteFailure.ts"
import { driver } from "../../../src/host/sqlite/Sqlite.ts"
import { withCode } from "../../../src/host/sqlite/sqliteBuiltin.ts"

const folder = mkdtempSync(join(tmpdir(), "svc-sqlite-"))
afterAll(() => removeFolder(folder))

const run = (command: ReadonlyArray<string>): Promise<{ readonly code: number | null; readonly out: string }> =>
  new Promise((done, failed) => {
    const child = spawn(command[0]!, command.slice(1), {
      cwd: root,
      env: { PATH: process.env["PATH"], HOME: folder, NO_COLOR: "1" },
      stdio: ["ignore", "pipe", "pipe"]
    })
    let out = ""
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => {
        out += chunk.toString("utf8")
      })
    child.on("error", failed)
    child.on("close", (code) => done({ code, out }))
  })

const suites = ["test/ports/Database.test.ts", "test/ports/Replica.test.ts", "test/ports/PoolStore.test.ts"]

/** One other runtime says that the driver is right; a campaign asks all. */
const asked = (runtime: Runtime): boolean => runtime.installed && campaign

describe("the SQLite of the runtime itself", () => {
  for (const runtime of others) {
    it.skipIf(!asked(runtime))(
      `D22 D26 D31 stores, replica and pool keep what they promise inside ${runtime.name}`,
      async () => {
        const { code, out } = await run([
          ...runtime.command,
          "node_modules/vitest/vitest.mjs",
          "run",
          ...suites,
          "--reporter=dot",
          "--poolOptions.forks.singleFork"
        ])
        expect(code, out.slice(-4000)).toBe(0)
        expect(Number(/Tests +(\d+) passed/.exec(out)?.[1]), out.slice(-1000)).toBeGreaterThan(50)
      }
    )
  }
  it("errors carry SQLite's own names, by number and by words", () => {
    const numbered = (errcode: number) => withCode(Object.assign(new Error("x"), { code: "ERR_SQLITE_ERROR", errcode }))
    expect([5, 11, 13, 26, 267, 999].map((errcode) => classify(numbered(errcode)))).toEqual([
      { reason: "locked", message: "x (SQLITE_BUSY)" },
      { reason: "damaged", message: "x (SQLITE_CORRUPT)" },
      { reason: "full", message: "x (SQLITE_FULL)" },
      { reason: "damaged", message: "x (SQLITE_NOTADB)" },
      { reason: "damaged", message: "x (SQLITE_CORRUPT)" },
      { reason: "failed", message: "x (SQLITE_231)" }
    ])
    expect(
      [
        "database disk image is malformed",
        "file is not a database",
        "database is locked",
        "database or disk is full",
        "no such table: t"
      ].map((text) => classify(withCode(new Error(text))).reason)
    ).toEqual(["damaged", "damaged", "locked", "full", "failed"])
  })
})

describe("the choice of a driver", () => {
  it("is better-sqlite3 in the Node it was installed with", async () => {
    expect(await Effect.runPromise(driver)).toBe("better-sqlite3")
  })
  it("D22 without any the start is refused, with what each of them said", async () => {
    const broken = join(folder, "broken.cjs")
    writeFileSync(
      broken,
      `process.dlopen = () => { throw Object.assign(new Error("made for another\\nNode"), { code: "ERR_DLOPEN_FAILED" }) }; process.getBuiltinModule = () => undefined`
    )
    const door = await Door.spawn({
      command: [process.execPath, "-r", broken, "dist/ssp.js"],
      env: { STORE_ADDR: undefined }
    })
    expect(await door.exited).toEqual({ code: 1, signal: null })
    expect(door.logs).toMatch(
      /no SQLite driver loads here \(better-sqlite3: made for another; node:sqlite: .*22\.16.*\).*npm rebuild better-sqlite3/
    )
    expect(readdirSync(door.dataDir)).not.toContain("store.db")
    await door.close()
  })
})
