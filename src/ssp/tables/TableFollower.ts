/**
 * Follows the feed of a scheduler (D61): connections, tables that join and leave, acknowledgements.
 *
 * Decisions are made by `core/record/tableFeed.ts`; the effects are here: opening feeds, reading pages, applying,
 * waiting. One fiber reads lines; applying needs the lock, so that a table joins between two steps.
 */
import { Data, Deferred, Duration, Effect, Either, FiberId, FiberSet, Option, Random } from "effect"
import * as Change from "../../core/record/change.ts"
import * as FeedLines from "../../core/record/feedLines.ts"
import { TableFeed } from "../../core/record/tableFeed.ts"
import * as Interest from "../../core/surql/syntax/interest.ts"
import * as Definitions from "../../core/surreal/definitionsRecord.ts"
import { isOwn } from "../../core/surreal/surrealSchema.ts"
import type { StoredPosition } from "../../ports/Database.ts"
import type { IngestTimesShape } from "../../ports/IngestTimes.ts"
import type { HeapShape } from "../../ports/ProcessFigures.ts"
import type { SchedulerClientShape, SchedulerError, TextPieces } from "../../ports/SchedulerClient.ts"
import type { TracingShape } from "../../ports/Tracing.ts"
import type { DeclaredTypes } from "../reconcile/DeclaredTypes.ts"
import * as ChangeTraces from "../views/changeTraces.ts"
import type { Views } from "../views/Views.ts"
import type { FeedStep, HeldTables } from "../views/viewTables.ts"
import { Overloaded, TablesJoining } from "../viewTypes.ts"
import { Acknowledgements } from "./Acknowledgements.ts"
import type { TableReader } from "./bootstrap.ts"
import type { TableUses } from "./TableUses.ts"

/** Pauses between attempts to open a feed. Short: changes are late meanwhile, and an attempt costs little. */
const firstWaitMs = 50
const lastOpenMs = 250
/** Pause before a table is read again, or a refused step applied again. */
const lastWaitMs = 2000
/** Pause before a table without room is read again: each attempt fills the heap. */
const noRoomWaitMs = 10_000
/** Longest line: an event, whose body the scheduler bounds. */
const maxLine = 64 * 1024 * 1024
/** Milliseconds that a registration waits in one request for joining tables; then the client must come again. */
const holdMs = 5000
/** Time between two searches for tables that are no longer needed. */
const sweepEvery = Duration.seconds(1)

/** The feed's content contradicts itself or this SSP's state; the feed is opened anew. */
class Broken extends Data.TaggedError("Broken")<{ readonly message: string }> {}

interface Following {
  readonly client: SchedulerClientShape
  readonly views: Views["Type"]
  readonly types: DeclaredTypes["Type"]
  readonly uses: TableUses
  readonly tracing: TracingShape | undefined
  readonly reading: TableReader
  readonly heap: HeapShape
  readonly sspId: string
  readonly registration: number
  readonly position: Omit<StoredPosition, "writes">
  /** Tables whose records were read; `isAll`: those are all tables there were. */
  readonly held: ReadonlyArray<string>
  readonly isAll: boolean
  readonly maxPending: number
  readonly graceMs: number
  readonly times: Pick<IngestTimesShape, "fed" | "nowMs">
  /** Whether this registration has ended or the process stops. */
  readonly isOver: () => boolean
  /** Called when the data held here is void. */
  readonly lost: (reason: string) => Effect.Effect<void>
}

export class TableFollower {
  private readonly feed: TableFeed
  private readonly lock = Effect.unsafeMakeSemaphore(1)
  private position: Omit<StoredPosition, "writes">
  /** Completed when the feed must be opened with other tables. */
  private reopened = Deferred.unsafeMake<void>(FiberId.none)
  /** Completed when tables have joined. */
  private changed = Deferred.unsafeMake<void>(FiberId.none)
  /** Arrival of the latest piece of the feed, and of the piece with the oldest waiting change, by the steady clock. */
  private cameAt = 0
  private waitsSince = 0
  private readonly acknowledgements: Acknowledgements
  private readonly unneeded = new Map<string, number>()
  private readonly pulling = new Set<string>()
  /** Message for each table that had no room in memory when it was last read. */
  private readonly tooLarge = new Map<string, string>()
  private isAll: boolean
  /** Whether every table was asked for, because all are needed. */
  private isListed: boolean
  private pull: (table: string) => void = () => {}

