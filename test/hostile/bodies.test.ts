/**
 * Bodies that begin and do not end, many at once: what the server holds of them is bounded, and who meets the bound is
 * told.
 *
 * The table is `attacks/bodies.ts`.
 */
import { describe, expect, it } from "vitest"
import { request } from "../../kit/checks/http.ts"
import { create } from "../../kit/data/registration.ts"
import { secret } from "../ssp/fakeViews.ts"
import { announced, half, head, most, unfinished, whole } from "./attacks/bodies.ts"
import { type Client, clientOf, staged } from "./serving.ts"

const { clients, start } = staged()

const open = async (port: number, count: number, bytes: string, from?: string): Promise<ReadonlyArray<Client>> => {
  const opened = await Promise.all(Array.from({ length: count }, () => clientOf(port, bytes, from)))
  clients.push(...opened)
  return opened
}

const bound = 1_048_576
const limits = { maxBodyBytes: 65_536, maxBodyBytesTotal: bound }
/** Unfinished bodies of `most` bytes that fit; each comes in a few pieces, which count a little too. */
const fit = Math.floor(bound / (most + 128))

const refusedOf = (all: ReadonlyArray<Client>): ReadonlyArray<Client> => all.filter(({ status }) => status === 503)

describe("unfinished bodies", () => {
  for (const [what, bytes] of unfinished) {
    it(`503 D17 ${what}: beyond the bound each is refused with figure, limit and setting, and cut; room comes back`, async () => {
      const { port, url } = await start(limits)
      const all = await open(port, 40, bytes(secret))
      await expect.poll(() => refusedOf(all).length, { timeout: 10_000 }).toBeGreaterThanOrEqual(40 - fit)
      const refused = refusedOf(all)
      expect(refused.length).toBeLessThan(40)
      for (const { text } of refused) {
        expect(text).toMatch(/retry-after: 1/i)
        expect(text).toMatch(
          new RegExp(
            `"OVERLOADED","message":"unfinished request bodies hold \\d+ bytes, the limit is ${bound} \\(setting SVC_MAX_BODY_BYTES_TOTAL\\)`
          )
        )
      }
      await expect.poll(() => refused.every(({ closed }) => closed), { timeout: 10_000 }).toBe(true)
      for (const client of all) client.destroy()
      await expect
        .poll(
          async () =>
            (
              await request(url, {
                method: "POST",
                path: "/ingest",
                token: secret,
                body: create(`a:1`, { text: half.slice(0, 50_000) })
              })
            ).status,
          { timeout: 10_000 }
        )
        .toBe(200)
    })
  }
  it("D17 a body that was only announced holds nothing, and a client without a secret holds nothing", async () => {
    const { port, url } = await start(limits)
    await open(port, 60, head("/ingest", announced, secret))
    await open(port, 60, `POST /ingest HTTP/1.1\r\nhost: localhost\r\n${announced}\r\n\r\n${half}`)
    await open(port, 60, `POST /view/register HTTP/1.1\r\nhost: localhost\r\n${announced}\r\n\r\n${half}`)
    for (let n = 0; n < 60; n++)
      expect(
        (
          await request(url, {
            method: "POST",
            path: "/ingest",
            token: secret,
            body: create(`a:${n}`, { text: half.slice(0, 50_000) })
          })
        ).status
      ).toBe(200)
  })
  it("D17 a bound below one body still takes one", async () => {
    const { url } = await start({ maxBodyBytes: 65_536, maxBodyBytesTotal: 1024 })
    expect(
      (
        await request(url, {
          method: "POST",
          path: "/ingest",
          token: secret,
          body: create("a:1", { text: half.slice(0, 60_000) })
        })
      ).status
    ).toBe(200)
  })
})

describe("whole bodies", () => {
  it("D17 each of the table is answered as it says, in JSON, and others are served", async () => {
    const { url } = await start(limits)
    const wrong: Array<string> = []
    for (const [what, body, status] of whole) {
      const answer = await request(url, { method: "POST", path: "/ingest", token: secret, body })
      if (answer.status !== status || answer.json === undefined) wrong.push(`${what}: ${answer.status} ${answer.text}`)
    }
    expect(wrong).toEqual([])
    expect((await request(url, { path: "/health" })).status).toBe(200)
  })
})

describe("where no secret is asked for", () => {
  it("503 D17 one address holds a quarter; others are served", async () => {
    const { port, url } = await start({ ...limits, isOpen: true })
    const all = await open(port, 40, head("/ingest", announced, secret) + half, "127.0.0.9")
    await expect.poll(() => refusedOf(all).length, { timeout: 10_000 }).toBeGreaterThanOrEqual(40 - fit / 4)
    expect(refusedOf(all)[0]?.text).toMatch(/the limit for one address is 262144 .*SVC_MAX_BODY_BYTES_TOTAL/)
    expect(
      (
        await request(url, {
          method: "POST",
          path: "/ingest",
          token: secret,
          body: create("a:1", { text: half.slice(0, 50_000) })
        })
      ).status
    ).toBe(200)
  })
})
