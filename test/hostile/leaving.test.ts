/**
 * Clients that leave in the middle: of a body, of a stream, before their answer, with more requests behind.
 *
 * Counted: the fibers that answer them, all of which must end, and the streams that views believe to be followed. Node
 * tells a response nothing of a connection that is gone when it stands behind another one, or when it has been written
 * and not been sent. The table is `attacks/leaving.ts`.
 */
import { Effect, Fiber } from "effect"
import { describe, expect, it } from "vitest"
import { fakeViews, secret, told } from "../ssp/fakeViews.ts"
import { leaving } from "./attacks/leaving.ts"
import { clientOf, staged } from "./serving.ts"

const { start } = staged()

const fibers = (): number => Effect.runSync(Fiber.roots).length

describe("clients that leave", () => {
  it.each(leaving)("D11 D17 in the middle of %s leave no fiber and no stream behind", async (_, bytes) => {
    let streams = 0
    const views = fakeViews({
      follow: (_, __, ___, taker) => {
        streams++
        let isOpen = true
        const close = (): void => {
          if (isOpen) streams--
          isOpen = false
        }
        return { ...told(taker, [{ event: "snapshot", id: "a.0", data: {} }]), close }
      }
    })
    const { port } = await start({}, views)
    const before = fibers()
    for (const ms of [0, 5, 50]) {
      const clients = await Promise.all(Array.from({ length: 10 }, () => clientOf(port, bytes(secret))))
      await new Promise((done) => setTimeout(done, ms))
      for (const client of clients) client.destroy()
    }
    await expect.poll(() => [Math.max(0, fibers() - before), streams], { timeout: 20_000 }).toEqual([0, 0])
  })
})
