/**
 * The text of a long answer: pieces arrive by callback and wait until they are taken, all at once. Beyond a limit the
 * connection is paused.
 */
import { Effect, Option, type Scope } from "effect"
import type { TextPieces } from "../../ports/SchedulerClient.ts"
import type { AnswerEvents, OpenCall } from "../../ports/SspClient.ts"

type Head = Parameters<AnswerEvents["head"]>

/** Waiting characters at which the connection is paused. */
const most = 4 * 1024 * 1024

/** Most characters of a refusal that are reported. */
const refusalLength = 4096

interface Answering<E> {
  /** Sends the request; never calls back before it has returned. */
  readonly open: (heard: AnswerEvents) => OpenCall
  /** Error for another status than 200, with the answer's text. */
  readonly refused: (status: number, headers: Head[1], text: string) => E
  /** Error for an answer that broke off or never came. */
  readonly broken: (error: unknown) => E
}

class Waiting<E> {
  private pieces: Array<string> = []
  private size = 0
  private ended: { readonly error: E | undefined } | undefined
  private taker: ((taken: Effect.Effect<string, Option.Option<E>>) => void) | undefined
  private isPaused = false

  constructor(private readonly flow: () => OpenCall) {}

  put(piece: string): void {
    this.pieces.push(piece)
    this.size += piece.length
    if (this.taker !== undefined) this.give()
    else if (this.size > most && !this.isPaused) {
      this.isPaused = true
      this.flow().pause()
    }
  }

  end(error: E | undefined): void {
    this.ended = { error }
    if (this.taker !== undefined) this.give()
  }

  readonly next: TextPieces<E> = Effect.async((resume) => {
    this.taker = resume
    if (this.pieces.length > 0 || this.ended !== undefined) this.give()
    return Effect.sync(() => {
      this.taker = undefined
    })
  })

  private give(): void {
    const taker = this.taker!
    this.taker = undefined
    if (this.pieces.length === 0) return taker(Effect.fail(Option.fromNullable(this.ended?.error)))
    const text = this.pieces.join("")
    this.pieces = []
    this.size = 0
    if (this.isPaused) {
      this.isPaused = false
      this.flow().resume()
    }
    taker(Effect.succeed(text))
  }
}

interface Begun<E> {
  readonly pieces: TextPieces<E>
  readonly flow: OpenCall
}

/** Succeeds when the answer has begun; the answer is closed with the scope, or by an interrupt. */
export const open = <E>(answering: Answering<E>): Effect.Effect<TextPieces<E>, E, Scope.Scope> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(restore(begun(answering)), ({ flow, pieces }) =>
      Effect.as(
        Effect.addFinalizer(() => Effect.sync(() => flow.close())),
        pieces
      )
    )
  )

const begun = <E>({ broken, open: begin, refused }: Answering<E>): Effect.Effect<Begun<E>, E> =>
  Effect.async((resume) => {
    const decoder = new TextDecoder()
    let refusal: { readonly status: number; readonly headers: Head[1]; text: string } | undefined
    let hasBegun = false
    const waiting = new Waiting<E>(() => flow)
    const flow = begin({
      head: (status, headers) => {
        if (status !== 200) refusal = { status, headers, text: "" }
        else {
          hasBegun = true
          resume(Effect.succeed({ flow, pieces: waiting.next }))
        }
      },
      data: (bytes) => {
        const text = decoder.decode(bytes, { stream: true })
        if (refusal === undefined) waiting.put(text)
        else if (refusal.text.length < refusalLength) refusal.text += text
      },
      end: (error) => {
        if (hasBegun) waiting.end(error === undefined ? undefined : broken(error))
        else if (refusal === undefined) resume(Effect.fail(broken(error)))
        else resume(Effect.fail(refused(refusal.status, refusal.headers, refusal.text)))
      }
    })
    return Effect.sync(() => flow.close())
  })
