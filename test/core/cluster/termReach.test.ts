/**
 * Leaders that still write their log and are out of reach for others: when one gives up its lead, and that nobody takes
 * turns. The decisions one by one, and hundreds of networks from seeds.
 */
import { describe, expect, it } from "vitest"
import { type Rng, rng, rounds, seeded } from "../../../kit/data/random.ts"
import * as Term from "../../../src/core/cluster/term.ts"

const leaseMs = 3000
const rules: Term.Rules = { self: "me", leaseMs }
const frame: Term.Frame = { epoch: 4, lastSeq: 10, beat: 7, leader: "me" }

const ways = (self: string, more: Partial<Term.Contacts> = {}): Term.Contacts => ({ ...Term.noContacts, self, ...more })
const missing = (self: string, more: Partial<Term.Contacts> = {}) => ways(self, { misses: "me", ...more })

/** What a leader that has won at 0 does with facts at times; the last orders. */
const leading = (...facts: ReadonlyArray<readonly [now: number, fact: Term.Fact]>) => {
  let term: Term.Term = Term.initial
  let orders: ReadonlyArray<Term.Order> = []
  for (const [now, fact] of [[0, { tag: "Claimed", sentAt: 0, frame }] as const, ...facts])
    [term, orders] = Term.decide(rules, term, now, fact)
  return { term, orders: orders.map(({ tag }) => tag) }
}
const told = (now: number, ...all: ReadonlyArray<Term.Contacts>) => [now, { tag: "Told", ways: all }] as const
const spoken = (now: number) => [now, { tag: "Spoken" }] as const

describe("a leader that is cut off", () => {
  const isolated = [missing("a", { reaches: ["b"] }), missing("b", { reaches: ["a"] })]

  it("gives up its lead after two leases without an SSP, for a follower that another one reaches", () => {
    expect(leading(told(5999, ...isolated)).orders).toEqual([])
    const { orders, term } = leading(told(6000, ...isolated))
    expect([term.role, orders]).toEqual(["fenced", ["HandOver", "End"]])
    expect(leading(spoken(1000), told(6999, ...isolated)).orders).toEqual([])
    expect(leading(spoken(1000), told(7000, ...isolated)).orders).toEqual(["HandOver", "End"])
  })
  it("gives up for a follower that is asked, where it was reached before in its term", () => {
    const asked = missing("a", { isAsked: true })
    expect(leading(told(9000, asked)).orders).toEqual([])
    expect(leading(spoken(1), told(9000, asked)).orders).toEqual(["HandOver", "End"])
    expect(leading(told(1, ways("a", { reaches: ["me"] })), told(9000, asked)).orders).toEqual(["HandOver", "End"])
  })
  it("stays where a follower reaches it, or none is better off, or none says that it is missed", () => {
    for (const all of [
      [],
      [missing("a")],
      [missing("a"), missing("b")],
      [missing("a", { reaches: ["b"] })],
      [...isolated, ways("c", { reaches: ["me"] })],
      [ways("a", { reaches: ["b"], isAsked: true }), ways("b", { reaches: ["a"] })],
      [ways("a", { misses: "one before" }), ways("b", { reaches: ["a"] })]
    ])
      expect(leading(spoken(1), told(9000, ...all)).orders, JSON.stringify(all)).toEqual([])
  })
  it("leaves a log that was given up to those who are better off first", () => {
    const free = { ...frame, leader: undefined }
    const claimedAfter = (standing: Term.Contact): number => {
      let term: Term.Term = Term.initial
      for (let now = 0; ; now += 100) {
        const [next, orders] = Term.decide(rules, term, now, { tag: "Looked", sentAt: now, frame: free, standing })
        if (orders.length > 0) return now
        term = next
      }
    }
    expect((["near", "asked", "apart"] as const).map(claimedAfter)).toEqual([0, 500, 3000])
  })
})

interface Network {
  /** Whether two schedulers reach each other. */
  readonly between: ReadonlyArray<ReadonlyArray<boolean>>
  /** The schedulers that each SSP reaches, and those that clients ask. */
  readonly ssps: ReadonlyArray<ReadonlyArray<boolean>>
  readonly clients: ReadonlyArray<boolean>
}

interface Place {
  name: string
  term: Term.Term
  since: Map<string, number>
  answered: Map<string, number>
  askedAt: number
  said: { readonly at: number; readonly ways: Term.Contacts } | undefined
  downUntil: number
  offset: number
}

