/**
 * Clients that open connections and keep them: others are served, probes are answered, and who meets a limit is told.
 *
 * What they send is the table `attacks/connections.ts`.
 */
import { describe, expect, it } from "vitest"
import { held } from "./attacks/connections.ts"
import { type Client, clientOf, hold as opened, staged } from "./serving.ts"

const { clients, start } = staged()

/** One after the other, so that which of them met the limit is known. */
const hold = async (...args: Parameters<typeof opened>): Promise<ReadonlyArray<Client>> => {
  const all = await opened(...args)
  clients.push(...all)
  return all
}

const ask = async (port: number, path: string, from: string, more = ""): Promise<Client> => {
  const client = await clientOf(port, `GET ${path} HTTP/1.1\r\nhost: localhost\r\n${more}\r\n`, from)
  clients.push(client)
  await expect.poll(() => client.text.includes("\r\n\r\n") || client.closed, { timeout: 10_000 }).toBe(true)
  return client
}

const attacker = "127.0.0.9"
const other = "127.0.0.8"

describe("one address", () => {
  it.each(held)(
    "503 D17 that has its share, each with %s, is told limit and setting and closed; others are served on connections that stay",
    async (_, bytes) => {
      const { port } = await start({ maxConnections: 100, maxConnectionsPerAddress: 10 })
      await hold(port, 10, attacker, bytes)
      const refused = await ask(port, "/info", attacker)
      expect(refused.status).toBe(503)
      expect(refused.text).toMatch(
        /"OVERLOADED","message":"10 connections are open from the address of this client, the limit for one address is 10 \(setting SVC_MAX_CONNECTIONS_PER_ADDRESS\)/
      )
      expect(refused.text).toMatch(/retry-after: 1/i)
      await expect.poll(() => refused.closed, { timeout: 10_000 }).toBe(true)
      const fine = await ask(port, "/info", other)
      expect([fine.status, fine.closed]).toEqual([200, false])
    }
  )
  it("D17 has half of all where nothing is set, and its share is free again when it closes", async () => {
    const { port } = await start({ maxConnections: 20 })
    const own = await hold(port, 10, attacker)
    expect((await ask(port, "/info", attacker)).status).toBe(503)
    expect((await ask(port, "/info", other)).status).toBe(200)
    for (const client of own) client.destroy()
    await expect.poll(async () => (await ask(port, "/info", attacker)).status, { timeout: 10_000 }).toBe(200)
  })
  it("D17 may have all of them where an operator says so", async () => {
    const { port } = await start({ maxConnections: 20, maxConnectionsPerAddress: 20 })
    await hold(port, 19, attacker)
    expect((await ask(port, "/info", attacker)).status).toBe(200)
  })
})

describe("when all connections are taken", () => {
  const full = async (): Promise<number> => {
    const { port } = await start({ maxConnections: 20 })
    await hold(port, 10, attacker)
    await hold(port, 10, "127.0.0.10")
    return port
  }
  it("503 D17 a client is told limit and setting", async () => {
    const refused = await ask(await full(), "/info", other)
    expect(refused.status).toBe(503)
    expect(refused.text).toContain("20 connections are open, the limit is 20 (setting SVC_MAX_CONNECTIONS)")
  })
  it("200 D17 probes are answered and closed, however many connections beyond the limit only wait", async () => {
    const port = await full()
    const waiting = await hold(port, 100, attacker)
    for (const path of ["/health", "/version"]) {
      for (const from of [other, attacker]) {
        const probe = await ask(port, path, from, "connection: keep-alive\r\n")
        expect([path, from, probe.status]).toEqual([path, from, 200])
        await expect.poll(() => probe.closed, { timeout: 10_000 }).toBe(true)
      }
    }
    await expect.poll(() => waiting.filter(({ closed }) => !closed).length, { timeout: 10_000 }).toBeLessThanOrEqual(32)
    // And those go too, without being asked.
    await expect.poll(() => waiting.every(({ closed }) => closed), { timeout: 15_000, interval: 100 }).toBe(true)
  })
})
