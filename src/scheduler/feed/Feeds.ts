/**
 * `GET /feed`: tables of the log, sent to the SSPs that follow them (D61), and what these say they have applied.
 *
 * No queue per SSP: a feed is a position. It reads the ring of events, behind it the log, and stands still while its
 * connection does not take more. An SSP that falls too far behind is sent back by the pool, as one that is sent its
 * events; then its feed ends. By callback: a turn in which the log moves costs each feed one look at each event and one
 * write.
 */
import { Context, Duration, Effect, FiberSet, Layer, type Scope } from "effect"
import type { AppliedPosition, Home } from "../../core/cluster/messages.ts"
import * as State from "../../core/cluster/state.ts"
import { FeedWriter } from "../../core/record/feedWriter.ts"
import { isOwn } from "../../core/surreal/surrealSchema.ts"
import { type Reply, Serving, type Sink } from "../../ports/Front.ts"
import { Turn } from "../../ports/Turn.ts"
import * as Wire from "../../protocol/wire.ts"
import * as Errors from "../HttpErrors.ts"
import { Pool, type PoolShape } from "../pool/Pool.ts"

/** Longest pause before an acknowledgement reaches the pool, so that those of several SSPs share one decision. */
const wordsMs = 50
/**
 * Where events of other tables pass, an SSP is told so after this long. A watermark wakes it and brings it nothing;
 * answers do not wait for it, as what is none of its tables counts as applied.
 */
const watermarkMs = 250
/** A feed on which nothing happens says so this often. */
const beatEvery = Duration.seconds(5)
/**
 * A write ends once it has so many characters. Each write wakes an SSP, which costs as much for few events as for many;
 * the end lets a connection say that it does not keep up.
 */
const writeSize = 256 * 1024
/** Events read from the log at once. */
const pageSize = 1000

/** The bytes of a text; those of the last one are kept, since SSPs that follow the same tables are sent the same. */
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

/** Names with commas between them, each percent-encoded; undefined where one is no encoding. */
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
  /** Told when a feed may have come further. */
  readonly settle: () => void
}

class Feed {
  readonly writer: FeedWriter
  private readonly wants: (table: string) => boolean
  private readonly lastOf = new Map<string, number>()
  private sink: Sink | undefined
  private keepsUp = true
  private isReading = false
  isOver = false
  /** `said`: position that the SSP has acknowledged; `told`: position that the pool was told. */
  private said = -1
  told = -1
  /** Answers of `/ingest` wait for this SSP. */
  isAwaited = false

  constructor(
    private readonly context: FeedContext,
    readonly home: Home,
    { after, tables }: FeedAsked
  ) {
    const { epoch, logId } = context.pool.identity
    const all = tables.includes("*")
    const wanted = new Set(tables)
    this.wants = (table) => all || wanted.has(table) || isOwn(table)
    this.writer = new FeedWriter(after, this.wants, logId, epoch)
  }

  begin(sink: Sink): void {
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

  /** Everything through here has been applied, or is not its own. */
  get applied(): number {
    return this.said < 0 ? -1 : this.writer.appliedAt(this.said)
  }

  /** The pool has not been told of all that was applied. */
  get isAhead(): boolean {
    return this.applied > this.told
  }

  /** Where another feed of its SSP, which has everything through `after`, goes on: the rest is of other tables. */
  nextAfter({ after, tables }: FeedAsked): number {
    return tables.every(this.wants) ? this.writer.appliedAt(after) : after
  }

  beat(): void {
    if (this.isIdle) this.write(this.writer.beat())
  }

  watermark(): void {
    if (this.isIdle) this.write(this.writer.watermark())
  }

  /** A line may be put between those of events. */
  private get isIdle(): boolean {
    return !this.isOver && this.keepsUp && !this.isReading
  }

  /** Sends what has come, as far as the connection takes it. */
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
  /** The SSP that a registration is of; undefined where it is over. */
  readonly homeOf: (registration: number) => Home | undefined
  /** Why a feed cannot be opened. */
  readonly refusal: (asked: FeedAsked) => Refusal | undefined
  /** Opens a feed, or says why not. */
  readonly open: (asked: FeedAsked, stream: Reply["stream"]) => Refusal | undefined
  /** Takes over what an SSP has applied; false: it is not in that registration. */
  readonly applied: (position: AppliedPosition) => boolean
}

export class Feeds extends Context.Tag("scheduler/feed/Feeds")<Feeds, FeedsShape>() {
  static readonly layer: Layer.Layer<Feeds, never, Pool | Turn | Serving> = Layer.scoped(
    Feeds,
    Effect.suspend(() => make)
  )
}

const unknown = Errors.notRegistered("the number that the request names")

/** Calls `fire` so long after `isNeeded` is first found true, and again for as long as it is. */
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
  /** The last feed of each registration, open or over. */
  private readonly lastOnes = new Map<number, Feed>()
  private readonly pool: PoolShape
  /** One timer for all feeds, for each of the two. */
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

  homeOf(registration: number): Home | undefined {
    return State.inRegistration(this.pool.state(), registration)
  }

  refusal(asked: FeedAsked): Refusal | undefined {
    const state = this.pool.state()
    if (State.inRegistration(state, asked.registration)?.tables === undefined) return unknown
    const after = this.startOf(asked)
    return after < state.log.first - 1 || after > state.log.head ? Errors.bufferOverflow : undefined
  }

  /**
   * Positions that the last feed skipped without a watermark that arrived count as applied, so that the log may have
   * been cut behind them.
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

  /** After each decision of the pool: the log may have moved, or SSPs have left. */
  look(): void {
    if (this.lastOnes.size === 0) return
    const state = this.pool.state()
    for (const [registration, feed] of this.lastOnes) {
      const member = State.at(state, feed.home)
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
      if (State.at(this.pool.state(), { registration, ssp }) === undefined) return false
      this.context.run(this.pool.tell({ tag: "Applied", positions: [{ registration, ssp, seq }] }))
      return true
    }
    if (feed.home.ssp !== ssp) return false
    feed.hear(seq)
    this.context.settle()
    return true
  }

  /** Tells the pool if that is due; a timer does the rest. */
  settle(): void {
    if (this.isDue()) this.tell()
    this.arm()
  }

  /**
   * The pool is told what SSPs have applied when the last one that answers wait for has come further: before, no answer
   * can go, and with many SSPs each decision of the pool would cost more than what it decides. What an SSP says that no
   * answer waits for may make it ready.
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

const make: Effect.Effect<FeedsShape, never, Pool | Turn | Serving | Scope.Scope> = Effect.gen(function* () {
  const pool = yield* Pool
  const turn = yield* Turn
  const serving = yield* Serving
  const runFork = yield* FiberSet.makeRuntime<never>()
  let isDue = false
  const settle = (): void => {
    if (isDue) return
    isDue = true
    // Acknowledgements of several SSPs in one turn are one command.
    turn.next(() => {
      isDue = false
      open.settle()
    })
  }
  const run = (effect: Effect.Effect<void>): void => void runFork(Serving.guard(serving, effect))
  const open = new Open({ pool, run, encode: makeEncode(), settle })
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
