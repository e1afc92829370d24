/** The file that the watchdog of an ended process left, as the next process reads it. */
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { workshop } from "../../../kit/processes/workshop.ts"
import * as Watchdog from "../../../src/host/process/watchdog.ts"
import * as Port from "../../../src/ports/Watchdog.ts"

const bootFile = "/proc/sys/kernel/random/boot_id"
const left = { format: 1, query: "q", id: "v", since: 5, pid: 1 }

const unfinishedIn = (folder: string) =>
  Effect.runPromise(
    Effect.provide(
      Effect.map(Port.Watchdog, ({ unfinished }) => unfinished),
      Watchdog.layer({ folder, slowMs: 0, maxTurnMs: 0, maxViews: 1, logFormat: undefined })
    )
  )

describe("D48 an evaluation that was under way when a process ended", () => {
  it.runIf(existsSync(bootFile))(
    "is known to the next process, unless the machine ended too",
    async ({ onTestFinished }) => {
      const folder = workshop(onTestFinished).folder()
      const found: Array<unknown> = []
      for (const boot of [undefined, readFileSync(bootFile, "utf8").trim(), "another"]) {
        writeFileSync(join(folder, "evaluating.json"), JSON.stringify({ ...left, boot }))
        found.push(await unfinishedIn(folder))
      }
      const known = { id: "v", query: "q", since: 5 }
      expect(found).toEqual([known, known, undefined])
    }
  )
})
