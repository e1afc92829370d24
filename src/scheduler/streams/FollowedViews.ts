/**
 * Views that clients of this scheduler follow, wherever in the cluster the views are (D50).
 *
 * A view that moves, or whose SSP dies, is followed at its next owner from the event that the client has got last: the
 * client sees a pause and then what it missed, or a snapshot where the next SSP cannot know.
 */
import { Duration, Effect, FiberSet, Layer } from "effect"
import * as State from "../../core/cluster/state.ts"
import { Browsers, type Source } from "../../node/streams/Browsers.ts"
import { type CutEvent, dataOf } from "../../node/streams/eventCutter.ts"
import { event as eventOf, type Followed, type TakePieces } from "../../node/streams/multiStream.ts"
import type { StreamFormat } from "../../node/streams/sse.ts"
import { Serving } from "../../ports/Front.ts"
import { SspClient, type Target } from "../../ports/SspClient.ts"
import { SchedulerConfig } from "../Config.ts"
import * as Errors from "../http/HttpErrors.ts"
import { Pool } from "../pool/Pool.ts"
import * as Whereabouts from "../pool/whereabouts.ts"
import { type Carried, SspStream, type SspStreamParts } from "./SspStream.ts"

/** Reasons to end that say nothing about the view, only that it is not here or not now. */
const passing: ReadonlySet<unknown> = new Set(["moved", "shutdown", "rebootstrap"])

/** An SSP that has been given a view may not have it yet, or not be ready yet. */
const notYet: ReadonlySet<unknown> = new Set(["VIEW_NOT_FOUND", "SSP_NOT_READY"])

/** So long a view may be nowhere before its client is told. */
const maxPauseMs = 20_000
const seekEveryMs = 100
/** Between two attempts at one SSP: the first, and the most. */
const retryMs = { first: 100, most: 2000 }
/** A stream that has lasted so long was a good one. */
const goodMs = 5000

/** Of one client's stream: its connections to SSPs. */
class Client {
  private readonly around: Around
  private readonly parts: SspStreamParts
  private readonly streams = new Map<string, SspStream>()

  constructor(around: Around, format: StreamFormat) {
    this.around = around
    this.parts = { ...around.parts, format }
  }

  at(target: Target): SspStream {
    const key = `${target.registration} ${target.ssp}`
    const known = this.streams.get(key)
    if (known?.isOver === false) return known
    const stream = new SspStream(target, this.parts)
    this.streams.set(key, stream)
    this.around.streams.add(stream)
    return stream
  }

  /** Everything it followed is closed. */
  readonly gone = (): void => {
    for (const stream of this.streams.values()) this.around.streams.delete(stream)
  }
}

interface Around {
  readonly parts: Omit<SspStreamParts, "format">
  readonly streams: Set<SspStream>
  readonly seeking: Set<FollowedView>
  readonly whereIs: (view: string) => Whereabouts.Whereabouts
  readonly nowMs: () => number
}

/** One view of one client. */
class FollowedView implements Followed, Carried {
  readonly view: string
  after: string | undefined
  private readonly around: Around
  private readonly client: Client
  private readonly take: TakePieces
  private stream: SspStream | undefined
  /** Where the next attempt must wait. */
  private tried: { readonly target: Target; readonly untilMs: number; readonly attempts: number } | undefined
  private pausedAtMs: number | undefined
  private openedAtMs = 0

  constructor(around: Around, client: Client, view: string, after: string | undefined, take: TakePieces) {
    this.around = around
    this.client = client
    this.view = view
    this.after = after
    this.take = take
  }

  follow(target: Target): void {
    this.around.seeking.delete(this)
    this.stream = this.client.at(target)
    this.stream.add(this)
  }

  readonly resume = (): void => this.stream?.resume()

  readonly close = (): void => {
    this.around.seeking.delete(this)
    const { stream } = this
    this.stream = undefined
    stream?.drop(this)
  }

  readonly opened = (): void => {
    this.openedAtMs = this.around.nowMs()
  }

