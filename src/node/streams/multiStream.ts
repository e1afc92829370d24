/**
 * Several views over one connection (D50): each at a place of its own, added and dropped while the stream is open.
 *
 * Events are those of the view's own stream behind a line `view: <place>`, which clients of a single view ignore. A
 * refused view gets an event at its place, so that it does not end the others.
 *
 * Nothing is written to a client that does not take its bytes: a view that is added then is followed later, and each
 * view with news waits with one piece. When the client has taken all, the waiting places continue one after the other.
 */
import type { ViewGrant } from "../../core/access/viewToken.ts"
import * as Bytes from "../../core/bytes.ts"
import type { BodySink } from "../../ports/Front.ts"
import type { WireError } from "../../protocol/errors.ts"
import type { PermissionRefused, ViewPermission } from "../http/viewTokens.ts"
import { heartbeat } from "./sse.ts"

export interface AskedView {
  readonly view: string
  readonly after?: string | undefined
  readonly token?: string | undefined
}

/** Receives the events of one view. False: no more until it resumes. */
export type TakePieces = (pieces: ReadonlyArray<Uint8Array>, isLast: boolean) => boolean

/** A followed view. It gives nothing before the first `resume`. */
export interface FollowedView {
  readonly resume: () => void
  readonly close: () => void
}

export interface MultiStreamParts {
  /** Whether the view may be followed: by `token`, or else by the caller's grant or secret. */
  readonly admit: (
    view: string,
    token: string | undefined,
    grant: ViewGrant | undefined
  ) => ViewPermission | PermissionRefused
  readonly follow: (view: string, after: string | undefined, take: TakePieces) => FollowedView | WireError
}

/**
 * Follows a view once the registration under way has ended; undefined if none is under way, in which case `wait`
 * answers false.
 */
export const followWhenSettled = (
  follow: () => FollowedView | WireError,
  take: TakePieces,
  wait: (done: () => void) => boolean
): FollowedView | undefined => {
  let followed: FollowedView | undefined
  let isClosed = false
  const begin = (): void => {
    if (isClosed || wait(begin)) return
    const now = follow()
    if ("code" in now) return void take([refusal(now)], true)
    followed = now
    followed.resume()
  }
  if (!wait(begin)) return undefined
  return {
    resume: () => followed?.resume(),
    close: () => {
      isClosed = true
      followed?.close()
    }
  }
}

interface Place {
  readonly view: string
  permission: ViewPermission
  followed: FollowedView | undefined
}

const encoder = new TextEncoder()

