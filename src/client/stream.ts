/**
 * One connection with several views: `POST /stream`, its events, and the views added and dropped meanwhile.
 *
 * The shell of the connection's table (`machines.ts`). Places of views are counted here as the server counts them, so
 * that events of a view just added can be assigned before the answer names its place; for the same reason, calls that
 * change the stream go one at a time.
 */
import { type Fault, fault, type Refusal, refusalOf, textOf } from "./faults.ts"
import type { ReadJson } from "./json.ts"
import {
  backoffMs,
  type ConnectionAction,
  type ConnectionEvent,
  type ConnectionState,
  connection,
  unchanged
} from "./machines.ts"
import { type SseEvent, SseParser } from "./sse.ts"
import type { World } from "./world.ts"

/** A view as its stream knows it. */
export interface StreamedView {
  readonly id: string
  readonly token: string | undefined
  /** Id of the last event applied; undefined to get a snapshot. */
  readonly after: string | undefined
  /** The server resumes the view behind {@link after}. */
  readonly resumed: () => void
  /** Receives a snapshot or a delta, with its parsed data and the event's id. */
  readonly took: (event: string, data: unknown, id: string | undefined) => void
  readonly ended: (reason: string) => void
  readonly refused: (refusal: Refusal) => void
  /** The connection broke and comes back by itself; {@link took} then continues. */
  readonly cut: (fault: Fault) => void
  /** The connection is refused for good. */
  readonly denied: (fault: Fault) => void
}

/** Settings that all streams of a client share. */
export interface StreamSetting {
  readonly world: World
  /** Milliseconds without a byte after which the connection counts as broken. The server sends one every 15 s. */
  readonly silenceMs: number
  readonly json: ReadJson
  /** Runs `run`, which may change several views, then notifies their subscribers once. */
  readonly batch: (run: () => void) => void
}

/** Milliseconds after which a connection counts as healthy: its break is then no failure. */
const healthyMs = 10_000
/** Milliseconds of silence, longer than a heartbeat takes, after which a connection is replaced when the page wakes. */
const doubtMs = 20_000

/** A connection to one server, made again whenever it breaks, with the views that it carries. */
export class Stream {
  /** Views to carry. */
  readonly views = new Set<StreamedView>()
  readonly #setting: StreamSetting
  #state: ConnectionState = "idle"
  /** Views by their place on the server; undefined for a dropped or ended view. */
  #places: Array<StreamedView | undefined> = []
  #dropped: Array<number> = []
  readonly #renewed = new Set<StreamedView>()
  /** Views that should resume and have got nothing yet. */
  readonly #resuming = new Set<StreamedView>()
  /** Number of the connection: late events of an earlier one are ignored. */
  #round = 0
  #id = ""
  #abort: AbortController | undefined
  #isBusy = false
  #failures = 0
  #openedAt = Number.POSITIVE_INFINITY
  #heardAt = 0
  #cancelTimer = () => {}
  #cancelWatch = () => {}
  #fault: Fault = fault("CUT", "")
  #retryAfterMs: number | undefined

  constructor(
    readonly url: string,
    setting: StreamSetting
  ) {
    this.#setting = setting
  }

  want(view: StreamedView): void {
    this.views.add(view)
    this.#go("wanted")
  }

  part(view: StreamedView): void {
    this.views.delete(view)
    const place = this.#places.indexOf(view)
    if (place >= 0) {
      this.#places[place] = undefined
      this.#dropped.push(place)
    }
    this.#go(this.views.size === 0 ? "unwanted" : "wanted")
  }

  /** Takes a view's new token. A view that has left meanwhile joins again with it. */
  renew(view: StreamedView): void {
    if (!this.views.has(view)) return
    this.#renewed.add(view)
    this.#go("wanted")
  }

  /** The network is back, or the page is visible again: ends the waiting, and replaces a connection in doubt. */
  wake(): void {
    const silence = this.#setting.world.now() - this.#heardAt
    if (this.#abort !== undefined && silence > doubtMs) this.#broke(fault("SILENT", this.#silent(silence)))
    this.#go("woken")
  }

  #silent(ms: number): string {
    return `nothing was heard of ${this.url} for ${Math.round(ms / 1000)} s`
  }

  #go(event: ConnectionEvent): void {
    const move = connection[this.#state][event]
    if (move === unchanged) return
    this.#state = move.to
    for (const action of move.emit) this.#act(action)
  }

