/**
 * A run of transactions with a ledger beside a node, and clients that look at its views and follow one all the while.
 *
 * Why the writers share the lanes: they meet, so transactions are tried again and fail; a tenth is taken back on
 * purpose, and some stay open for a while.
 */
import { askedOver, taken } from "../data/changeTable.ts"
import { type Rng, rng } from "../data/random.ts"
import { registration } from "../data/registration.ts"
import { sleep, until } from "../processes/Door.ts"
import type { NodeBeside } from "../processes/nodeBeside.ts"
import { rootClient } from "../processes/surreal/sdk.ts"
import { type Ending, Journal, lanes, ledgerViews, planOf, type ShownRow, Sightings, streamFaults } from "./ledger.ts"

type Server = Parameters<typeof rootClient>[0]

export interface Followed {
  /** What is wrong with what was shown, and what is lost. */
  readonly faults: ReadonlyArray<string>
  /** Transactions in the ledger. */
  readonly size: number
  /** Different states seen by each client that looked, and events of the stream. */
  readonly sightings: ReadonlyArray<number>
  readonly conflicts: number
}

const writers = 8
const lookMs = 30

const register = async (node: NodeBeside): Promise<void> => {
  for (const { id, surql } of ledgerViews) {
    const { json, status } = await node.ask("POST", "/view/register", registration(id, surql, { format: "tree" }))
    if (status !== 200) throw new Error(`${id} is not registered: ${JSON.stringify(json)}`)
  }
}

const rowsOf = async (node: NodeBeside, id: string): Promise<ReadonlyArray<ShownRow>> =>
  ((await node.ask("GET", `/view/${id}`)).json as { readonly result_data: ReadonlyArray<ShownRow> }).result_data

/** How a transaction ends, and how long it stays open before. */
const endingOf = (random: Rng): readonly [Ending, number] => {
  const ending = random.pick(["commit", "commit", "commit", "commit", "commit", "commit", "cancel", "throw"] as const)
  return [ending, random.chance(0.05) ? 1 + random.below(20) : 0]
}

/** Commits `count` transactions by eight writers, on tables and heads that are there (`ledger.ts`). */
export const followed = async (node: NodeBeside, server: Server, random: Rng, count: number): Promise<Followed> => {
  await register(node)
  const stream = await node.follow("all")
  const sightings = ledgerViews.map((view) => new Sightings(view))
  let writing = true
  const looking = ledgerViews.map(async ({ id }, i) => {
    while (writing) {
      sightings[i]!.saw(await rowsOf(node, id))
      // Never without a pause: the node, and in short runs the database, are in the same process.
      await sleep(lookMs)
    }
  })
  const journal = new Journal()
  const among = Array.from({ length: lanes }, (_, lane) => lane)
  let left = count
  await Promise.all(
    Array.from({ length: writers }, async () => {
      const own = rng(random.below(2 ** 32))
      const db = await rootClient(server)
      while (left-- > 0) {
        const [ending, sleepMs] = endingOf(own)
        const plan = planOf(own, among)
        if (ending !== "commit") await journal.transact(db, plan, ending, sleepMs)
        await journal.commit(db, plan, sleepMs)
      }
      await db.close()
    })
  )
  const db = await rootClient(server)
  const ledger = await journal.ledger(db)
  const end = ledger.end.join()
  await taken(askedOver(db), 600_000)
  await db.close()
  writing = false
  await Promise.all(looking)
  for (const [i, { id }] of ledgerViews.entries()) sightings[i]!.saw(await rowsOf(node, id))
  const streamed = await until("the stream is at the end", () => {
    const checked = streamFaults(ledger, stream.events)
    return (checked.faults.length > 0 || checked.reached.join() === end) && checked
  })
  stream.close()
  return {
    faults: [...ledger.faults, ...sightings.flatMap((seen) => seen.faults(ledger)), ...streamed.faults],
    size: ledger.size,
    sightings: [...sightings.map(({ size }) => size), stream.events.length],
    conflicts: journal.conflicts
  }
}
