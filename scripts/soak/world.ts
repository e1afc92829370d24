/**
 * The data of a soak: people, teams, posts, likes between them, and jobs; how it changes, and a mirror of what it is.
 *
 * The number of records stays what it was: who deletes one creates another under an id that was never used, as a real
 * application does. So whatever grows in a node is not the data.
 */

import { Mirror } from "../../kit/checks/Mirror.ts"
import type { JsonObject } from "../../kit/data/dataset.ts"
import type { Rng } from "../../kit/data/random.ts"

export interface Change {
  readonly table: string
  readonly op: "CREATE" | "UPDATE" | "DELETE"
  readonly id: string
  readonly record: object
}

const change = (op: Change["op"], id: string, record: object = {}): Change => ({
  table: id.slice(0, id.indexOf(":")),
  op,
  id,
  record
})

export const counts = { team: 20, person: 1_500, post: 2_000, likes: 2_500 } as const
export type Table = keyof typeof counts

/** Groups that people are in, and the range of sort keys of posts. */
export const groups = 60
export const ranks = 10_000
/** Jobs that are kept once they are done; every new one removes the oldest beyond. */
const keptJobs = 200
export const jobTable = "task"

/** How a job ends is seen in its number, so that the backend and the mirror agree without a word. */
export const jobFailsForGood = (n: number): boolean => n % 20 === 7
export const jobFailsFirst = (n: number): boolean => n % 20 === 13

export class World {
  readonly mirror = new Mirror()
  readonly #rng: Rng
  readonly #live: { readonly [table in Table]: Array<number> } = { team: [], person: [], post: [], likes: [] }
  readonly #jobs: Array<number> = []
  #next = 0
  #nextJob = 0
  /** Records created and deleted, jobs included. */
  readonly made = { creates: 0, updates: 0, deletes: 0, jobs: 0 }

  constructor(rng: Rng) {
    this.#rng = rng
  }

  /** All that is there at the beginning, in the order of the tables, so that links have somewhere to lead. */
  filling(): ReadonlyArray<Change> {
    return (Object.keys(counts) as ReadonlyArray<Table>).flatMap((table) =>
      Array.from({ length: counts[table] }, () => this.#create(table))
    )
  }

  /** The id of a record that is there now. */
  any(table: Table): string {
    return `${table}:${this.#rng.pick(this.#live[table])}`
  }

  /** What happens next: mostly an update, often one record for another, now and then a job. */
  next(): ReadonlyArray<Change> {
    const roll = this.#rng.next()
    if (roll < 0.012) return this.#job()
    const table =
      this.#rng.next() < 0.003 ? "team" : this.#rng.pick(["person", "person", "post", "post", "likes"] as const)
    return roll < 0.25 ? [this.#delete(table), this.#create(table)] : [this.#update(table)]
  }

  #record(table: Table, n: number): JsonObject {
    const rng = this.#rng
    if (table === "team") return { name: `team ${n}`, kind: rng.pick(["red", "green", "blue"]), score: rng.below(100) }
    if (table === "person")
      return {
        name: `person ${n} ${rng.below(1_000)}`,
        group: rng.below(groups),
        score: rng.below(ranks),
        team: this.any("team"),
        ...(this.#live.person.length > 0 ? { friend: this.any("person") } : {})
      }
    if (table === "post")
      return {
        title: `post ${n} ${rng.below(1_000)}`,
        author: this.any("person"),
        rank: rng.below(ranks),
        tags: Array.from({ length: 1 + rng.below(3) }, () => rng.pick(["a", "b", "c", "d", "e"]))
      }
    return { in: this.any("person"), out: this.any("post"), weight: rng.below(10) }
  }

  #create(table: Table): Change {
    const n = this.#next++
    const record = this.#record(table, n)
    this.#live[table].push(n)
    this.made.creates++
    return this.#put("CREATE", `${table}:${n}`, record)
  }

  #update(table: Table): Change {
    const n = this.#rng.pick(this.#live[table])
    this.made.updates++
    return this.#put("UPDATE", `${table}:${n}`, this.#record(table, n))
  }

  #delete(table: Table): Change {
    const live = this.#live[table]
    const at = this.#rng.below(live.length)
    const n = live[at]!
    live[at] = live.at(-1)!
    live.pop()
    return this.#gone(`${table}:${n}`)
  }

  #job(): ReadonlyArray<Change> {
    const n = this.#nextJob++
    const asked = { path: "/do", payload: { n }, kind: n % 5, max_retries: 3 }
    this.#jobs.push(n)
    this.made.jobs++
    this.mirror.put(`${jobTable}:${n}`, { ...asked, status: jobFailsForGood(n) ? "failed" : "success" })
    const created = change("CREATE", `${jobTable}:${n}`, { ...asked, status: "pending" })
    return this.#jobs.length > keptJobs ? [created, this.#gone(`${jobTable}:${this.#jobs.shift()!}`)] : [created]
  }

  #put(op: Change["op"], id: string, record: JsonObject): Change {
    this.mirror.put(id, record)
    return change(op, id, record)
  }

  #gone(id: string): Change {
    this.mirror.delete(id)
    this.made.deletes++
    return change("DELETE", id)
  }
}
