/**
 * A cluster in one thread: the pool under a shell that loses, delays and repeats messages and dies, and model SSPs
 * around it.
 *
 * All time and chance come from one seed, so that a run is a value. The models know the protocol (D5, D19, D20, D21)
 * and nothing of the pool's insides; test/core/cluster/checks.ts looks at both after every step.
 */

import type { Rng } from "../../../kit/data/random.ts"
import type { Answer } from "../../../src/core/cluster/deliveryQueue.ts"
import type { Action, CallOutcome, Command, Health, Reply } from "../../../src/core/cluster/messages.ts"
import * as Pool from "../../../src/core/cluster/pool.ts"
import * as State from "../../../src/core/cluster/state.ts"
import { ModelSsp } from "./modelSsp.ts"

export const config: State.Config = {
  ...State.defaults,
  heartbeatTimeoutMs: 1500,
  bootstrapTimeoutMs: 4000,
  maxSilenceMs: 200,
  database: true,
  pollIntervalMs: 200,
  probeIntervalMs: 300,
  confirmMs: 150,
  maxBuffer: 60,
  maxBatch: 5,
  maxCalls: 3,
  unevenMs: 300,
  coolMs: 300,
  retryBaseMs: 20,
  retryMaxMs: 400,
  unauthorizedMs: 400,
  divergedBaseMs: 1000
}

export const rpcTimeoutMs = 600
export const tickMs = 100

interface Entry {
  readonly at: number
  readonly order: number
  readonly run: () => void
}

type Sent = Extract<Action, { readonly tag: "Poll" | "Deliver" | "CallRegister" | "CallUnregister" | "ExecuteJob" }>

export class World {
  now = 1000
  epoch = 1
  head = 0
  first = 1
  state: State.State
  /**
   * Chance of a message to be lost, of a request to be carried out twice, of the scheduler to die among its actions.
   */
  loss = 0
  twice = 0
  death = 0
  readonly ssps: Array<ModelSsp> = []
  /** Registrations in the database, with who wrote them last. */
  readonly rows = new Map<string, string>()
  readonly saved = { members: new Map(), views: new Map(), strays: new Map(), jobs: new Map() } as {
    members: Map<string, Pool.Saved["members"][number]>
    views: Map<string, Pool.Saved["views"][number]>
    strays: Map<string, Pool.Saved["strays"][number]>
    jobs: Map<string, Pool.Saved["jobs"][number]>
  }
  /** The snapshot held, as the shell knows it. */
  frozen: { readonly id: number; readonly seq: number; readonly at: number } | undefined
  /** Assignment number -> who got it. */
  readonly assigned = new Map<number, string>()
  readonly flights = new Set<string>()
  readonly counts: Record<string, number> = {}
  readonly trace: Array<{ readonly at: number; readonly what: Command | Action }> = []
  check: () => void = () => {}
  private readonly clearing = new Map<string, number>()
  private readonly replies = new Map<number, (reply: Reply) => void>()
  private queue: Array<Entry> = []
  private order = 0
  private lastRef = 0

  readonly rng: Rng

  constructor(rng: Rng) {
    this.rng = rng
    this.state = State.initial(config, this.epoch, { first: 1, head: 0 }, true)
  }

  count(what: string): void {
    this.counts[what] = (this.counts[what] ?? 0) + 1
  }

