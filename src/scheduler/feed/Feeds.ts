/**
 * `GET /feed`: sends tables of the log to the SSPs that follow them (D61), and collects their acknowledgements.
 *
 * A feed is a position and no queue: it reads the ring of events, older ones from the log, and stops while its
 * connection accepts no more. The pool makes an SSP that falls too far behind bootstrap again; then its feed ends. By
 * callback: a turn in which the log moves costs each feed one look at each event and one write.
 */
import { Context, Duration, Effect, FiberSet, Layer, type Scope } from "effect"
import type { AppliedPosition, RegisteredSsp } from "../../core/cluster/messages.ts"
import * as State from "../../core/cluster/state.ts"
import { FeedWriter } from "../../core/record/feedWriter.ts"
import { isOwn } from "../../core/surreal/surrealSchema.ts"
import { type BodySink, type Reply, Serving } from "../../ports/Front.ts"
import * as Wire from "../../protocol/wire.ts"
import * as Errors from "../HttpErrors.ts"
import { Pool, type PoolShape } from "../pool/Pool.ts"

/** Longest pause before an acknowledgement reaches the pool, so that those of several SSPs share one decision. */
const wordsMs = 50
/**
 * Delay of a watermark, which tells an SSP that events of other tables have passed. It wakes the SSP and brings no
 * data; answers of `/ingest` do not wait for it, as events of other tables count as applied.
 */
const watermarkMs = 250
/** Interval of beats on a feed without events. */
const beatEvery = Duration.seconds(5)
/**
 * Size in characters at which a write ends. Each write wakes an SSP, which costs as much for few events as for many;
 * the limit lets a connection report that it does not keep up.
 */
const writeSize = 256 * 1024
/** Events read from the log at once. */
const pageSize = 1000

/** Encodes text and keeps the last result, since SSPs that follow the same tables are sent the same text. */
const makeEncode = (): ((text: string) => Uint8Array) => {
  const encoder = new TextEncoder()
  let last = ""
  let bytes = encoder.encode(last)
  return (text) => {
    if (text !== last) {
      bytes = encoder.encode(text)
      last = text
    }
    return bytes
  }
}

interface FeedAsked {
  readonly registration: number
  readonly after: number
  readonly tables: ReadonlyArray<string>
}

/** Table names separated by commas, each percent-encoded; undefined if the encoding is wrong. */
export const tablesOf = (text: string): ReadonlyArray<string> | undefined => {
  try {
    return text === "" ? [] : text.split(",").map(decodeURIComponent)
  } catch {
    return undefined
  }
}

type Refusal = ReturnType<typeof Errors.notRegistered> | typeof Errors.bufferOverflow

interface FeedContext {
  readonly pool: PoolShape
  readonly run: (effect: Effect.Effect<void>) => void
  readonly encode: (text: string) => Uint8Array
  /** Called when a feed may have advanced. */
  readonly settle: () => void
}

class Feed {
  readonly writer: FeedWriter
  private readonly wants: (table: string) => boolean
  private readonly lastOf = new Map<string, number>()
  private sink: BodySink | undefined
  private keepsUp = true
  private isReading = false
  isOver = false
  /** `said`: position that the SSP has acknowledged; `told`: position that the pool knows. */
  private said = -1
  told = -1
  /** Whether answers of `/ingest` wait for this SSP. */
  isAwaited = false

  constructor(
    private readonly context: FeedContext,
    readonly home: RegisteredSsp,
    { after, tables }: FeedAsked
  ) {
    const { epoch, logId } = context.pool.identity
    const all = tables.includes("*")
    const wanted = new Set(tables)
    this.wants = (table) => all || wanted.has(table) || isOwn(table)
    this.writer = new FeedWriter(after, this.wants, logId, epoch)
  }

  begin(sink: BodySink): void {
    this.sink = sink
    this.pump()
    this.write(this.writer.watermark())
  }

  readonly drained = (): void => {
    this.keepsUp = true
    this.pump()
  }

  readonly gone = (): void => {
    this.isOver = true
    this.sink = undefined
  }

  end(): void {
    const { sink } = this
    this.gone()
    sink?.end()
  }

  hear(seq: number): void {
    this.said = Math.max(this.said, seq)
  }

  /** Position through which every event has been applied or belongs to other tables. */
  get applied(): number {
    return this.said < 0 ? -1 : this.writer.appliedAt(this.said)
  }

  /** Whether the pool does not yet know the applied position. */
  get isAhead(): boolean {
    return this.applied > this.told
  }