  constructor(private readonly parts: Following) {
    this.position = parts.position
    this.isAll = this.isListed = parts.isAll
    this.feed = new TableFeed(parts.position.seq ?? 0, parts.held, isOwn)
    const { client, registration, sspId, times } = parts
    this.acknowledgements = new Acknowledgements(client, times.nowMs, () => ({
      ssp_id: sspId,
      registration,
      seq: this.position.seq ?? 0
    }))
  }

  /** Follows until it is interrupted. */
  readonly run: Effect.Effect<never> = Effect.scoped(
    Effect.gen(this, function* () {
      const fibers = yield* FiberSet.makeRuntime<never>()
      this.pull = (table) => {
        if (this.pulling.has(table)) return
        this.pulling.add(table)
        fibers(
          Effect.ensuring(
            this.pulled(table),
            Effect.sync(() => this.pulling.delete(table))
          )
        )
      }
      yield* Effect.forkScoped(this.acknowledgements.run)
      yield* Effect.forkScoped(Effect.forever(Effect.delay(this.sweep, sweepEvery)))
      return yield* this.connecting
    })
  )

  get tables(): ReadonlyArray<string> | undefined {
    return this.isAll ? undefined : this.feed.held
  }

  get shown(): HeldTables {
    return { isAll: this.isAll && this.isListed && this.feed.joining.size === 0, tables: this.feed.held }
  }

  isHeld(table: string): boolean {
    return isOwn(table) || this.feed.isHeld(table)
  }

  /** Waits until every table of an interest, and the tables its links lead to, are held. */
  hold(interest: Interest.Interest): Effect.Effect<() => void, TablesJoining | Overloaded> {
    return Effect.suspend(() => {
      const release = this.parts.uses.pin(interest)
      // The registration around it is uninterruptible; without this the wait would have no end.
      return Effect.interruptible(this.holding).pipe(
        Effect.timeoutFail({ duration: Duration.millis(holdMs), onTimeout: () => this.late }),
        Effect.as(release),
        // The tables stay wanted for the grace that a table without views has.
        Effect.onError(() => Effect.sync(release))
      )
    })
  }

  private readonly holding: Effect.Effect<void, Overloaded> = Effect.suspend(() => {
    const { changed } = this
    const missing = this.missing()
    if (missing.size === 0 && !this.feed.isBlocked && (!this.parts.uses.all || this.isListed)) return Effect.void
    for (const table of missing) this.want(table, false)
    const refused = this.noRoom(missing)
    if (refused !== undefined) return refused
    const listing = this.parts.uses.all && !this.isListed ? this.listing : Effect.void
    return Effect.zipRight(Effect.zipRight(listing, Deferred.await(changed)), this.holding)
  })

  private get late(): TablesJoining {
    return new TablesJoining({
      message: `the records of tables that this view reads are on their way: ${[...this.missing()].join(", ")}`,
      retryAfterSecs: 1
    })
  }

  /** The refusal if one of these tables has no room here: another SSP must be asked. */
  private noRoom(missing: ReadonlySet<string>): Overloaded | undefined {
    for (const table of missing) {
      const message = this.tooLarge.get(table)
      if (message !== undefined)
        return new Overloaded({
          message: `table ${table} cannot be read: ${message}`,
          retryAfterSecs: noRoomWaitMs / 1000
        })
    }
    return undefined
  }

  private missing(): ReadonlySet<string> {
    return new Set([...this.parts.uses.needed].filter((table) => !this.isHeld(table)))
  }

  private want(table: string, blocks: boolean): void {
    if (isOwn(table)) return
    this.feed.want(table, blocks)
    this.pull(table)
  }

  /** Asks for every existing table; later ones announce themselves by an event. */
  private readonly listing: Effect.Effect<void> = Effect.suspend(() => {
    if (this.isListed) return Effect.void
    this.isAll = true
    this.reopen()
    return this.parts.reading.tables.pipe(
      Effect.flatMap(({ seq, tables }) =>
        Effect.sync(() => {
          for (const table of tables) if (!this.isHeld(table)) this.want(table, false)
          // A table created between this list and the feed's start would be in neither.
          this.isListed = seq >= (this.position.seq ?? 0)
          this.tell()
        })
      ),
      Effect.catchAll(({ message }) => Effect.logWarning(`the scheduler's tables could not be listed: ${message}`)),
      Effect.zipLeft(this.isListed ? Effect.void : Effect.sleep(Duration.millis(firstWaitMs)))
    )
  })

