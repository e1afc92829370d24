/**
 * A pool driven by hand: commands in, actions out, time where the test puts it.
 *
 * Short on purpose, so that a case of pool.test.ts reads as the story it tells.
 */
import type { Action, CallOutcome, Command, Reply } from "../../../src/core/cluster/messages.ts"
import * as Pool from "../../../src/core/cluster/pool.ts"
import * as State from "../../../src/core/cluster/state.ts"

type Tagged<T extends Action["tag"]> = Extract<Action, { readonly tag: T }>

export class Drive {
  state: State.State
  now = 0
  last: ReadonlyArray<Action> = []
  all: Array<Action> = []

  constructor(config: Partial<State.Config> = {}, head = 100) {
    this.state = State.initial({ ...State.defaults, ...config }, 1, { first: 1, head }, true)
  }

  do(command: Command): this {
    ;[this.state, this.last] = Pool.decide(this.state, this.now, command)
    this.all.push(...this.last)
    return this
  }

  at(now: number): this {
    this.now = now
    return this.do({ tag: "Tick" })
  }

  found<T extends Action["tag"]>(tag: T): ReadonlyArray<Tagged<T>> {
    return this.last.filter((action): action is Tagged<T> => action.tag === tag)
  }

  get tags(): ReadonlyArray<string> {
    return this.last.map((action) => action.tag).filter((tag) => tag !== "Log")
  }

  get reply(): Reply | undefined {
    return this.found("Reply").at(-1)?.reply
  }

  member(ssp: string): State.SspMember {
    const found = State.member(this.state, ssp)
    if (found === undefined) throw new Error(`no ${ssp}`)
    return found
  }

  register(ssp: string, incarnation?: string): this {
    return this.do({
      tag: "Register",
      ref: 1,
      registration: { ssp, incarnation, url: `http://${ssp}${incarnation ?? ""}`, batch: true, jobTables: undefined }
    })
  }

  beat(ssp: string, incarnation?: string, registration?: number): this {
    return this.do({
      tag: "Heartbeat",
      ref: 2,
      from: { ssp, incarnation },
      registration,
      views: 0,
      cpu: undefined,
      memory: undefined
    })
  }

  polled(
    ssp: string,
    health: "ready" | "failed" | "bootstrapping" = "ready",
    registration = this.member(ssp).registration
  ): this {
    return this.do({ tag: "Polled", ssp, registration, health })
  }

  /** Registered, polled ready, nothing to replay. */
  ready(...ssps: ReadonlyArray<string>): this {
    for (const ssp of ssps) this.register(ssp)
    for (const ssp of ssps) this.polled(ssp)
    return this
  }

  append(through: number): this {
    return this.do({ tag: "Appended", through })
  }

  delivered(
    ssp: string,
    answer: Extract<Command, { readonly tag: "Delivered" }>["answer"] = { kind: "applied" }
  ): this {
    return this.do({ tag: "Delivered", ssp, registration: this.member(ssp).registration, answer, jitter: 0 })
  }

  view(view: string, body: unknown = "q", ref = 3, ttlMs = 1e9): this {
    return this.do({ tag: "RegisterView", ref, view, spec: { body, ttlMs, lastActiveAt: this.now } })
  }

  unview(view: string): this {
    return this.do({ tag: "UnregisterView", ref: 4, view })
  }

  /** Ends the calls of the last step about views. */
  called(ended: "done" | "refused" | "unreachable" | CallOutcome): this {
    const calls = this.last
    for (const call of calls) {
      if (call.tag !== "CallRegister" && call.tag !== "CallUnregister") continue
      const outcome: CallOutcome =
        typeof ended !== "string" ? ended : ended === "refused" ? { kind: ended, details: "why" } : { kind: ended }
      this.do({
        tag: "ViewCalled",
        op: call.op,
        view: call.view,
        ssp: call.ssp,
        registration: call.registration,
        outcome
      })
    }
    return this
  }

  owner(view: string): string | undefined {
    return State.ownerOf(this.state, view)?.ssp
  }
}