  /**
   * Position from which the SSP's next feed continues, if it follows no other tables: events behind `after` that are
   * not its own are skipped.
   */
  nextAfter({ after, tables }: FeedAsked): number {
    return tables.every(this.wants) ? this.writer.appliedAt(after) : after
  }

  beat(): void {
    if (this.isIdle) this.write(this.writer.beat())
  }

  watermark(): void {
    if (this.isIdle) this.write(this.writer.watermark())
  }

  /** Whether a line may be sent between events. */
  private get isIdle(): boolean {
    return !this.isOver && this.keepsUp && !this.isReading
  }

  /** Sends new events until the connection accepts no more. */
  pump(): void {
    const { events, state } = this.context.pool
    const { head } = state().log
    while (!this.isOver && this.keepsUp && !this.isReading && this.writer.looked < head) {
      const from = this.writer.looked + 1
      if (events.holds(from)) {
        let text = ""
        for (let seq = from; seq <= head && text.length < writeSize; seq++) text += this.writer.take(events.entry(seq))
        this.write(text)
      } else this.readLog(from, Math.min(from + pageSize - 1, head, events.firstKept - 1))
    }
    if (this.writer.looked === head) this.writer.atEnd()
  }

  private readLog(from: number, to: number): void {
    this.isReading = true
    const { events } = this.context.pool
    this.context.run(
      Effect.matchEffect(events.entries(from, to, this.lastOf), {
        onFailure: ({ message }) =>
          Effect.zipRight(
            Effect.logError(`events ${from} to ${to} cannot be read for the feed of ${this.home.ssp}: ${message}`),
            Effect.sync(() => this.end())
          ),
        onSuccess: (entries) =>
          Effect.sync(() => {
            this.isReading = false
            if (this.isOver) return
            let text = ""
            for (const entry of entries) text += this.writer.take(entry)
            this.write(text)
            this.pump()
            this.context.settle()
          })
      })
    )
  }

  private write(text: string): void {
    if (text !== "" && !this.isOver) this.keepsUp = this.sink!.write(this.context.encode(text))
  }
}

const headers = { "content-type": Wire.feedType, "cache-control": "no-store" }

interface FeedsShape {
  /** The SSP of a registration; undefined if the registration has ended. */
  readonly homeOf: (registration: number) => RegisteredSsp | undefined
  /** Why a feed cannot be opened; undefined if it can. */
  readonly refusal: (asked: FeedAsked) => Refusal | undefined
  /** Opens a feed, or answers why not. */
  readonly open: (asked: FeedAsked, stream: Reply["stream"]) => Refusal | undefined
  /** Takes an SSP's acknowledgement; false: the SSP is not in that registration. */
  readonly applied: (position: AppliedPosition) => boolean
}

export class Feeds extends Context.Tag("scheduler/feed/Feeds")<Feeds, FeedsShape>() {
  static readonly layer: Layer.Layer<Feeds, never, Pool | Serving> = Layer.scoped(
    Feeds,
    Effect.suspend(() => make)
  )
}

const unknown = Errors.notRegistered("the number that the request names")

/** Calls `fire` some time after `isNeeded` is first true, and again as long as it is. */
class Timer {
  private isArmed = false

  constructor(
    private readonly ms: number,
    private readonly run: FeedContext["run"],
    private readonly isNeeded: () => boolean,
    private readonly fire: () => void
  ) {}

  arm(): void {
    if (this.isArmed || !this.isNeeded()) return
    this.isArmed = true
    this.run(
      Effect.map(Effect.sleep(Duration.millis(this.ms)), () => {
        this.isArmed = false
        this.fire()
        this.arm()
      })
    )
  }
}

/** All feeds, by registration. */
class Open implements FeedsShape {
  /** Last feed of each registration, open or ended. */
  private readonly lastOnes = new Map<number, Feed>()
  private readonly pool: PoolShape
  /** Two timers, each shared by all feeds. */
  private readonly words: Timer
  private readonly watermarks: Timer

  constructor(private readonly context: FeedContext) {
    this.pool = context.pool
    this.words = new Timer(
      wordsMs,
      context.run,
      () => this.some(({ isAhead }) => isAhead),
      () => this.tell()
    )
    this.watermarks = new Timer(
      watermarkMs,
      context.run,
      () => this.some(({ writer }) => writer.owesWatermark),
      () => {
        for (const feed of this.lastOnes.values()) feed.watermark()
      }
    )
  }

  homeOf(registration: number): RegisteredSsp | undefined {
    return State.inRegistration(this.pool.state(), registration)
  }

