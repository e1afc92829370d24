/** Results that are read again and again (D11): the answer that is kept is never an old one. */
import { afterAll, beforeAll, expect, it } from "vitest"
import { send } from "../kit/contract.ts"
import { Door, secret } from "../kit/Door.ts"
import { request } from "../kit/http.ts"
import { change, registration } from "../kit/registration.ts"

let door: Door
beforeAll(async () => {
  door = await Door.start()
})
afterAll(() => door.close())

const post = async (path: string, body: unknown): Promise<void> => {
  expect((await send(door, { ask: `POST ${path}`, body })).status).toBe(200)
}
const register = (surql: string, format: string): Promise<void> =>
  post("/view/register", registration("incantation:v", surql, { format }))

/** By callback, which keeps answers, twice; and by the declared route, which does not. */
const same = async (): Promise<unknown> => {
  let rows: unknown
  for (const id of ["v", "incantation:v"])
    for (const format of ["", "format=flat", "format=tree"]) {
      const [first, again, declared] = [`?${format}`, `?${format}`, `?${format}&`].map((query) =>
        request(door.url, { path: `/view/${id}${query === "?" ? "" : query}`, token: secret })
      )
      const texts = [(await first)!.text, (await again)!.text, (await declared)!.text]
      expect(new Set(texts).size, texts.join("\n")).toBe(1)
      rows = (JSON.parse(texts[0]!) as { readonly result_data: unknown }).result_data
    }
  return rows
}

it("GET /view/:view_id 200 D11 the same by every way, after each change, a reset of the data and another query", async () => {
  await post("/ingest", [change("CREATE", "t:1", { n: 1 }), change("CREATE", "t:2", { n: 2 })])
  await register("SELECT * FROM t ORDER BY n", "tree")
  expect(await same()).toEqual([
    { id: "t:1", n: 1 },
    { id: "t:2", n: 2 }
  ])
  await post("/ingest", change("UPDATE", "t:1", { n: 3 }))
  expect(await same()).toEqual([
    { id: "t:2", n: 2 },
    { id: "t:1", n: 3 }
  ])
  await post("/ingest", change("UPDATE", "t:1", { n: 1 }))
  expect(await same()).toEqual([
    { id: "t:1", n: 1 },
    { id: "t:2", n: 2 }
  ])
  await register("SELECT n FROM t ORDER BY n", "tree")
  expect(await same()).toEqual([{ n: 1 }, { n: 2 }])
  await post("/reset", {})
  await post("/ingest", change("CREATE", "t:1", { n: 9 }))
  await register("SELECT n FROM t ORDER BY n", "tree")
  expect(await same()).toEqual([{ n: 9 }])
})