const lastOf = ({ answered, since }: Place, name: string): number =>
  answered.get(name) ?? since.get(name) ?? Number.POSITIVE_INFINITY

/** Schedulers that all reach their log, in steps of 100 ms. */
class Cluster {
  now = 0
  changes = 0
  private names = 0
  private frame: Term.Frame = { epoch: 0, lastSeq: 0, beat: 0, leader: undefined }
  private readonly places: ReadonlyArray<Place>
  private readonly random: Rng
  network: Network

  constructor(random: Rng, network: Network) {
    this.random = random
    this.network = network
    this.places = network.clients.map(() => this.begun(0))
  }

  private begun(downUntil: number): Place {
    const offset = 100 * this.random.below(10)
    const none = { since: new Map(), answered: new Map(), askedAt: Number.NEGATIVE_INFINITY, said: undefined }
    return { ...none, name: `process ${++this.names}`, term: Term.initial, downUntil, offset }
  }

  /** Its place; -1: nobody leads. */
  get leader(): number {
    return this.places.findIndex(({ name, term }) => term.role === "leader" && this.frame.leader === name)
  }

  isReached(place: number): boolean {
    const { between, ssps } = this.network
    return (
      between[place]!.some((link, i) => link && i !== place) ||
      ssps.some((reaches) => reaches.some((link, i) => link && (i === place || between[i]![place])))
    )
  }

  isAsked(place: number): boolean {
    return this.network.clients[place]! || this.network.ssps.some((reaches) => reaches[place])
  }

  run(ms: number): void {
    for (const end = this.now + ms; this.now < end; this.now += 100) {
      this.speak()
      const order = this.places.map((_, i) => i)
      while (order.length > 0) this.step(...(order.splice(this.random.below(order.length), 1) as [number]))
    }
  }

  /** SSPs and clients ask the schedulers that they reach, until they are answered. */
  private speak(): void {
    const { leader, now, places } = this
    const { between, clients, ssps } = this.network
    if (now % 2000 === 0)
      for (const reaches of ssps) {
        const isHeard = leader >= 0 && reaches.some((link, i) => link && (i === leader || between[i]![leader]))
        if (isHeard) this.tell(leader, { tag: "Spoken" })
        else reaches.forEach((link, i) => link && (places[i]!.askedAt = now))
      }
    if (now % 500 === 0) clients.forEach((asks, i) => asks && i !== leader && (places[i]!.askedAt = now))
  }

  private waysOf(place: Place): Term.Contacts {
    const { frame, now } = this
    const answered = (name: string) => now - (place.answered.get(name) ?? Number.NEGATIVE_INFINITY) < leaseMs
    const missed = frame.leader
    return {
      self: place.name,
      reaches: [...place.answered.keys()].filter(answered),
      misses: missed !== undefined && this.isSilent(place, missed) ? missed : undefined,
      isAsked: missed !== undefined && place.since.has(missed) && this.isAskedSince(place, lastOf(place, missed))
    }
  }

  private isSilent(place: Place, name: string): boolean {
    return place.since.has(name) && this.now - lastOf(place, name) >= leaseMs
  }

  private isAskedSince({ askedAt }: Place, heardAt: number): boolean {
    return this.now - askedAt < Term.apartMs(rules) && askedAt > heardAt + leaseMs / 2
  }

  private standingOf(place: Place, others: ReadonlyArray<Place>): Term.Contact {
    const known = others.map(({ name }) => name)
    if (known.length === 0 || !known.every((name) => this.isSilent(place, name))) return "near"
    return this.isAskedSince(place, Math.max(...known.map((name) => lastOf(place, name)))) ? "asked" : "apart"
  }

  private step(i: number): void {
    const { now, places } = this
    const place = places[i]!
    if (place.downUntil > now) return
    const others = places.filter((other) => other !== place && other.downUntil <= now)
    const isDue = (now + place.offset) % 1000 === 0
    if (place.term.role === "follower") {
      if ((now + place.offset) % 500 === 0)
        for (const other of others) {
          if (!place.since.has(other.name)) place.since.set(other.name, now)
          if (this.network.between[i]![places.indexOf(other)]) place.answered.set(other.name, now)
        }
      if (isDue) place.said = { at: now, ways: this.waysOf(place) }
      const standing = this.standingOf(place, others)
      return this.tell(i, { tag: "Looked", sentAt: now, frame: this.frame, standing })
    }
    this.tell(i, { tag: "Tick" })
    if (isDue && place.term.role === "leader") {
      const said = others.flatMap((other) =>
        other.said !== undefined && now - other.said.at < leaseMs ? [other.said.ways] : []
      )
      this.tell(i, { tag: "Told", ways: said })
    }
  }