  private reopen(): void {
    const { reopened } = this
    this.reopened = Deferred.unsafeMake<void>(FiberId.none)
    Deferred.unsafeDone(reopened, Effect.void)
  }

  private tell(): void {
    const { changed } = this
    this.changed = Deferred.unsafeMake<void>(FiberId.none)
    Deferred.unsafeDone(changed, Effect.void)
  }

  /** Keeps the feed open. */
  private readonly connecting: Effect.Effect<never> = Effect.gen(this, function* () {
    let failures = 0
    for (;;) {
      const again = Deferred.await(this.reopened)
      const before = this.position.seq
      const ended = yield* Effect.raceFirst(Effect.either(this.connection), Effect.as(again, undefined))
      if (ended === undefined) continue
      failures = this.position.seq === before ? failures + 1 : 1
      const why = Either.isLeft(ended) ? ended.left : new Broken({ message: "it ended" })
      if (why._tag === "SchedulerError" && (why.reason === "unknown" || why.reason === "conflict"))
        yield* this.parts.lost(`the scheduler does not go on with its feed: ${why.message}`)
      // Warns after some failures, and then now and then.
      const isTold = why._tag === "Broken" || failures === 4 || failures % 40 === 0
      const log = isTold ? Effect.logWarning : Effect.logDebug
      yield* log(`the feed of the scheduler broke off and is opened again: ${why.message}`)
      const most = Math.min(lastOpenMs, firstWaitMs * 2 ** Math.min(failures, 10))
      yield* Effect.sleep(Duration.millis((0.5 + (yield* Random.next) / 2) * most))
    }
  })

  private get connection(): Effect.Effect<void, SchedulerError | Broken> {
    return Effect.suspend(() => {
      const { after, tables } = this.feed.asked
      const { client, registration } = this.parts
      this.feed.opened()
      // Acknowledgements sent before the feed broke off may be lost too.
      this.acknowledgements.again()
      const asked = { after, registration, tables: this.isAll ? ["*"] : tables }
      return Effect.scoped(Effect.flatMap(client.feed!(asked), (pieces) => this.following(pieces)))
    })
  }

  /** Reads the feed until the connection ends. */
  private following(pieces: TextPieces<SchedulerError>): Effect.Effect<void, SchedulerError | Broken> {
    const cutter = new FeedLines.LineCutter(maxLine)
    const { times } = this.parts
    const take = (text: string): Effect.Effect<void, Broken> => {
      const cameAt = times.nowMs()
      const lines = cutter.push(text)
      if (lines === undefined)
        return Effect.fail(new Broken({ message: `a line is longer than ${maxLine} characters (fixed)` }))
      const taken = Effect.suspend(() => {
        this.cameAt = cameAt
        if (this.feed.waitingChanges === 0) this.waitsSince = cameAt
        return this.takenFrom(lines, 0)
      })
      // A step that has begun is applied, whatever becomes of the connection.
      return Effect.uninterruptible(this.lock.withPermits(1)(taken))
    }
    const next = Effect.matchEffect(pieces, {
      onSuccess: (text) => Effect.as(take(text), true),
      onFailure: Option.match({ onNone: () => Effect.succeed(false), onSome: (error) => Effect.fail(error) })
    })
    return Effect.suspend(() => {
      let goesOn = true
      return Effect.whileLoop({ while: () => goesOn, body: () => next, step: (more) => void (goesOn = more) })
    })
  }

  /** A loop, and an effect only for a line that needs one: a piece has a hundred lines. */
  private takenFrom(lines: ReadonlyArray<string>, from: number): Effect.Effect<void, Broken> {
    for (let i = from; i < lines.length; i++) {
      if (lines[i] === "") continue
      const read = FeedLines.read(lines[i]!)
      if (typeof read === "string") return Effect.fail(new Broken({ message: `a line of it ${read}` }))
      const wrong = "table" in read ? this.event(read) : this.watermark(read)
      if (wrong !== undefined) return Effect.flatMap(wrong, () => this.takenFrom(lines, i + 1))
    }
    return this.applied
  }

  private watermark({ epoch, logId, through }: FeedLines.Watermark): Effect.Effect<void, Broken> | undefined {
    const wrong = this.isOurs(logId, epoch)
    if (wrong === undefined) this.feed.reached(through)
    return wrong
  }

