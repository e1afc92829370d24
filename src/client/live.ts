/**
 * The client of a page or a process: the views it follows, the streams they come over, and their shared settings.
 *
 * Followers of one view share it, and views share streams, as many as the server allows on one.
 */
import { fault } from "./faults.ts"
import { jsonWithText, type ReadJson } from "./json.ts"
import { type ClientParts, SharedView, type State, type Status } from "./sharedView.ts"
import { type NamedViews, namedSource, plainSource, type TokenOf } from "./source.ts"
import { Stream, type StreamSetting } from "./stream.ts"
import type { World } from "./world.ts"

/** Options of `connect`. */
export interface Options {
  /** Address of the SSP or scheduler, as `https://live.example.com`; a handler of named views may answer it too. */
  readonly url?: string
  /**
   * Answers a token for views; called once with all ids that need one at the same time. `{ token, expires_in_ms }`, as
   * `POST /view/token` answers, is renewed before it expires; a bare token is renewed when it is refused. Undefined:
   * the user may not see the views, whose status becomes `error`.
   */
  readonly token?: TokenOf
  /** The application's handler of named views (`surreal-live-sidecar/views`): its address, or a function. */
  readonly views?: NamedViews
  /** Milliseconds for which a view is kept after its last follower has left; 10,000 by default. */
  readonly graceMs?: number
  /** Milliseconds between renewals of the lifetime of followed views (`POST /view/touch`); 60,000 by default. */
  readonly touchEveryMs?: number
  /**
   * Milliseconds without a byte (the server sends one every 15 s) after which a connection is broken; 45,000 by
   * default.
   */
  readonly silenceMs?: number
  /** Reads what streams carry: integers beyond 2^53 as text. `jsonWithBigints` of this module makes them `bigint`. */
  readonly json?: ReadJson
  /** Views on one connection; 100 by default, as the server's SVC_STREAM_VIEWS. */
  readonly viewsPerStream?: number
}

/** JSON with sorted fields, so that params mean the same view whatever the order of their fields. */
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
  readonly #home: ClientParts
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

  /** The shared view; it is followed only while it is held. */
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

  /** Drops all views; states that the application has stay as they are. */
  close(): void {
    this.#isClosed = true
    for (const view of [...this.#views.values()]) view.leave(fault("CLOSED", "the live client is closed"))
    this.#end()
  }

  /** Notifies listeners after the outermost batch, once each. */
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
      // Random, so that pages that were opened together do not keep renewing at the same moment.
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

  /** Renews the lifetime of the followed views, in one request for each token. */
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
        // The answer does not matter: the stream reports the same, and sooner, because a removed view ends there.
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
    /** The view that all followers share; for bindings. */
    readonly shared: SharedView
  ) {
    this.#release = shared.hold()
  }

  /** The state as it is now: the same object until something changes. */
  get state(): State<Row> {
    return this.shared.state as State<Row>
  }
  /** The rows. Immutable; a new array only after a change, in which unchanged rows are the same objects. */
  get rows(): ReadonlyArray<Row> {
    return this.state.rows
  }
  get status(): Status {
    return this.state.status
  }
  get error(): State<Row>["error"] {
    return this.state.error
  }

  /** Calls `listener` after each change, until the returned function is called. */
  subscribe(listener: () => void): () => void {
    const stop = this.shared.subscribe(listener)
    const end = () => {
      stop()
      this.#ends.delete(end)
    }
    this.#ends.add(end)
    return end
  }

  /** Retries a view in status `error`, at once. */
  retry(): void {
    this.shared.retry()
  }

  /** The present state, and each later one; a slow reader gets only the newest. Ends when the view is disposed of. */
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

  /** Stops following the view. `using` calls it too. */
  dispose(): void {
    this.#isDone = true
    for (const end of [...this.#ends]) end()
    this.#release()
  }

  [Symbol.dispose](): void {
    this.dispose()
  }
}
