/**
 * Several schedulers over a model of the log's engine, from a seed: calls and answers that are late or lost, processes
 * that stand still, die or are told to stop, clocks that run at half to twice the speed.
 *
 * The engine is the conditional writes of `drivers/postgresWal.ts` and nothing more; the schedulers decide by
 * `core/cluster/term.ts`. Every promise is checked where it could be broken first.
 */

import type { Rng } from "../../../kit/data/random.ts"
import * as Term from "../../../src/core/cluster/term.ts"

export const leaseMs = 3000

/** What a run may do to its schedulers; all faults end at `calmAt`. */
export interface Weather {
  readonly nodes: number
  readonly events: number
  readonly lossRate: number
  readonly maxDelayMs: number
  /** Rates of the clocks are drawn between the two. */
  readonly clocks: readonly [slowest: number, fastest: number]
  /** Mean time between two blows, 0 for none. */
  readonly blowEveryMs: number
  readonly calmAt: number
}

interface Line {
  readonly seq: number
  readonly epoch: number
  readonly by: string
  /** One attempt of one client to write one event. */
  readonly attempt: string
}

/** The log's row and its records, as one statement at a time sees and moves them. */
class Engine {
  frame: Term.Frame = { epoch: 0, lastSeq: 0, beat: 0, leader: undefined }
  readonly log: Array<Line> = []
  readonly writers = new Map<number, string>()
  takeOvers = 0

  claim(self: string, expected: Term.Frame): Term.Frame | undefined {
    const { beat, epoch, lastSeq } = this.frame
    if (epoch !== expected.epoch || lastSeq !== expected.lastSeq || beat !== expected.beat) return undefined
    this.takeOvers++
    this.frame = { epoch: epoch + 1, lastSeq, beat: beat + 1, leader: self }
    return this.frame
  }

  append(self: string, epoch: number, lastSeq: number, attempts: ReadonlyArray<string>): boolean {
    if (this.frame.epoch !== epoch || this.frame.lastSeq !== lastSeq) return false
    const writer = this.writers.get(epoch)
    if (writer !== undefined && writer !== self) throw new Error(`two writers in epoch ${epoch}: ${writer}, ${self}`)
    this.writers.set(epoch, self)
    attempts.forEach((attempt, i) => this.log.push({ seq: lastSeq + 1 + i, epoch, by: self, attempt }))
    this.frame = { ...this.frame, lastSeq: lastSeq + attempts.length }
    return true
  }

  beat(epoch: number): boolean {
    if (this.frame.epoch !== epoch) return false
    this.frame = { ...this.frame, beat: this.frame.beat + 1 }
    return true
  }

  handOver(self: string): void {
    if (this.frame.leader === self) this.frame = { ...this.frame, leader: undefined }
  }
}

/** A scheduler process; the next one in its place has another name. */
class Node {
  readonly self: string
  readonly rules: Term.Rules
  term: Term.Term = Term.initial
  /** The replica: what it has read or written, in order. */
  readonly replica: Array<string> = []
  /** Open for writing: the replica is at the end of the log. */
  isOpen = false
  /** Attempts of clients, with what is told them. */
  waiting: Array<readonly [attempt: string, done: (isThere: boolean) => void]> = []
  isWriting = false
  isLooking = false
  isDead = false

  constructor(self: string) {
    this.self = self
    this.rules = { self, leaseMs }
  }
}

interface Due {
  readonly at: number
  readonly order: number
  readonly run: () => void
}

/** A binary heap by time, then by order of arrival. */
class Agenda {
  private readonly heap: Array<Due> = []
  private order = 0
  now = 0

  at(at: number, run: () => void): void {
    const due = { at: Math.max(at, this.now), order: this.order++, run }
    let i = this.heap.push(due) - 1
    while (i > 0) {
      const up = (i - 1) >> 1
      if (!before(due, this.heap[up]!)) break
      this.heap[i] = this.heap[up]!
      i = up
    }
    this.heap[i] = due
  }

  step(): boolean {
    const first = this.heap[0]
    const last = this.heap.pop()
    if (first === undefined || last === undefined) return false
    const { heap } = this
    if (heap.length > 0) {
      let i = 0
      for (;;) {
        const left = 2 * i + 1
        if (left >= heap.length) break
        const child = left + 1 < heap.length && before(heap[left + 1]!, heap[left]!) ? left + 1 : left
        if (!before(heap[child]!, last)) break
        heap[i] = heap[child]!
        i = child
      }
      heap[i] = last
    }
    this.now = first.at
    first.run()
    return true
  }
}

const before = (a: Due, b: Due): boolean => a.at < b.at || (a.at === b.at && a.order < b.order)

/** Where a scheduler runs: its clock and its pauses stay when its process is replaced. */
interface Place {
  readonly rate: number
  stillUntil: number
  node: Node
}

const lookMs = leaseMs / 30
const answerMs = leaseMs / 6
const clientMs = leaseMs

export interface Report {
  readonly acknowledged: number
  readonly takeOvers: number
  readonly lost: number
  readonly ended: number
  readonly endedAt: number
}

