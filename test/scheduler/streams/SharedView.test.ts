/**
 * A view that clients share (D50): whenever they come, whatever breaks, each sees states that the SSP had, in order,
 * none left out between two deltas, and in the end the last one.
 */
import { describe, expect, it } from "vitest"
import { campaign, rng } from "../../../kit/data/random.ts"
import type { CutEvent } from "../../../src/node/streams/eventCutter.ts"
import { bytesOf, endEvent, type ViewEvent } from "../../../src/node/streams/viewEvent.ts"
import { SharedView } from "../../../src/scheduler/streams/SharedView.ts"
import type { SourceListener } from "../../../src/scheduler/streams/ViewSource.ts"

const encoder = new TextEncoder()
const decoder = new TextDecoder()
const cut = (name: string, id: string | undefined, data: object): CutEvent => ({
  place: 0,
  name,
  id,
  bytes: encoder.encode(`event: ${name}\n${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`)
})

/** An SSP that counts: state number n of an incarnation, and the sources that follow it. */
class Ssp {
  incarnation = 0
  n = 0
  readonly sources = new Set<{ readonly hearing: SourceListener; pending: Array<CutEvent> }>()
  snapshots = 0

  get id(): string {
    return `${this.incarnation}.${this.n}`
  }

  /** In three parts, as large ones come. */
  private snapshot(): Array<CutEvent> {
    this.snapshots++
    return [0, 1, 2].map((part) => cut("snapshot", part === 2 ? this.id : undefined, { part, state: this.id }))
  }

  private since(after: string | undefined): Array<CutEvent> {
    const [incarnation, n] = (after ?? "").split(".").map(Number)
    if (incarnation !== this.incarnation || n === undefined || this.n - n > 5) return this.snapshot()
    return Array.from({ length: this.n - n }, (_, k) =>
      cut("delta", `${incarnation}.${n + k + 1}`, { from: `${incarnation}.${n + k}` })
    )
  }

  follow(after: string | undefined, hearing: SourceListener) {
    const source = { hearing, pending: this.since(after) }
    this.sources.add(source)
    return { close: () => void this.sources.delete(source) }
  }

  change(): void {
    const from = this.id
    this.n++
    for (const { pending } of this.sources) pending.push(cut("delta", this.id, { from }))
  }

  /** Another SSP has the view from now on: it knows nothing of what was. */
  move(): void {
    this.incarnation++
    this.n += 3
    for (const source of this.sources) {
      source.hearing.cut()
      source.pending = this.snapshot()
    }
  }

  /** Some of what is under way arrives; the memory is used again. */
  deliver(count: (waiting: number) => number): void {
    for (const source of this.sources) {
      const events = source.pending.splice(0, count(source.pending.length))
      if (events.length === 0) continue
      source.hearing.took(events)
      for (const { bytes } of events) bytes.fill(0)
    }
  }
}

/** What a client makes of its events; throws at one that does not follow from what it has. */
class Client {
  state: string | undefined
  lastId: string | undefined
  private parts = 0
  isSlow = false
  ended: string | undefined
  following: { readonly resume: () => void; readonly close: () => void } | undefined

  take(events: ReadonlyArray<ViewEvent>): boolean {
    for (const event of events) {
      const text = decoder.decode(bytesOf(event))
      const data = JSON.parse(text.slice(text.indexOf("data: ") + 6)) as {
        readonly part?: number
        readonly state?: string
        readonly from?: string
        readonly reason?: string
      }
      if (event.event === "end") this.ended = data.reason
      else if (event.event === "delta") {
        if (data.from !== this.state) throw new Error(`a delta from ${data.from} at ${this.state}`)
        this.state = event.id
      } else {
        if (data.part !== this.parts) throw new Error(`part ${data.part} behind ${this.parts}`)
        this.parts = (data.part! + 1) % 3
        if (event.id !== undefined) this.state = data.state
      }
      this.lastId = event.id
    }
    return !this.isSlow
  }
}

