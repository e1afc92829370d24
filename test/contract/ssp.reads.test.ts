/**
 * What is asked again and again: results (D11), of which no old one is answered, and registrations that change nothing
 * (D63).
 */
import { afterAll, beforeAll, expect, it } from "vitest"
import { send } from "../../kit/checks/contract.ts"
import { request } from "../../kit/checks/http.ts"
import { change, registration } from "../../kit/data/registration.ts"
import { Door, secret, until } from "../../kit/processes/Door.ts"

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

/** Twice, since answers are kept, and by a target that is written otherwise. */
const same = async (): Promise<unknown> => {
  let rows: unknown
  for (const id of ["v", "incantation:v"])
    for (const format of ["", "format=flat", "format=tree"]) {
      const [first, again, otherwise] = [`?${format}`, `?${format}`, `?${format}&`].map((query) =>
        request(door.url, { path: `/view/${id}${query === "?" ? "" : query}`, token: secret })
      )
      const texts = [(await first)!.text, (await again)!.text, (await otherwise)!.text]
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

const auditLines = (): number => door.logs.split("view.register").length - 1

/** By two targets of one route. */
const registeredTwice = async (body: unknown): Promise<unknown> => {
  const [one, other] = await Promise.all(
    ["/view/register", "/view/register?"].map((path) =>
      request(door.url, { method: "POST", path, token: secret, body })
    )
  )
  expect([one!.status, one!.text, one!.headers["content-type"]]).toEqual([
    other!.status,
    other!.text,
    other!.headers["content-type"]
  ])
  return one!.json
}

it("POST /view/register 200 D63 what changes nothing is answered as ever, and is no line of the audit", async () => {
  const body = registration("incantation:same", "SELECT * FROM s ORDER BY n", {
    format: "tree",
    params: { a: [1] },
    // However slow the machine, it is said again at once.
    lastActiveAt: "2100-01-01T00:00:00Z"
  })
  const first = auditLines()
  await post("/view/register", body)
  // The log is read through a pipe, behind the answer.
  await until("the line of the first", () => auditLines() > first)
  const before = auditLines()
  expect(await registeredTwice(body)).toMatchObject({ query_id: "incantation:same", result_data: [] })
  await post("/ingest", change("CREATE", "s:1", { n: 1 }))
  const spaced = JSON.stringify(body, undefined, 1)
  expect(await registeredTwice(spaced)).toMatchObject({ result_data: [{ id: "s:1", n: 1 }] })
  expect(auditLines()).toBe(before)
})

it("POST /view/register 200 D63 of those that come together one is carried out", async () => {
  const soon = { format: "tree", lastActiveAt: "2100-01-01T00:00:00Z" }
  const body = registration("incantation:together", "SELECT * FROM s ORDER BY n", soon)
  const before = auditLines()
  const paths = Array.from({ length: 16 }, (_, n) => (n % 4 === 0 ? "/view/register?" : "/view/register"))
  const answers = await Promise.all(
    paths.map((path) => request(door.url, { method: "POST", path, token: secret, body }))
  )
  expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
  expect(answers[0]!.status).toBe(200)
  // The log is written in order: what is there when the next line is there is all.
  await post("/view/register", { ...body, clientId: "another" })
  await until("the audit has the next", () => auditLines() >= before + 2)
  expect(auditLines()).toBe(before + 2)
})

it("POST /view/register 200 400 D9 D63 whatever differs is taken, or refused", async () => {
  const body = registration("incantation:differs", "SELECT * FROM s", { format: "flat" })
  await post("/view/register", body)
  const listed = async (): Promise<unknown> => {
    const answer = await request(door.url, { path: "/views?search=differs", token: secret })
    return (answer.json as { readonly views: ReadonlyArray<unknown> }).views[0]
  }
  for (const more of [
    { clientId: "another" },
    { ttl: "2h" },
    { format: "tree" },
    { params: { a: 1 } },
    { surql: "SELECT n FROM s" },
    { lastActiveAt: "2030-01-01T00:00:00Z" },
    { id: "differs" }
  ]) {
    const before = auditLines()
    await post("/view/register", { ...body, ...more })
    await until(`the line of ${JSON.stringify(more)}`, () => auditLines() > before)
  }
  expect(await listed()).toMatchObject({ last_active_at: expect.stringMatching(/^20/) })
  for (const bad of [
    { ...body, ttl: "soon" },
    { ...body, params: [1] },
    { ...body, format: "table" },
    { ...body, clientId: 1 },
    { ...body, lastActiveAt: "yesterday" },
    { ...body, id: "" },
    { ...body, surql: "SELECT" },
    [],
    "{",
    "",
    null,
    `${"[".repeat(2_000)}${"]".repeat(2_000)}`
  ]) {
    const json = await registeredTwice(bad)
    expect(json).toMatchObject({ code: expect.stringMatching(/^INVALID_/) })
  }
})

it("POST /view/register D63 a body that says something new is read whole, however long it is", async () => {
  const big = registration("incantation:big", "SELECT * FROM s", { params: { text: "é".repeat(20_000) } })
  await post("/view/register", big)
  expect(await registeredTwice(big)).toMatchObject({ query_id: "incantation:big" })
  const longer = { ...big, params: { text: "é".repeat(60_000) } }
  expect(await registeredTwice(longer)).toMatchObject({ query_id: "incantation:big" })
  const notText = await registeredTwice(Buffer.from([0x7b, 0xff, 0x7d]))
  expect(notText).toMatchObject({ code: "INVALID_REQUEST" })
})

it("POST /view/register 401 D15 D63 a stranger's repetition is turned away as any other", async () => {
  const body = registration("incantation:same", "SELECT * FROM s ORDER BY n", { format: "tree", params: { a: [1] } })
  const answer = await request(door.url, { method: "POST", path: "/view/register", token: "a-guess", body })
  expect([answer.status, answer.json]).toEqual([401, expect.objectContaining({ code: "UNAUTHORIZED" })])
})
