/** Free ports: those that are asked for at once are different ones, and none that is taken is among them. */
import { createServer } from "node:net"
import { expect, it, onTestFinished } from "vitest"
import { freePort } from "../../kit/processes/Door.ts"
import { freePorts } from "../../scripts/start/ports.ts"

it("ports that are asked for at once are different ones, and free", async () => {
  const taken = await freePort()
  const server = createServer().listen(taken, "127.0.0.1")
  onTestFinished(() => void server.close())
  await new Promise((done) => server.once("listening", done))
  const next = freePorts(taken - 1, 40, 39)
  const given = await Promise.all(Array.from({ length: 8 }, next))
  expect(new Set(given).size).toBe(8)
  expect(given).not.toContain(taken)
})

it("says which ports it looked at where none is free", async () => {
  const taken = await freePort()
  const server = createServer().listen(taken, "127.0.0.1")
  onTestFinished(() => void server.close())
  await new Promise((done) => server.once("listening", done))
  await expect(freePorts(taken, 1, 0)()).rejects.toThrow(`no port is free from ${taken} to ${taken}`)
})
