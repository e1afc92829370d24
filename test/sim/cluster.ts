/**
 * A day in the life of a cluster of whole nodes, drawn from a seed: writes, views, bad weather, partitions, crashes,
 * restarts; then everything heals, and everything must be right.
 *
 * Checked at rest by what knows nothing of how it came about: the client's own book of what was acknowledged, the
 * replica, and the plain evaluator.
 */
import { Context, Effect, Either, HashMap, Option } from "effect"
import { type Rng, rng } from "../../kit/data/random.ts"
import { VirtualTime } from "../../kit/data/virtualTime.ts"
import { fromRecords } from "../../src/core/surql/evaluate/memory.ts"
import { queryBudget } from "../../src/core/surql/evaluate/scope.ts"
import { evaluate } from "../../src/core/surql/evaluate/select/select.ts"
import { parseSelect } from "../../src/core/surql/syntax/parse.ts"
import * as Encode from "../../src/core/surql/values/encode.ts"
import { toJson } from "../../src/core/surql/values/json.ts"
import { Range } from "../../src/core/surql/values/value.ts"
import type { ReplicaRecord } from "../../src/ports/Replica.ts"
import { Lifecycle } from "../../src/ssp/membership/Lifecycle.ts"
import { Views } from "../../src/ssp/views/Views.ts"
import { calm, Network, type Reply, rough } from "./network.ts"
import { isSentAll, schedulerNode, sspNode, type World } from "./nodes.ts"

const schedulerHost = "127.0.0.1:9667"
const keys = 40

const kinds = ["scheduler crashes", "ssp crashes", "partitions", "changes of weather"] as const

const queries: ReadonlyArray<string> = [
  "SELECT * FROM item WHERE group = 1",
  "SELECT id, n FROM item WHERE n > 20 ORDER BY n DESC LIMIT 5",
  "SELECT count() AS count, group FROM item GROUP BY group",
  "SELECT VALUE n FROM item WHERE group != 2",
  "SELECT id, (SELECT VALUE n FROM item WHERE group = $parent.group ORDER BY n LIMIT 2) AS near FROM item WHERE group = 3",
  "SELECT * FROM item",
  "SELECT math::sum(n) AS sum FROM item GROUP ALL",
  "SELECT id FROM item WHERE n % 2 = 0"
]

/** What the SSPs of a day with feeds show, of several tables and over links; some come and go. */
const tableQueries: ReadonlyArray<string> = [
  ...queries,
  "SELECT * FROM other WHERE group = 1",
  "SELECT id, item.n AS n FROM note",
  "SELECT id, (SELECT VALUE n FROM other WHERE group = $parent.group ORDER BY n LIMIT 2) AS near FROM item",
  "SELECT count() AS count FROM note GROUP ALL",
  "SELECT VALUE n FROM other ORDER BY n LIMIT 7"
]
const tableNames = ["item", "other", "note"]

/** `pull`: SSPs follow the tables that they need; `mixed`: the first is sent everything. */
export type Feed = "push" | "pull" | "mixed"

export interface Outcome {
  readonly trace: ReadonlyArray<string>
  readonly logs: ReadonlyArray<string>
  /** How often each thing happened. */
  readonly counts: ReadonlyMap<string, number>
}

/** The order of the replica's tables and, in each, of keys. */
const orderOf = (tables: ReadonlyArray<string>, key: string): number => {
  const [table = "", number] = key.split(":")
  return tables.indexOf(table) * keys + Number(number)
}

class Day {
  readonly time = new VirtualTime()
  readonly random: Rng
  readonly network: Network
  readonly world: World
  readonly counts = new Map<string, number>()
  /** What each record was acknowledged as last; undefined: deleted. */
  readonly book = new Map<string, number | undefined>()
  private readonly scheduler
  private readonly ssps
  private readonly busy = new Set<string>()
  private readonly tables: ReadonlyArray<string>
  private readonly queries: ReadonlyArray<string>
  private writes = 0
  private healing = false