  #act(action: ConnectionAction): void {
    const { world } = this.#setting
    if (action === "soon") this.#cancelTimer = world.after(0, () => this.#go("due"))
    else if (action === "wait") {
      if (world.now() - this.#openedAt > healthyMs) this.#failures = 0
      const ms = backoffMs(this.#failures++, world.random(), this.#retryAfterMs)
      this.#cancelTimer = world.after(ms, () => this.#go("due"))
    } else if (action === "cancel") this.#cancelTimer()
    else if (action === "open") this.#open()
    else if (action === "close") this.#close()
    else if (action === "sync") void this.#sync()
    else {
      const tell = [...this.views]
      if (action === "fail") this.views.clear()
      this.#setting.batch(() => {
        for (const view of tell) action === "cut" ? view.cut(this.#fault) : view.denied(this.#fault)
      })
    }
  }

  #broke(why: Fault, retryAfterMs?: number): void {
    this.#fault = why
    this.#retryAfterMs = retryAfterMs
    this.#go("broke")
  }

  #denied(why: Fault): void {
    this.#fault = why
    this.#go("denied")
  }

  #close(): void {
    this.#round++
    this.#abort?.abort()
    this.#abort = undefined
    this.#isBusy = false
    this.#places = []
    this.#cancelWatch()
  }

  #open(): void {
    const round = ++this.#round
    const abort = (this.#abort = new AbortController())
    this.#places = [...this.views]
    this.#dropped = []
    this.#renewed.clear()
    this.#resuming.clear()
    this.#openedAt = Number.POSITIVE_INFINITY
    this.#heard()
    this.#watch()
    const views = this.#places.map((view) => this.#asked(view!))
    void this.#follow(round, abort.signal, { views, format: "rows" })
  }

  /** Checks from time to time that something still comes. */
  #watch(): void {
    const { silenceMs, world } = this.#setting
    this.#cancelWatch = world.after(silenceMs / 3, () => {
      const silence = world.now() - this.#heardAt
      if (silence > silenceMs) this.#broke(fault("SILENT", this.#silent(silence)))
      else this.#watch()
    })
  }

  #heard(): void {
    this.#heardAt = this.#setting.world.now()
  }

  /** The view as the request names it. */
  #asked(view: StreamedView): object {
    if (view.after !== undefined) this.#resuming.add(view)
    return { view: view.id, after: view.after, token: view.token }
  }

  #post(path: string, token: string | undefined, body: object, signal?: AbortSignal): Promise<Response> {
    const headers: { [name: string]: string } = { "content-type": "application/json" }
    if (token !== undefined) headers["authorization"] = `Bearer ${token}`
    return this.#setting.world.fetch(this.url + path, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
      ...(signal === undefined ? {} : { signal })
    })
  }

  async #follow(round: number, signal: AbortSignal, body: object): Promise<void> {
    const address = `${this.url}/stream`
    try {
      const answer = await this.#post("/stream", this.#places[0]?.token, body, signal)
      if (!answer.ok) {
        const refusal = await refusalOf(address, answer)
        return round === this.#round ? this.#refused(address, refusal) : undefined
      }
      const type = answer.headers.get("content-type") ?? "nothing"
      if (!type.startsWith("text/event-stream") || answer.body === null)
        return round === this.#round
          ? this.#denied(fault("NOT_A_STREAM", `${address} answers ${type}, not an event stream`))
          : undefined
      const reader = answer.body.getReader()
      const parser = new SseParser()
      for (;;) {
        const { done, value } = await reader.read()
        if (round !== this.#round) return
        if (done) return this.#broke(fault("CUT", `${address} has ended`))
        this.#heard()
        const events = parser.push(value)
        this.#setting.batch(() => {
          for (const event of events) if (round === this.#round) this.#take(event)
        })
      }
    } catch (error) {
      if (round !== this.#round) return
      const why = textOf(error)
      this.#broke(
        this.#state === "open"
          ? fault("CUT", `${address} broke off: ${why}`)
          : fault(
              "UNREACHABLE",
              `${address} cannot be reached: ${why} (a browser says no more when the server does not list the page's origin in SVC_BROWSER_ORIGINS)`
            )
      )
    }
  }

  /** The server refuses the stream. */
  #refused(address: string, refusal: Refusal): void {
    const { fault: why, retryAfterMs, status } = refusal
    if (status === 401)
      return this.#setting.batch(() => {
        // One bearer stands for all views and it is unknown which token was wrong, so each view asks for another.
        for (const view of [...this.views]) view.refused(refusal)
      })
    if (status === 404 || status === 405)
      return this.#denied(
        fault(
          "TOO_OLD",
          `${address} answers ${status}: the server is too old for this client, or this is not its address (${why.message})`
        )
      )
    return status < 500 && status !== 408 && status !== 425 && status !== 429
      ? this.#denied(why)
      : this.#broke(why, retryAfterMs)
  }

  #take({ data, event, id, view: place }: SseEvent): void {
    let message: unknown
    try {
      message = this.#setting.json(data)
    } catch {
      return this.#broke(
        fault("MISFIT", `${this.url}/stream sent ${JSON.stringify(data.slice(0, 40))}, which is no JSON`)
      )
    }
    if (place === undefined) {
      if (event === "open") this.#opened((message as { readonly stream?: string } | null)?.stream)
      return
    }
    const view = this.#places[place]
    if (view === undefined) return
    this.#resuming.delete(view)
    if (event === "snapshot" || event === "delta") return view.took(event, message, id)
    const {
      code = "",
      message: text = "",
      reason = ""
    } = (message ?? {}) as {
      readonly code?: string
      readonly message?: string
      readonly reason?: string
    }
    if (event !== "end" && event !== "refused") return
    this.#places[place] = undefined
    if (event === "end") view.ended(reason)
    else view.refused({ fault: { code, message: text }, status: 0, retryAfterMs: undefined })
  }

  #opened(id: string | undefined): void {
    this.#id = id ?? ""
    this.#openedAt = this.#setting.world.now()
    this.#goOn(0)
    this.#go("opened")
  }

  /**
   * Marks the views from this place on that asked to resume and got nothing as resumed: the server has no news for
   * them.
   */
  #goOn(from: number): void {
    for (const view of this.#places.slice(from)) if (view !== undefined && this.#resuming.delete(view)) view.resumed()
  }

  /** Tells the server which views were added and dropped since the stream was opened. */
  async #sync(): Promise<void> {
    if (this.#state !== "open" || this.#isBusy) return
    const round = this.#round
    const first = this.#places.length
    const added = [...this.views].filter((view) => !this.#places.includes(view))
    const drop = this.#dropped.filter((place) => place < first)
    const renewed = [...this.#renewed].filter((view) => this.#places.includes(view))
    this.#dropped = []
    this.#renewed.clear()
    if (added.length + drop.length + renewed.length === 0) return
    this.#isBusy = true
    const body = {
      add: added.map((view) => this.#asked(view)),
      drop,
      renew: renewed.map((view) => [this.#places.indexOf(view), view.token])
    }
    this.#places.push(...added)
    const bearer = added[0] ?? renewed[0] ?? this.#places.find((view) => view !== undefined)
    try {
      const answer = await this.#post(`/stream/${this.#id}`, bearer?.token, body)
      const refusal = answer.ok ? undefined : await refusalOf(`${this.url}/stream/:id`, answer)
      const { places = [] } =
        refusal === undefined ? ((await answer.json()) as { readonly places?: ReadonlyArray<number> }) : {}
      if (round !== this.#round) return
      this.#isBusy = false
      if (refusal !== undefined) this.#notSynced(refusal, first, added.length > 0 ? added : renewed)
      else if (added.some((_, n) => places[n] !== first + n))
        this.#broke(fault("MISFIT", `${this.url} gave the places ${places.join(", ")}, not ${first} and on`))
      else this.#setting.batch(() => this.#goOn(first))
      void this.#sync()
    } catch (error) {
      if (round === this.#round) this.#broke(fault("UNREACHABLE", `${this.url} cannot be reached: ${textOf(error)}`))
    }
  }

  /**
   * The server refused a change of the stream: single views get their faults; for other faults the stream opens again.
   */
  #notSynced(refusal: Refusal, first: number, views: ReadonlyArray<StreamedView>): void {
    const { fault: why, retryAfterMs, status } = refusal
    if (views.length === 0 || status === 404 || status === 429 || status >= 500) return this.#broke(why, retryAfterMs)
    this.#places.length = first
    this.#setting.batch(() => {
      for (const view of views) view.refused(refusal)
    })
  }
}