export class World {
  readonly engine = new Engine()
  private readonly agenda = new Agenda()
  private readonly places: Array<Place> = []
  private readonly random: Rng
  private readonly weather: Weather
  private names = 0
  private readonly acknowledged = new Map<string, string>()
  private open = 0
  private lost = 0
  private ended = 0

  constructor(random: Rng, weather: Weather) {
    this.random = random
    this.weather = weather
    const [slowest, fastest] = weather.clocks
    for (let i = 0; i < weather.nodes; i++) {
      const node = this.named()
      const place = { rate: slowest + random.next() * (fastest - slowest), stillUntil: 0, node }
      this.places.push(place)
      this.begin(place, node)
    }
    for (let i = 0; i < weather.events; i++) {
      this.open++
      this.agenda.at(random.next() * weather.calmAt, () => this.client(`event ${i}`, 0))
    }
    if (weather.blowEveryMs > 0) this.blow()
  }

  private get isCalm(): boolean {
    return this.agenda.now >= this.weather.calmAt
  }

  private named(): Node {
    return new Node(`process ${++this.names}`)
  }

  private clock(place: Place): number {
    return this.agenda.now * place.rate
  }

  /** Runs in a process once it does not stand still, unless it has ended. */
  private inside(place: Place, node: Node, at: number, run: () => void): void {
    this.agenda.at(at, () => {
      if (node.isDead) return
      if (place.stillUntil > this.agenda.now) this.inside(place, node, place.stillUntil, run)
      else run()
    })
  }

  private after(place: Place, node: Node, ownMs: number, run: () => void): void {
    this.inside(place, node, this.agenda.now + ownMs / place.rate, run)
  }

  private delay(): number {
    const { lossRate, maxDelayMs } = this.weather
    if (this.isCalm) return 1
    if (this.random.chance(lossRate)) return (this.lost++, Infinity)
    // Now and then a call is far later than its caller waits.
    return this.random.chance(lossRate / 2) ? this.random.next() * 4 * leaseMs : this.random.next() * maxDelayMs
  }

  /** One statement at the engine; undefined: no answer in time, and it may be carried out whenever it arrives. */
  private call<A>(place: Place, node: Node, statement: () => A, done: (answer: A | undefined) => void): void {
    let isOver = false
    const finish = (answer: A | undefined): void => {
      if (isOver) return
      isOver = true
      done(answer)
    }
    this.after(place, node, answerMs, () => finish(undefined))
    const there = this.delay()
    if (there === Infinity) return
    this.agenda.at(this.agenda.now + there, () => {
      const answer = statement()
      const back = this.delay()
      if (back !== Infinity) this.inside(place, node, this.agenda.now + back, () => finish(answer))
    })
  }

  private begin(place: Place, node: Node): void {
    const tick = (): void => {
      this.tell(place, node, { tag: "Tick" })
      if (node.term.role === "follower") this.look(place, node)
      if (!node.isDead) this.after(place, node, lookMs, tick)
    }
    this.after(place, node, this.random.next() * lookMs, tick)
  }

  private look(place: Place, node: Node): void {
    if (node.isLooking) return
    node.isLooking = true
    const sentAt = this.clock(place)
    this.call(
      place,
      node,
      () => ({ frame: this.engine.frame, lines: this.engine.log.slice(node.replica.length) }),
      (answer) => {
        node.isLooking = false
        // One that began to lead writes its replica itself.
        if (answer === undefined || node.term.role !== "follower") return
        this.take(node, answer.lines)
        this.tell(place, node, { tag: "Looked", sentAt, frame: answer.frame })
      }
    )
  }

  private take({ replica }: Node, lines: ReadonlyArray<Line>): void {
    for (const { attempt, seq } of lines) if (seq === replica.length + 1) replica.push(attempt)
  }

  private tell(place: Place, node: Node, fact: Term.Fact): void {
    const [term, orders] = Term.decide(node.rules, node.term, this.clock(place), fact)
    node.term = term
    for (const order of orders) this.carryOut(place, node, order)
    if (fact.tag === "Stopped" && orders.length === 0) this.replace(place, node)
    this.write(place, node)
  }

  private carryOut(place: Place, node: Node, order: Term.Order): void {
    const sentAt = this.clock(place)
    switch (order.tag) {
      case "Claim":
        return this.call(
          place,
          node,
          () => ({ frame: this.engine.claim(node.self, order.expected) }),
          (answer) =>
            this.tell(
              place,
              node,
              answer === undefined ? { tag: "ClaimUnknown" } : { tag: "Claimed", sentAt, ...answer }
            )
        )
      case "Lead":
        return this.lead(place, node, order.frame.lastSeq)
      case "Beat":
        return this.call(
          place,
          node,
          () => this.engine.beat(node.term.role === "leader" ? node.term.epoch : -1),
          (answer) => {
            if (answer !== undefined)
              this.tell(place, node, answer ? { tag: "Accepted", sentAt } : { tag: "Superseded" })
          }
        )
      case "HandOver":
        this.call(
          place,
          node,
          () => this.engine.handOver(node.self),
          () => this.replace(place, node)
        )
        return
      case "End":
        this.ended++
        return this.replace(place, node)
    }
  }