const event = (name: string, data: unknown): Uint8Array =>
  encoder.encode(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`)

const refusal = ({ code, message }: WireError | PermissionRefused): Uint8Array => event("refused", { code, message })

export class MultiStream {
  /** Places by number; undefined if the view has ended or was dropped. */
  private readonly places: Array<Place | undefined> = []
  /** Whether the client has taken all bytes. */
  private keepsUp = true
  /** Work of the places that wait until the client has taken all bytes, by number; first come, first served. */
  private readonly waiting = new Map<number, () => void>()
  /** Number of views that are followed, or wait to be. */
  live = 0
  /** When the first token expires; infinity if none does. */
  private expiresAtMs = Number.POSITIVE_INFINITY

  constructor(
    readonly id: string,
    private readonly parts: MultiStreamParts,
    private readonly sink: BodySink
  ) {
    this.keepsUp = sink.write(event("open", { stream: id }))
  }

  /** Number of places given so far. */
  get size(): number {
    return this.places.length
  }

  /** Follows one more view for a caller; answers its place. A refused view has a place too. */
  add({ after, token, view }: AskedView, grant: ViewGrant | undefined): number {
    const n = this.places.length
    const permission = this.parts.admit(view, token, grant)
    const place: Place = { view, permission: "code" in permission ? noPermission : permission, followed: undefined }
    this.places.push(place)
    this.live++
    this.expireBy(place.permission)
    this.inTurn(n, () => this.begin(n, place, after, "code" in permission ? permission : undefined))
    return n
  }

  drop(n: number): void {
    const place = this.places[n]
    if (place === undefined) return
    this.over(n)
    place.followed?.close()
  }

  private begin(n: number, place: Place, after: string | undefined, refused: PermissionRefused | undefined): void {
    const head = encoder.encode(`view: ${n}\n`)
    const give = (pieces: ReadonlyArray<Uint8Array>, isLast: boolean): boolean => {
      this.keepsUp = this.sink.write(Bytes.joined(pieces.flatMap((piece) => [head, piece])))
      if (isLast) this.over(n)
      else if (!this.keepsUp) this.waiting.set(n, () => place.followed?.resume())
      return this.keepsUp
    }
    const take: TakePieces = (pieces, isLast) => {
      if (this.keepsUp) return give(pieces, isLast)
      this.waiting.set(n, () => {
        if (give(pieces, isLast)) place.followed?.resume()
      })
      return false
    }
    const followed = refused ?? this.parts.follow(place.view, after, take)
    if ("code" in followed) {
      this.over(n)
      this.tell(n, refusal(followed))
      return
    }
    place.followed = followed
    followed.resume()
  }

  /** Runs `work` at once, or when the client has taken all bytes. */
  private inTurn(n: number, work: () => void): void {
    if (this.keepsUp) work()
    else this.waiting.set(n, work)
  }

  /** Whether a view is followed at this place. */
  isLive(n: number): boolean {
    return this.places[n] !== undefined
  }

  /** A function that installs a new token for the view at this place; undefined if that view has ended. */
  renewal(n: number, token: string): (() => void) | PermissionRefused | undefined {
    const place = this.places[n]
    if (place === undefined) return undefined
    const permission = this.parts.admit(place.view, token, undefined)
    if ("code" in permission) return permission
    return () => {
      place.permission = permission
      this.expireBy(permission)
    }
  }

  readonly drained = (): void => {
    this.keepsUp = true
    for (const [n, work] of this.waiting) {
      if (!this.keepsUp) return
      this.waiting.delete(n)
      work()
    }
  }

  /** Called when the client has left. */
  readonly gone = (): void => {
    for (const n of this.places.keys()) this.drop(n)
  }

  /** Writes a heartbeat, unless the client still has bytes to take. */
  beat(): void {
    if (this.keepsUp) this.keepsUp = this.sink.write(heartbeat)
  }

  /** Ends views whose token has expired. */
  expire(nowMs: number): void {
    if (nowMs < this.expiresAtMs) return
    this.expiresAtMs = Number.POSITIVE_INFINITY
    for (const [n, place] of this.places.entries()) {
      const atMs = place?.permission.expiresAtMs
      if (atMs === undefined) continue
      if (atMs <= nowMs) this.endOne(n, "unauthorized")
      else this.expiresAtMs = Math.min(this.expiresAtMs, atMs)
    }
  }

  /** Ends the views of this subject. */
  revoke(subject: string): void {
    for (const [n, place] of this.places.entries()) if (place?.permission.subject === subject) this.endOne(n, "revoked")
  }

  /** Ends all views when the service stops. */
  stop(): void {
    for (const [n, place] of this.places.entries()) if (place !== undefined) this.endOne(n, "shutdown")
    this.sink.end()
  }

  private expireBy({ expiresAtMs = Number.POSITIVE_INFINITY }: ViewPermission): void {
    this.expiresAtMs = Math.min(this.expiresAtMs, expiresAtMs)
  }

  private endOne(n: number, reason: string): void {
    this.drop(n)
    this.tell(n, event("end", { reason }))
  }

  private tell(n: number, told: Uint8Array): void {
    this.keepsUp = this.sink.write(Bytes.joined([encoder.encode(`view: ${n}\n`), told]))
  }

  private over(n: number): void {
    if (this.places[n] !== undefined) this.live--
    this.places[n] = undefined
    this.waiting.delete(n)
  }
}

const noPermission: ViewPermission = { expiresAtMs: undefined, subject: undefined }
