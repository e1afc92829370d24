/**
 * Acknowledges applied steps to the scheduler (D61): by a line on one long request, and while none is open by a request
 * of its own, which is answered.
 *
 * A line is not answered. So a long request is ended every ten seconds: its answer confirms the lines, and if it breaks
 * off the position is sent again.
 */
import { Duration, Effect, type Scope } from "effect"
import type { AckRequest, SchedulerClientShape } from "../../ports/SchedulerClient.ts"
import type { SspApplied } from "../../protocol/wire.ts"

const endsEvery = Duration.seconds(10)
/** Pauses before a long request is opened again: refused by the scheduler, or broken off. */
const refusedWaitMs = 60_000
const cutWaitMs = 1000
const retryAfter = Duration.millis(100)

export class Acknowledgements {
  /** Open while a position must be sent by a request of its own. */
  private readonly owed = Effect.unsafeMakeLatch(true)
  private request: AckRequest | undefined
  private requestAfter = 0

  constructor(
    private readonly client: Pick<SchedulerClientShape, "applied" | "openAcks">,
    private readonly nowMs: () => number,
    private readonly position: () => typeof SspApplied.Type
  ) {}

  /** Sends the current position. */
  readonly tell = (): void => {
    if (!this.speak()) this.owed.unsafeOpen()
  }

  /** Sends the position again by a request of its own: the last lines may be lost. */
  again(): void {
    this.close()
    this.owed.unsafeOpen()
  }

  /** Sends owed positions until interrupted; closing the scope closes the long request. */
  readonly run: Effect.Effect<never, never, Scope.Scope> = Effect.gen(this, function* () {
    yield* Effect.addFinalizer(() => Effect.sync(() => this.close()))
    yield* Effect.forkScoped(
      Effect.forever(
        Effect.delay(
          Effect.sync(() => this.request?.end()),
          endsEvery
        )
      )
    )
    for (;;) {
      yield* this.owed.await
      this.owed.unsafeClose()
      if (this.speak()) continue
      if (yield* Effect.isSuccess(this.client.applied!(this.position()))) this.open()
      else yield* Effect.zipLeft(Effect.sleep(retryAfter), this.owed.open)
    }
  })

  /** Sends the position as a line of the long request; false: no long request is open. */
  private speak(): boolean {
    return this.request?.send(this.position()) === true
  }

  private open(): void {
    if (this.client.openAcks === undefined || this.request !== undefined || this.nowMs() < this.requestAfter) return
    const request = this.client.openAcks((how) => {
      if (this.request !== request) return
      this.request = undefined
      this.requestAfter = this.nowMs() + { refused: refusedWaitMs, cut: cutWaitMs, read: 0 }[how]
      if (how !== "refused") this.owed.unsafeOpen()
    })
    this.request = request
  }

  private close(): void {
    this.request?.close()
    this.request = undefined
    this.requestAfter = 0
  }
}
