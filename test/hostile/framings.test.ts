/**
 * Requests whose end can be read in two ways (D6): each is refused, or is the one request that it is to everybody.
 *
 * Over a real server in this process; the table is `attacks/framings.ts`.
 */
import { describe, expect, it } from "vitest"
import { secret } from "../ssp/fakeViews.ts"
import { bytesOf, framings, hidden } from "./attacks/framings.ts"
import { clientOf, staged } from "./serving.ts"

const { clients, start } = staged()

const statusesOf = (text: string): ReadonlyArray<number> =>
  Array.from(text.matchAll(/HTTP\/1\.1 (\d{3}) /g), ([, status]) => Number(status))

describe("framings", () => {
  it("D6 the request that is hidden is one that a server answers", async () => {
    const { port } = await start({})
    const client = await clientOf(port, hidden + hidden)
    clients.push(client)
    await expect.poll(() => statusesOf(client.text), { timeout: 10_000 }).toEqual([200, 200])
  })
  for (const path of ["/ingest", "/view/register", "/nowhere"])
    it(`POST ${path} D6 each of the table is one request, refused unless it is whole, and what is hidden behind is none`, async () => {
      const { port } = await start({})
      const wrong: Array<string> = []
      for (const framing of framings) {
        const client = await clientOf(port, bytesOf(framing, path, secret))
        clients.push(client)
        if (framing.isBody === true)
          await expect.poll(() => statusesOf(client.text).length, { timeout: 10_000 }).toBeGreaterThan(0)
        else await expect.poll(() => client.closed, { timeout: 10_000 }).toBe(true)
        // The connection of a whole request stays open: what comes on it next is the second answer.
        if (framing.isBody === true) {
          client.send("GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
          await expect.poll(() => client.closed, { timeout: 10_000 }).toBe(true)
        }
        // A route that is none answers before the rest is known to be broken, which then is the last answer.
        const statuses = statusesOf(client.text)
        const fine =
          framing.isBody === true
            ? statuses.length === 2 && statuses[0]! >= 400 && statuses[0]! < 500 && statuses[1] === 200
            : statuses.every((status) => status >= 400 && status < 500) && statuses.length <= 2
        if (!fine || client.text.includes('"version"')) wrong.push(`${framing.what}: ${client.text.slice(0, 600)}`)
      }
      expect(wrong).toEqual([])
    })
})
