/**
 * The client of a page or a process: the views it follows, the streams they come over, and what they have in common.
 *
 * A view is shared by all that follow it, a stream by as many views as the server takes.
 */
import { fault } from "./faults.ts"
import { jsonWithText, type ReadJson } from "./json.ts"
import { type Home, SharedView, type State, type Status } from "./sharedView.ts"
import { type NamedViews, namedSource, plainSource, type TokenOf } from "./source.ts"
import { Stream, type StreamSetting } from "./stream.ts"
import type { World } from "./world.ts"

/** Options of `connect`. */
export interface Options {
  /** Address of the SSP or scheduler, as `https://live.example.com`; a handler of named views may answer it too. */
  readonly url?: string
  /**
   * Gives a token for views, asked with all ids that need one at the same time: `{ token, expires_in_ms }` as
   * `POST /view/token` answers, which is then renewed in time, or the token alone, which is renewed when it is
   * refused. None at all (undefined) means that the user may not: the status is `error`.
   */
  readonly token?: TokenOf
  /** The application's handler of named views (`surreal-live-sidecar/views`): its address, or a function instead. */
  readonly views?: NamedViews
  /** Milliseconds for which a view is kept after its last follower has gone: 10,000. */
  readonly graceMs?: number
  /** Milliseconds between renewals of the lifetime of followed views (`POST /view/touch`): 60,000. */
  readonly touchEveryMs?: number
  /** Milliseconds without a byte after which a connection counts as broken: 45,000. The server sends one every 15 s. */
  readonly silenceMs?: number
  /** Reads what streams carry: integers beyond 2^53 as text. `jsonWithBigints` of this module makes them `bigint`. */
  readonly json?: ReadJson
  /** Views on one connection: 100, as the server's SVC_STREAM_VIEWS. */
  readonly viewsPerStream?: number
}

/** Fields sorted, so that params mean the same view in whatever order they are written. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner
  )

/** The client behind `connect`: its views, and the streams that carry them. */
export class LiveClient {
  readonly #options: Options
  readonly #world: World
  readonly #views = new Map<string, SharedView>()
  #streams: Array<Stream> = []
  readonly #plain: ReturnType<typeof plainSource>
  readonly #home: Home
  readonly #setting: StreamSetting
  #depth = 0
  readonly #dirty = new Set<SharedView>()
  #lastSaid = ""
  #stop: (() => void) | undefined
  #isClosed = false

