/**
 * Integers of 64 bits on every way through the service: in by a body, kept over a restart, out by each route (D66).
 *
 * One script for an SSP alone and for a cluster, because a number that one writer on the way rounds is another number
 * for all that read behind it. The numbers are neighbours that a float cannot tell apart.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { EventStream } from "../../kit/checks/EventStream.ts"
import { type Answer, type Body, bodyOf, request } from "../../kit/checks/http.ts"
import { long } from "../../kit/data/random.ts"
import { change, create, registration } from "../../kit/data/registration.ts"
import { TestBackend } from "../../kit/processes/backend.ts"
import { Door, freePort, removeFolder, schedulerEnv, secret, temporaryFolder, until } from "../../kit/processes/Door.ts"

const most = 9223372036854775807n
const least = -9223372036854775808n
const one = 987654321987654321n
const two = 987654321987654322n
const edge = 9007199254740993n

/** As text, since a float with the digits of an integer is none. */
const records = `[${[
  `1","record":{"n":${one},"deep":{"list":[${most},{"n":${least}}]},"g":${one}}}`,
  `2","record":{"n":${two},"g":${one}}}`,
  `3","record":{"n":${edge},"g":${two}}}`,
  `4","record":{"n":9007199254740994.0,"g":-0,"big":1e300}}`
]
  .map((rest) => `{"table":"t","op":"CREATE","id":"t:${rest}`)
  .join(",")}]`

const views: { readonly [id: string]: readonly [surql: string, params?: Body] } = {
  all: ["SELECT id, n, deep, type::of(n) AS k FROM t"],
  equal: ["SELECT VALUE id FROM t WHERE n = $n", { n: two }],
  group: ["SELECT g, count() AS c FROM t GROUP BY g"],
  page: ["SELECT id, n FROM t ORDER BY n DESC, id LIMIT 3"],
  wide: ["SELECT id, n, string::repeat('x', 300) AS pad FROM t"],
  text: ["SELECT VALUE <string> n FROM t"]
}

const deep = { list: [most, { n: least }] }
const shown = (first: bigint): { readonly [id: string]: unknown } => ({
  all: [
    { id: "t:1", n: first, deep, k: "int" },
    { id: "t:2", n: two, k: "int" },
    { id: "t:3", n: edge, k: "int" },
    { id: "t:4", n: 9007199254740994, k: "float" }
  ],
  equal: first === two ? ["t:1", "t:2"] : ["t:2"],
  group: [
    { g: 0, c: 1 },
    { g: one, c: 2 },
    { g: two, c: 1 }
  ],
  page: [
    ...(first === most
      ? [
          { id: "t:1", n: most },
          { id: "t:2", n: two }
        ]
      : [
          { id: "t:2", n: two },
          { id: "t:1", n: first }
        ]),
    { id: "t:4", n: 9007199254740994 }
  ],
  text: [String(first), String(two), String(edge), "9007199254740994f"]
})

/** Processes that outlive a restart. */
interface Deployment {
  readonly start: () => Promise<void>
  readonly stop: () => Promise<void>
  readonly url: () => string
}

const folders: Array<string> = []
afterAll(() => folders.forEach(removeFolder))

const prepared = (backend: TestBackend): { folder: string; env: { readonly [name: string]: string | undefined } } => {
  const folder = temporaryFolder()
  folders.push(folder)
  const path = join(folder, "svc.yml")
  writeFileSync(path, `job_tables:\n  mail: { name: mail, base_url: "${backend.url}", auth_token: "\${TOKEN}" }\n`)
  return { folder, env: { STORE_ADDR: undefined, SVC_CONFIG_PATH: path, TOKEN: backend.token } }
}

const alone = (backend: TestBackend): Deployment => {
  const { env, folder } = prepared(backend)
  let door: Door | undefined
  return {
    start: async () => {
      door = await Door.start({ dataDir: folder, env })
    },
    stop: async () => void (await door?.kill()),
    url: () => door!.url
  }
}

const cluster = (backend: TestBackend): Deployment => {
  const { env, folder } = prepared(backend)
  const doors: Array<Door> = []
  const bearer = { SVC_SCHEDULER_SSP_POLL_INTERVAL_MS: "50", SVC_SCHEDULER_HEARTBEAT_INTERVAL_MS: "100" }
  return {
    start: async () => {
      const port = await freePort()
      const scheduler = await Door.spawn({
        command: [process.execPath, "dist/scheduler.js"],
        dataDir: folder,
        env: { ...schedulerEnv(join(folder, "scheduler"), port), ...bearer }
      })
      const url = `http://127.0.0.1:${port}`
      const ssp = await Door.start({ dataDir: join(folder, "ssp"), env: { ...env, SCHEDULER_URL: url } })
      doors.splice(0, 2, scheduler, ssp)
      urls.set(doors, url)
      await until("the SSP is ready", async () => (await request(ssp.url, { path: "/health" })).status === 200, 30_000)
    },
    stop: async () => {
      for (const door of doors) await door.kill()
    },
    url: () => urls.get(doors)!
  }
}
const urls = new Map<ReadonlyArray<Door>, string>()

