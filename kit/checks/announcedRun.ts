/**
 * Everything that once announced a record before its commit, at the given size, with three clients beside it: long
 * transactions, bulk writes, what is taken back, writers that meet, and deletions.
 */
import type { Surreal } from "surrealdb"
import { registration } from "../data/registration.ts"
import { until } from "../processes/Door.ts"
import type { NodeBeside } from "../processes/nodeBeside.ts"
import { persistently, rootClient } from "../processes/surreal/sdk.ts"
import { Announcements } from "./announced.ts"

const view = "items"
const longMs = 500
const writers = 8

/** Fails where it is carried out all the same. */
const takenBack = async (db: Surreal, query: string): Promise<void> => {
  const done = await db.query(query).then(
    () => true,
    () => false
  )
  if (done && !query.includes("CANCEL")) throw new Error(`was carried out: ${query}`)
}

export interface Announced {
  readonly faults: ReadonlyArray<string>
  readonly counts: ReturnType<Announcements["counts"]>
}

/** `rows` are written at once, into a table `item` that is there and raises events; `rounds` times. */
export const announced = async (
  node: NodeBeside,
  server: Parameters<typeof rootClient>[0],
  rows: number,
  rounds: number
): Promise<Announced> => {
  const { status } = await node.ask("POST", "/view/register", registration(view, "SELECT * FROM item"))
  if (status !== 200) throw new Error(`registration answered ${status}`)
  const stream = await node.follow(view)
  await stream.atLeast(1)
  const [db, reading] = [await rootClient(server), await rootClient(server)]
  const announcements = new Announcements("item", reading, node)
  await announcements.follow(view, stream)
  const now = async (): Promise<ReadonlyMap<number, number>> => {
    const [list] = await db.query<[ReadonlyArray<readonly [number, number]>]>(
      "SELECT VALUE [record::id(id), n] FROM item"
    )
    return new Map(list)
  }
  /** Each client knows what there is, so what comes next is one version of each record. */
  const settled = async (): Promise<void> => {
    const expected = await now()
    let behind: ReadonlyArray<string> = []
    await until(
      "every client has read the last state",
      () => {
        behind = announcements.behind(expected)
        return behind.length === 0
      },
      180_000
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}: ${behind.slice(0, 5).join("; ")}`)
    })
  }
  const remove = async (query: string): Promise<void> => {
    for (const [key, n] of await now()) announcements.deleting(key, n)
    // Never a conflict: nothing of this service writes what a user's transaction deletes.
    await db.query(query)
    await settled()
  }
  for (let round = 1; round <= rounds; round++) {
    await db.query("INSERT INTO item $created RETURN NONE", {
      created: Array.from({ length: rows }, (_, id) => ({ id, n: round * 1_000_000 }))
    })
    await settled()
    await db.query(`BEGIN; UPDATE item:1 SET n += 1; SLEEP ${longMs}ms; COMMIT`)
    await settled()
    await db.query("UPDATE item SET n += 1 RETURN NONE")
    await settled()
    await takenBack(db, "BEGIN; UPDATE item SET n += 100 RETURN NONE; SLEEP 50ms; CANCEL")
    await takenBack(db, "BEGIN; UPDATE item SET n += 100 RETURN NONE; DELETE item:1; THROW 'taken back'; COMMIT")
    await Promise.all(
      Array.from({ length: writers }, async (_, writer) => {
        const own = await rootClient(server)
        for (let i = 0; i < 10; i++)
          await persistently(async () =>
            own.query(`BEGIN; UPDATE item:${(writer + i) % 4}, item:${i % 3} SET n += 1; SLEEP 2ms; COMMIT`)
          )
        await own.close()
      })
    )
    await settled()
    await remove(`BEGIN; DELETE item:0..${Math.floor(rows / 10)}; SLEEP ${longMs}ms; COMMIT`)
    await remove("DELETE item")
  }
  const counts = announcements.counts()
  const faults = await announcements.end()
  stream.close()
  await db.close()
  await reading.close()
  return { faults, counts }
}
