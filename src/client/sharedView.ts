/**
 * One view, shared by all its followers: its state, its holders, and the steps from a token to a live stream.
 *
 * The shell of the view's table (`machines.ts`). A view is followed while it has holders, and for a grace after the
 * last one, so that leaving a page and coming back does not start again.
 */
import { type Fault, fault, type Refusal, textOf } from "./faults.ts"
import {
  backoffMs,
  onEnd,
  onRefused,
  unchanged,
  type ViewAction,
  type ViewEvent,
  type ViewState,
  view
} from "./machines.ts"
import type { Grant, Source } from "./source.ts"
import type { Stream, StreamedView } from "./stream.ts"
import { type RowError, ViewRows } from "./viewRows.ts"
import type { World } from "./world.ts"

/**
 * `loading` no state has come yet; `live` the shown rows are the server's; `stale` they were, and the connection is
 * being made again; `error` no more is tried until `retry`.
 */
export type Status = "loading" | "live" | "stale" | "error"

/** A state of a view. Immutable; unchanged parts are the same objects as before. */
export interface State<Row> {
  readonly rows: ReadonlyArray<Row>
  readonly status: Status
  /** Why the view is not live; undefined while it is live, or loads without trouble. */
  readonly error: Fault | undefined
  /** Whether the view selects FROM ONLY, so that there is at most one row. */
  readonly only: boolean
  /** Rows that the service left out because they failed. */
  readonly rowErrors: ReadonlyArray<RowError>
  readonly warnings: ReadonlyArray<string>
}

/** The parts of the client that a shared view uses. */
export interface ClientParts {
  readonly world: World
  readonly graceMs: number
  readonly streamAt: (url: string | undefined) => Stream | undefined
  /** Schedules `view.notify` after the current batch of changes. */
  readonly changed: (view: SharedView) => void
  readonly held: (view: SharedView) => void
  readonly forgotten: (view: SharedView) => void
  readonly say: (line: string) => void
}

const healthyMs = 10_000
/** Registrations in a row, without the view being live in between, after which it fails. */
const maxAnew = 5

/** One view of a client, shared by all its holders; the shell of the view's table (`machines.ts`). */
export class SharedView implements StreamedView {
  readonly #source: Source
  readonly #home: ClientParts
  readonly #data = new ViewRows()
  #phase: ViewState = "idle"
  #fault: Fault | undefined
  #retryAfterMs: number | undefined
  #grant: Grant | undefined
  #stream: Stream | undefined
  #holders = 0
  readonly #listeners = new Set<() => void>()
  #memo: State<unknown> | undefined
  #failures = 0
  #refusals = 0
  #shownAt = Number.POSITIVE_INFINITY
  #round = 0
  #cancelTimer = () => {}
  #cancelGrace = () => {}
  #cancelRenewal = () => {}

  constructor(
    /** Name of the view in the application. */
    readonly key: string,
    source: Source,
    home: ClientParts
  ) {
    this.#source = source
    this.#home = home
    this.lapse()
  }

  get id(): string {
    return this.#grant?.view ?? this.key
  }
  get token(): string | undefined {
    return this.#grant?.token
  }
  get after(): string | undefined {
    return this.#data.after
  }
  /** Address that renews the view's lifetime; undefined if that is not needed now. */
  get touchedAt(): string | undefined {
    return this.#phase === "live" && !this.#source.registers && this.#holders > 0 ? this.#stream?.url : undefined
  }

  /** The present state; the same object until something changes. */
  get state(): State<unknown> {
    const { errors: rowErrors, only, rows, warnings } = this.#data
    this.#memo ??= { rows, status: this.#status, error: this.#fault, only, rowErrors, warnings }
    return this.#memo
  }

  get #status(): Status {
    if (this.#phase === "failed") return "error"
    if (this.#phase === "live") return "live"
    return this.#data.hasShown ? "stale" : "loading"
  }

  /** Follows the view until the returned function is called, which may be called twice. */
  hold(): () => void {
    this.#cancelGrace()
    this.#holders++
    this.#home.held(this)
    this.#go("looked")
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.#holders--
      this.lapse()
    }
  }

  /** Forgets the view after the grace, unless it is held by then. */
  lapse(): void {
    if (this.#holders > 0) return
    this.#cancelGrace()
    this.#cancelGrace = this.#home.world.after(this.#home.graceMs, () => this.leave(), true)
  }

  /** Drops the view at once, held or not. */
  leave(why?: Fault): void {
    if (why !== undefined) this.#fault = why
    this.#cancelGrace()
    this.#go("left")
    this.#home.forgotten(this)
  }

  subscribe(listener: () => void): () => void {
    // A function of its own, so that a listener given twice is called twice.
    const own = () => listener()
    this.#listeners.add(own)
    return () => void this.#listeners.delete(own)
  }

  retry(): void {
    this.#failures = 0
    this.#refusals = 0
    this.#go("retry")
  }

  notify(): void {
    for (const listener of [...this.#listeners])
      try {
        listener()
      } catch (error) {
        // An exception of the listener must not keep it from the others; the runtime reports it.
        this.#home.world.after(0, () => {
          throw error
        })
      }
  }

  #go(event: ViewEvent): void {
    const move = view[this.#phase][event]
    if (move === unchanged) return
    this.#phase = move.to
    if (move.to === "idle" || move.to === "failed") {
      this.#round++
      this.#cancelRenewal()
    }
    this.#changed()
    for (const action of move.emit) this.#act(action)
  }

  #changed(): void {
    this.#memo = undefined
    this.#home.changed(this)
  }