  /** Fails for a line of an older leader; a line of another log voids all data here. Undefined: the line is valid. */
  private isOurs(logId: string | undefined, epoch: number | undefined): Effect.Effect<void, Broken> | undefined {
    const { epoch: known, logId: ours } = this.position
    if (ours !== null && logId !== undefined && logId !== ours)
      return Effect.zipRight(
        this.parts.lost(`the scheduler follows another log: its log_id is ${logId}, this SSP follows ${ours}`),
        Effect.fail(new Broken({ message: "it is of another log" }))
      )
    if (known !== null && epoch !== undefined && epoch < known)
      return Effect.fail(new Broken({ message: `epoch ${epoch} is older than ${known}, which was already seen` }))
    if ((logId !== undefined && logId !== ours) || (epoch !== undefined && epoch !== known))
      this.position = { ...this.position, logId: logId ?? ours, epoch: epoch ?? known }
    return undefined
  }

  /** Adds an event to the feed's state; answers an effect only for a fault, because this runs for each event. */
  private event({ json, prev, seq, table }: FeedLines.FeedEvent): Effect.Effect<void, Broken> | undefined {
    const { types } = this.parts
    const decoded = Change.decodeChange(json, types.of)
    if (Either.isLeft(decoded))
      return Effect.fail(new Broken({ message: `an event is refused: ${decoded.left.message}` }))
    const change = decoded.right
    const wrong = this.isOurs(change.position?.logId, change.position?.epoch)
    if (wrong !== undefined) return wrong
    // Definitions type the records behind them.
    const defined = Definitions.latest([change])
    if (defined !== undefined) types.declare(defined.tables)
    if (this.isAll && !isOwn(table) && !this.feed.isKnown(table)) this.want(table, true)
    if (change.op !== "DELETE") this.links(table, change.doc)
    return this.feed.event(change, seq, prev) === "lost" ? this.wasLost(table, seq, prev) : undefined
  }

  /** A lost event of a user's table is repaired by reading the table again; one of the service's own voids all data. */
  private wasLost(table: string, seq: number, prev: number | undefined): Effect.Effect<void> {
    if (isOwn(table)) return this.parts.lost(`an event of ${table} before ${seq} never came`)
    return Effect.zipLeft(
      Effect.logError(
        `an event of table ${table} before ${seq} never came: the scheduler names ${prev} as the one before it; the table is read anew`
      ),
      Effect.sync(() => this.pull(table))
    )
  }

  /** Wants the tables that a record links to: their records must be here before the record is shown. */
  private links(table: string, doc: Change.Change["doc"]): void {
    const { uses } = this.parts
    Interest.eachLink(
      doc,
      (to) => {
        if (!uses.linked(table, to) || !uses.follows || this.isAll || this.feed.isKnown(to)) return
        if (uses.needed.has(table)) this.want(to, this.feed.isHeld(table))
      },
      (to) => uses.isLinked(table, to)
    )
  }

  /** Applies all complete steps. */
  private readonly applied: Effect.Effect<void> = Effect.gen(this, function* () {
    const { maxPending, times, views } = this.parts
    for (let due = this.feed.due(maxPending); due !== undefined; due = this.feed.due(maxPending)) {
      const repairs: Array<Change.Change> = []
      for (const { records, repairs: isThere, table } of due.joined) {
        if (isThere) repairs.push(...views.tables.differences(table, records))
        else yield* views.tables.load(records)
        yield* Effect.logInfo(
          `table ${table} ${isThere ? "is put right" : "joins"} at position ${due.through}: ${records.length} records`
        )
      }
      const changes = repairs.length === 0 ? due.changes : [...repairs, ...due.changes]
      const position = { ...this.position, seq: due.through }
      if (!(yield* this.persistently({ changes, asOne: due.asOne, position }))) return
      // From here on the step counts as applied.
      this.position = position
      if (due.changes.length > 0) times.fed.observe(times.nowMs() - this.waitsSince)
      // An incomplete step may still wait: it began behind a complete one, so in the latest piece.
      this.waitsSince = this.cameAt
      if (due.joined.length > 0) this.tell()
      this.acknowledgements.tell()
    }
    if (this.feed.isBlocked && this.feed.waitingChanges > maxPending)
      yield* this.parts.lost(
        `${this.feed.waitingChanges} changes wait for tables that join, the limit is ${maxPending} (SVC_MAX_PENDING_CHANGES)`
      )
  })

