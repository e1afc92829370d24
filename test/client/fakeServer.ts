/**
 * The service's side of the wire, in memory: views with a buffer of deltas, streams of several views, tokens with an
 * end. It breaks what it sends where a test says so.
 *
 * Every state that a view ever had is kept under the id of its event, so that a test can ask whether the server had the
 * rows that a client shows.
 */

import type { Rng } from "../../kit/data/random.ts"
import * as JsonText from "../../src/core/jsonText.ts"
import { canonical, diff, type Json } from "./diff.ts"
import type { VirtualWorld } from "./virtualWorld.ts"

interface Sent {
  readonly n: number
  readonly data: object
}

export interface ServedView {
  readonly id: string
  incarnation: number
  n: number
  rows: ReadonlyArray<Json>
  recent: Array<Sent>
}

interface Place {
  readonly id: string
  token: string
  isOver: boolean
}

interface Connection {
  readonly id: string
  readonly places: Array<Place>
  readonly send: (text: string) => void
  readonly close: () => void
  isOpen: boolean
}

type Refusing = (path: string, body: { readonly [name: string]: unknown }) => Response | undefined

const buffered = 20
const encoder = new TextEncoder()

export const refusal = (status: number, code: string, message: string, headers: { [name: string]: string } = {}) =>
  new Response(JSON.stringify({ code, message }), { status, headers })

export class FakeServer {
  readonly views = new Map<string, ServedView>()
  /** Rows as canonical text, by view and id of the event. */
  readonly states = new Map<string, string>()
  readonly requests: Array<string> = []
  readonly connections = new Set<Connection>()
  /** How often a stream ended because a token was not renewed. */
  expiries = 0
  tokenMs = 60_000
  /** Whether a token is accepted at all. */
  accepts: (token: string) => boolean = () => true
  /** Whatever token is sent, or none. */
  takesAny = false
  refuse: Refusing = () => undefined
  /** Cuts what is sent into pieces; the connection breaks at one that is undefined. */
  pieces: (bytes: Uint8Array) => ReadonlyArray<Uint8Array | undefined> = (bytes) => [bytes]
  private readonly world: VirtualWorld
  private readonly random: Rng
  private streams = 0

  constructor(world: VirtualWorld, random: Rng) {
    this.world = world
    this.random = random
    world.answer = (address, init) => this.answer(address, init)
    const beat = (): void => {
      for (const connection of this.connections) connection.send(": still here\n\n")
      world.after(15_000, beat)
    }
    world.after(15_000, beat)
  }

  add(id: string, rows: ReadonlyArray<Json> = []): ServedView {
    const view = { id, incarnation: 1, n: 0, rows, recent: [] }
    this.views.set(id, view)
    this.keep(view)
    return view
  }

  token(): { token: string; expires_in_ms: number } {
    return { token: `until:${this.world.now() + this.tokenMs}`, expires_in_ms: this.tokenMs }
  }

  /** The rows are these now; followers get a delta. */
  change(view: ServedView, rows: ReadonlyArray<Json>): void {
    const delta = { seq: view.n, result_hash: "h", ...diff(this.random, view.rows, rows) }
    view.rows = rows
    // Numbers may skip.
    view.n += 1 + this.random.below(2)
    view.recent.push({ n: view.n, data: delta })
    if (view.recent.length > buffered) view.recent.shift()
    this.keep(view)
    this.each(view, (connection, place) => this.delta(connection, place, view, view.recent.at(-1)!))
  }

  /** A new incarnation: what was buffered is of no use. */
  restart(view: ServedView): void {
    view.incarnation++
    view.n = 0
    view.recent = []
    this.keep(view)
  }

  end(view: ServedView, reason: string): void {
    this.each(view, (connection, place) => this.tell(connection, place, "end", { reason }, undefined, true))
  }

  /** All connections end: cleanly, or with an error in the middle of what was sent last. */
  cut(): void {
    for (const connection of [...this.connections]) connection.close()
  }

  /** Views that tokens were not renewed for. */
  expire(): void {
    for (const connection of this.connections)
      for (const [place, { isOver, token }] of connection.places.entries())
        if (!isOver && this.isExpired(token)) {
          this.expiries++
          this.tell(connection, place, "end", { reason: "unauthorized" }, undefined, true)
        }
  }

  private keep({ id, incarnation, n, rows }: ServedView): void {
    this.states.set(`${id} ${incarnation}.${n}`, canonical(rows))
  }

  private each(view: ServedView, run: (connection: Connection, place: number) => void): void {
    for (const connection of [...this.connections])
      for (const [place, { id, isOver }] of [...connection.places.entries()])
        if (!isOver && id === view.id) run(connection, place)
  }

