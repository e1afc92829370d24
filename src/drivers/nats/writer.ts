/**
 * Writes to the log's stream: one at a time, each expecting the last message that this process knows.
 *
 * The server refuses a write if another message is the last, so of two writers, or of two attempts, exactly one is
 * accepted, and a late attempt is refused. After a lost answer the last message is read before the next write: it holds
 * the log's state, whichever process wrote it.
 */
import { Effect } from "effect"
import type { WalFailed } from "../../ports/Wal.ts"
import * as Frame from "./frame.ts"
import { type Journal, subjectOf } from "./journal.ts"

/** A write, built from the log's state. */
export interface Draft {
  readonly kind: Frame.Kind
  readonly body?: Uint8Array
  readonly count?: number
  /** Fields of the log's state that the write changes. */
  readonly change: Partial<Frame.State>
  /** Equal for two attempts of one write, and for no other write. */
  readonly id: string
}

/** Answers undefined if the state needs no write. */
type Build = (last: Pick<Frame.Frame, "at" | "head">) => Draft | undefined

type End = Pick<Frame.Frame, "at" | "head">

/** Refusals in a row until the write fails; each was caused by a write of another process. */
const rounds = 5

const none = new Uint8Array()

export class Writer {
  private readonly turn = Effect.unsafeMakeSemaphore(1)
  /** The last message; undefined: it must be read. */
  private end: End | undefined

  /** `most`: bytes of content in one message. */
  constructor(
    private readonly journal: Journal,
    private readonly most: number
  ) {}

  /** Answers the log's state with the write; undefined: the state needed no write. */
  write(build: Build): Effect.Effect<End | undefined, WalFailed> {
    const writing = Effect.gen(this, function* () {
      for (let round = 0; round < rounds; round++) {
        const known = this.end
        this.end = undefined
        const end = known ?? (yield* this.journal.last)
        const draft = build(end)
        if (draft === undefined) {
          // A remembered state may be old: only a fresh one proves that nothing is to be written.
          if (known !== undefined) continue
          this.end = end
          return undefined
        }
        const written = yield* this.attempt(end, draft)
        if (written !== undefined) {
          this.end = written
          return written
        }
      }
      return yield* this.journal.link.unanswered(`others wrote ${rounds} times meanwhile`)
    })
    return this.turn.withPermits(1)(Effect.uninterruptible(writing))
  }

  /** Undefined: another message is the last. */
  private attempt(end: End, draft: Draft): Effect.Effect<End | undefined, WalFailed> {
    return Effect.gen(this, function* () {
      const { journal } = this
      const pieces = Frame.split(draft.body ?? none, this.most)
      const subject = subjectOf(journal.log, draft.kind)
      let last = end
      for (const [part, piece] of pieces.entries()) {
        const isWhole = part === pieces.length - 1
        const head: Frame.Head = {
          ...last.head,
          layout: Frame.layout,
          kind: draft.kind,
          part,
          parts: pieces.length,
          count: isWhole ? (draft.count ?? 0) : 0,
          ...(isWhole ? draft.change : {})
        }
        const at = yield* journal.link.publish(subject, Frame.encode(head, piece), {
          expected: last.at,
          id: `${draft.id}.${last.at}`
        })
        if (at === undefined) return undefined
        last = { at, head }
        journal.noted(last)
      }
      return last
    })
  }
}
