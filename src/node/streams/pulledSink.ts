/**
 * A sink whose bytes are pulled as an Effect stream, for declared routes of servers without hot ones.
 *
 * It holds what was written since the last pull: a writer that is answered false writes no more until it is drained,
 * beyond a comment or an end.
 */
import { Chunk, Effect, Option, Stream } from "effect"
import type { Sink } from "../../ports/Front.ts"

interface Writing {
  readonly drained: () => void
  readonly gone: () => void
}

class PulledSink implements Sink {
  private held: Array<Uint8Array> = []
  private isOver = false
  private wake: (() => void) | undefined
  writing: Writing | undefined

  readonly write = (bytes: Uint8Array): boolean => {
    this.held.push(bytes)
    this.wake?.()
    return false
  }

  readonly end = (): void => {
    this.isOver = true
    this.wake?.()
  }

  readonly next: Effect.Effect<Chunk.Chunk<Uint8Array>, Option.Option<never>> = Effect.async((resume) => {
    const give = (): boolean => {
      if (this.held.length > 0) resume(Effect.succeed(Chunk.unsafeFromArray(this.held.splice(0))))
      else if (this.isOver) resume(Effect.fail(Option.none()))
      else return false
      this.wake = undefined
      return true
    }
    if (give()) return
    this.wake = () => void give()
    // What is written in answer to this wakes it.
    this.writing?.drained()
  })
}

/** What `open` writes, until it ends or the reader leaves. */
export const streamOf = (open: (sink: Sink) => Writing): Stream.Stream<Uint8Array> =>
  Stream.unwrapScoped(
    Effect.map(
      Effect.acquireRelease(
        Effect.sync(() => {
          const sink = new PulledSink()
          sink.writing = open(sink)
          return sink
        }),
        ({ writing }) => Effect.sync(() => writing?.gone())
      ),
      ({ next }) => Stream.repeatEffectChunkOption(next)
    )
  )
