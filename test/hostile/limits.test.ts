/**
 * Each limit is met, and the refusal says which setting it is.
 *
 * The table is `limits.ts`, and it is whole: every numeric setting of either server stands in it. One process of each
 * server has all of them set small at once.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Body, request } from "../../kit/checks/http.ts"
import { Door, schedulerEnv, secret, temporaryFolder, until } from "../../kit/processes/Door.ts"
import { root } from "../../kit/rules/source.ts"
import { knobs as schedulerKnobs } from "../../src/scheduler/Config.ts"
import { knobs as sspKnobs } from "../../src/ssp/Config.ts"
import { cleared, type On, pace, type Served, shown, tried } from "./limits.ts"

const numeric = (knobs: typeof sspKnobs | typeof schedulerKnobs): ReadonlyArray<string> =>
  Object.values(knobs).flatMap(({ env, fallback }) => (typeof fallback === "number" ? [env] : []))

const declared: { readonly [on in On]: ReadonlyArray<string> } = {
  ssp: numeric(sspKnobs),
  scheduler: numeric(schedulerKnobs)
}

const rowsOf = (on: On): ReadonlyArray<string> =>
  [...tried, ...shown].filter((row) => row.on.includes(on)).map(({ setting }) => setting)

describe("the table of limits", () => {
  it.each(["ssp", "scheduler"] as const)("D17 has every numeric setting of the %s once, and no other", (on) => {
    const rows = rowsOf(on)
    expect([...rows].sort()).toEqual(declared[on].filter((setting) => !pace.has(setting)).sort())
  })
  it("D17 names settings that there are as those that bound nothing", () => {
    expect(
      [...pace].filter((setting) => !declared.ssp.includes(setting) && !declared.scheduler.includes(setting))
    ).toEqual([])
  })
  it.each(shown)("D17 $setting is shown by a test that there is: $does", ({ file, test }) => {
    expect(readFileSync(join(root, file), "utf8")).toContain(test)
  })
})

const small = (on: On): { readonly [setting: string]: string } =>
  Object.fromEntries(tried.filter((row) => row.on.includes(on)).map((row) => [row.setting, String(row.small)]))

const doorOf = async (on: On): Promise<Door> => {
  if (on === "ssp") return Door.start({ env: small("ssp") })
  const folder = temporaryFolder()
  const door = await Door.spawn({
    command: [process.execPath, "dist/scheduler.js"],
    dataDir: folder,
    env: {
      ...schedulerEnv(folder),
      ...small("scheduler")
    }
  })
  await until(
    "the scheduler serves",
    async () => (await request(door.url, { path: "/livez", keepAlive: false }).catch(() => undefined))?.status === 200
  )
  return door
}

describe.each(["ssp", "scheduler"] as const)("the %s with small limits", (on) => {
  let door: Door
  let at: Served
  beforeAll(async () => {
    door = await doorOf(on)
    at = { on, url: door.url, port: door.port, token: on === "ssp" ? secret : undefined }
  })
  afterAll(() => door.close())
  for (const { code, exceed, setting, small: value, status } of tried.filter((row) => row.on.includes(on)))
    it(`${status} D17 beyond ${setting} (${value}): ${code ?? "left out"}, by name`, async () => {
      await cleared(at)
      const answer = await exceed(at)
      expect([answer.status, (answer.json as Body | undefined)?.["code"]], answer.text).toEqual([status, code])
      expect(answer.text).toMatch(new RegExp(`${setting}(?![A-Z_])`))
      expect((await request(door.url, { path: on === "ssp" ? "/health" : "/livez" })).status).toBe(200)
    })
})