  /** Reads what it lacks, then opens. */
  private lead(place: Place, node: Node, through: number): void {
    this.call(
      place,
      node,
      () => this.engine.log.slice(0, through),
      (lines) => {
        if (node.term.role !== "leader") return
        if (lines === undefined) return this.lead(place, node, through)
        this.take(node, lines)
        node.isOpen = true
        this.write(place, node)
      }
    )
  }

  /** One append at a time, of all that waits; settled before the next. */
  private write(place: Place, node: Node): void {
    if (node.isWriting || !node.isOpen || node.waiting.length === 0 || node.term.role !== "leader") return
    node.isWriting = true
    const batch = node.waiting
    node.waiting = []
    const lastSeq = node.replica.length
    const attempt = { epoch: node.term.epoch, lastSeq, count: batch.length }
    const texts = batch.map(([text]) => text)
    const there = (): void => {
      node.replica.push(...texts)
      node.isWriting = false
      const isLeft = this.engine.log.slice(0, node.replica.length)
      if (isLeft.some(({ attempt: text }, i) => text !== node.replica[i]))
        throw new Error(`the replica of ${node.self} is not the log up to ${node.replica.length}`)
      for (const [, done] of batch) done(true)
      this.write(place, node)
    }
    const send = (): void => {
      const sentAt = this.clock(place)
      this.call(
        place,
        node,
        () => this.engine.append(node.self, attempt.epoch, lastSeq, texts),
        (accepted) => {
          if (accepted === true) {
            there()
            this.tell(place, node, { tag: "Accepted", sentAt })
          } else settle()
        }
      )
    }
    const settle = (): void =>
      this.call(
        place,
        node,
        () => this.engine.frame,
        (frame) => {
          if (frame === undefined) return settle()
          const outcome = Term.outcomeOf(attempt, frame)
          if (outcome === "there") return there()
          if (outcome === "absent") return send()
          if (outcome === "damaged") throw new Error(`${node.self} found the log at ${frame.lastSeq}, wrote ${lastSeq}`)
          this.tell(place, node, { tag: "Superseded" })
        }
      )
    send()
  }

  /** The process has ended; another begins in its place, with nothing of it. */
  private replace(place: Place, node: Node): void {
    if (node.isDead) return
    node.isDead = true
    const next = this.named()
    place.node = next
    this.agenda.at(this.agenda.now + 200, () => this.begin(place, next))
  }

  private client(event: string, tries: number): void {
    const attempt = `${event}/${tries}`
    let isOver = false
    const again = (): void => {
      if (isOver) return
      isOver = true
      this.agenda.at(this.agenda.now + 100, () => this.client(event, tries + 1))
    }
    this.agenda.at(this.agenda.now + clientMs, again)
    const place = this.random.pick(this.places)
    const { node } = place
    // A call that arrives at a process that has ended finds another there, or nothing.
    this.inside(place, node, this.agenda.now + this.random.next() * 5, () => {
      if (!Term.mayAnswer(node.rules, node.term, this.clock(place))) return again()
      node.waiting.push([
        attempt,
        (isThere) => {
          if (!isThere || isOver) return
          isOver = true
          this.open--
          this.acknowledged.set(attempt, node.self)
        }
      ])
      this.write(place, node)
    })
  }

  private blow(): void {
    this.agenda.at(this.agenda.now + this.random.next() * 2 * this.weather.blowEveryMs, () => {
      if (this.isCalm) return
      const place = this.random.pick(this.places)
      const { node } = place
      const kind = this.random.below(3)
      if (kind === 0)
        place.stillUntil = Math.min(this.agenda.now + this.random.next() * 4 * leaseMs, this.weather.calmAt)
      else if (kind === 1) this.replace(place, node)
      else this.inside(place, node, this.agenda.now, () => this.tell(place, node, { tag: "Stopped" }))
      this.blow()
    })
  }

  /** Runs until every event is acknowledged; throws where a promise is broken, or it takes too long. */
  run(): Report {
    // Two leases by the slowest clock for a leader, as long again for what waited, and time to settle.
    const latest = this.weather.calmAt + (8 * leaseMs) / this.weather.clocks[0]
    while (this.open > 0) {
      if (this.agenda.now > latest)
        throw new Error(
          `${this.open} events are not acknowledged ${latest - this.weather.calmAt} ms after the last fault`
        )
      if (!this.agenda.step()) throw new Error("nothing happens any more")
    }
    const times = new Map<string, number>()
    for (const { attempt } of this.engine.log) times.set(attempt, (times.get(attempt) ?? 0) + 1)
    for (const [attempt, count] of times) if (count > 1) throw new Error(`${attempt} is in the log ${count} times`)
    for (const attempt of this.acknowledged.keys())
      if (!times.has(attempt)) throw new Error(`${attempt} was acknowledged and is not in the log`)
    const { lost } = this
    return {
      acknowledged: this.acknowledged.size,
      takeOvers: this.engine.takeOvers,
      lost,
      ended: this.ended,
      endedAt: this.agenda.now
    }
  }
}
