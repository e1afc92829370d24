/**
 * An SSP reduced to its promises: it registers, pulls the snapshot, heartbeats, applies each event once and in order,
 * holds views.
 *
 * Written from the decisions (D5, D18-D21), not from the pool, so that the two can disagree.
 */

import type { Answer } from "../../../src/core/cluster/deliveryQueue.ts"
import type { CallOutcome, SspRegistration } from "../../../src/core/cluster/messages.ts"
import type { World } from "./world.ts"

export class ModelSsp {
  alive = true
  state: "bootstrapping" | "ready" | "failed" = "bootstrapping"
  /** The last event applied; nothing before it is missing. */
  applied = -1
  epoch = 0
  registration = 0
  views = new Map<string, number>()
  readonly jobs = new Set<string>()
  stopped: string | undefined
  /** It has lost data behind the scheduler's back. */
  amnesia = false
  hangs = false
  readonly url: string
  private tombs = new Map<string, number>()
  private attempt = 0

  readonly world: World
  readonly id: string
  readonly incarnation: string
  readonly batch: boolean

  constructor(world: World, id: string, incarnation: string, batch: boolean) {
    this.world = world
    this.id = id
    this.incarnation = incarnation
    this.batch = batch
    this.url = `http://${incarnation}`
  }

  begin(): void {
    this.enroll()
    this.beat()
  }

  die(): void {
    this.alive = false
  }

  /** The last events are gone, as after a restart from an older save that nobody noticed. */
  forget(count: number): void {
    if (this.state !== "ready") return
    this.applied = Math.max(0, this.applied - count)
    this.amnesia = true
  }

  enroll(): void {
    const attempt = ++this.attempt
    const current = (): boolean => this.alive && this.attempt === attempt && this.stopped === undefined
    this.state = "bootstrapping"
    this.views = new Map()
    this.tombs = new Map()
    const registration: SspRegistration = {
      ssp: this.id,
      incarnation: this.incarnation,
      url: this.url,
      batch: this.batch,
      jobTables: undefined
    }
    this.world.ask(
      (ref) => ({ tag: "Register", ref, registration }),
      (reply) => {
        if (!current()) return
        if (reply?.kind === "fenced") return this.stop(reply.url)
        if (reply?.kind !== "registered")
          return this.world.after(200 + this.world.rng.below(300), () => current() && this.enroll())
        this.registration = reply.registration
        if (this.hangs) return
        this.world.after(100 + this.world.rng.below(1500), () => {
          if (!current()) return
          // The snapshot it pulled from changed on the way: start over (D20).
          if (this.world.frozen?.seq !== reply.snapshotSeq) return this.enroll()
          this.applied = reply.snapshotSeq
          this.amnesia = false
          this.state = "ready"
        })
      }
    )
  }

  private stop(url: string): void {
    this.stopped = url
    this.alive = false
  }

  private beat(): void {
    if (!this.alive) return
    const attempt = this.attempt
    const registration = this.state === "ready" ? this.registration : undefined
    this.world.ask(
      (ref) => ({
        tag: "Heartbeat",
        ref,
        from: { ssp: this.id, incarnation: this.incarnation },
        registration,
        views: this.views.size,
        cpu: undefined,
        memory: undefined
      }),
      (reply) => {
        if (!this.alive) return
        if (reply?.kind === "fenced") this.stop(reply.url)
        if (attempt !== this.attempt) return
        if ((reply?.kind === "unknownSsp" || reply?.kind === "conflict") && this.state === "ready") this.enroll()
        // While it pulls, a 404 says that the registration it pulls for is gone.
        else if (reply?.kind === "unknownSsp" && this.registration !== 0) this.enroll()
      }
    )
    this.world.after(500, () => this.beat())
  }

  /**
   * A higher registration than the one it has pulled for: what it holds may be older than the scheduler thinks, so it
   * starts over.
   */
  private outdated(registration: number): boolean {
    if (registration <= this.registration) return false
    this.world.count("outdated")
    this.enroll()
    return true
  }

  ingest(from: number, to: number, epoch: number, registration: number): Answer {
    if (this.state !== "ready") return { kind: "unavailable" }
    if (this.outdated(registration)) return { kind: "unavailable" }
    if (epoch < this.epoch) return { kind: "stale" }
    this.epoch = epoch
    if (!this.batch && from !== to) throw new Error("an array to an SSP that takes none")
    if (from > this.applied + 1) {
      this.world.count("gap")
      if (!this.amnesia) this.world.count("unprovoked gap")
      return { kind: "gap", expected: this.applied + 1 }
    }
    this.applied = Math.max(this.applied, to)
    return { kind: "applied" }
  }

  register(view: string, assignment: number, registration: number, body: unknown): CallOutcome | undefined {
    if (this.state !== "ready" || registration < this.registration) return { kind: "unreachable" }
    if (this.outdated(registration)) return { kind: "unreachable" }
    if (body === "bad") return { kind: "refused", details: "line 1" }
    if (assignment < (this.views.get(view) ?? 0) || assignment <= (this.tombs.get(view) ?? 0))
      return { kind: "unreachable" }
    this.views.set(view, assignment)
    this.world.rows.set(view, this.incarnation)
    return { kind: "done" }
  }

  unregister(view: string, assignment: number, gone: boolean): CallOutcome {
    // What it says it has dropped it takes from the database some time later, or never, if it dies before.
    const drops = (this.views.get(view) ?? Infinity) <= assignment && this.views.delete(view)
    if (drops && gone)
      this.world.after(
        50,
        () =>
          this.alive &&
          !this.views.has(view) &&
          this.world.rows.get(view) === this.incarnation &&
          this.world.rows.delete(view)
      )
    this.tombs.set(view, Math.max(assignment, this.tombs.get(view) ?? 0))
    return { kind: "done" }
  }

  execute(job: string): CallOutcome {
    if (this.state !== "ready") return { kind: "unreachable" }
    this.jobs.add(job)
    return { kind: "done" }
  }
}
