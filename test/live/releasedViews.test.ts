/**
 * Large views that come and go on an SSP with little memory: nothing of them may stay (D16).
 *
 * Why from outside: a process that holds on to a hundred bytes of each row dies of it, in whatever object. 80 views in
 * the default run, which with so much of each row are more than the heap, and 200 in the campaign.
 */
import { afterAll, expect, it } from "vitest"
import { send } from "../../kit/checks/contract.ts"
import type { Body } from "../../kit/checks/http.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { Door } from "../../kit/processes/Door.ts"

const records = 10_000
const heapMebibytes = 120
const views = process.env["SVC_CAMPAIGN"] === "1" ? 200 : 80

let door: Door | undefined
afterAll(() => door?.close())

it(`D16 an SSP with a heap of ${heapMebibytes} MiB and ${records} records outlives ${views} views of all of them`, async () => {
  const ssp = (door = await Door.start({
    command: [process.execPath, `--max-old-space-size=${heapMebibytes}`, "dist/ssp.js"]
  }))
  const post = async (path: string, body: Body | ReadonlyArray<Body>): Promise<void> => {
    const answer = await send(ssp, { ask: `POST ${path}`, body })
    expect(answer.status, answer.text.slice(0, 300)).toBe(200)
  }
  for (let from = 0; from < records; from += 1_000) {
    await post(
      "/ingest",
      Array.from({ length: 1_000 }, (_, i) =>
        create(`item:${from + i}`, { n: from + i, text: "some text of a record" })
      )
    )
  }
  for (let view = 0; view < views; view++) {
    await post("/view/register", registration("all", `SELECT * FROM item WHERE n >= ${-view}`, { format: "flat" }))
    await post("/view/unregister", { id: "all" })
  }
  await post("/ingest", create("item:1", { n: -1 }))
  expect(ssp.exit).toBeUndefined()
}, 600_000)