  refusal(asked: FeedAsked): Refusal | undefined {
    const state = this.pool.state()
    if (State.inRegistration(state, asked.registration)?.tables === undefined) return unknown
    const after = this.startOf(asked)
    return after < state.log.first - 1 || after > state.log.head ? Errors.bufferOverflow : undefined
  }

  /**
   * Start of a feed: positions that the last one skipped count as applied even if no watermark arrived, so the log may
   * have been cut behind them.
   */
  private startOf(asked: FeedAsked): number {
    return this.lastOnes.get(asked.registration)?.nextAfter(asked) ?? asked.after
  }

  open(asked: FeedAsked, stream: Reply["stream"]): Refusal | undefined {
    const refused = this.refusal(asked)
    if (refused !== undefined) return refused
    const { registration, ssp } = State.inRegistration(this.pool.state(), asked.registration)!
    const feed = new Feed(this.context, { registration, ssp }, { ...asked, after: this.startOf(asked) })
    this.lastOnes.get(registration)?.end()
    this.lastOnes.set(registration, feed)
    feed.begin(stream(headers, { drained: feed.drained, gone: feed.gone }))
    this.arm()
    this.context.run(this.pool.tell({ tag: "Followed", registration, ssp, tables: asked.tables }))
    return undefined
  }

  /** Called after each decision of the pool: sends new events, and ends feeds of SSPs that have left. */
  look(): void {
    if (this.lastOnes.size === 0) return
    const state = this.pool.state()
    for (const [registration, feed] of this.lastOnes) {
      const member = State.memberAt(state, feed.home)
      if (member === undefined) {
        this.lastOnes.delete(registration)
        feed.end()
        continue
      }
      if (feed.isOver) continue
      feed.isAwaited = State.isAwaited(member)
      feed.pump()
    }
    this.settle()
  }

  applied({ registration, seq, ssp }: AppliedPosition): boolean {
    const feed = this.lastOnes.get(registration)
    if (feed === undefined || feed.isOver) {
      if (State.memberAt(this.pool.state(), { registration, ssp }) === undefined) return false
      this.context.run(this.pool.tell({ tag: "Applied", positions: [{ registration, ssp, seq }] }))
      return true
    }
    if (feed.home.ssp !== ssp) return false
    feed.hear(seq)
    this.settle()
    return true
  }

  /** Tells the pool if that is due; else a timer does. */
  settle(): void {
    if (this.isDue()) this.tell()
    this.arm()
  }

  /**
   * Whether the pool must know the positions now: when the slowest SSP that answers wait for has advanced, since no
   * answer can go before, and one decision for each SSP would cost more than it brings; or when an SSP that no answer
   * waits for has advanced, which may make it ready.
   */
  private isDue(): boolean {
    let through = Infinity,
      told = Infinity
    for (const feed of this.lastOnes.values()) {
      if (feed.isOver) continue
      if (feed.isAwaited) {
        through = Math.min(through, feed.applied)
        told = Math.min(told, feed.told)
      } else if (feed.isAhead) return true
    }
    return through > told
  }

  private tell(): void {
    const positions: Array<AppliedPosition> = []
    for (const feed of this.lastOnes.values()) {
      if (feed.isOver || !feed.isAhead) continue
      feed.told = feed.applied
      positions.push({ ...feed.home, seq: feed.told })
    }
    if (positions.length > 0) this.context.run(this.pool.tell({ tag: "Applied", positions }))
  }

  beat(): void {
    for (const feed of this.lastOnes.values()) feed.beat()
  }

  stop(): void {
    for (const feed of this.lastOnes.values()) feed.end()
  }

  private arm(): void {
    this.words.arm()
    this.watermarks.arm()
  }

  private some(isSo: (feed: Feed) => boolean): boolean {
    for (const feed of this.lastOnes.values()) if (!feed.isOver && isSo(feed)) return true
    return false
  }
}

const make: Effect.Effect<FeedsShape, never, Pool | Serving | Scope.Scope> = Effect.gen(function* () {
  const pool = yield* Pool
  const serving = yield* Serving
  const runFork = yield* FiberSet.makeRuntime<never>()
  const run = (effect: Effect.Effect<void>): void => void runFork(Serving.guard(serving, effect))
  const open: Open = new Open({ pool, run, encode: makeEncode(), settle: () => open.settle() })
  pool.watch(() => open.look())
  yield* Serving.fork(
    Effect.forever(
      Effect.delay(
        Effect.sync(() => open.beat()),
        beatEvery
      )
    )
  )
  yield* Serving.fork(Effect.andThen(serving.stopping, () => open.stop()))
  return open
})
