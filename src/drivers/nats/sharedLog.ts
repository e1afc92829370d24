/**
 * A log on JetStream: one stream, whose every message holds the log's state and leader.
 *
 * A write names the message that it expects to be last, and the server refuses any other: this one condition fences the
 * log, the leadership and the pool. The number of the last message grows as long as the leader lives.
 */
import { Effect } from "effect"
import type { Attempt } from "../../core/cluster/term.ts"
import type { Durability, LeaderTerm, LogMember, LogRow, SharedLogShape } from "../../ports/SharedLog.ts"
import type { WalFailed } from "../../ports/Wal.ts"
import * as Frame from "./frame.ts"
import { Journal, subjectOf } from "./journal.ts"
import type { Link } from "./link.ts"
import * as Members from "./members.ts"
import * as Objects from "./objects.ts"
import { Pool } from "./pool.ts"
import { PoolFrames } from "./poolFrames.ts"
import * as Streams from "./streams.ts"
import { Writer } from "./writer.ts"

interface NatsLogOptions extends Streams.StreamOptions {
  /** Answers a new random id, for a new log or a snapshot. */
  readonly newId: () => string
  /** Durability to report for an answered write; undefined: by the number of copies. */
  readonly durability: Durability | undefined
}

/** Number of beats after which older beats are purged. */
const beatsKept = 600

const rowOf = ({ at, head }: Pick<Frame.Frame, "at" | "head">): LogRow => ({
  epoch: head.epoch,
  beat: at,
  lastSeq: head.last,
  keptAfter: head.kept,
  leader: head.leader ?? undefined,
  leaderUrl: head.url ?? undefined
})

/** Why a log on JetStream cannot give this durability; undefined if it can. */
export const durabilityFault = (asked: Durability | undefined, replicas: number): string | undefined => {
  if (asked === "flushed")
    return "SVC_LOG_DURABILITY=flushed cannot be kept: JetStream answers before it has flushed, or does not say that it has. With replicated (the default) a write is answered once most of the copies have it; PostgreSQL flushes"
  return asked === "replicated" && replicas < 2
    ? "SVC_LOG_DURABILITY=replicated needs SVC_LOG_REPLICAS=2 at least (3 to lose a server without a stop)"
    : undefined
}

const isMissing = ({ head }: Frame.Frame, firstSeq: number, first: Frame.Frame): boolean =>
  Frame.positionBefore(first) > head.kept || (first.head.last > head.kept && Frame.firstMessageOf(first) < firstSeq)

/** Fails unless the stream holds all records that its last message counts. */
const whole = (journal: Journal, { first_seq: firstSeq, last_seq: lastSeq }: Streams.State) =>
  Effect.gen(function* () {
    const { link, stream } = journal
    // A server that has just started may lack the last messages.
    journal.reached(yield* link.again(link.agreedLast(subjectOf(journal.log, "beat"))))
    const last = yield* link.again(journal.last)
    if (last.at < lastSeq)
      return yield* link.failed("damaged", `its stream ${stream} has lost messages ${last.at + 1} to ${lastSeq}`)
    const first = yield* link.again(journal.next("*", firstSeq))
    const { kept, last: end, pool } = last.head
    if (first === undefined || isMissing(last, firstSeq, first))
      return yield* link.failed(
        "damaged",
        `its records begin at seq ${first === undefined ? end + 1 : Frame.positionBefore(first) + 1}, and it should hold ${kept + 1} to ${end}`
      )
    if (pool > 0 && pool < firstSeq)
      return yield* link.failed("damaged", `its pool begins with message ${pool}, and the stream with ${firstSeq}`)
    return last.head.log
  })

/** Writes the first message of a new log; of several processes that do, the server accepts one. */
const begin = (journal: Journal, newLogId: string): Effect.Effect<void, WalFailed> => {
  const first = Frame.encode(Frame.firstHead(newLogId), new Uint8Array())
  return Effect.asVoid(
    journal.link.again(
      journal.link.publish(subjectOf(journal.log, "term"), first, { expected: 0, id: `begin.${newLogId}` })
    )
  )
}

class NatsLog {
  /** URLs of the processes that announced themselves through this object. */
  private readonly urls = new Map<string, string>()
  private readonly poolFrames: PoolFrames
  private pool: Pool | undefined
  private beats = 0

  constructor(
    private readonly journal: Journal,
    private readonly writer: Writer,
    private readonly durability: Durability
  ) {
    this.poolFrames = new PoolFrames(journal)
  }

  private accepted(build: Parameters<Writer["write"]>[0]): Effect.Effect<Durability | undefined, WalFailed> {
    return Effect.map(this.writer.write(build), (written) => (written === undefined ? undefined : this.durability))
  }

  readonly row = Effect.suspend(() =>
    this.journal.last.pipe(
      // Failures are ignored: a take-over reads the frames that are missing.
      Effect.tap((last) => (this.pool === undefined ? Effect.ignore(this.poolFrames.readAhead(last)) : Effect.void)),
      Effect.map(rowOf)
    )
  )

  readonly claim: SharedLogShape["claim"] = (expected, self) =>
    Effect.map(
      this.writer.write(({ at, head }) =>
        at === expected.beat && head.epoch === expected.epoch
          ? {
              kind: "term",
              change: { epoch: head.epoch + 1, leader: self, url: this.urls.get(self) ?? null },
              id: `term.${head.epoch + 1}.${self}`
            }
          : undefined
      ),
      (written) => written && rowOf(written)
    )

