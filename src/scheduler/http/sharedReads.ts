/**
 * Shares reads of results: one read for each view and format is under way at its SSP. Requests that come meanwhile
 * share the next read, so that each sees the writes before it.
 */
import type { Reply } from "../../ports/Front.ts"
import type { AnswerEvents, OpenCall } from "../../ports/SspClient.ts"

/**
 * Sends a read to the SSP; returns false if it cannot be sent. `began` passes on the answer that arrives, `failed` is
 * called if none does.
 */
export type SendRead = (
  ifNoneMatch: string | undefined,
  heard: AnswerEvents,
  began: (flow: OpenCall) => void,
  failed: () => void
) => boolean

interface Waiting {
  readonly reply: Pick<Reply, "send" | "whenGone">
  /** Called if the answer cannot be shared: the request is then passed on to the SSP. */
  readonly pass: () => void
  readonly ifNoneMatch: string | undefined
}

/** A longer result is not shared. */
const maxBytes = 1024 * 1024

const kept = ["cache-control", "etag"] as const

const keptOf = (headers: Parameters<AnswerEvents["head"]>[1]): { readonly [name: string]: string } =>
  Object.fromEntries(kept.flatMap((name) => (typeof headers[name] === "string" ? [[name, headers[name]]] : [])))

/**
 * One read at an SSP, and the clients that share its answer; an answer that cannot be shared is left to {@link
 * Waiting.pass}.
 */
class Read implements AnswerEvents {
  private readonly waiting = new Set<Waiting>()
  private flow: OpenCall | undefined
  private headers: { readonly [name: string]: string } = {}
  private status = 0
  private readonly pieces: Array<Uint8Array> = []
  private size = 0
  private isBegun = false
  private isOver = false

  constructor(private readonly done: () => void) {}

  join(waiting: Waiting): void {
    this.waiting.add(waiting)
    waiting.reply.whenGone(() => {
      if (this.waiting.delete(waiting) && this.waiting.size === 0 && this.isBegun) this.settle(() => {})
    })
  }

  begin(ask: SendRead): void {
    this.isBegun = true
    if (this.waiting.size === 0) this.settle(() => {})
    else if (!ask(this.ifNoneMatch, this, this.began, this.leave)) this.leave()
  }

  /**
   * The tag that all waiting clients have; undefined if they differ: a client that has the result is then answered 304
   * here.
   */
  private get ifNoneMatch(): string | undefined {
    const [first, ...others] = this.waiting
    return others.every(({ ifNoneMatch }) => ifNoneMatch === first?.ifNoneMatch) ? first?.ifNoneMatch : undefined
  }

  readonly head: AnswerEvents["head"] = (status, headers) => {
    this.status = status
    this.headers = keptOf(headers)
    const isShort = Number(headers["content-length"] ?? 0) <= maxBytes
    // A result without a tag leaves rows out, and each caller may see different errors of it.
    const isForAll = status === 200 && isShort && this.headers["etag"] !== undefined
    if (status !== 304 && !isForAll) this.leave()
  }

  /** Copied: the buffer is used again. */
  readonly data = (bytes: Uint8Array): void => {
    this.pieces.push(bytes.slice())
    this.size += bytes.length
    if (this.size > maxBytes) this.leave()
  }

  readonly end = (error: unknown): void => {
    if (error !== undefined) return this.leave()
    const { headers, pieces, status } = this
    this.settle(({ ifNoneMatch, reply }) => {
      const isSame = status === 304 || (ifNoneMatch !== undefined && ifNoneMatch === headers["etag"])
      reply.send(isSame ? { status: 304, headers, pieces: [] } : { status: 200, headers, pieces })
    })
  }

  private readonly began = (flow: OpenCall): void => {
    this.flow = flow
    if (this.isOver) flow.close()
  }

  private readonly leave = (): void => this.settle(({ pass }) => pass())

  /** Answers all waiting clients, once. */
  private settle(answer: (waiting: Waiting) => void): void {
    if (this.isOver) return
    this.isOver = true
    this.flow?.close()
    for (const waiting of this.waiting) {
      this.waiting.delete(waiting)
      answer(waiting)
    }
    this.done()
  }
}

export class SharedReads {
  /** Reads under way by the name of the result, with the next read if clients wait for it. */
  private readonly reads = new Map<string, { next: { readonly read: Read; readonly ask: SendRead } | undefined }>()

  /** Joins the next read of a result, or sends one. `what`: name of the result and its form. */
  read(what: string, ask: SendRead, waiting: Waiting): void {
    const under = this.reads.get(what)
    if (under === undefined) {
      this.reads.set(what, { next: undefined })
      return this.waitingFor(what, waiting).begin(ask)
    }
    if (under.next === undefined) under.next = { read: this.waitingFor(what, waiting), ask }
    else under.next.read.join(waiting)
  }

  private waitingFor(what: string, waiting: Waiting): Read {
    const read = new Read(() => this.ended(what))
    read.join(waiting)
    return read
  }

  private ended(what: string): void {
    const next = this.reads.get(what)?.next
    if (next === undefined) return void this.reads.delete(what)
    this.reads.set(what, { next: undefined })
    next.read.begin(next.ask)
  }
}
