/**
 * The attacks of `attacks/queries.ts` on the processes that users start: as queries of `dist/scheduler.js`, as views of
 * `dist/ssp.js` with a record behind (D48).
 *
 * Why built processes with a small heap: what counts is that the process is there afterwards and answers others
 * meanwhile. Each attack goes out with questions for `/health` beside it, all of which must be answered; how fast is
 * the campaign's to say. A few rows here, all of them in the campaign.
 */
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { type Answer, type Client, client } from "../../kit/checks/http.ts"
import { campaign, long } from "../../kit/data/random.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { closing } from "../../kit/processes/closing.ts"
import { Door, removeFolder, secret, temporaryFolder, until } from "../../kit/processes/Door.ts"
import { keeping, largest, queries, shortLists, viewOf } from "./attacks/queries.ts"

const afterwards = closing()

/** The bytes of a query, 64 MiB more, and what a process takes that serves. */
const heapMib = 64 + 64 + 96

const chosen = campaign
  ? queries
  : queries.filter(([what]) =>
      /^(windows in|flattening|pairs of|distinct of ints|text of what|long texts|a view whose|a decimal)/.test(what)
    )

const spawned = async (
  heap: number,
  command: ReadonlyArray<string>,
  env: { readonly [name: string]: string | undefined },
  dataDir: string,
  alive: string
): Promise<Door> => {
  const door = await Door.spawn({
    command: [process.execPath, `--max-old-space-size=${heap}`, ...command],
    env,
    dataDir
  })
  afterwards(() => door.close())
  await until(
    `${command[0]} serves`,
    async () =>
      (
        await client(door.url, undefined)
          .get(alive)
          .catch(() => undefined)
      )?.status === 200,
    60_000
  )
  return door
}

const folder = (): string => {
  const path = temporaryFolder()
  afterwards(() => removeFolder(path))
  return path
}

const scheduler = (heap: number, env: { readonly [name: string]: string } = {}): Promise<Door> => {
  const path = folder()
  return spawned(
    heap,
    ["dist/scheduler.js"],
    {
      SVC_SCHEDULER_REPLICA_DB_PATH: join(path, "replica"),
      SVC_SCHEDULER_WAL_PATH: join(path, "wal.log"),
      SVC_SCHEDULER_INGEST_HOST: "127.0.0.1",
      SVC_SCHEDULER_INGEST_PORT: "{port}",
      LISTEN_ADDR: undefined,
      STORE_ADDR: undefined,
      SVC_DATA_DIR: undefined,
      ...env
    },
    path,
    "/livez"
  )
}

/** Asks, and for the health of the process all the while; what it said of that, and the answer. */
const besides = async <A>(door: Door, health: string, ask: () => Promise<A>): Promise<A> => {
  const to = client(door.url, undefined)
  const running = ask()
  let over = false
  const ended = running.then(
    () => {
      over = true
    },
    () => {
      over = true
    }
  )
  while (!over) {
    expect((await to.get(health)).status).toBe(200)
    await Promise.race([ended, new Promise((done) => setTimeout(done, 20))])
  }
  return running
}

/** What a hostile query may be answered with. */
const codes: ReadonlyArray<unknown> = [undefined, "INVALID_QUERY", "QUERY_FAILED", "BODY_TOO_LARGE", "QUERY_TOO_LARGE"]

const answered = (what: string, { json, status }: Answer): ReadonlyArray<string> => {
  const code = (json as { readonly code?: unknown } | null | undefined)?.code
  return status === 200 || codes.includes(code) ? [] : [`${what}: ${status} ${String(code)}`]
}

describe("built processes", () => {
  it.runIf(long)("D48 queries of the table leave the scheduler there, answering others meanwhile", async () => {
    const door = await scheduler(heapMib)
    const to = client(door.url, undefined)
    expect((await to.post("/ingest", create("t:1", { n: 1, tags: [1, 2, 3] }))).status).toBe(200)
    const wrong: Array<string> = []
    for (const [what, query] of chosen)
      wrong.push(...answered(what, await besides(door, "/livez", () => to.post("/proxy/query", { query }))))
    expect(wrong).toEqual([])
    expect(door.exit).toBeUndefined()
    expect((await to.post("/proxy/query", { query: "SELECT VALUE n FROM t" })).json).toEqual([1])
  })

  it.runIf(campaign)(
    "D48 twenty queries at once that each answer all they may leave the scheduler there, answering others meanwhile",
    async () => {
      const queryBytes = 16 * 1_048_576
      const door = await scheduler(128, { SVC_QUERY_BYTES: String(queryBytes) })
      const to = client(door.url, undefined)
      const answers = await besides(door, "/livez", () =>
        Promise.all(
          Array.from({ length: 20 }, async (_, n) => {
            const { json, status, text } = await to.post("/proxy/query", { query: largest[n % largest.length] })
            return [status, (json as { readonly code?: string } | undefined)?.code ?? text.length]
          })
        )
      )
      expect(door.exit, door.logs.slice(-2000)).toBeUndefined()
      // All are answered, or told to come back where those before them are still on their way.
      for (const [status, what] of answers) {
        if (status === 200) expect(what).toBeGreaterThan(0.4 * queryBytes)
        else expect([status, what]).toEqual([503, "OVERLOADED"])
      }
      expect(answers.filter(([status]) => status === 200).length).toBeGreaterThan(1)
    }
  )

  it("D48 views of the table leave the SSP there when records come in", async () => {
    const door = await spawned(heapMib, ["dist/ssp.js"], {}, folder(), "/health")
    const to: Client = client(door.url, secret)
    const wrong: Array<string> = []
    for (const [i, [what, query]] of chosen.entries()) {
      const id = `incantation:v${i}`
      wrong.push(
        ...answered(
          what,
          await besides(door, "/health", () =>
            to.post("/view/register", registration(id, viewOf(query), { format: "tree" }))
          )
        )
      )
      expect(
        (await besides(door, "/health", () => to.post("/ingest", create(`t:${i}`, { n: i, tags: [1, 2, 3] })))).status
      ).toBe(200)
      await to.post("/view/unregister", { id })
    }
    expect(wrong).toEqual([])
    // What rows of views keep is bounded over all of them.
    expect((await to.post("/view/register", registration("incantation:keeping", keeping))).status).toBe(200)
    for (let batch = 0; batch < 5; batch++) {
      const changes = Array.from({ length: 20 }, (_, n) => create(`t:${1000 + 20 * batch + n}`, { n }))
      expect((await to.post("/ingest", changes)).status).toBe(200)
    }
    expect((await to.get("/debug/view/incantation:keeping")).text).toContain("SVC_VIEW_BYTES_TOTAL")
    await to.post("/view/unregister", { id: "incantation:keeping" })
    // So is what one result takes: these lists are one, and as many as they are written out.
    const lists = await to.post("/view/register", registration("incantation:lists", shortLists, { format: "tree" }))
    expect([lists.status, lists.text]).toEqual([400, expect.stringContaining("raise SVC_VIEW_RESULT_BYTES")])
    expect(door.exit).toBeUndefined()
    expect(
      (await to.post("/view/register", registration("incantation:last", "SELECT VALUE n FROM t:0", { format: "tree" })))
        .status
    ).toBe(200)
  })
})
