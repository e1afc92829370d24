/**
 * How long others wait while an SSP registers, reads and streams a large view, of each kind: `/version`, asked from
 * this process every few milliseconds, beside an SSP that does nothing (D48: 100 ms at p99).
 *
 * What asks for the views runs in a process of its own, since an answer of megabytes would hold up the asking here.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { client } from "../../kit/checks/http.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { Door, secret, sleep } from "../../kit/processes/Door.ts"
import { type Line, print } from "./load.ts"

const kinds: { readonly [kind: string]: string } = {
  ordered: "SELECT * FROM big WHERE n > -1 ORDER BY name, n",
  window: "SELECT * FROM big WHERE n > -1 ORDER BY name, n LIMIT 10",
  "large window": "SELECT * FROM big WHERE n > -1 ORDER BY name, n LIMIT 50000",
  paged: "SELECT * FROM big ORDER BY name LIMIT 50 START 1000",
  groups: "SELECT n % 10000 AS g, count() AS c FROM big GROUP BY g",
  "one group": "SELECT array::group(n) AS all FROM big GROUP ALL",
  "lists of groups": "SELECT k, array::group(tags) AS all FROM big GROUP BY k",
  split: "SELECT n, tags FROM big SPLIT tags",
  link: "SELECT n, o.n AS m FROM big ORDER BY m, n",
  graph: "SELECT n, ->e->o.n AS m FROM big WHERE n < 5000",
  subquery: "SELECT n, (SELECT VALUE n FROM o WHERE id = $parent.o) AS m FROM big",
  index: "SELECT * FROM big WHERE k = 3",
  "whole run": "SELECT VALUE n FROM (SELECT n, name FROM big ORDER BY name) WHERE n < 1000"
}

/** Whatever is asked for, read in another process: to its end, or for so long where it has none. */
const elsewhere = async (
  url: string,
  { body, forMs = 120_000 }: { body?: object; forMs?: number } = {}
): Promise<void> => {
  const init = {
    headers: { authorization: `Bearer ${secret}` },
    ...(body && { method: "POST", body: JSON.stringify(body) })
  }
  const script = `setTimeout(() => process.exit(0), ${forMs})
    fetch(${JSON.stringify(url)}, ${JSON.stringify(init)}).then(async (answer) => {
      if (answer.status !== 200) throw new Error(await answer.text())
      for await (const _ of answer.body);
      process.exit(0)
    })`
  const [code] = (await once(spawn(process.execPath, ["-e", script], { stdio: "inherit" }), "exit")) as [number | null]
  if (code !== 0) throw new Error(`${url} was not answered`)
}

export const turns = async (): Promise<ReadonlyArray<Line>> => {
  const records = process.argv.includes("--quick") ? 20_000 : 150_000
  const door = await Door.start({
    env: { STORE_ADDR: "memory://", SVC_LOG_LEVEL: "error", SVC_MAX_BODY_BYTES: "16777216" }
  })
  const { get, post } = client(door.url, secret)
  /** Milliseconds that `/version` took, in order, while it goes on. */
  const waits = async (work: Promise<unknown>): Promise<ReadonlyArray<number>> => {
    let isOver = false
    const over = work.finally(() => void (isOver = true))
    const figures: Array<number> = []
    while (!isOver) {
      const start = performance.now()
      await get("/version")
      figures.push(performance.now() - start)
      await sleep(3)
    }
    await over
    return figures.sort((a, b) => a - b)
  }
  const p99 = (figures: ReadonlyArray<number>): number => figures[Math.floor(figures.length * 0.99)] ?? 0
  try {
    for (let n = 0; n < 50; n++) await post("/ingest", create(`o:${n}`, { n }))
    const record = (n: number) =>
      create(`big:${n}`, {
        n: (n * 7919) % records,
        name: `name ${n % 5000}`,
        k: n % 20,
        tags: [1, n % 100],
        o: `o:${n % 50}`
      })
    for (let at = 0; at < records; at += 2_000)
      await post(
        "/ingest",
        Array.from({ length: 2_000 }, (_, i) => record(at + i))
      )
    // The first graph view finds them where no edge is indexed yet.
    for (let at = 0; at < (records * 2) / 3; at += 2_000)
      await post(
        "/ingest",
        Array.from({ length: 2_000 }, (_, n) => create(`e:${at + n}`, { in: `big:${at + n}`, out: `o:${n % 50}` }))
      )
    const idle = await waits(sleep(3_000))
    console.log(`  ${"idle".padEnd(18)} p99 ${p99(idle).toFixed(0)} ms, longest ${idle.at(-1)!.toFixed(0)} ms`)
    const lines: Array<Line> = []
    for (const [kind, query] of Object.entries(kinds)) {
      const steps = {
        registering: () =>
          elsewhere(`${door.url}/view/register`, { body: registration(kind, query, { format: "tree" }) }),
        reading: () => elsewhere(`${door.url}/view/${encodeURIComponent(kind)}?format=tree`),
        // Some seconds of a stream of rows: its list is made, and its snapshot goes out.
        rows: () => elsewhere(`${door.url}/view/${encodeURIComponent(kind)}/stream?format=rows`, { forMs: 4_000 })
      }
      for (const [step, work] of Object.entries(steps)) {
        const figures = await waits(work())
        const ratio = (p99(figures) / p99(idle)).toFixed(1)
        console.log(
          `  ${`${kind}, ${step}`.padEnd(28)} p99 ${p99(figures).toFixed(0)} ms, longest ${figures.at(-1)!.toFixed(0)} ms, p99 to idle ${ratio}`
        )
        lines.push({ what: `p99 of others, ${kind}, ${step}`, against: "100 ms", ratio: p99(figures) / 100, goal: 1 })
      }
      await post("/view/unregister", { id: kind })
    }
    for (const line of lines) print(line)
    return lines
  } finally {
    await door.close()
  }
}