  after(ms: number, run: () => void): void {
    const entry = { at: this.now + Math.max(0, Math.round(ms)), order: this.order++, run }
    let low = 0
    let high = this.queue.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.queue[middle]!.at > entry.at) low = middle + 1
      else high = middle
    }
    this.queue.splice(low, 0, entry)
  }

  run(until: number): void {
    for (let entry = this.queue.at(-1); entry !== undefined && entry.at <= until; entry = this.queue.at(-1)) {
      this.queue.pop()
      this.now = entry.at
      entry.run()
    }
    this.now = until
  }

  delay(): number {
    return this.rng.chance(0.05) ? this.rng.below(900) : 1 + this.rng.below(30)
  }

  /**
   * A request over the network; `carry` runs where it arrives (perhaps twice, perhaps late), `done` gets the first end
   * there is.
   */
  call<A>(carry: () => A | undefined, done: (answer: A | undefined) => void): void {
    let open = true
    const end = (answer: A | undefined): void => {
      if (!open) return
      open = false
      done(answer)
    }
    const send = (): void => {
      if (this.rng.chance(this.loss)) return
      this.after(this.delay(), () => {
        const answer = carry()
        if (answer !== undefined && !this.rng.chance(this.loss)) this.after(this.delay(), () => end(answer))
      })
    }
    send()
    if (this.rng.chance(this.twice)) send()
    this.after(rpcTimeoutMs, () => end(undefined))
  }

  /** A request to the scheduler: its reply comes when the pool gives one. */
  ask(command: (ref: number) => Command, done: (reply: Reply | undefined) => void): void {
    let open = true
    const end = (reply: Reply | undefined): void => {
      if (!open) return
      open = false
      done(reply)
    }
    const send = (): void => {
      if (this.rng.chance(this.loss)) return
      this.after(this.delay(), () => {
        const ref = ++this.lastRef
        this.replies.set(ref, (reply) => {
          if (!this.rng.chance(this.loss)) this.after(this.delay(), () => end(reply))
        })
        this.decide(command(ref))
      })
    }
    send()
    if (this.rng.chance(this.twice)) send()
    this.after(4 * rpcTimeoutMs, () => end(undefined))
  }

  decide(command: Command): void {
    this.note(command)
    const [state, actions] = Pool.decide(this.state, this.now, command)
    this.state = state
    this.perform(actions)
    this.check()
  }

  private note(command: Command): void {
    this.count(command.tag)
    if (command.tag !== "Tick" && command.tag !== "Heartbeat") this.trace.push({ at: this.now, what: command })
    if (this.trace.length > 200) this.trace.splice(0, 150)
  }

  private perform(actions: ReadonlyArray<Action>): void {
    const death = actions.length > 0 && this.rng.chance(this.death) ? this.rng.below(actions.length + 1) : undefined
    for (const [index, action] of actions.entries()) {
      if (index === death) break
      this.act(action)
    }
    if (death !== undefined) this.crash()
  }

  /** The scheduler dies and comes back: what was persisted is all it knows. */
  crash(): void {
    this.count("crash")
    this.epoch++
    this.frozen = undefined
    this.flights.clear()
    this.replies.clear()
    const { jobs, members, strays, views } = this.saved
    const rows: Pool.Saved = {
      members: [...members.values()],
      views: [...views.values()],
      strays: [...strays.values()],
      jobs: [...jobs.values()]
    }
    const [state, actions] = Pool.restore(
      State.initial(config, this.epoch, { first: this.first, head: this.head }, true),
      this.now,
      rows
    )
    this.state = state
    for (const row of members.values()) {
      if (
        this.head - row.acked <= config.maxBuffer &&
        State.member(state, row.ssp)?.state !== "Replaying" &&
        State.member(state, row.ssp)?.state !== "Ready"
      )
        throw new Error(`the restart alone made ${row.ssp} bootstrap`)
    }
    for (const action of actions) this.act(action)
  }

  /** Runs `run` only while the scheduler process of now is alive. */
  private alive(run: () => void): () => void {
    const epoch = this.epoch
    return () => {
      if (this.epoch === epoch) run()
    }
  }

  /**
   * What a call ends with where the process at that address is gone: most machines refuse at once, of some nothing is
   * heard.
   */
  private refusal<A>(url: string, refused: A): A | undefined {
    const gone = !this.ssps.some((ssp) => ssp.url === url && ssp.alive) && this.rng.chance(0.8)
    if (gone) this.count("refusal")
    return gone ? refused : undefined
  }

  private ssp(url: string): ModelSsp | undefined {
    return this.ssps.find((ssp) => ssp.url === url && ssp.alive)
  }

  private persist(action: Action): boolean {
    const { saved } = this
    switch (action.tag) {
      case "PersistMember":
        return saved.members.set(action.row.ssp, action.row).size > 0
      case "ForgetMember":
        saved.members.delete(action.ssp)
        for (const [key, row] of saved.strays) if (row.ssp === action.ssp) saved.strays.delete(key)
        return true
      case "PersistView":
        return saved.views.set(action.row.view, action.row).size > 0
      case "ForgetView":
        saved.views.delete(action.view)
        return true
      case "PersistStray":
        return saved.strays.set(`${action.row.ssp}/${action.row.view}`, action.row).size > 0
      case "ForgetStray":
        saved.strays.delete(`${action.row.ssp}/${action.row.view}`)
        return true
      case "PersistJob":
        return saved.jobs.set(action.row.job, action.row).size > 0
      case "ForgetJob":
        saved.jobs.delete(action.job)
        return true
      default:
        return false
    }
  }

  private act(action: Action): void {
    if (this.trace.length > 0 && action.tag !== "PersistMember" && action.tag !== "Poll")
      this.trace.push({ at: this.now, what: action })
    if (this.persist(action)) return
    switch (action.tag) {
      case "Freeze":
        if (this.frozen !== undefined || action.seq !== this.head)
          throw new Error("froze over a snapshot, or not at the head")
        this.frozen = { id: action.id, seq: action.seq, at: this.now }
        return
      case "Thaw":
        if (this.frozen?.id !== action.id) throw new Error("thawed what is not frozen")
        this.frozen = undefined
        return
      case "Checkpoint":
        return this.after(
          50,
          this.alive(() => {
            this.first = Math.max(this.first, action.keepFrom)
            this.decide({ tag: "Trimmed", first: this.first })
            this.decide({ tag: "Checkpointed" })
          })
        )
      case "Reply": {
        const done = this.replies.get(action.ref)
        this.replies.delete(action.ref)
        this.count(action.reply.kind)
        return done?.(action.reply)
      }
      case "ClearView":
        this.clearing.set(action.view, action.op)
        return this.after(
          5 + this.rng.below(200),
          this.alive(() => {
            // Views are cleared one after the other: of two calls about one, the older is over before the newer begins.
            if (this.clearing.get(action.view) !== action.op) return
            const owner = State.ownerOf(this.state, action.view)
            if (owner !== undefined) throw new Error(`${action.view} is cleared while ${owner.ssp} has it`)
            this.rows.delete(action.view)
            this.decide({ tag: "ViewCleared", op: action.op, view: action.view })
          })
        )
      case "AskActivity":
        return this.after(
          5,
          this.alive(() => this.decide({ tag: "ActivityFound", view: action.view, lastActiveAt: action.lastActiveAt }))
        )
      case "Log":
        if (/process is gone/.test(action.message)) this.count("removed by refusal")
        return this.count(action.level)
      case "Poll":
      case "Deliver":
      case "CallRegister":
      case "CallUnregister":
      case "ExecuteJob":
        return this.send(action)
      default:
        throw new Error(`not carried out: ${action.tag}`)
    }
  }

  private send(action: Sent): void {
    const { registration, ssp, url } = action
    const once = `${action.tag} ${ssp} ${registration}`
    const back = (command: (answer: unknown) => Command) => {
      const epoch = this.epoch
      return (answer: unknown): void => {
        if (this.epoch !== epoch) return
        this.flights.delete(once)
        this.decide(command(answer))
      }
    }
    const outcome = (answer: unknown): CallOutcome => (answer as CallOutcome | undefined) ?? { kind: "unreachable" }
    if (action.tag === "Poll" || action.tag === "Deliver") {
      if (this.flights.has(once)) throw new Error(`two at once: ${once}`)
      this.flights.add(once)
    }
    switch (action.tag) {
      case "Poll":
        return this.call<Health>(
          () => this.ssp(url)?.state ?? this.refusal(url, "refused"),
          back((health) => ({
            tag: "Polled",
            ssp,
            registration,
            health: (health as Health | undefined) ?? "unreachable"
          }))
        )
      case "Deliver": {
        if (action.from < this.first || action.to > this.head || action.from > action.to)
          throw new Error(`delivers ${action.from}..${action.to} of ${this.first}..${this.head}`)
        return this.call<Answer>(
          () =>
            this.ssp(url)?.ingest(action.from, action.to, this.epoch, registration) ??
            this.refusal(url, { kind: "unavailable", refused: true }),
          back((answer) => ({
            tag: "Delivered",
            ssp,
            registration,
            answer: (answer as Answer | undefined) ?? { kind: "unavailable" },
            jitter: this.rng.next()
          }))
        )
      }
      case "CallRegister": {
        const to = `${ssp} ${registration} ${action.view}`
        const row = this.saved.views.get(action.view)
        if (row?.assignment !== action.assignment || row.home?.registration !== registration)
          throw new Error("sent before it was persisted")
        if ((this.assigned.get(action.assignment) ?? to) !== to) throw new Error("one assignment, two owners")
        this.assigned.set(action.assignment, to)
        return this.call<CallOutcome>(
          () =>
            this.ssp(url)?.register(action.view, action.assignment, registration, action.spec.body) ??
            this.refusal(url, { kind: "unreachable", refused: true }),
          back((answer) => ({
            tag: "ViewCalled",
            op: action.op,
            view: action.view,
            ssp,
            registration,
            outcome: outcome(answer)
          }))
        )
      }
      case "CallUnregister":
        return this.call(
          () => this.ssp(url)?.unregister(action.view, action.assignment, action.gone),
          back((answer) => ({
            tag: "ViewCalled",
            op: action.op,
            view: action.view,
            ssp,
            registration,
            outcome: outcome(answer)
          }))
        )
      case "ExecuteJob": {
        if (this.saved.jobs.get(action.job)?.home?.registration !== registration)
          throw new Error("job handed over before it was persisted")
        return this.call(
          () => this.ssp(url)?.execute(action.job),
          back((answer) => ({ tag: "JobCalled", op: action.op, job: action.job, outcome: outcome(answer) }))
        )
      }
    }
  }

  append(count: number): void {
    this.head += count
    this.decide({ tag: "Appended", through: this.head })
  }

  start(id: string, batch: boolean): ModelSsp {
    const ssp = new ModelSsp(this, id, `${id}-${this.order++}`, batch)
    this.ssps.push(ssp)
    ssp.begin()
    return ssp
  }
}
