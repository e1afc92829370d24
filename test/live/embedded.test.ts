/**
 * The service on a SurrealDB inside its process: what was answered 200 survives `kill -9`, and the fault without the
 * folder.
 *
 * Through the process and not the layers, because only a killed process shows what the engine really wrote.
 */
import { join } from "node:path"
import { expect, test } from "vitest"
import { bodyOf, client } from "../../kit/checks/http.ts"
import { campaign } from "../../kit/data/random.ts"
import { secret } from "../../kit/processes/Door.ts"
import { workshop } from "../../kit/processes/workshop.ts"

test.runIf(campaign)(
  "D22 on surrealkv:// records, versions and views survive kill -9, and a second process is told that the folder is in use",
  async ({ onTestFinished }) => {
    const use = workshop(onTestFinished)
    const folder = use.folder()
    const env = { STORE_ADDR: `surrealkv://${join(folder, "kv")}` }
    const door = await use.start({ env })
    const change = (n: number, v: number) => ({ table: "item", op: "UPDATE", id: `item:${n}`, record: { v } })
    const { post } = client(door.url, secret)
    expect((await post("/ingest", [change(1, 1), change(2, 1), change(1, 5)])).status).toBe(200)
    expect(
      (
        await post("/view/register", {
          id: "incantation:big",
          surql: "SELECT * FROM item WHERE v > 2",
          clientId: "c",
          ttl: "1h"
        })
      ).status
    ).toBe(200)
    expect((await post("/ingest", change(2, 9))).status).toBe(200)
    const second = await use.run({ env })
    expect([second.exit?.code, second.logs.includes("another process has it")]).toEqual([1, true])
    await door.kill()
    const again = await use.start({ env })
    const view = bodyOf(await client(again.url, secret).get("/view/incantation:big"))
    expect(view["result_data"]).toEqual([
      ["item:1", 2],
      ["item:2", 2]
    ])
  }
)
