/**
 * The soak in two minutes of each form, and stopped half-way: what is registered is right at the end, and nothing is
 * left behind.
 *
 * In the campaign, because it takes its time; growth is judged in longer runs only, a million changes need more than
 * two minutes.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { seed } from "../../kit/data/random.ts"
import { Door, until } from "../../kit/processes/Door.ts"
import { workshop } from "../../kit/processes/workshop.ts"

/** Processes whose home is below a folder: those that the soak started. */
const livingIn = (folder: string): ReadonlyArray<string> => {
  const environment = (pid: string): string => {
    try {
      return readFileSync(`/proc/${pid}/environ`, "utf8")
    } catch {
      return ""
    }
  }
  return readdirSync("/proc").filter(
    (name) => /^\d+$/.test(name) && environment(name).includes(`HOME=${folder}/live-sidecar-`)
  )
}

const soak = (folder: string, ...args: ReadonlyArray<string>): Promise<Door> =>
  Door.spawn(
    {
      command: ["node_modules/.bin/vite-node", "scripts/soak/main.ts", "--"],
      dataDir: folder,
      env: { TMPDIR: folder }
    },
    ...args
  )

describe.skipIf(!existsSync("/proc/self/environ"))("npm run soak", () => {
  for (const form of ["ssp", "cluster"]) {
    it(`two minutes of ${form}: every view equals a fresh run, restarts included, and nothing is left behind`, async ({
      onTestFinished
    }) => {
      const folder = workshop(onTestFinished).folder()
      const door = await soak(folder, "--node", form, "--minutes", "2", "--rate", "500", "--seed", String(seed))
      onTestFinished(() => door.close())
      const exit = await door.exited
      expect([exit.code, door.logs], door.logs).toEqual([0, expect.stringContaining("the soak held")])
      expect(
        door.logs.match(
          /^minute 2 ssp.*: changes [\d,]+, CPU us\/change [\d.]+, reference us \d+, heap MiB [\d.]+, code MiB [\d.]+, views \d+/m
        ),
        door.logs
      ).not.toBeNull()
      expect(door.logs).toContain("at the end every view equals a fresh run")
      expect([livingIn(folder), readdirSync(folder).filter((name) => name.startsWith("live-sidecar-"))]).toEqual([
        [],
        []
      ])
    }, 600_000)
  }
  it("killed with SIGINT or SIGKILL it leaves no process behind", async ({ onTestFinished }) => {
    for (const signal of ["SIGINT", "SIGKILL"] as const) {
      const folder = workshop(onTestFinished).folder()
      const door = await soak(folder, "--node", "cluster", "--minutes", "5")
      onTestFinished(() => door.close())
      await until("it has begun", () => /^minute 0 ssp-2/m.test(door.logs), 120_000)
      expect(livingIn(folder).length).toBe(3)
      door.signal(signal)
      const exit = await door.exited
      expect([exit.code, exit.signal]).toEqual(signal === "SIGINT" ? [130, null] : [null, "SIGKILL"])
      await until("its processes are gone", () => livingIn(folder).length === 0, 60_000)
    }
  }, 600_000)
  it("a command line that is not understood is 2 and says why", async ({ onTestFinished }) => {
    const door = await soak(workshop(onTestFinished).folder(), "--node", "three")
    expect([(await door.exited).code, door.logs]).toEqual([
      2,
      expect.stringContaining('--node is "three"; must be one of ssp, memory, cluster')
    ])
  })
})
