/**
 * The first page of a long list, in a built SSP: the index of a million rows is built while the SSP goes on answering,
 * and pages behind the first cost nothing more (law L7).
 *
 * In the campaign, because a million records take their time. Nothing here is judged by a clock; what it took is
 * printed.
 */
import { readFileSync } from "node:fs"
import { expect, it } from "vitest"
import { send } from "../../kit/checks/contract.ts"
import { rng, seed } from "../../kit/data/random.ts"
import { change, create, registration } from "../../kit/data/registration.ts"
import { workshop } from "../../kit/processes/workshop.ts"

const count = 1_000_000
const query = "SELECT score, at FROM story WHERE published = true ORDER BY score DESC, at DESC LIMIT 50"

interface Story {
  readonly id: number
  readonly published: boolean
  readonly score: number
  readonly at: number
}

const bestFirst = (a: Story, b: Story): number => b.score - a.score || b.at - a.at || a.id - b.id

/** User and system time of a process, in milliseconds; `NaN` where the system does not tell. */
const cpuMs = (pid: number): number => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
    return (Number(fields[11]) + Number(fields[12])) * 10
  } catch {
    return Number.NaN
  }
}

it("L7 the first page of 1,000,000 rows is built in slices, /health answered meanwhile, and all pages are right", async ({
  onTestFinished
}) => {
  const ssp = await workshop(onTestFinished).start({
    command: [process.execPath, "--max-old-space-size=4096", "dist/ssp.js"]
  })
  const dice = rng(seed)
  const stories: Array<Story> = []
  for (let from = 0; from < count; from += 1_000) {
    for (let id = from; id < from + 1_000; id++)
      stories.push({ id, published: dice.chance(0.8), score: dice.below(1_000), at: dice.below(100_000) })
    const batch = stories.slice(from).map(({ id, ...record }) => create(`story:${id}`, record))
    expect((await send(ssp, { ask: "POST /ingest", body: batch as never })).status).toBe(200)
  }
  const register = async (id: string, start: number) => {
    const began = [performance.now(), cpuMs(ssp.pid)] as const
    const body = registration(id, `${query} START ${start}`, { format: "tree" })
    const answer = await send(ssp, { ask: "POST /view/register", body })
    expect(answer.status, answer.text.slice(0, 500)).toBe(200)
    return { ms: performance.now() - began[0], cpu: cpuMs(ssp.pid) - began[1] }
  }
  const shown = async (id: string): Promise<ReadonlyArray<string>> => {
    const answer = await send(ssp, { ask: `GET /view/${id}` })
    return (answer.json as { readonly result_data: ReadonlyArray<Story> }).result_data.map(
      ({ at, score }) => `${score} ${at}`
    )
  }

  let isFilling = true
  const filling = register("first", 0).finally(() => (isFilling = false))
  const health: Array<number> = []
  const touched = stories.filter(({ published }) => published).slice(0, 200)
  while (isFilling) {
    const asked = performance.now()
    expect((await send(ssp, { ask: "GET /health" })).status).toBe(200)
    health.push(performance.now() - asked)
    // Some rows move to the front while the index is built, and some go.
    const story = touched.pop()
    if (story === undefined || !isFilling) continue
    const record = { published: true, score: 2_000 + touched.length, at: 1 }
    const goes = touched.length % 4 === 0
    const body = goes ? change("DELETE", `story:${story.id}`) : change("UPDATE", `story:${story.id}`, record)
    expect((await send(ssp, { ask: "POST /ingest", body })).status).toBe(200)
    stories[story.id] = goes ? { ...story, published: false } : { ...story, ...record }
  }
  const first = await filling
  expect(health.length, "answers while the page was filled").toBeGreaterThan(4)
  const sorted = stories.filter(({ published }) => published).sort(bestFirst)
  const page = (start: number) => sorted.slice(start, start + 50).map(({ at, score }) => `${score} ${at}`)
  expect(await shown("first")).toEqual(page(0))
  const further = await register("further", 700_000)
  expect(await shown("further")).toEqual(page(700_000))
  expect((await send(ssp, { ask: "POST /view/unregister", body: { id: "first" } })).status).toBe(200)
  const again = await register("again", 0)
  expect(await shown("again")).toEqual(page(0))
  const median = health.sort((a, b) => a - b)[health.length >> 1]!
  console.log(
    `first page: ${first.cpu} ms CPU, ${first.ms.toFixed(0)} ms; /health meanwhile ${health.length} times, median ` +
      `${median.toFixed(1)} ms, longest ${health.at(-1)!.toFixed(0)} ms; further page ${further.ms.toFixed(1)} ms; ` +
      `registered again ${again.ms.toFixed(1)} ms`
  )
})
