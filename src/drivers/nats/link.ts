/**
 * Requests to JetStream, and the meaning of their failures: refused, or with unknown outcome.
 *
 * Requests of the server's own protocol, each sent once. The client library's JetStream helpers would retry by
 * themselves; here one place decides about a write without an answer, by reading (`writer.ts`).
 */
import { Effect, Fiber, Schedule } from "effect"
import { WalFailed } from "../../ports/Wal.ts"

/** The part of the client's connection that is used here. */
export interface Connection {
  readonly info?: {
    readonly version: string
    readonly max_payload: number
    readonly cluster?: string
  }
  readonly request: (
    subject: string,
    payload: Uint8Array | string,
    options: { readonly timeout: number; readonly headers?: Headers }
  ) => Promise<{ readonly data: Uint8Array }>
}

export interface Headers {
  readonly set: (name: string, value: string) => void
}

interface LinkOptions {
  readonly connection: Connection
  readonly headers: () => Headers
  readonly shown: string
  /** Time limit of a request. Its outcome is unknown afterwards: the server may have carried it out. */
  readonly answerMs: number
}

export interface ApiError {
  readonly code: number
  readonly err_code?: number
  readonly description?: string
}

/** The server's answer, parsed from JSON. */
export type Answer = { readonly error?: ApiError } & { readonly [field: string]: unknown }

/** A message of a stream. */
export interface Stored {
  readonly subject: string
  readonly seq: number
  /** When the server stored it, by the server's clock, in ms. */
  readonly at: number
  readonly data: Uint8Array
}

/** Headers of a message. */
export interface MessageHeaders {
  readonly [name: string]: string
}

interface Publish {
  /** Number of the message that must be the stream's last. */
  readonly expected: number
  readonly id: string
}

/** An expectation that never holds, so that the server refuses the write and names the last message. */
const never = Number.MAX_SAFE_INTEGER

const retryMs = 200
const codes = { wrongLast: 10_071, noMessage: 10_037, noStream: 10_059, notDeleted: 10_057 } as const
/** Error codes for a lack of room: of the account, the server, the disk quota. */
const full: ReadonlySet<number> = new Set([10_002, 10_023, 10_028, 10_047])

const text = new TextDecoder()

/**
 * The operation that the server denies this user, as text; undefined: no denial. The client reports a denial apart from
 * the request.
 */
const denialOf = (error: unknown): string | undefined => {
  const { cause, name, operation, subject } = error as { readonly [field: string]: unknown }
  if (name === "PermissionViolationError")
    return `${operation === "publish" ? "publish to" : "subscribe to"} ${JSON.stringify(subject)}`
  return cause instanceof Error ? denialOf(cause) : undefined
}

const wordsOf = (error: unknown): string => {
  const { message, name } = error as { readonly message?: unknown; readonly name?: unknown }
  return typeof message === "string" && message !== "" ? message : String(name)
}

export class Link {
  readonly shown: string
  readonly connection: Connection
  private readonly headers: () => Headers
  private readonly answerMs: number
  /** Requests under way; each callback fails one. */
  private readonly waiting = new Set<(error: Error) => void>()
  private isAway = false
  private readonly held = new Set<() => void>()

  constructor({ answerMs, connection, headers, shown }: LinkOptions) {
    this.connection = connection
    this.headers = headers
    this.shown = shown
    this.answerMs = answerMs
  }

  failed(reason: WalFailed["reason"], what: string): WalFailed {
    return new WalFailed({ reason, message: `the log at ${this.shown} (SVC_LOG_URL): ${what}` })
  }

  unanswered(why: string): WalFailed {
    return this.failed("unreachable", `it does not answer: ${why}`)
  }

  /** Failure of a request: denied by the server, so without effect, or unanswered. */
  private failure(error: unknown): WalFailed {
    const denial = denialOf(error)
    return denial === undefined
      ? this.unanswered(wordsOf(error))
      : this.failed(
          "failed",
          `its user may not ${denial}; what it must be permitted is in the run book ("The log on NATS")`
        )
  }

  /** The failure for a refusal by the server. A refusal caused by the server's own state leaves the outcome open. */
  refusal({ code, description = "no reason given", err_code: errCode = 0 }: ApiError): WalFailed {
    const why = `${description} (${errCode === 0 ? code : errCode})`
    if (full.has(errCode)) return this.failed("full", `it refused: ${why}`)
    return code >= 400 && code < 500 && code !== 408 && code !== 409
      ? this.failed("failed", `it refused: ${why}`)
      : this.unanswered(why)
  }

  /** Fails all requests under way: their answers are lost with the connection. */
  disconnected(): void {
    this.isAway = true
    for (const end of this.waiting) end(new Error("the connection was lost"))
  }

  reconnected(): void {
    this.isAway = false
    for (const begin of this.held) begin()
    this.held.clear()
  }

  /** Waits for a connection: a request sent without one would be lost and waited for in vain. */
  private get connected(): Effect.Effect<void, WalFailed> {
    const back = Effect.async<void>((resume) => {
      if (!this.isAway) return resume(Effect.void)
      const begin = (): void => resume(Effect.void)
      this.held.add(begin)
      return Effect.sync(() => void this.held.delete(begin))
    })
    return Effect.timeoutFail(back, {
      duration: this.answerMs,
      onTimeout: () => this.unanswered("there is no connection")
    })
  }

  private send(...request: Parameters<Connection["request"]>): Promise<{ readonly data: Uint8Array }> {
    return new Promise((resolve, reject) => {
      const end = (error: Error): void => {
        this.waiting.delete(end)
        reject(error)
      }
      this.waiting.add(end)
      this.connection.request(...request).then((answer) => {
        this.waiting.delete(end)
        resolve(answer)
      }, end)
    })
  }

