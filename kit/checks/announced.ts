/**
 * Clients of a database that read a record whenever a new version of it is announced to them, and a checker that says
 * whether what they read was at least as new as what was announced.
 *
 * Records have a number `n` that only grows. Which number a version stands for is looked up in the node's memory at the
 * announcement; where the node is further by then, the versions before it say what it is at least.
 */
import { RecordId, type Surreal } from "surrealdb"
import * as Ids from "../../src/core/surql/values/recordId.ts"
import { sleep } from "../processes/Door.ts"
import type { NodeBeside } from "../processes/nodeBeside.ts"
import type { EventStream } from "./EventStream.ts"

/** How a client hears of edges. */
export type Channel = "live" | "poll" | "stream"

interface Heard {
  readonly by: Channel
  readonly key: number
  /** Undefined: the record has left the view. */
  readonly version: number | undefined
  /** `n` as it was read then; undefined: no such record. */
  readonly read: number | undefined
}

const pollMs = 50

export class Announcements {
  readonly #table: string
  readonly #db: Surreal
  readonly #node: Pick<NodeBeside, "records">
  readonly #heard: Array<Heard> = []
  /** By record and version: `n` as the node has it. */
  readonly #known = new Map<number, Map<number, number>>()
  /** By record: `n` when it was last deleted. */
  readonly #deleted = new Map<number, number>()
  #reading = 0
  #following = true
  #polling: Promise<void> = Promise.resolve()

  constructor(table: string, db: Surreal, node: Pick<NodeBeside, "records">) {
    this.#table = table
    this.#db = db
    this.#node = node
  }

  /** From now on; the view shows whole records of the table. */
  async follow(view: string, stream: EventStream): Promise<void> {
    stream.heard = ({ data, event }) => {
      if (event !== "delta") return
      const of = (ids: unknown) => ids as ReadonlyArray<readonly [string, number]>
      this.#announced("stream", [
        ...[...of(data["additions"]), ...of(data["updates"])].map(([id, version]) => [keyOf(id), version] as const),
        ...(data["removals"] as ReadonlyArray<string>).map((id) => [keyOf(id), undefined] as const)
      ])
    }
    const [live] = await this.#db.query<[never]>("LIVE SELECT out, version FROM _svc_list_ref")
    ;(await this.#db.liveOf(live)).subscribe(({ action, value }) => {
      const { out, version } = value as { readonly out?: RecordId; readonly version?: number }
      if (out?.table.name === this.#table)
        this.#announced("live", [[Number(out.id), action === "DELETE" ? undefined : version]])
    })
    this.#polling = this.#poll(view)
  }

  /** To be said before a record is deleted. */
  deleting(key: number, n: number): void {
    this.#deleted.set(key, n)
  }

  async #poll(view: string): Promise<void> {
    let before = new Map<number, number>()
    while (this.#following) {
      const [edges] = await this.#db.query<[ReadonlyArray<{ readonly out: RecordId; readonly version: number }>]>(
        "SELECT out, version FROM _svc_list_ref WHERE in = $view",
        { view: new RecordId("_svc_query", view) }
      )
      const now = new Map(edges.map(({ out, version }) => [Number(out.id), version]))
      this.#announced("poll", [
        ...[...now].filter(([key, version]) => before.get(key) !== version),
        ...[...before.keys()].filter((key) => !now.has(key)).map((key) => [key, undefined] as const)
      ])
      before = now
      await sleep(pollMs)
    }
  }

  /** Looks into the node at once, and then reads, as a client would. */
  #announced(by: Channel, news: ReadonlyArray<readonly [number, number | undefined]>): void {
    if (news.length === 0) return
    for (const [key] of news) {
      const row = this.#node.records.get(Ids.make(this.#table, key))
      if (row === undefined) continue
      const versions = this.#known.get(key) ?? new Map<number, number>()
      this.#known.set(key, versions.set(row.version, Number(row.doc["n"])))
    }
    this.#reading++
    const ids = news.map(([key]) => new RecordId(this.#table, key))
    void this.#db
      .query<[null, ReadonlyArray<{ readonly id: RecordId; readonly n: number }>]>(
        // At the top, a SELECT from a list of ids knows no database (3.0.2).
        "LET $rows = (SELECT id, n FROM $ids); RETURN $rows",
        { ids }
      )
      .then(([, rows]) => {
        const found = new Map(rows.map(({ id, n }) => [Number(id.id), n]))
        for (const [key, version] of news) this.#heard.push({ by, key, version, read: found.get(key) })
        this.#reading--
      })
  }

  /** How many announcements each client has had. */
  counts(): { readonly [by in Channel]: number } {
    const counts = { live: 0, poll: 0, stream: 0 }
    for (const { by } of this.#heard) counts[by]++
    return counts
  }

  /** Which client has not yet been told what these records are, read on its last announcement of each. */
  behind(now: ReadonlyMap<number, number>): ReadonlyArray<string> {
    const last = new Map<string, Heard>()
    for (const one of this.#heard) last.set(`${one.by} ${one.key}`, one)
    return (["live", "poll", "stream"] as const).flatMap((by) =>
      // Those that no client has been told of yet among them.
      [...new Set([...this.#known.keys(), ...now.keys()])].flatMap((key) => {
        const one = last.get(`${by} ${key}`)
        return one?.read === now.get(key)
          ? []
          : [`${by} has ${key} as ${one?.read}, told of version ${one?.version}, the database as ${now.get(key)}`]
      })
    )
  }

  /** Ends the following; answers what was announced before it could be read. */
  async end(): Promise<ReadonlyArray<string>> {
    this.#following = false
    await this.#polling
    while (this.#reading > 0) await sleep(5)
    const shown = new Map<string, number>()
    return this.#heard.flatMap(({ by, key, read, version }) => {
      const name = `${by} ${key}`
      if (version === undefined) {
        const before = shown.get(name) ?? Number.NEGATIVE_INFINITY
        return read === undefined || read > before ? [] : [`${name} has left with ${before}; read then: ${read}`]
      }
      const least = leastOf(this.#known.get(key) ?? new Map(), version)
      shown.set(name, least)
      const isNew = read === undefined ? (this.#deleted.get(key) ?? -1) >= least : read >= least
      return isNew ? [] : [`${name} has version ${version}, which is ${least} at least; read then: ${read}`]
    })
  }
}

const keyOf = (id: string): number => Number(id.slice(id.indexOf(":") + 1))

/** What a version is at least: each one is a write behind the one before it. */
const leastOf = (known: ReadonlyMap<number, number>, version: number): number => {
  let least = Number.NEGATIVE_INFINITY
  for (const [at, n] of known) if (at <= version) least = Math.max(least, n + version - at)
  return least
}
