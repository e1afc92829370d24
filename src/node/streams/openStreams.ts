/**
 * The open streams of several views on one process, by id (D50).
 *
 * An id is random and told to the opener only, so a stream is changed by callers who know it and pass the guard. Each
 * addition is judged by the bearer of its own request and not by that of the opening: an ended grant opens nothing
 * again (D49).
 */
import { bytesToHex, randomBytes } from "@noble/hashes/utils.js"
import type { ViewGrant } from "../../core/access/viewToken.ts"
import type { BodySink } from "../../ports/Front.ts"
import { invalidRequest } from "../http/answers.ts"
import type { PermissionRefused } from "../http/viewTokens.ts"
import { type AskedView, MultiStream, type MultiStreamParts } from "./multiStream.ts"

export interface StreamChange {
  readonly add?: ReadonlyArray<AskedView> | undefined
  readonly drop?: ReadonlyArray<number> | undefined
  readonly renew?: ReadonlyArray<readonly [number, string]> | undefined
}

type Invalid = ReturnType<typeof invalidRequest>

export interface NoStream {
  readonly code: "STREAM_NOT_FOUND"
  readonly message: string
}

export const viewsSetting = "SVC_STREAM_VIEWS"

/** Most places of one stream in its lifetime. Both sides count them, so they are never reused. */
const maxPlaces = 100_000

export class OpenStreams {
  private readonly all = new Map<string, MultiStream>()

  constructor(
    /** Most views of one stream, and of one token. */
    readonly maxViews: number
  ) {}

  /** Why a stream of so many views is refused; undefined if it is not. */
  refusal(views: ReadonlyArray<AskedView>): Invalid | undefined {
    return views.length <= this.maxViews ? undefined : this.tooMany("views", views.length)
  }

  /** Opens a stream of views that {@link refusal} accepts, for a caller with this grant or a secret. */
  open(
    views: ReadonlyArray<AskedView>,
    grant: ViewGrant | undefined,
    parts: MultiStreamParts,
    sink: BodySink
  ): MultiStream {
    const stream = new MultiStream(bytesToHex(randomBytes(16)), parts, sink)
    this.all.set(stream.id, stream)
    for (const view of views) stream.add(view, grant)
    return stream
  }

  /** Called when the client of a stream has left. */
  gone(stream: MultiStream): void {
    this.all.delete(stream.id)
    stream.gone()
  }

  /** Applies a whole change for a caller with this grant or a secret; or none of it, and answers why. */
  change(
    id: string,
    grant: ViewGrant | undefined,
    { add = [], drop = [], renew = [] }: StreamChange
  ): { readonly places: ReadonlyArray<number> } | Invalid | PermissionRefused | NoStream {
    const stream = this.all.get(id)
    if (stream === undefined || stream.size + add.length > maxPlaces)
      return { code: "STREAM_NOT_FOUND", message: "there is no such stream, or not any more; open a new one" }
    const most = stream.live + add.length - [...new Set(drop)].filter((place) => stream.isLive(place)).length
    if (most > this.maxViews) return this.tooMany("add", most)
    const renewals: Array<() => void> = []
    for (const [place, token] of renew) {
      const renewal = stream.renewal(place, token)
      if (typeof renewal === "function") renewals.push(renewal)
      else if (renewal !== undefined) return renewal
    }
    for (const take of renewals) take()
    for (const place of drop) stream.drop(place)
    return { places: add.map((view) => stream.add(view, grant)) }
  }

  beat(): void {
    for (const stream of this.all.values()) stream.beat()
  }

  expire(nowMs: number): void {
    for (const stream of this.all.values()) stream.expire(nowMs)
  }

  revoke(subject: string): void {
    for (const stream of this.all.values()) stream.revoke(subject)
  }

  stop(): void {
    for (const stream of this.all.values()) stream.stop()
  }

  private tooMany(path: string, count: number): Invalid {
    return invalidRequest([
      {
        path,
        reason: `would make ${count} views of one stream, the limit is ${this.maxViews} (setting ${viewsSetting})`
      }
    ])
  }
}