  readonly beat = (epoch: number): Effect.Effect<Durability | undefined, WalFailed> =>
    Effect.tap(
      this.accepted(({ at, head }) =>
        head.epoch === epoch ? { kind: "beat", change: {}, id: `beat.${epoch}.${at}` } : undefined
      ),
      () => (++this.beats % beatsKept === 0 ? this.thinned : Effect.void)
    )

  /**
   * Purges old beats, with which an idle leader would fill the stream. NATS 2.9 gives the account no space back for
   * them until the server restarts; deleting them one by one would, but the stream denies deletes of single messages,
   * so that no record can be deleted by hand.
   */
  private get thinned(): Effect.Effect<void> {
    const { link, log, stream } = this.journal
    return Effect.catchAll(link.asked(`STREAM.PURGE.${stream}`, { filter: subjectOf(log, "beat"), keep: 1 }), (error) =>
      Effect.logWarning(`old beats stay: ${error.message}`)
    )
  }

  readonly handOver = (self: string): Effect.Effect<void, WalFailed> =>
    Effect.asVoid(
      this.journal.link.again(
        this.writer.write(({ head }) =>
          head.leader === self
            ? { kind: "term", change: { leader: null, url: null }, id: `over.${head.epoch}` }
            : undefined
        )
      )
    )

  readonly append = ({ count, epoch, lastSeq }: Attempt, records: ReadonlyArray<string>) =>
    this.accepted(({ head }) =>
      head.epoch === epoch && head.last === lastSeq
        ? {
            kind: "records",
            body: Frame.bytesOf(records.join("\n")),
            count,
            change: { last: lastSeq + count },
            id: `records.${epoch}.${lastSeq}.${count}`
          }
        : undefined
    )

  readonly drop = (epoch: number, seq: number): Effect.Effect<number, WalFailed> =>
    Effect.gen(this, function* () {
      const written = yield* this.writer.write(({ head }) => {
        const kept = Math.min(seq - 1, head.last)
        return head.epoch === epoch && kept > head.kept
          ? { kind: "cut", change: { kept }, id: `cut.${epoch}.${kept}` }
          : undefined
      })
      const last = written ?? (yield* this.journal.last)
      if (last.head.epoch === epoch) yield* this.cut(last)
      return last.head.kept
    })

  /**
   * Purges messages that are not needed. Rows of the pool in them are repeated first if that frees more than it takes.
   */
  private cut(last: Pick<Frame.Frame, "at" | "head">): Effect.Effect<void, WalFailed> {
    return Effect.gen(this, function* () {
      const { link, stream } = this.journal
      const begin = yield* this.journal.beginOf(last.head.kept, last)
      const { state } = yield* link.asked(`STREAM.INFO.${stream}`)
      const { bytes, first_seq: first, last_seq: end } = state as Streams.State
      const share = (begin - first) / Math.max(1, end + 1 - first)
      if (begin <= first) return
      if (this.pool?.oldest !== undefined) yield* this.pool.leave(begin, share * bytes)
      const until = Math.min(begin, (this.pool?.oldest ?? last.head.pool) || begin)
      if (until > first) yield* link.asked(`STREAM.PURGE.${stream}`, { seq: until })
    })
  }

  readonly announce = (member: LogMember): Effect.Effect<void, WalFailed> =>
    Effect.suspend(() => {
      this.urls.set(member.self, member.url)
      return Members.announce(this.journal.link, this.journal.log, member)
    })

  readonly termPool = (term: LeaderTerm) => {
    this.pool = new Pool(this.journal, this.writer, this.poolFrames, term)
    return this.pool.store
  }
}

/** Opens the log for reading; a leader is not disturbed. */
export const open = (link: Link, options: NatsLogOptions): Effect.Effect<SharedLogShape, WalFailed> =>
  Effect.gen(function* () {
    const { durability: asked, log, newId, replicas } = options
    const fault = durabilityFault(asked, replicas)
    if (fault !== undefined) return yield* link.failed("failed", fault)
    const state = yield* Streams.prepare(link, options)
    const journal = new Journal(link, log)
    if (state.last_seq === 0) yield* begin(journal, newId())
    const logId = yield* whole(journal, state)
    if (replicas === 1)
      yield* Effect.logWarning(
        `the log at ${link.shown} has one copy (SVC_LOG_REPLICAS=1): a power failure may lose what was answered, and its server's disk is the only one`
      )
    const durability: Durability = replicas > 1 ? "replicated" : "relaxed"
    const opened = new NatsLog(journal, new Writer(journal, Streams.pieceBytes(link.connection.info!)), durability)
    return {
      logId,
      shown: link.shown,
      durability: asked === "relaxed" ? "relaxed" : durability,
      row: opened.row,
      claim: opened.claim,
      beat: opened.beat,
      handOver: opened.handOver,
      append: opened.append,
      page: (after, upTo) => journal.page(after, upTo),
      drop: opened.drop,
      announce: opened.announce,
      members: (withinMs) => Members.list(link, log, withinMs),
      pool: opened.termPool,
      snapshots: Objects.make(link, options)
    }
  })
