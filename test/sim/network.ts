/**
 * A loopback between nodes of one process: requests travel as data, in virtual time, over a network that delays, loses,
 * doubles and partitions by a seed.
 *
 * What is lost is lost without a word, as on a real network, so that every time-out is needed; who talks to a node that
 * is not there is refused. The trace is one line per request, and the same seed gives the same lines.
 */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientError from "@effect/platform/HttpClientError"
import type * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { Effect } from "effect"
import type { Rng } from "../../kit/data/random.ts"
import type { VirtualTime } from "../../kit/data/virtualTime.ts"

export interface Message {
  readonly method: string
  readonly path: string
  readonly headers: { readonly [name: string]: string | undefined }
  readonly body: string
}

export interface Reply {
  readonly status: number
  readonly headers: { readonly [name: string]: string }
  readonly body: string
  /** The rest of an answer that goes on. */
  readonly flow?: ReadableStream<Uint8Array>
}

export type Handler = (message: Message) => Promise<Reply>

/** Probabilities of one request, and the longest way. */
export interface Weather {
  readonly lose: number
  readonly loseAnswer: number
  readonly double: number
  readonly delayMs: number
}

export const calm: Weather = { lose: 0, loseAnswer: 0, double: 0, delayMs: 3 }
export const rough: Weather = { lose: 0.04, loseAnswer: 0.04, double: 0.04, delayMs: 60 }

interface Bound {
  readonly name: string
  readonly handler: Handler
  /** Requests under way to it: they break when it falls. */
  readonly breaks: Set<() => void>
}

const textOf = (request: HttpClientRequest.HttpClientRequest): string =>
  request.body._tag === "Uint8Array" ? new TextDecoder().decode(request.body.body) : ""

export class Network {
  readonly trace: Array<string> = []
  weather: Weather = calm
  /** Names that nobody reaches and that reach nobody. */
  readonly cutOff = new Set<string>()
  /** Names of nodes that are falling: nothing of theirs gets out any more. */
  readonly falling = new Set<string>()
  private readonly nodes = new Map<string, Bound>()
  private readonly time: VirtualTime
  private readonly random: Rng

  constructor(time: VirtualTime, random: Rng) {
    this.time = time
    this.random = random
  }

  bind(name: string, host: string, handler: Handler): void {
    this.nodes.set(host, { name, handler, breaks: new Set() })
  }

  /** The node falls: its connections break. */
  unbind(host: string): void {
    const node = this.nodes.get(host)
    this.nodes.delete(host)
    for (const fails of node?.breaks ?? []) this.time.after(this.delay(), fails)
  }

  /** Sends a message; `answered` is called once, or never. */
  send(from: string, host: string, message: Message, answered: (reply: Reply | undefined) => void): void {
    if (this.falling.has(from)) return answered(undefined)
    const { double, lose, loseAnswer } = this.weather
    const lost = this.random.chance(lose)
    const answerLost = this.random.chance(loseAnswer)
    const ways = this.random.chance(double) ? 2 : 1
    let done = false
    const end = (how: string, reply: Reply | undefined): void => {
      if (done) return
      done = true
      this.trace.push(
        `${this.time.now} ${from} -> ${this.nodes.get(host)?.name ?? host} ${message.method} ${message.path} ${how}`
      )
      answered(reply)
    }
    for (let way = 0; way < ways; way++) {
      this.time.after(this.delay(), () => {
        if (lost || this.isCut(from, host)) return
        const node = this.nodes.get(host)
        if (node === undefined) return end("refused", undefined)
        const broken = (): void => end("broken", undefined)
        node.breaks.add(broken)
        void node.handler(message).then((reply) => {
          this.time.after(this.delay(), () => {
            node.breaks.delete(broken)
            if (!answerLost && !this.isCut(from, host)) end(`${reply.status} ${reply.body.length}`, reply)
          })
        })
      })
    }
  }

  /** The network as a node sees it. */
  client(from: string): HttpClient.HttpClient {
    return HttpClient.make((request, url) =>
      Effect.async((resume) => {
        const message: Message = {
          method: request.method,
          path: `${url.pathname}${url.search}`,
          headers: request.headers,
          body: textOf(request)
        }
        this.send(from, url.host, message, (reply) =>
          resume(
            reply === undefined
              ? Effect.fail(
                  new HttpClientError.RequestError({ request, reason: "Transport", description: "no connection" })
                )
              : Effect.succeed(
                  HttpClientResponse.fromWeb(
                    request,
                    new Response(reply.flow === undefined ? reply.body : this.relayed(from, url.host, reply.flow), {
                      status: reply.status,
                      headers: reply.headers
                    })
                  )
                )
          )
        )
      })
    )
  }

  /**
   * An answer that goes on: its pieces in order, late, and at times cut off at any byte. Behind a partition nothing comes
   * any more, and no word of it.
   */
  private relayed(from: string, host: string, flow: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    const reader = flow.getReader()
    const node = this.nodes.get(host)
    let isOver = false
    let arrivesAt = 0
    return new ReadableStream<Uint8Array>({
      start: (into) => {
        const breakOff = (): void => {
          if (isOver) return
          isOver = true
          into.error(new Error("broken off"))
          void reader.cancel().catch(() => {})
        }
        node?.breaks.add(breakOff)
        const arrived = (piece: Uint8Array): void => {
          if (isOver || this.isCut(from, host)) {
            isOver = true
            return
          }
          if (this.random.chance(this.weather.lose)) {
            into.enqueue(piece.slice(0, this.random.below(piece.length)))
            return breakOff()
          }
          into.enqueue(piece)
        }
        const next = (): void =>
          void reader.read().then(
            ({ done, value }) => {
              if (done) return this.time.after(this.delay(), breakOff)
              arrivesAt = Math.max(arrivesAt, this.time.now + this.delay())
              this.time.after(arrivesAt - this.time.now, () => arrived(value))
              return next()
            },
            () => breakOff()
          )
        next()
      },
      cancel: () => {
        isOver = true
        void reader.cancel().catch(() => {})
      }
    })
  }

  private delay(): number {
    return 1 + this.random.below(this.weather.delayMs)
  }

  private isCut(from: string, host: string): boolean {
    const to = this.nodes.get(host)?.name
    return this.cutOff.has(from) || (to !== undefined && this.cutOff.has(to))
  }
}