  private tell(connection: Connection, place: number, event: string, data: object, id?: string, isLast = false): void {
    if (isLast) connection.places[place]!.isOver = true
    connection.send(
      `view: ${place}\nevent: ${event}\n${id === undefined ? "" : `id: ${id}\n`}data: ${JsonText.write(data)}\n\n`
    )
  }

  private delta(connection: Connection, place: number, view: ServedView, { data, n }: Sent): void {
    this.tell(connection, place, "delta", data, `${view.incarnation}.${n}`)
  }

  private isExpired(token: string): boolean {
    return Number(token.split(":")[1]) <= this.world.now()
  }

  private isGood(token: string): boolean {
    if (this.takesAny) return true
    return token.startsWith("until:") && !this.isExpired(token) && this.accepts(token)
  }

  private begin(connection: Connection, asked: { view: string; after?: string; token?: string }, bearer: string): void {
    const place = connection.places.length
    const token = asked.token ?? bearer
    connection.places.push({ id: asked.view, token, isOver: false })
    const no = (code: string, message: string) => this.tell(connection, place, "refused", { code, message }, "", true)
    if (!this.isGood(token)) return no("UNAUTHORIZED", "the token has expired")
    const view = this.views.get(asked.view)
    if (view === undefined) return no("VIEW_NOT_FOUND", `no view ${asked.view}`)
    const [incarnation, n] = (asked.after ?? "0.0").split(".").map(Number)
    const at = view.recent.findIndex((each) => each.n === n) + 1
    if (incarnation === view.incarnation && (n === view.n || at > 0)) {
      if (n !== view.n) for (const sent of view.recent.slice(at)) this.delta(connection, place, view, sent)
      return
    }
    const parts = 1 + this.random.below(3)
    const size = Math.ceil(view.rows.length / parts)
    for (let part = 0; part < parts; part++) {
      const isLast = part === parts - 1
      const rows = view.rows.slice(part * size, isLast ? undefined : (part + 1) * size)
      const data = { query_id: view.id, part, parts, rows, ...(isLast ? { only: false, result_hash: "h" } : {}) }
      this.tell(connection, place, "snapshot", data, isLast ? `${view.incarnation}.${view.n}` : undefined)
    }
  }

  private stream(views: ReadonlyArray<{ view: string }>, bearer: string, signal: AbortSignal): Response {
    let connection: Connection
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        connection = {
          id: `s${++this.streams}`,
          places: [],
          isOpen: true,
          send: (text) => {
            if (!connection.isOpen) return
            for (const piece of this.pieces(encoder.encode(text)))
              if (piece === undefined) connection.close()
              else controller.enqueue(piece)
          },
          close: () => {
            if (!connection.isOpen) return
            connection.isOpen = false
            this.connections.delete(connection)
            if (this.random.chance(0.5)) controller.close()
            else controller.error(new Error("socket hang up"))
          }
        }
        signal.addEventListener("abort", () => {
          this.connections.delete(connection)
          connection.isOpen = false
        })
        this.connections.add(connection)
        connection.send(`event: open\ndata: ${JSON.stringify({ stream: connection.id })}\n\n`)
        for (const view of views) this.begin(connection, view, bearer)
      }
    })
    return new Response(body, { headers: { "content-type": "text/event-stream" } })
  }

  private async answer(address: string, init: RequestInit): Promise<Response> {
    const path = new URL(address).pathname
    const body = JSON.parse(String(init.body)) as {
      views?: Array<{ view: string }>
      add?: Array<{ view: string }>
      drop?: Array<number>
      renew?: Array<[number, string]>
    }
    const bearer = new Headers(init.headers).get("authorization")?.slice("Bearer ".length) ?? ""
    this.requests.push(path)
    const refused = this.refuse(path, body)
    if (refused !== undefined) return refused
    if (!this.isGood(bearer)) return refusal(401, "UNAUTHORIZED", "the token has expired")
    if (path === "/view/touch") return Response.json({ touched: body.views })
    if (path === "/stream") return this.stream(body.views ?? [], bearer, init.signal!)
    const connection = [...this.connections].find(({ id }) => path === `/stream/${id}`)
    if (connection === undefined) return refusal(404, "STREAM_NOT_FOUND", "no such stream")
    for (const place of body.drop ?? []) connection.places[place]!.isOver = true
    for (const [place, token] of body.renew ?? []) connection.places[place]!.token = token
    const first = connection.places.length
    for (const view of body.add ?? []) this.begin(connection, view, bearer)
    return Response.json({ places: (body.add ?? []).map((_, n) => first + n) })
  }
}