const run = (seed: number, steps: number) => {
  const random = rng(seed)
  const ssp = new Ssp()
  let nowMs = 0
  let kept = 0
  const capacity = 1 + random.below(20)
  /** As the service has it: a view that nobody follows is forgotten. */
  let shared: SharedView | undefined
  const share = (after: string | undefined): SharedView =>
    (shared ??= new SharedView(
      {
        capacity,
        source: (from, hearing) => ssp.follow(from, hearing),
        gone: () => {
          shared = undefined
        },
        weighs: (bytes) => void (kept += bytes),
        nowMs: () => nowMs
      },
      after
    ))
  const clients: Array<Client> = []
  const join = (after: string | undefined): void => {
    const client = new Client()
    client.state = after
    client.following = share(after).follow(after, client)
    client.following.resume()
    clients.push(client)
  }
  join(undefined)
  for (let step = 0; step < steps; step++) {
    nowMs += random.below(500)
    const one = clients[random.below(clients.length)]!
    if (random.chance(0.5)) ssp.change()
    if (random.chance(0.02)) ssp.move()
    if (random.chance(0.15)) join(random.chance(0.5) ? undefined : one.lastId)
    if (random.chance(0.05)) one.isSlow = !one.isSlow
    if (random.chance(0.3) && !one.isSlow) one.following!.resume()
    if (random.chance(0.1) && clients.length > 3) {
      one.following!.close()
      clients.splice(clients.indexOf(one), 1)
    }
    if (random.chance(0.05)) shared?.forget()
    if (random.chance(0.6)) ssp.deliver((waiting) => random.below(waiting + 1))
    if (random.chance(0.1)) shared?.check()
  }
  for (let round = 0; round < 3; round++) {
    ssp.deliver((waiting) => waiting)
    nowMs += 10_000
    shared?.check()
    for (const client of clients) {
      client.isSlow = false
      client.following!.resume()
    }
  }
  for (const { ended, state } of clients) if (ended !== "behind") expect(state).toBe(ssp.id)
  for (const { following } of clients) following!.close()
  expect([ssp.sources.size, kept]).toEqual([0, 0])
  return ssp
}

describe("a view that clients share", () => {
  it("D50 every client sees states in order, and the last, whenever it comes and whatever breaks", () => {
    for (let seed = 0; seed < (campaign ? 5000 : 100); seed++) run(seed, 400)
  })
  it("D50 clients that come while a snapshot is kept cost the SSP nothing, and those that come at once one snapshot", () => {
    const ssp = new Ssp()
    const parts = {
      capacity: 20,
      source: (after: string | undefined, hearing: SourceListener) => ssp.follow(after, hearing),
      gone: () => {},
      weighs: () => {},
      nowMs: () => 0
    }
    const view = new SharedView(parts, undefined)
    const join = () => {
      const client = new Client()
      view.follow(undefined, client).resume()
      return client
    }
    const [first] = [join(), join()]
    ssp.deliver((waiting) => waiting)
    ssp.change()
    ssp.deliver((waiting) => waiting)
    const third = join()
    expect([first.state, third.state, ssp.snapshots, ssp.sources.size]).toEqual(["0.1", "0.1", 1, 1])
    view.forget()
    const late = [join(), join()]
    ssp.deliver((waiting) => waiting)
    expect([late.map(({ state }) => state), ssp.snapshots, ssp.sources.size]).toEqual([["0.1", "0.1"], 2, 1])
  })
  it("D50 what is last of all reaches clients that listen and those that wait", () => {
    const hearings: Array<SourceListener> = []
    let gone = 0
    const source = (_: string | undefined, hearing: SourceListener) => {
      hearings.push(hearing)
      return { close: () => {} }
    }
    const view = new SharedView({ capacity: 20, source, gone: () => gone++, weighs: () => {}, nowMs: () => 0 }, "0.0")
    const [listening, waiting] = [new Client(), new Client()]
    view.follow("0.0", listening).resume()
    view.follow(undefined, waiting).resume()
    hearings[0]!.over(endEvent("unregistered"))
    expect([listening.ended, waiting.ended, gone > 0]).toEqual(["unregistered", "unregistered", true])
  })
})
