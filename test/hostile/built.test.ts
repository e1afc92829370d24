/**
 * The attacks of `attacks.ts` on the processes that users start: as queries of `dist/scheduler.js`, as views of
 * `dist/ssp.js` with a record behind (D48).
 *
 * Why built processes with a small heap: what counts is that the process is there afterwards and answers others
 * meanwhile. Each attack goes out with questions for `/health` beside it, all of which must be answered; how fast is
 * the campaign's to say. A few rows here, all of them in the campaign.
 */
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { closing } from "../kit/closing.ts"
import { Door, removeFolder, secret, temporaryFolder, until } from "../kit/Door.ts"
import { type Answer, type Client, client } from "../kit/http.ts"
import { campaign } from "../kit/random.ts"
import { create, registration } from "../kit/registration.ts"
import { queries, viewOf } from "./attacks.ts"

const afterwards = closing()

/** The bytes of a query, 64 MiB more, and what a process takes that serves. */
const heapMib = 64 + 64 + 96

const chosen = campaign
  ? queries
  : queries.filter(([what]) =>
      /^(windows in|flattening|pairs of|distinct of ints|text of what|long texts|a view whose|a decimal)/.test(what)
    )

const spawned = async (
  command: ReadonlyArray<string>,
  env: { readonly [name: string]: string | undefined },
  dataDir: string,
  alive: string
): Promise<Door> => {
  const door = await Door.spawn({
    command: [process.execPath, `--max-old-space-size=${heapMib}`, ...command],
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

/** Asks, and for the health of the process all the while; what it said of that, and the answer. */
const besides = async (door: Door, health: string, ask: () => Promise<Answer>): Promise<Answer> => {
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
  it("D48 queries of the table leave the scheduler there, answering others meanwhile", async () => {
    const path = folder()
    const door = await spawned(
      ["dist/scheduler.js"],
      {
        SVC_SCHEDULER_REPLICA_DB_PATH: join(path, "replica"),
        SVC_SCHEDULER_WAL_PATH: join(path, "wal.log"),
        SVC_SCHEDULER_INGEST_HOST: "127.0.0.1",
        SVC_SCHEDULER_INGEST_PORT: "{port}",
        LISTEN_ADDR: undefined,
        STORE_ADDR: undefined,
        SVC_DATA_DIR: undefined
      },
      path,
      "/livez"
    )
    const to = client(door.url, undefined)
    expect((await to.post("/ingest", create("t:1", { n: 1, tags: [1, 2, 3] }))).status).toBe(200)
    const wrong: Array<string> = []
    for (const [what, query] of chosen)
      wrong.push(...answered(what, await besides(door, "/livez", () => to.post("/proxy/query", { query }))))
    expect(wrong).toEqual([])
    expect(door.exit).toBeUndefined()
    expect((await to.post("/proxy/query", { query: "SELECT VALUE n FROM t" })).json).toEqual([1])
  })

  it("D48 views of the table leave the SSP there when records come in", async () => {
    const door = await spawned(["dist/ssp.js"], {}, folder(), "/health")
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
    expect(door.exit).toBeUndefined()
    expect(
      (await to.post("/view/register", registration("incantation:last", "SELECT VALUE n FROM t:0", { format: "tree" })))
        .status
    ).toBe(200)
  })
})
