/** What a ticket for a browser's own `EventSource` opens (D49), at either server: view `a` is registered, `b` too. */
import { expect } from "vitest"
import { sleep } from "../processes/Door.ts"
import { expectError } from "./contract.ts"
import { type Answer, bodyOf, request } from "./http.ts"

export const ticketsOpenOneStream = async (
  url: string,
  post: (path: string, body: unknown) => Promise<Answer>
): Promise<void> => {
  const tokenFor = async (views: ReadonlyArray<string>, more: object = {}): Promise<string> =>
    String(bodyOf(await post("/view/token", { views, ...more }))["token"])
  const ticketFor = (views: ReadonlyArray<string>, more: object = {}) => tokenFor(views, { once: true, ...more })
  const get = (view: string, ticket: string) => fetch(`${url}/view/${view}/stream?format=rows&ticket=${ticket}`)
  const ticket = await ticketFor(["a"], { subject: "eve" })
  expect((await get("b", ticket)).status).toBe(401)
  const [first, second] = [await get("a", ticket), await get("a", ticket)]
  expect([first.status, second.status, await second.text()]).toEqual([
    200,
    401,
    expect.stringContaining("the ticket was used")
  ])
  await post("/view/token/revoke", { subject: "eve" })
  expect(await first.text()).toMatch(/event: snapshot[\s\S]*event: end\ndata: \{"reason":"revoked"\}\n\n$/)
  // As a bearer it opens nothing, and a token is no ticket.
  expectError(await request(url, { path: "/view/a", token: await ticketFor(["a"]) }), 401, "UNAUTHORIZED")
  expect((await get("a", await tokenFor(["a"]))).status).toBe(401)
  const late = await ticketFor(["a"], { ttl_ms: 1 })
  await sleep(20)
  expect((await get("a", late)).status).toBe(401)
  expect(bodyOf(await post("/view/token", { views: ["a"], once: true }))["expires_in_ms"]).toBe(30_000)
}