  #act(action: ViewAction): void {
    if (action === "ask") void this.#ask()
    else if (action === "join") {
      this.#stream = this.#home.streamAt(this.#grant?.url)
      if (this.#stream !== undefined) return this.#stream.want(this)
      this.#fault = fault("UNREACHABLE", "no address is known: give `url` to `connect`, or let the handler answer one")
      this.#go("final")
    } else if (action === "part") this.#stream?.part(this)
    else if (action === "cancel") this.#cancelTimer()
    else if (action === "tell") this.#home.say(`${this.key}: ${this.#fault?.message} (${this.#fault?.code})`)
    else this.#rest()
  }

  /** Starts the timer: without delay after a healthy time, then with growing delays. */
  #rest(): void {
    const { world } = this.#home
    if (world.now() - this.#shownAt > healthyMs) this.#failures = 0
    this.#shownAt = Number.POSITIVE_INFINITY
    const ms =
      this.#failures === 0
        ? (this.#retryAfterMs ?? 0)
        : backoffMs(this.#failures - 1, world.random(), this.#retryAfterMs)
    this.#failures++
    this.#cancelTimer = world.after(ms, () => this.#go("due"))
  }

  async #ask(): Promise<void> {
    const round = this.#round
    const asked = await this.#source.ask()
    if (round !== this.#round || this.#phase !== "asking") return
    if ("grant" in asked) {
      this.#take(asked.grant)
      return this.#go("granted")
    }
    this.#fault = asked.fault
    this.#retryAfterMs = asked.retryAfterMs
    this.#changed()
    this.#go(asked.isFinal ? "final" : "again")
  }

  #take(grant: Grant): void {
    this.#grant = grant
    this.#cancelRenewal()
    if (grant.expires_in_ms !== undefined) this.#renewIn(grant.expires_in_ms * (0.6 + this.#home.world.random() / 10))
  }

  /** Asks for another token well before the present one expires. */
  #renewIn(ms: number): void {
    this.#cancelRenewal = this.#home.world.after(Math.max(1000, ms), () => void this.#renew())
  }

  async #renew(): Promise<void> {
    const round = this.#round
    const before = this.#grant
    const asked = await this.#source.ask()
    if (round !== this.#round || this.#grant !== before || before === undefined) return
    // A failed renewal changes nothing yet: the present token still works, and the next attempt may succeed.
    if (!("grant" in asked)) return this.#renewIn(asked.retryAfterMs ?? Math.min(30_000, before.expires_in_ms! / 10))
    this.#take(asked.grant)
    if (asked.grant.view === before.view && asked.grant.url === before.url) return this.#stream?.renew(this)
    this.#data.spoil()
    this.#go("again")
  }

  resumed(): void {
    this.#shown()
  }

  #shown(): void {
    this.#fault = undefined
    this.#retryAfterMs = undefined
    this.#refusals = 0
    if (this.#phase !== "live") this.#shownAt = this.#home.world.now()
    this.#changed()
    this.#go("shown")
  }

  took(event: string, data: unknown, id: string | undefined): void {
    try {
      // A malformed message may have any shape, so every exception here counts as a fault of the message.
      if (event === "delta") this.#data.delta(data as Parameters<ViewRows["delta"]>[0], id)
      else if (!this.#data.snapshot(data as Parameters<ViewRows["snapshot"]>[0], id)) return
    } catch (error) {
      this.#data.spoil()
      this.#fault = fault("MISFIT", `the server sent what does not fit the rows of ${this.key}: ${textOf(error)}`)
      return this.#go(++this.#refusals > maxAnew ? "final" : "again")
    }
    this.#shown()
  }

  ended(reason: string): void {
    this.#fault = fault("ENDED", `the service has ended the stream of ${this.key}: ${reason || "without a reason"}`)
    const isToken = reason === "unauthorized"
    const what = onEnd(reason)
    this.#go(what === "anew" ? this.#anew(isToken) : what)
  }

  refused({ fault: why, retryAfterMs }: Refusal): void {
    this.#fault = why
    this.#retryAfterMs = retryAfterMs
    const what = onRefused(why.code)
    this.#go(what === "anew" ? this.#anew(why.code === "UNAUTHORIZED") : what)
  }

  /** Event after a refusal: `anew` if another token or registration may help, else `final`. */
  #anew(isToken: boolean): "anew" | "final" {
    const { code, message } = this.#fault!
    if (isToken) {
      // A token that is refused as soon as it is there will be refused again.
      return this.token === undefined || ++this.#refusals > 1 ? "final" : "anew"
    }
    if (this.#source.registers && ++this.#refusals <= maxAnew) return "anew"
    this.#fault = { code, message: `${message}. It must be registered before it is followed (POST /view/register)` }
    return "final"
  }

  cut(why: Fault): void {
    this.#data.cut()
    this.#fault = why
    this.#changed()
    this.#go("cut")
  }

  denied(why: Fault): void {
    this.#data.cut()
    this.#fault = why
    this.#go("final")
  }
}
