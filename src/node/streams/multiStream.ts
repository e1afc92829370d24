/**
 * Several views over one connection (D50): each at a place of its own, added and dropped while the stream goes on.
 *
 * Events are those of the view's own stream with a line `view: <place>` in front, which clients of one view pass over.
 * What a view is refused with is an event at its place, so that one view that is gone does not end the others.
 */
import * as Bytes from "../../core/bytes.ts"
import type { Sink } from "../../ports/Front.ts"
import type { WireError } from "../../protocol/errors.ts"
import { heartbeat } from "./sse.ts"

export interface AskedView {
  readonly view: string
  readonly after?: string | undefined
  readonly token?: string | undefined
}

/** Where the events of one view go. False: no more until it resumes. */
export type TakePieces = (pieces: ReadonlyArray<Uint8Array>, isLast: boolean) => boolean

/** A view that is followed. Takes nothing before the first `resume`. */
export interface Followed {
  readonly resume: () => void
  readonly close: () => void
}

/** How long a caller may follow a view, and for whom it does; both undefined with a secret. */
export interface Leave {
  readonly expiresAtMs: number | undefined
  readonly subject: string | undefined
}

/** Why a view may not be followed. */
export interface NoLeave {
  readonly code: "UNAUTHORIZED"
  readonly message: string
}

export interface MultiStreamParts {
  /** Whether the view may be followed. */
  readonly admit: (view: string, token: string | undefined) => Leave | NoLeave
  readonly follow: (view: string, after: string | undefined, take: TakePieces) => Followed | WireError
}

interface Place {
  readonly view: string
  leave: Leave
  followed: Followed | undefined
}

const encoder = new TextEncoder()

export const event = (name: string, data: unknown): Uint8Array =>
  encoder.encode(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`)

export class MultiStream {
  readonly id: string
  private readonly parts: MultiStreamParts
  private readonly sink: Sink
  /** By number; undefined where a view is over or was dropped. */
  private readonly places: Array<Place | undefined> = []
  /** Whether the client has taken what it was given. */
  private keepsUp = true
  /** Views that are followed. */
  live = 0
  /** When the first token expires; infinity where none does. */
  private expiresAtMs = Number.POSITIVE_INFINITY

  constructor(id: string, parts: MultiStreamParts, sink: Sink) {
    this.id = id
    this.parts = parts
    this.sink = sink
    this.keepsUp = sink.write(event("open", { stream: id }))
  }

  /** Places there have been. */
  get size(): number {
    return this.places.length
  }

  /** Follows one more; its place. A view that is refused has one too. */
  add({ after, token, view }: AskedView): number {
    const n = this.places.length
    const leave = this.parts.admit(view, token)
    const place: Place = { view, leave: "code" in leave ? noLeave : leave, followed: undefined }
    this.places.push(place)
    const head = encoder.encode(`view: ${n}\n`)
    const followed =
      "code" in leave
        ? leave
        : this.parts.follow(view, after, (pieces, isLast) => {
            this.keepsUp = this.sink.write(Bytes.joined(pieces.flatMap((piece) => [head, piece])))
            if (isLast) this.over(n)
            return this.keepsUp
          })
    if ("code" in followed) {
      this.places[n] = undefined
      this.tell(n, "refused", { code: followed.code, message: followed.message })
      return n
    }
    place.followed = followed
    this.live++
    this.expireBy(place.leave)
    followed.resume()
    return n
  }

  drop(n: number): void {
    const place = this.places[n]
    if (place === undefined) return
    this.over(n)
    place.followed?.close()
  }

  /** Whether a view is followed at this place. */
  isLive(n: number): boolean {
    return this.places[n] !== undefined
  }

  /** Takes a new token for the view at this place when it is called; undefined where that view is over. */
  renewal(n: number, token: string): (() => void) | NoLeave | undefined {
    const place = this.places[n]
    if (place === undefined) return undefined
    const leave = this.parts.admit(place.view, token)
    if ("code" in leave) return leave
    return () => {
      place.leave = leave
      this.expireBy(leave)
    }
  }

  readonly drained = (): void => {
    this.keepsUp = true
    for (const place of this.places) place?.followed?.resume()
  }

  /** The client is gone. */
  readonly gone = (): void => {
    for (const n of this.places.keys()) this.drop(n)
  }

  /** For a client that waits for it: one that does not take its bytes needs no more behind them. */
  beat(): void {
    if (this.keepsUp) this.keepsUp = this.sink.write(heartbeat)
  }

  /** Ends what was followed with a token that is not good any more. */
  expire(nowMs: number): void {
    if (nowMs < this.expiresAtMs) return
    this.expiresAtMs = Number.POSITIVE_INFINITY
    for (const [n, place] of this.places.entries()) {
      const atMs = place?.leave.expiresAtMs
      if (atMs === undefined) continue
      if (atMs <= nowMs) this.endOne(n, "unauthorized")
      else this.expiresAtMs = Math.min(this.expiresAtMs, atMs)
    }
  }

  /** Ends what is followed for this subject. */
  revoke(subject: string): void {
    for (const [n, place] of this.places.entries()) if (place?.leave.subject === subject) this.endOne(n, "revoked")
  }

  /** The service stops. */
  stop(): void {
    for (const [n, place] of this.places.entries()) if (place !== undefined) this.endOne(n, "shutdown")
    this.sink.end()
  }

  private expireBy({ expiresAtMs = Number.POSITIVE_INFINITY }: Leave): void {
    this.expiresAtMs = Math.min(this.expiresAtMs, expiresAtMs)
  }

  private endOne(n: number, reason: string): void {
    this.drop(n)
    this.tell(n, "end", { reason })
  }

  private tell(n: number, name: string, data: object): void {
    this.keepsUp = this.sink.write(Bytes.joined([encoder.encode(`view: ${n}\n`), event(name, data)]))
  }

  private over(n: number): void {
    if (this.places[n]?.followed !== undefined) this.live--
    this.places[n] = undefined
  }
}

const noLeave: Leave = { expiresAtMs: undefined, subject: undefined }