  constructor(seed: number, feed: Feed) {
    this.tables = feed === "push" ? ["item"] : tableNames
    this.queries = feed === "push" ? queries : tableQueries
    this.random = rng(seed)
    this.network = new Network(this.time, rng(seed + 1))
    this.world = { time: this.time, network: this.network, logs: [], crashes: [] }
    this.scheduler = schedulerNode(this.world)
    const follows = { SVC_CLUSTER_FEED: "pull", SVC_TABLE_GRACE_SECS: "1" }
    this.ssps = [1, 2, 3].map((n) =>
      sspNode(this.world, n, feed === "pull" || (feed === "mixed" && n > 1) ? follows : isSentAll)
    )
  }

  private count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1)
  }

  /** Asks the scheduler until it answers with one of these. */
  private ask(path: string, body: unknown, until: ReadonlyArray<number>, then: (reply: Reply) => void): void {
    const attempt = (): void => {
      let over = false
      const again = (): void => {
        if (over) return
        over = true
        this.time.after(100, attempt)
      }
      this.time.after(3000, again)
      this.network.send(
        "client",
        schedulerHost,
        { method: "POST", path, headers: { "content-type": "application/json" }, body: JSON.stringify(body) },
        (reply) => {
          if (over) return
          if (reply === undefined || !until.includes(reply.status)) return again()
          over = true
          then(reply)
        }
      )
    }
    attempt()
  }

  private write(): void {
    const table = this.tables.length === 1 ? this.tables[0]! : this.random.pick(this.tables)
    const number = this.random.below(keys)
    const key = `${table}:${number}`
    if (this.busy.has(key)) return
    this.busy.add(key)
    const n = this.random.chance(0.15) ? undefined : ++this.writes
    const link = table === "note" ? { item: `item:${this.random.below(keys)}` } : {}
    const record = n === undefined ? {} : { n, group: number % 4, ...link }
    this.ask("/ingest", { table, op: n === undefined ? "DELETE" : "UPDATE", id: key, record }, [200], () => {
      this.book.set(key, n)
      this.busy.delete(key)
      this.count("acknowledged")
    })
  }

  private writing(): void {
    if (this.healing) return
    this.write()
    this.time.after(20 + this.random.below(120), () => this.writing())
  }

  /** A view of another table comes for a while, and goes. */
  private changing(): void {
    if (this.healing) return
    const id = "passing"
    this.isChanging = true
    const surql = `SELECT * FROM ${this.random.pick(this.tables)} WHERE group = ${this.random.below(4)}`
    this.ask("/view/register", { id, surql, clientId: "c", ttl: "1d", format: "tree" }, [200], () => {
      this.count("views that came")
      this.time.after(this.random.below(1500), () =>
        this.ask("/view/unregister", { id }, [200, 404], () => {
          this.isChanging = false
          this.time.after(this.random.below(1500), () => this.changing())
        })
      )
    })
  }
  private isChanging = false
  /** Kinds of blows that are still to come before one comes again. */
  private toCome: Array<(typeof kinds)[number]> = []

  /** Each four blows in a row are of four kinds, in random order, so that a short day has every kind. */
  private async blow(): Promise<void> {
    if (this.toCome.length === 0) this.toCome = [...kinds]
    const ssp = this.random.pick(this.ssps)
    const [kind] = this.toCome.splice(this.random.below(this.toCome.length), 1)
    this.count(kind!)
    if (kind === "scheduler crashes") {
      await this.scheduler.node.crash()
      await this.time.advance(this.random.below(1500))
      await this.scheduler.node.start()
    } else if (kind === "ssp crashes") {
      await ssp.crash()
      await this.time.advance(this.random.below(3000))
      await ssp.start()
    } else if (kind === "partitions") {
      this.network.cutOff.add(ssp.name)
      await this.time.advance(300 + this.random.below(4000))
      this.network.cutOff.delete(ssp.name)
    } else {
      this.network.weather = this.network.weather === calm ? rough : calm
    }
  }

  async run(blows: number): Promise<Outcome> {
    await this.scheduler.node.start()
    for (const ssp of this.ssps) await ssp.start()
    await this.time.advance(2000)
    let registered = 0
    for (const [i, surql] of this.queries.entries())
      this.ask("/view/register", { id: `v${i}`, surql, clientId: "c", ttl: "1d", format: "tree" }, [200], () => {
        registered++
      })
    this.writing()
    if (this.tables.length > 1) this.changing()
    for (let i = 0; i < blows; i++) {
      await this.time.advance(this.random.below(2500))
      await this.blow()
    }
    this.healing = true
    this.network.weather = calm
    this.network.cutOff.clear()
    await this.rest(
      () => registered >= this.queries.length && !this.isChanging && this.busy.size === 0 && this.atRest()
    )
    await this.check()
    for (const node of [this.scheduler.node, ...this.ssps]) await node.crash()
    return { trace: this.network.trace, logs: this.world.logs, counts: this.counts }
  }

  private async rest(done: () => boolean): Promise<void> {
    for (let i = 0; i < 600; i++) {
      if (this.world.crashes.length > 0)
        throw new Error(
          `a node ended by itself: ${this.world.crashes.join("; ")}\n${this.world.logs.slice(-60).join("\n")}`
        )
      if (done()) return
      await this.time.advance(200)
    }
    throw new Error(
      `not at rest two minutes after healing\n${this.world.logs.slice(-80).join("\n")}\n${this.network.trace.slice(-40).join("\n")}`
    )
  }

  private atRest(): boolean {
    const state = this.scheduler.pool().state()
    const members = [...HashMap.values(state.members)]
    return (
      members.length === 3 &&
      members.every(
        (member) =>
          member.state === "Ready" && member.queue.acked === state.log.head && HashMap.size(member.strays) === 0
      ) &&
      [...HashMap.values(state.views)].every((view) => view.placed && view.op === undefined) &&
      this.ssps.every((ssp) => Context.get(ssp.context!, Lifecycle).phase() === "ready")
    )
  }

  private async check(): Promise<void> {
    const all = new Map<string, ReadonlyArray<ReplicaRecord>>()
    for (const table of this.tables)
      all.set(table, await Effect.runPromise(this.scheduler.durable.replica.records(table, undefined, 1_000_000)))
    const rows = [...all.values()].flat()
    const same = (what: string, found: unknown, expected: unknown): void => {
      const [a, b] = [JSON.stringify(found), JSON.stringify(expected)]
      if (a !== b)
        throw new Error(
          `${what}:\nfound    ${a.slice(0, 1500)}\nexpected ${b.slice(0, 1500)}\n${this.world.logs.slice(-60).join("\n")}`
        )
    }
    same(
      "what was acknowledged is in the replica",
      rows.map(({ doc, id }) => [id.text, doc?.["n"]]),
      [...this.book]
        .filter(([, n]) => n !== undefined)
        .sort(([a], [b]) => orderOf(this.tables, a) - orderOf(this.tables, b))
    )
    const state = this.scheduler.pool().state()
    for (const ssp of this.ssps) {
      const views = Context.get(ssp.context!, Views)
      for (const table of this.tables) {
        const { isAll = true, tables = [] } = views.tables.held() ?? {}
        const here = [...views.records.rowsBetween(table, new Range(undefined, undefined))].map((row) => [
          row.id.text,
          row.version,
          Encode.encode(row.doc)
        ])
        if (isAll || tables.includes(table))
          same(
            `${ssp.name} holds of ${table} what the replica holds`,
            here,
            all.get(table)!.map(({ doc, id, version }) => [id.text, version, Encode.encode(doc)])
          )
        else {
          this.count("tables that are not held")
          same(`${ssp.name} holds nothing of ${table}`, here, [])
        }
      }
    }
    const source = fromRecords(rows.flatMap(({ doc }) => (doc === undefined ? [] : [doc])))
    for (const [i, surql] of this.queries.entries()) {
      const select = Either.getOrThrow(parseSelect(surql))
      const expected = toJson(Either.getOrThrow(evaluate(select, { source, params: {}, budget: queryBudget() })))
      const homes: Array<string> = []
      for (const ssp of this.ssps) {
        const answer = await Effect.runPromise(Effect.option(Context.get(ssp.context!, Views).read(`v${i}`, "tree")))
        if (Option.isNone(answer)) continue
        homes.push(ssp.name)
        same(`v${i} on ${ssp.name} (${surql})`, answer.value.result_data, expected)
      }
      const home = Option.getOrUndefined(HashMap.get(state.views, `v${i}`))?.home?.ssp
      same(`v${i} is on one SSP`, homes, [home])
    }
  }
}

/** A whole day from a seed; throws with what is wrong. */
export const live = (seed: number, blows: number, feed: Feed = "push"): Promise<Outcome> =>
  new Day(seed, feed).run(blows)