  /** One attempt, forked: the request goes on if its caller is interrupted. */
  private request(subject: string, payload: Uint8Array | string, headers?: Headers): Effect.Effect<string, WalFailed> {
    const options = headers === undefined ? { timeout: this.answerMs } : { timeout: this.answerMs, headers }
    const asking = Effect.tryPromise({
      try: () => this.send(subject, payload, options),
      catch: (error) => this.failure(error)
    })
    const timed = Effect.suspend(() => (this.isAway ? Effect.zipRight(this.connected, asking) : asking))
    return Effect.flatMap(Effect.forkDaemon(Effect.interruptible(timed)), (fiber) =>
      Effect.map(Fiber.join(fiber), ({ data }) => text.decode(data))
    )
  }

  private json(answer: string): Effect.Effect<Answer, WalFailed> {
    return Effect.try({
      try: () => JSON.parse(answer) as Answer,
      catch: () => this.failed("failed", `it answers something else than JSON: ${JSON.stringify(answer.slice(0, 100))}`)
    })
  }

  /** One JetStream command, sent once. */
  api(command: string, body?: unknown): Effect.Effect<Answer, WalFailed> {
    return Effect.flatMap(
      this.request(`$JS.API.${command}`, body === undefined ? "" : JSON.stringify(body)),
      (answer) => this.json(answer)
    )
  }

  /** A command that may be carried out more than once: retried, and a refusal is a failure. */
  asked(command: string, body?: unknown): Effect.Effect<Answer, WalFailed> {
    return this.again(
      Effect.flatMap(this.api(command, body), (answer) =>
        answer.error === undefined ? Effect.succeed(answer) : Effect.fail(this.refusal(answer.error))
      )
    )
  }

  again<A>(asking: Effect.Effect<A, WalFailed>): Effect.Effect<A, WalFailed> {
    return Effect.retry(asking, {
      while: ({ reason }) => reason === "unreachable",
      times: 20,
      schedule: Schedule.spaced(retryMs)
    })
  }

  /**
   * Adds a message if `expected` is still the stream's last; answers its number, or undefined if another message is the
   * last.
   */
  publish(subject: string, data: Uint8Array, { expected, id }: Publish): Effect.Effect<number | undefined, WalFailed> {
    return Effect.flatMap(this.answered(subject, data, { expected, id }), ({ error, seq }) => {
      if (error?.err_code === codes.wrongLast) return Effect.succeed(undefined)
      if (error !== undefined) return Effect.fail(this.refusal(error))
      // The server knew the message as a duplicate and others follow it, so the stream must be read.
      return seq === expected + 1
        ? Effect.succeed(seq)
        : Effect.fail(this.unanswered(`message ${String(seq)} for one expected behind ${expected}`))
    })
  }

  private answered(subject: string, data: Uint8Array, { expected, id }: Publish): Effect.Effect<Answer, WalFailed> {
    const fields = { "Nats-Expected-Last-Sequence": String(expected) }
    return this.stored(subject, data, id === "" ? fields : { ...fields, "Nats-Msg-Id": id })
  }

  private stored(subject: string, data: Uint8Array | string, fields: MessageHeaders): Effect.Effect<Answer, WalFailed> {
    return Effect.suspend(() => {
      const headers = this.headers()
      for (const [name, value] of Object.entries(fields)) headers.set(name, value)
      return Effect.flatMap(this.request(subject, data, headers), (answer) => this.json(answer))
    })
  }

  /**
   * Number of the last message as the refusal of a write tells it: all servers of the stream agree on that one, while
   * a read may be answered from an older state.
   */
  agreedLast(subject: string): Effect.Effect<number, WalFailed> {
    return Effect.flatMap(this.answered(subject, new Uint8Array(), { expected: never, id: "" }), ({ error }) => {
      const said = /wrong last sequence: (\d+)/.exec(error?.description ?? "")
      if (said !== null) return Effect.succeed(Number(said[1]))
      return Effect.fail(error === undefined ? this.unanswered("it took what it must refuse") : this.refusal(error))
    })
  }

  /** Adds a message without a condition. */
  tell(subject: string, data: Uint8Array | string, fields: MessageHeaders = {}): Effect.Effect<void, WalFailed> {
    return Effect.flatMap(this.stored(subject, data, fields), ({ error }) =>
      error === undefined ? Effect.void : Effect.fail(this.refusal(error))
    )
  }

  /** Deletes one message of a stream, if it is there. */
  drop(stream: string, seq: number): Effect.Effect<void, WalFailed> {
    return Effect.flatMap(this.api(`STREAM.MSG.DELETE.${stream}`, { seq, no_erase: true }), ({ error }) => {
      const isGone = error?.err_code === codes.notDeleted && /no message found|EOF/.test(error.description ?? "")
      return error === undefined || isGone ? Effect.void : Effect.fail(this.refusal(error))
    })
  }

  /** One message of a stream; undefined: there is none. */
  get(stream: string, query: object): Effect.Effect<Stored | undefined, WalFailed> {
    return Effect.flatMap(this.api(`STREAM.MSG.GET.${stream}`, query), ({ error, message }) => {
      if (error?.err_code === codes.noMessage) return Effect.succeed(undefined)
      if (error?.err_code === codes.noStream)
        return Effect.fail(this.failed("damaged", `its stream ${stream} is not there any more`))
      if (error !== undefined) return Effect.fail(this.refusal(error))
      const found = message as {
        readonly subject: string
        readonly seq: number
        readonly time: string
        readonly data?: string
      }
      const data = Buffer.from(found.data ?? "", "base64")
      return Effect.succeed({ subject: found.subject, seq: found.seq, at: Date.parse(found.time), data })
    })
  }
}
