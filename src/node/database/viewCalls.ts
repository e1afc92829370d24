/**
 * Carries out view calls that clients write into the database (`fn::svc_register`, `fn::svc_unregister`), beside the
 * reader of the change table: a view takes its time, and changes made meanwhile are shown meanwhile.
 *
 * Calls on one view run in their order, calls on different views side by side. A row is deleted when its call has been
 * carried out or refused, so a process that ends in between carries it out again: the same registration twice is one.
 */
import { Duration, Effect, Either, Schedule } from "effect"
import * as Json from "../../core/surql/values/json.ts"
import type { RecordId } from "../../core/surql/values/value.ts"
import { viewKey } from "../../core/view/viewId.ts"
import type { ChangeRow, UpstreamError, ViewCall } from "../../ports/Upstream.ts"

/**
 * Why a call is tried again. A call that finds the service full is refused in the end; an SSP that is away is awaited.
 */
export interface CallTrouble {
  readonly _tag: string
  readonly message: string
}

interface Parts {
  readonly carryOut: (call: ViewCall) => Effect.Effect<string | undefined, CallTrouble>
  readonly answer: (call: ViewCall, refusal: string | undefined) => Effect.Effect<void, UpstreamError>
  readonly fork: (later: Effect.Effect<void>) => Effect.Effect<void>
  /** Called when the row may be deleted. */
  readonly finished: (id: RecordId) => void
}

/** How a node carries calls out; each answers a refusal in words, or undefined. */
interface Carrying<E> {
  /** Client that the view belongs to now. */
  readonly ownerOf: (view: string) => unknown
  /** Limit of a query and its parameters together. */
  readonly maxBytes: number
  readonly register: (call: ViewCall) => Effect.Effect<string | undefined, E>
  readonly unregister: (view: string) => Effect.Effect<string | undefined, E>
}

/**
 * Carries calls out as `/view/register` and `/view/unregister` do, for the client that the database names. The database
 * checked the view's owner when the call was made; a view registered since is checked here, so that of two clients with
 * one id the second gets nothing.
 */
export const makeCarryOut =
  <E>({ maxBytes, ownerOf, register, unregister }: Carrying<E>) =>
  (call: ViewCall): Effect.Effect<string | undefined, E> =>
    Effect.suspend(() => {
      const owner = ownerOf(call.view)
      if (owner !== undefined && owner !== call.clientId) return Effect.succeed("this view belongs to another client")
      if (call.op === "unregister") return unregister(call.view)
      const bytes = Buffer.byteLength(call.surql) + Buffer.byteLength(Json.stringify(call.params))
      return bytes > maxBytes
        ? Effect.succeed(`query and parameters have ${bytes} bytes, more than ${maxBytes} (SVC_MAX_BODY_BYTES)`)
        : register(call)
    })

interface Called {
  readonly id: RecordId
  readonly call: ViewCall
}

/** Views whose calls run side by side. */
const beside = 16
/** Above so many waiting calls no more rows are read. */
const most = 1_000
/** Attempts of a call that finds the service full: a view that does not fit now may never fit. */
const attempts = 5
const againMs = 1_000

export class ViewCalls {
  private waiting: ReadonlyArray<Called> = []
  private running = false
  /** Open while fewer calls wait than may. */
  private readonly room = Effect.unsafeMakeLatch(true)

  constructor(private readonly parts: Parts) {}

  /** Takes the calls among these rows; waits while too many wait already. */
  take(rows: ReadonlyArray<ChangeRow>): Effect.Effect<void> {
    const called = rows.flatMap(({ call, id }) => (call === undefined ? [] : [{ id, call }]))
    if (called.length === 0) return Effect.void
    this.waiting = [...this.waiting, ...called]
    if (this.waiting.length > most) this.room.unsafeClose()
    return Effect.zipRight(this.start, this.room.await)
  }

  private readonly start: Effect.Effect<void> = Effect.suspend(() => {
    if (this.running) return Effect.void
    this.running = true
    return this.parts.fork(
      Effect.ensuring(
        this.all,
        Effect.sync(() => void (this.running = false))
      )
    )
  })

  private readonly all: Effect.Effect<void> = Effect.gen(this, function* () {
    while (this.waiting.length > 0) {
      const taken = this.waiting
      this.waiting = []
      const byView = new Map<string, Array<Called>>()
      for (const one of taken) {
        const key = viewKey(one.call.view) ?? ""
        const calls = byView.get(key)
        if (calls === undefined) byView.set(key, [one])
        else calls.push(one)
      }
      yield* Effect.forEach(byView.values(), (calls) => Effect.forEach(calls, (one) => this.one(one)), {
        concurrency: beside,
        discard: true
      })
      yield* this.room.open
    }
  })

  private one({ call, id }: Called): Effect.Effect<void> {
    return Effect.gen(this, function* () {
      const refusal = yield* this.attempt(call)
      const told = yield* Effect.either(
        this.parts
          .answer(call, refusal)
          .pipe(Effect.retry({ while: ({ transient }) => transient, schedule: Schedule.spaced(againMs) }))
      )
      if (refusal !== undefined || Either.isLeft(told))
        yield* Effect.logInfo(
          `${call.op} of ${call.view} by ${call.clientId}, called in the database: ${refusal ?? "done"}${Either.isLeft(told) ? `; the client cannot be told: ${told.left.message}` : ""}`
        )
      this.parts.finished(id)
    })
  }

  private attempt(call: ViewCall): Effect.Effect<string | undefined> {
    return Effect.gen(this, function* () {
      for (let n = 1; ; n++) {
        const tried = yield* Effect.either(this.parts.carryOut(call))
        if (Either.isRight(tried)) return tried.right
        if (n >= attempts && tried.left._tag === "Overloaded") return tried.left.message
        yield* Effect.sleep(Duration.millis(againMs * Math.min(n, attempts)))
      }
    })
  }
}