  /** Repeats a step until it is applied: no later step can be. False: this registration has ended. */
  private persistently(fed: FeedStep): Effect.Effect<boolean> {
    return Effect.gen(this, function* () {
      const traced = ChangeTraces.ofFeed(this.parts.tracing, fed.changes)
      for (;;) {
        const answer = yield* Effect.either(
          this.parts.views.tables.apply({ ...fed, changes: traced?.changes ?? fed.changes })
        )
        if (Either.isRight(answer)) {
          traced?.end()
          return true
        }
        if (this.parts.isOver()) return false
        yield* Effect.logWarning(`changes of the feed wait: ${answer.left.message}`)
        yield* Effect.sleep(Duration.millis(lastWaitMs))
      }
    })
  }

  /** Reads a table that joins, from its first page to its last. */
  private pulled(table: string): Effect.Effect<void> {
    const { reading, types, uses } = this.parts
    return Effect.gen(this, function* () {
      const attempt = this.feed.attempt(table)
      if (attempt === undefined) return
      const declared = yield* reading.typesOf(table)
      if (declared !== undefined)
        types.declare([...types.known().filter(({ name }) => name !== table), { name: table, types: declared }])
      yield* reading.pages(table, declared ?? {}, (seq, records) =>
        Effect.sync(() => {
          for (const { doc } of records)
            if (doc !== undefined)
              Interest.eachLink(doc, (to) => {
                if (uses.linked(table, to) && uses.follows && !this.isAll && !this.feed.isKnown(to))
                  this.want(to, this.feed.blocks(table))
              })
          if (this.feed.page(table, seq, records, attempt)) this.reopen()
        })
      )
      this.feed.pulled(table, attempt)
      yield* Effect.uninterruptible(this.lock.withPermits(1)(this.applied))
      this.tell()
    }).pipe(
      Effect.zipRight(Effect.sync(() => this.tooLarge.delete(table))),
      Effect.catchAll((error) => this.unread(table, error)),
      Effect.repeat({ while: () => this.feed.isUnread(table) }),
      Effect.asVoid
    )
  }

  /** Reads a table again after a failure, unless no view waits for it any more. */
  private unread(table: string, { message, reason }: SchedulerError): Effect.Effect<void> {
    return Effect.gen(this, function* () {
      this.feed.again(table)
      const isFull = reason === "overloaded"
      if (isFull) {
        // The table's records are released, so that the heap does not refuse other views for them.
        this.parts.heap.released()
        this.tooLarge.set(table, message)
        this.tell()
      }
      yield* Effect.logWarning(`table ${table} could not be read: ${message}`)
      yield* Effect.sleep(Duration.millis(isFull ? noRoomWaitMs : lastWaitMs))
      if (this.parts.uses.needed.has(table) || this.feed.blocks(table) || this.isAll) return
      this.tooLarge.delete(table)
      this.feed.drop(table)
    })
  }

  /** Forgets tables that have not been needed for a while. */
  private readonly sweep: Effect.Effect<void> = Effect.suspend(() => {
    const { graceMs, times, uses, views } = this.parts
    if (this.isAll) return Effect.void
    const { needed } = uses
    const now = times.nowMs()
    for (const table of this.unneeded.keys()) if (needed.has(table)) this.unneeded.delete(table)
    const over: Array<string> = []
    for (const table of this.feed.held) {
      if (needed.has(table) || isOwn(table)) continue
      const since = this.unneeded.get(table) ?? now
      this.unneeded.set(table, since)
      if (now - since >= graceMs) over.push(table)
    }
    if (over.length === 0) return Effect.void
    return Effect.uninterruptible(
      this.lock.withPermits(1)(
        Effect.gen(this, function* () {
          if (this.feed.isBlocked || this.feed.waitingChanges > 0) return
          for (const table of over) {
            // A view that reads the table may have come meanwhile, or not be released yet.
            if (uses.needed.has(table) || !(yield* views.tables.forget(table))) continue
            this.feed.drop(table)
            this.unneeded.delete(table)
            uses.forgotten(table)
            yield* Effect.logInfo(`table ${table} is not read by any view and is let go`)
          }
          this.reopen()
        })
      )
    )
  })
}