  constructor(options: Options, world: World) {
    this.#options = options
    this.#world = world
    this.#plain = plainSource(world, options.token)
    this.#setting = {
      world,
      silenceMs: options.silenceMs ?? 45_000,
      json: options.json ?? jsonWithText,
      batch: (run) => this.#batch(run)
    }
    this.#home = {
      world,
      graceMs: options.graceMs ?? 10_000,
      streamAt: (url = options.url) => (url === undefined ? undefined : this.#streamAt(url.replace(/\/+$/, ""))),
      changed: (view) => {
        this.#dirty.add(view)
        this.#batch(() => {})
      },
      held: (view) => {
        if (!this.#views.has(view.key)) this.#views.set(view.key, view)
        this.#stop ??= this.#begin()
      },
      forgotten: (view) => {
        if (this.#views.get(view.key) === view) this.#views.delete(view.key)
        this.#streams = this.#streams.filter((stream) => stream.views.size > 0)
        if (this.#views.size === 0) this.#end()
      },
      say: (line) => {
        if (line !== this.#lastSaid) world.say(`live view ${line}`)
        this.#lastSaid = line
      }
    }
  }

  /** The view as all share it. It is not followed before it is held. */
  view(name: string, params?: object): SharedView {
    if (this.#isClosed) throw new Error("the live client is closed")
    const { views } = this.#options
    if (params !== undefined && views === undefined)
      throw new Error(`${name} is followed with params, which needs the option \`views\` of connect`)
    const key = params === undefined ? name : `${name} ${canonical(params)}`
    const known = this.#views.get(key)
    if (known !== undefined) {
      known.lapse()
      return known
    }
    const source = params === undefined ? this.#plain(name) : namedSource(this.#world, views!, name, params)
    const view = new SharedView(key, source, this.#home)
    this.#views.set(key, view)
    return view
  }

  /** Lets go of all views; states that are held stay as they are. */
  close(): void {
    this.#isClosed = true
    for (const view of [...this.#views.values()]) view.leave(fault("CLOSED", "the live client is closed"))
    this.#end()
  }

  /** Listeners are told behind the outermost batch, once each, whatever happened within it. */
  #batch(run: () => void): void {
    this.#depth++
    try {
      run()
    } finally {
      this.#depth--
      if (this.#depth === 0) {
        const told = [...this.#dirty]
        this.#dirty.clear()
        for (const view of told) view.notify()
      }
    }
  }

  #streamAt(url: string): Stream {
    const room = this.#options.viewsPerStream ?? 100
    const known = this.#streams.find((stream) => stream.url === url && stream.views.size < room)
    if (known !== undefined) return known
    const stream = new Stream(url, this.#setting)
    this.#streams.push(stream)
    return stream
  }

  #begin(): () => void {
    const quiet = this.#world.onWake(() => {
      for (const stream of this.#streams) stream.wake()
    })
    let cancel = () => {}
    const later = (): void => {
      // Spread out, so that pages that were opened together do not ask together for ever.
      const ms = (this.#options.touchEveryMs ?? 60_000) * (0.9 + this.#world.random() / 10)
      cancel = this.#world.after(ms, () => {
        this.#touch()
        later()
      })
    }
    later()
    return () => {
      quiet()
      cancel()
    }
  }

  #end(): void {
    this.#stop?.()
    this.#stop = undefined
  }

  /** Renews the time of the views that are looked at, in one request for each token. */
  #touch(): void {
    const calls = new Map<string, { url: string; token: string | undefined; views: Array<string> }>()
    for (const view of this.#views.values()) {
      const url = view.touchedAt
      if (url === undefined) continue
      const call = calls.get(`${url} ${view.token}`) ?? { url, token: view.token, views: [] }
      calls.set(`${url} ${view.token}`, call)
      call.views.push(view.id)
    }
    for (const { token, url, views } of calls.values())
      void this.#world
        .fetch(`${url}/view/touch`, {
          method: "POST",
          headers: {
            "content-type": "application/json",
            ...(token === undefined ? {} : { authorization: `Bearer ${token}` })
          },
          body: JSON.stringify({ views })
        })
        // Whatever it answers, the stream says the same and sooner: a view that is gone ends there.
        .then(
          (answer) => answer.body?.cancel(),
          () => undefined
        )
  }
}

/** A view that is followed until it is disposed of. */
export class Followed<Row> implements AsyncIterable<State<Row>> {
  readonly #release: () => void
  readonly #ends = new Set<() => void>()
  #isDone = false

  constructor(
    /** As all share it; for bindings. */
    readonly shared: SharedView
  ) {
    this.#release = shared.hold()
  }

  /** The state as it is now: the same object until something changes. */
  get state(): State<Row> {
    return this.shared.state as State<Row>
  }
  /** Immutable; a new array only after a change, in which rows that did not change are the same objects. */
  get rows(): ReadonlyArray<Row> {
    return this.state.rows
  }
  get status(): Status {
    return this.state.status
  }
  get error(): State<Row>["error"] {
    return this.state.error
  }

  /** Calls a function after each change, until what it answers is called. */
  subscribe(listener: () => void): () => void {
    const stop = this.shared.subscribe(listener)
    const end = () => {
      stop()
      this.#ends.delete(end)
    }
    this.#ends.add(end)
    return end
  }

  /** Tries again what ended in an error, at once. */
  retry(): void {
    this.shared.retry()
  }

  /** The state now, and each later one; a slow reader gets the newest and not all between. Ends when disposed of. */
  async *[Symbol.asyncIterator](): AsyncGenerator<State<Row>, void, void> {
    let last: State<Row> | undefined
    let wake = () => {}
    const stop = this.shared.subscribe(() => wake())
    const end = () => wake()
    this.#ends.add(end)
    try {
      while (!this.#isDone) {
        const { state } = this
        if (state !== last) yield (last = state)
        else
          await new Promise<void>((done) => {
            wake = done
          })
      }
    } finally {
      stop()
      this.#ends.delete(end)
    }
  }

  /** Follows it no longer. `using` calls it too. */
  dispose(): void {
    this.#isDone = true
    for (const end of [...this.#ends]) end()
    this.#release()
  }

  [Symbol.dispose](): void {
    this.dispose()
  }
}