// The scheduler's own ways are in `test/contract`, its replica and its queries in `test/scheduler`.
for (const [name, deploy] of [
  ["an SSP alone", alone],
  ["a cluster", cluster]
] as const)
  describe.skipIf(deploy === cluster && !long)(`64-bit integers, ${name}`, () => {
    it("D66 are kept by bodies, views, params, streams, deltas, jobs, listings and queries, also over kill -9", async () => {
      const backend = await TestBackend.start()
      backend.reply = (_, response) => void response.end(`{"answer":${most}}`)
      const deployment = deploy(backend)
      const ask = async (path: string, body?: unknown): Promise<Answer> => {
        const answer = await request(deployment.url(), {
          path,
          token: secret,
          keepAlive: false,
          ...(body === undefined ? {} : { method: "POST", body })
        })
        expect(answer.status, `${path} ${answer.text.slice(0, 300)}`).toBe(200)
        return answer
      }
      const isShown = async (first: bigint): Promise<void> => {
        for (const [id, rows] of Object.entries(shown(first)))
          await until(`${id} shows ${first}`, async () => {
            const answer = await request(deployment.url(), { path: `/view/${id}?format=tree`, token: secret })
            return answer.status === 200 && (id !== "all" || answer.text.includes(`"n":${first}}`)) ? answer : undefined
          }).then((answer) => expect(bodyOf(answer as Answer)["result_data"], id).toEqual(rows))
      }
      try {
        await deployment.start()
        await ask("/ingest", records)
        for (const [id, [surql, params = null]] of Object.entries(views))
          await ask("/view/register", registration(id, surql, { params, format: "tree" }))
        await isShown(one)
        const followed = (id: string) => EventStream.open(deployment.url(), `/view/${id}/stream?format=rows`, secret)
        const streams = await Promise.all([followed("all"), followed("wide")])
        await Promise.all(streams.map((stream) => stream.atLeast(1)))
        await ask("/ingest", change("UPDATE", "t:1", { n: most, deep, g: one }))
        const [whole, patched] = (await Promise.all(streams.map((stream) => stream.atLeast(2)))).map(
          ([, event]) => event!
        )
        expect(streams.map(({ events }) => (events[0]!.data["rows"] as ReadonlyArray<Body>)[0]?.["n"])).toEqual([
          one,
          one
        ])
        expect(whole!.data["update"]).toEqual([[0, { id: "t:1", n: most, deep, k: "int" }]])
        expect(patched!.data["patch"]).toEqual([[0, [[["n"], most]]]])
        for (const stream of streams) stream.close()
        await isShown(most)
        await ask("/ingest", create("mail:1", { path: "/send", payload: { n: one }, status: "pending" }))
        const call = await until("the job is called", () => backend.received[0], 30_000)
        expect(call.body).toEqual({ n: one })
        const done = await until("the job is done", async () => {
          const { jobs } = bodyOf(await ask("/jobs?table=mail")) as { jobs: ReadonlyArray<Body> }
          return jobs[0]?.["status"] === "success" && jobs[0]["result"] !== null ? jobs[0] : undefined
        })
        expect([done["payload"], done["result"]]).toEqual([{ n: one }, { answer: most }])

        await deployment.stop()
        await deployment.start()
        await isShown(most)
        const listed = bodyOf(await ask("/views?search=equal"))["views"] as ReadonlyArray<Body>
        expect(listed[0]?.["params"]).toEqual({ n: two })
        if (deploy === cluster) {
          const query = "SELECT n, deep FROM t"
          expect((await ask("/proxy/query", { query })).text).toBe(
            `[{"deep":{"list":[${most},{"n":${least}}]},"n":${most}},{"n":${two}},{"n":${edge}},{"n":9007199254740994.0}]`
          )
          const bound = { query: "SELECT VALUE id FROM t WHERE n = $n", params: { n: edge } }
          expect((await ask("/proxy/query", bound)).json).toEqual(["t:3"])
        }
      } finally {
        await deployment.stop()
        await backend.close()
      }
    }, 120_000)
  })