  private tell(i: number, fact: Term.Fact): void {
    const place = this.places[i]!
    const [term, orders] = Term.decide({ self: place.name, leaseMs }, place.term, this.now, fact)
    place.term = term
    for (const order of orders) {
      if (order.tag === "Claim") {
        const isOurs = order.expected.beat === this.frame.beat && order.expected.epoch === this.frame.epoch
        if (isOurs) this.frame = { ...this.frame, epoch: this.frame.epoch + 1, leader: place.name }
        if (isOurs) this.changes++
        this.tell(i, { tag: "Claimed", sentAt: this.now, frame: isOurs ? this.frame : undefined })
      } else if (order.tag === "Beat") {
        this.frame = { ...this.frame, beat: this.frame.beat + 1 }
        this.tell(i, { tag: "Accepted", sentAt: this.now })
      } else if (order.tag === "HandOver" && this.frame.leader === place.name)
        this.frame = { ...this.frame, leader: undefined }
      else if (order.tag === "End") Object.assign(place, this.begun(this.now + 500 + this.random.below(3000)))
    }
  }
}

const whole = (schedulers: number, ssps: number): Network => ({
  between: Array.from({ length: schedulers }, () => Array.from({ length: schedulers }, () => true)),
  ssps: Array.from({ length: ssps }, () => Array.from({ length: schedulers }, () => true)),
  clients: Array.from({ length: schedulers }, () => true)
})

const drawn = (random: Rng, schedulers: number, ssps: number): Network => {
  const chance = random.pick([0.1, 0.3, 0.6])
  const between = Array.from({ length: schedulers }, () => Array.from({ length: schedulers }, () => true))
  for (let i = 0; i < schedulers; i++)
    for (let j = 0; j < i; j++) between[i]![j] = between[j]![i] = random.chance(chance)
  const drawAll = () => Array.from({ length: schedulers }, () => random.chance(chance))
  return { between, ssps: Array.from({ length: ssps }, drawAll), clients: drawAll() }
}

describe("D70 schedulers whose networks break while their log is reached", () => {
  seeded(
    "a leader out of reach is replaced within 10 s by one that is not, others stay, and nobody takes turns",
    "test/core/cluster/termReach.test.ts",
    (random) => {
      let [given, kept] = [0, 0]
      for (let i = 0; i < rounds(300); i++) {
        const own = random.below(2 ** 31)
        const seed = rng(own)
        const [schedulers, ssps] = [2 + seed.below(4), seed.below(4)]
        const cluster = new Cluster(seed, whole(schedulers, ssps))
        cluster.run(10_000)
        expect(cluster.changes, `world ${own}`).toBe(1)
        const first = cluster.leader
        cluster.network = drawn(seed, schedulers, ssps)
        const others = Array.from({ length: schedulers }, (_, n) => n).filter((n) => n !== first)
        const isLinked = others.some((n) => others.some((m) => m !== n && cluster.network.between[n]![m]))
        const isWanted = isLinked || others.some((n) => cluster.isAsked(n))
        const gives = !cluster.isReached(first) && isWanted
        cluster.run(10_000)
        const within = cluster.leader
        cluster.run(40_000)
        const after = cluster.changes
        if (gives) {
          given++
          expect([within !== first, within >= 0, after <= 3], `world ${own}: another leads`).toEqual([true, true, true])
          if (isLinked) expect(cluster.isReached(cluster.leader), `world ${own}: the last one is reached`).toBe(true)
        } else {
          kept++
          expect([cluster.leader, after], `world ${own}: it stays`).toEqual([first, 1])
        }
        cluster.run(20_000)
        cluster.network = whole(schedulers, ssps)
        cluster.run(20_000)
        expect(cluster.changes, `world ${own}: it is over`).toBe(after)
      }
      expect(Math.min(given, kept)).toBeGreaterThan(20)
    }
  )
})