  readonly took = (events: ReadonlyArray<CutEvent>): void => {
    const [first] = events
    if (first!.name === "end" || first!.name === "refused") return this.ended(first!)
    this.tried = undefined
    this.pausedAtMs = undefined
    for (const { id, name } of events) if (id !== undefined || name === "snapshot") this.after = id
    if (
      !this.take(
        events.map(({ bytes }) => bytes),
        false
      )
    )
      this.stream?.pause()
  }

  readonly lost = (): void => this.seek()

  readonly denied = (message: string): void => this.over(eventOf("refused", Errors.unreachable({ message })))

  /** Looks where the view is now, and follows it there. */
  look(): void {
    const nowMs = this.around.nowMs()
    const found = this.around.whereIs(this.view)
    if ("isGone" in found) return this.over(eventOf("end", { reason: "unregistered" }))
    if ("owner" in found) {
      const { registration, ssp } = found.owner
      const { tried } = this
      const isTried = tried?.target.ssp === ssp && tried.target.registration === registration
      if (!isTried || nowMs >= tried.untilMs) return this.follow(found.owner)
    }
    if (nowMs - (this.pausedAtMs ?? nowMs) > maxPauseMs) this.over(eventOf("end", { reason: "moved" }))
  }

  private ended(event: CutEvent): void {
    const { code, reason } = (dataOf(event) ?? {}) as { readonly code?: unknown; readonly reason?: unknown }
    if (event.name === "end" ? passing.has(reason) : notYet.has(code)) this.seek()
    else this.over(event.bytes)
  }

  private seek(): void {
    const nowMs = this.around.nowMs()
    const { stream } = this
    this.stream = undefined
    if (stream === undefined) return
    if (this.openedAtMs > 0 && nowMs - this.openedAtMs > goodMs) this.pausedAtMs = this.tried = undefined
    this.openedAtMs = 0
    this.pausedAtMs ??= nowMs
    const attempts = (this.tried?.attempts ?? 0) + 1
    const waitMs = Math.min(retryMs.most, retryMs.first * 2 ** (attempts - 1))
    this.tried = { target: stream.target, untilMs: nowMs + waitMs, attempts }
    this.around.seeking.add(this)
  }

  private over(bytes: Uint8Array): void {
    this.around.seeking.delete(this)
    this.stream = undefined
    this.take([bytes], true)
  }
}

const source = (around: Around, format: StreamFormat): Source => {
  const client = new Client(around, format)
  return {
    follow: (view, after, take) => {
      const found = around.whereIs(view)
      if ("isGone" in found) return Errors.viewNotFound(view)
      if ("refused" in found) return found.refused
      const followed = new FollowedView(around, client, view, after, take)
      followed.follow(found.owner)
      return followed
    },
    gone: client.gone
  }
}

const makeAround = Effect.gen(function* () {
  const pool = yield* Pool
  const client = yield* SspClient
  const clock = yield* Effect.clock
  const serving = yield* Serving
  const fibers = yield* FiberSet.makeRuntime<never>()
  const start = (work: Effect.Effect<void>): void => void fibers(Serving.guard(serving, work))
  const around: Around = {
    parts: {
      client,
      start,
      refused: ({ registration, ssp }) => start(pool.tell({ tag: "Refused", ssp, registration }))
    },
    streams: new Set(),
    seeking: new Set(),
    whereIs: (view) => Whereabouts.of(pool.state(), view),
    nowMs: () => clock.unsafeCurrentTimeMillis()
  }
  const every = (ms: number, work: () => void) =>
    Serving.fork(Effect.forever(Effect.delay(Effect.sync(work), Duration.millis(ms))))
  yield* every(seekEveryMs, () => {
    for (const view of around.seeking) view.look()
  })
  // An SSP that fell silent keeps its connections; what it had is with another now.
  yield* every(1000, () => {
    for (const stream of around.streams) if (State.at(pool.state(), stream.target) === undefined) stream.lose()
  })
  return around
})

export const layer = Layer.scoped(
  Browsers,
  Effect.flatMap(Effect.all([SchedulerConfig, makeAround]), ([config, around]) =>
    Browsers.make({ ...config, secrets: config.viewSecrets, source: (format) => source(around, format) })
  )
)
